//! What many calls say together: how often a tool works, how long it takes, and how it fails.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use windlass_contract::ToolName;

use super::{Calls, CallsError, error::Attempt, read::UNKNOWN_TOOL, store::number};

/// After so long a call counts half.
const HALF_LIFE_DAYS: f64 = 7.0;
/// What is believed of a tool that nobody has called: four calls, three of which worked. A few failures then weigh little
/// and many weigh much.
const PRIOR: (f64, f64) = (3.0, 4.0);
/// What a person says of a call counts in the place of its verdict, and as much as so many calls: it is rarer, and they know what
/// they wanted.
const FEEDBACK_WEIGHT: f64 = 3.0;
/// So many steps are shown of how latency went.
const STEPS: usize = 16;

/// What calls are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Their tool.
    Tool,
    /// Their session.
    Session,
    /// What kind of failure they were.
    Error,
}

/// Calls that have something in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What.
    pub name: String,
    /// How many.
    pub calls: u64,
    /// How many did what was asked.
    pub succeeded: u64,
    /// How many did not. The rest has no end, or one that says nothing about their tool.
    pub failed: u64,
    /// Of how many a person said that they were good, and of how many that they were bad.
    pub said: (u64, u64),
    /// The rate of success, in which a call counts half after a week, and threefold if a person spoke of it: then it is what
    /// they said. None if there is nothing to go by.
    pub rate: Option<f64>,
    /// How long the fastest half, nine tenths and 99 of 100 took at most, of those that ended.
    pub latency: Option<[Duration; 3]>,
    /// How long they took from the oldest to the newest: medians of equally many.
    pub trend: Vec<Duration>,
    /// The newest.
    pub last: Timestamp,
    /// Bytes of input.
    pub bytes_in: u64,
    /// Bytes of results.
    pub bytes_out: u64,
    /// Kinds of failure, the most frequent first.
    pub classes: Vec<(String, u64)>,
}

/// How a tool stands, for choosing between tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The tool.
    pub tool: ToolName,
    /// How many calls there were.
    pub calls: u64,
    /// How likely it is to do what is asked: what was seen, recent calls counting more, mixed with what is believed of a tool
    /// nobody has seen. What a person said counts as in [`Group::rate`].
    pub rate: f64,
    /// When it was called last.
    pub last: Timestamp,
    /// How long ago that is.
    pub age: Duration,
}

/// A sum in which what is old counts less.
#[derive(Default)]
struct Decaying {
    successes: f64,
    weight: f64,
}

impl Decaying {
    fn add(&mut self, successes: f64, calls: f64, age_days: f64) {
        let weight = (-age_days.max(0.0) / HALF_LIFE_DAYS).exp2();
        self.successes += weight * successes;
        self.weight += weight * calls;
    }
}

#[derive(Default)]
struct Adding {
    calls: u64,
    succeeded: u64,
    failed: u64,
    said: (u64, u64),
    rate: Decaying,
    durations: Vec<u32>,
    last: i64,
    bytes_in: u64,
    bytes_out: u64,
    classes: BTreeMap<String, u64>,
}

impl Calls {
    /// Puts the calls of some time together, the largest group first.
    pub fn stats(&self, by: By, since: Option<Timestamp>, now: Timestamp) -> Result<Vec<Group>, CallsError> {
        let groups = self.add_up(by, since, now).at(&self.path)?;
        let mut groups: Vec<_> = groups.into_iter().map(|(name, added)| added.group(name)).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.calls), group.name.clone()));
        Ok(groups)
    }

    fn add_up(
        &self,
        by: By,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> rusqlite::Result<BTreeMap<String, Adding>> {
        let made_up = format!("CASE class WHEN '{UNKNOWN_TOOL}' THEN '(no such tool)' ELSE tool END");
        let (name, condition) = match by {
            // Names that models make up are without number.
            By::Tool => (made_up.as_str(), "true"),
            By::Session => ("thread", "folder = 'sessions'"),
            By::Error => ("class", "class IS NOT NULL"),
        };
        let sql = format!(
            "SELECT {name}, time, success, status IS NOT NULL, duration_ms, bytes_in, bytes_out, class, feedback \
             FROM calls JOIN files ON files.id = calls.file WHERE {condition} AND time >= ?1 ORDER BY time, calls.id"
        );
        let mut statement = self.db.prepare(&sql)?;
        let mut rows = statement.query([since.map_or(i64::MIN, Timestamp::as_millisecond)])?;
        let mut groups: BTreeMap<String, Adding> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let group = groups.entry(row.get(0)?).or_default();
            let time: i64 = row.get(1)?;
            group.calls += 1;
            group.last = time;
            if let Some(success) = row.get::<_, Option<bool>>(2)? {
                *(if success { &mut group.succeeded } else { &mut group.failed }) += 1;
            }
            let feedback = row.get::<_, Option<bool>>(8)?;
            if let Some(good) = feedback {
                *(if good { &mut group.said.0 } else { &mut group.said.1 }) += 1;
            }
            if let Some(success) = feedback.or(row.get(2)?) {
                let weight = if feedback.is_some() { FEEDBACK_WEIGHT } else { 1.0 };
                let successes = if success { weight } else { 0.0 };
                group.rate.add(successes, weight, days(now.as_millisecond() - time));
            }
            if row.get(3)? {
                group.durations.push(u32::try_from(row.get::<_, i64>(4)?).unwrap_or(u32::MAX));
            }
            group.bytes_in += number(row.get(5)?);
            group.bytes_out += number(row.get(6)?);
            if let Some(class) = row.get::<_, Option<String>>(7)? {
                *group.classes.entry(class).or_default() += 1;
            }
        }
        Ok(groups)
    }

    /// How tools stand, for whoever chooses between them.
    pub fn standings(&self, now: Timestamp) -> Result<Vec<Standing>, CallsError> {
        let run = || -> rusqlite::Result<Vec<Standing>> {
            // By day, from the index alone: it is asked at the start of sessions.
            let mut statement = self.db.prepare(
                "SELECT tool, max(time), count(*), \
                 total(CASE WHEN feedback IS NULL THEN success IS NOT NULL ELSE ?1 END), \
                 total(CASE WHEN feedback IS NULL THEN success ELSE feedback * ?1 END) \
                 FROM calls GROUP BY tool, time / 86400000 ORDER BY tool, time",
            )?;
            let mut rows = statement.query([FEEDBACK_WEIGHT])?;
            let mut tools: BTreeMap<String, (u64, Decaying, i64)> = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let (time, judged, successes): (i64, f64, f64) = (row.get(1)?, row.get(3)?, row.get(4)?);
                let (calls, rate, last) = tools.entry(row.get(0)?).or_default();
                *calls += number(row.get(2)?);
                rate.add(successes, judged, days(now.as_millisecond() - time));
                *last = time.max(*last);
            }
            let standing = |(tool, (calls, rate, last)): (String, (u64, Decaying, i64))| Standing {
                tool: tool.into(),
                calls,
                rate: (rate.successes + PRIOR.0) / (rate.weight + PRIOR.1),
                last: Timestamp::from_millisecond(last).unwrap_or_default(),
                age: Duration::from_millis(
                    u64::try_from(now.as_millisecond().saturating_sub(last)).unwrap_or_default(),
                ),
            };
            Ok(tools.into_iter().map(standing).collect())
        };
        run().at(&self.path)
    }
}

impl Adding {
    fn group(self, name: String) -> Group {
        let trend = trend(&self.durations);
        let mut sorted = self.durations;
        sorted.sort_unstable();
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), class.clone()));
        Group {
            name,
            calls: self.calls,
            succeeded: self.succeeded,
            failed: self.failed,
            said: self.said,
            rate: (self.rate.weight > 0.0).then(|| self.rate.successes / self.rate.weight),
            latency: (!sorted.is_empty()).then(|| [50, 90, 99].map(|percent| percentile(&sorted, percent))),
            trend,
            last: Timestamp::from_millisecond(self.last).unwrap_or_default(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            classes,
        }
    }
}

fn days(milliseconds: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "ages of calls are far below 2^52 milliseconds")]
    let days = milliseconds as f64 / 86_400_000.0;
    days
}

/// The nearest rank: the least of the sorted values that so many in a hundred do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    Duration::from_millis(sorted.get(rank - 1).copied().unwrap_or_default().into())
}

/// Medians of neighbours.
fn trend(durations: &[u32]) -> Vec<Duration> {
    let size = durations.len().div_ceil(STEPS).max(1);
    durations
        .chunks(size)
        .map(|chunk| {
            let mut sorted = chunk.to_vec();
            sorted.sort_unstable();
            percentile(&sorted, 50)
        })
        .collect()
}

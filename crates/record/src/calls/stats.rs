//! Statistics over many calls: success rates, latencies and kinds of failure.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use windlass_contract::ToolName;

use super::{CallIndexError, Calls, error::SqliteResultExt, indexer::UNKNOWN_TOOL, store::number};

/// Time after which a call counts half.
const HALF_LIFE_DAYS: f64 = 7.0;
/// The assumption about a tool without calls: three of four succeeded. With it a few failures weigh
/// little and many weigh much.
const PRIOR: (f64, f64) = (3.0, 4.0);
/// Weight of a rating by the user, in calls. It replaces the verdict of the call: ratings are rare,
/// and users know what they wanted.
const FEEDBACK_WEIGHT: f64 = 3.0;
/// Maximum number of steps in the trend of latency.
const MAX_TREND_STEPS: usize = 16;

/// The property by which calls are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGrouping {
    /// The tool.
    Tool,
    /// The session.
    Session,
    /// The kind of failure.
    Error,
}

/// Calls that have a property in common, with their statistics.
#[derive(Debug, Clone, PartialEq)]
pub struct CallGroup {
    /// The value of the property.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that succeeded.
    pub succeeded: u64,
    /// The number of calls that failed. The others have not ended, or their end says nothing about
    /// the tool.
    pub failed: u64,
    /// The numbers of calls that the user rated good and bad.
    pub ratings: (u64, u64),
    /// The success rate, in which a call counts half after a week. A rating by the user replaces
    /// the verdict and counts threefold. None without data.
    pub rate: Option<f64>,
    /// The 50th, 90th and 99th percentile of the duration of calls that ended.
    pub latency: Option<[Duration; 3]>,
    /// The duration from the oldest to the newest calls: medians of groups of equal size.
    pub trend: Vec<Duration>,
    /// The time of the newest call.
    pub last: Timestamp,
    /// Bytes of input.
    pub bytes_in: u64,
    /// Bytes of results.
    pub bytes_out: u64,
    /// Kinds of failure, the most frequent first.
    pub classes: Vec<(String, u64)>,
}

/// The reliability of a tool, for choosing between tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReliability {
    /// The tool.
    pub tool: ToolName,
    /// The number of calls.
    pub calls: u64,
    /// The estimated probability of success: a weighted rate in which recent calls count more,
    /// combined with the assumption about a tool without calls. Ratings count as in
    /// [`CallGroup::rate`].
    pub rate: f64,
    /// The time of the last call.
    pub last: Timestamp,
    /// The time since the last call.
    pub age: Duration,
}

/// A rate in which old calls count less.
#[derive(Default)]
struct DecayingRate {
    successes: f64,
    weight: f64,
}

impl DecayingRate {
    fn add(&mut self, successes: f64, calls: f64, age_days: f64) {
        let weight = (-age_days.max(0.0) / HALF_LIFE_DAYS).exp2();
        self.successes += weight * successes;
        self.weight += weight * calls;
    }
}

#[derive(Default)]
struct GroupTotals {
    calls: u64,
    succeeded: u64,
    failed: u64,
    ratings: (u64, u64),
    rate: DecayingRate,
    durations: Vec<u32>,
    last: i64,
    bytes_in: u64,
    bytes_out: u64,
    classes: BTreeMap<String, u64>,
}

impl Calls {
    /// Groups the calls since a time, the largest group first.
    pub fn stats(
        &self,
        by: CallGrouping,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Vec<CallGroup>, CallIndexError> {
        let groups = self.add_up(by, since, now).at_path(&self.path)?;
        let mut groups: Vec<_> = groups.into_iter().map(|(name, added)| added.group(name)).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.calls), group.name.clone()));
        Ok(groups)
    }

    fn add_up(
        &self,
        by: CallGrouping,
        since: Option<Timestamp>,
        now: Timestamp,
    ) -> rusqlite::Result<BTreeMap<String, GroupTotals>> {
        let made_up = format!("CASE class WHEN '{UNKNOWN_TOOL}' THEN '(no such tool)' ELSE tool END");
        let (name, condition) = match by {
            // Models can make up any number of names; they form one group.
            CallGrouping::Tool => (made_up.as_str(), "true"),
            CallGrouping::Session => ("thread", "folder = 'sessions'"),
            CallGrouping::Error => ("class", "class IS NOT NULL"),
        };
        let sql = format!(
            "SELECT {name}, time, success, status IS NOT NULL, duration_ms, bytes_in, bytes_out, class, feedback \
             FROM calls JOIN files ON files.id = calls.file WHERE {condition} AND time >= ?1 ORDER BY time, calls.id"
        );
        let mut statement = self.db.prepare(&sql)?;
        let mut rows = statement.query([since.map_or(i64::MIN, Timestamp::as_millisecond)])?;
        let mut groups: BTreeMap<String, GroupTotals> = BTreeMap::new();
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
                *(if good { &mut group.ratings.0 } else { &mut group.ratings.1 }) += 1;
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

    /// Returns the reliability of every tool.
    pub fn tool_reliability(&self, now: Timestamp) -> Result<Vec<ToolReliability>, CallIndexError> {
        let run = || -> rusqlite::Result<Vec<ToolReliability>> {
            // By day, and from columns of one database index: this runs at the start of sessions.
            let mut statement = self.db.prepare(
                "SELECT tool, max(time), count(*), \
                 total(CASE WHEN feedback IS NULL THEN success IS NOT NULL ELSE ?1 END), \
                 total(CASE WHEN feedback IS NULL THEN success ELSE feedback * ?1 END) \
                 FROM calls GROUP BY tool, time / 86400000 ORDER BY tool, time",
            )?;
            let mut rows = statement.query([FEEDBACK_WEIGHT])?;
            let mut tools: BTreeMap<String, (u64, DecayingRate, i64)> = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let (time, judged, successes): (i64, f64, f64) = (row.get(1)?, row.get(3)?, row.get(4)?);
                let (calls, rate, last) = tools.entry(row.get(0)?).or_default();
                *calls += number(row.get(2)?);
                rate.add(successes, judged, days(now.as_millisecond() - time));
                *last = time.max(*last);
            }
            let reliability =
                |(tool, (calls, rate, last)): (String, (u64, DecayingRate, i64))| ToolReliability {
                    tool: tool.into(),
                    calls,
                    rate: (rate.successes + PRIOR.0) / (rate.weight + PRIOR.1),
                    last: Timestamp::from_millisecond(last).unwrap_or_default(),
                    age: Duration::from_millis(
                        u64::try_from(now.as_millisecond().saturating_sub(last)).unwrap_or_default(),
                    ),
                };
            Ok(tools.into_iter().map(reliability).collect())
        };
        run().at_path(&self.path)
    }
}

impl GroupTotals {
    fn group(self, name: String) -> CallGroup {
        let trend = trend(&self.durations);
        let mut sorted = self.durations;
        sorted.sort_unstable();
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_by_key(|(class, count)| (std::cmp::Reverse(*count), class.clone()));
        CallGroup {
            name,
            calls: self.calls,
            succeeded: self.succeeded,
            failed: self.failed,
            ratings: self.ratings,
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

/// Returns the percentile by the nearest-rank method: the smallest value that `percent` percent of
/// the values do not exceed.
fn percentile(sorted: &[u32], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    Duration::from_millis(sorted.get(rank - 1).copied().unwrap_or_default().into())
}

/// Returns the medians of consecutive groups.
fn trend(durations: &[u32]) -> Vec<Duration> {
    let size = durations.len().div_ceil(MAX_TREND_STEPS).max(1);
    durations
        .chunks(size)
        .map(|chunk| {
            let mut sorted = chunk.to_vec();
            sorted.sort_unstable();
            percentile(&sorted, 50)
        })
        .collect()
}

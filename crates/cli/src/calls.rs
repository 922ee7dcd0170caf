//! The index of calls, as the commands that ask it need it.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use windlass::record::{Call, Calls, CallsError};

use crate::{
    problem::{Problem, chain},
    screen::visible,
    setup::Setup,
};

/// The index, up to date. If the one on disk cannot be used, that is told and another is made in memory: the session files are
/// all it takes.
pub(crate) fn open(setup: &Setup) -> Result<Calls, Problem> {
    let fresh =
        |calls: Result<Calls, CallsError>| calls.and_then(|mut calls| calls.catch_up().map(|()| calls));
    let (home, keep) = (&setup.home, setup.keep());
    if home.exists() {
        match fresh(Calls::open(home, keep)) {
            Ok(calls) => return Ok(calls),
            Err(CallsError::Session(error)) => return Err(Problem::failed(chain(&error))),
            Err(error) => crate::note(&format!("warning: {error}; counting from the session files for now")),
        }
    }
    fresh(Calls::in_memory(home, keep)).map_err(|error| problem(&error))
}

/// The one call that is meant by a name.
pub(crate) fn one(index: &Calls, name: &str) -> Result<Call, Problem> {
    let mut found = index.find(name).map_err(|error| problem(&error))?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Problem::usage(format!("there is no call `{name}` on record; see `windlass history`"))),
        _ => {
            let line = |call: &Call| {
                format!("\n  {}  {:.0}  {}", call.handle, call.time, visible(call.tool.as_str()))
            };
            let lines: String = found.iter().map(line).collect();
            Err(Problem::usage(format!("`{name}` may be any of these calls; name one of them:{lines}")))
        }
    }
}

pub(crate) fn problem(error: &CallsError) -> Problem {
    Problem::failed(chain(error))
}

/// A time of the past: so long ago, or a date.
pub(crate) fn since(text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    text.map(|text| {
        parsed(text, Timestamp::now()).ok_or_else(|| {
            Problem::usage(format!(
                "`--since {text}` is no time; say how long ago (`30m`, `12h`, `7d`, `2w`) or a date (`2026-11-01`)"
            ))
        })
    })
    .transpose()
}

fn parsed(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(date) = text.parse::<Date>() {
        return date.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    }
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    now.checked_sub(Duration::from_secs(count.checked_mul(seconds)?)).ok()
}

/// The widest column.
const WIDEST: usize = 80;

/// Columns under their titles. The last column is as long as it likes.
pub(crate) fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        // A longer cell stands out; where all were as wide as that, nobody could read the others.
        cells.chain([titles[column].len()]).max().unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<_> = (0..N).map(width).collect();
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let head = if io::stdout().is_terminal() { bold(&line(titles)) } else { line(titles) };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(head).chain(rows).collect()
}

fn bold(text: &str) -> String {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted { format!("\x1b[1m{}\x1b[0m\n", text.trim_end()) } else { text.to_owned() }
}

/// How many tokens so many bytes are, about: what models count exactly, each counts its own way.
pub(crate) fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// A duration in three digits or so.
pub(crate) fn brief(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ ..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        milliseconds => format!("{} min", milliseconds / 60_000),
    }
}

/// The first words of a text, on one line: on a terminal so many, elsewhere all.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words = visible(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if !io::stdout().is_terminal() || words.chars().count() <= most {
        return words;
    }
    words.chars().take(most).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_how_long_ago_or_when() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("30m", Some("2026-11-16T11:30:00Z")),
            ("12h", Some("2026-11-16T00:00:00Z")),
            ("7d", Some("2026-11-09T12:00:00Z")),
            ("2w", Some("2026-11-02T12:00:00Z")),
            ("2026-11-01", Some("2026-11-01T00:00:00Z")),
            ("2026-11-01T10:00:00Z", Some("2026-11-01T10:00:00Z")),
            ("", None),
            ("d", None),
            ("7", None),
            ("-1d", None),
            ("7é", None),
            ("99999999999999999999d", None),
            ("99999999999999999d", None),
            ("yesterday", None),
        ] {
            let parsed = parsed(text, now).map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_brief() {
        let told = [0, 999, 1000, 59_949, 60_000, 7_200_000].map(|ms| brief(Duration::from_millis(ms)));
        assert_eq!(told, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min", "120 min"]);
    }
}

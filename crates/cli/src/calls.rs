//! The index of calls, for the commands that query it.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use windlass::record::{CallIndexError, Calls};

use crate::{
    problem::{CliProblem, chain},
    screen::visible,
    setup::ProgramSetup,
};

/// Opens and updates the index. If the one on disk is unusable, that is reported and another is
/// built in memory from the session files.
pub(crate) fn open(setup: &ProgramSetup) -> Result<Calls, CliProblem> {
    let fresh =
        |calls: Result<Calls, CallIndexError>| calls.and_then(|mut calls| calls.catch_up().map(|()| calls));
    let (home, keep) = (&setup.home, setup.keep());
    if home.exists() {
        match fresh(Calls::open(home, keep)) {
            Ok(calls) => return Ok(calls),
            Err(CallIndexError::Session(error)) => return Err(CliProblem::failed(chain(&error))),
            Err(error) => crate::note(&format!(
                "warning: {}; using the session files instead",
                visible(&error.to_string())
            )),
        }
    }
    fresh(Calls::in_memory(home, keep)).map_err(|error| problem(&error))
}

pub(crate) fn problem(error: &CallIndexError) -> CliProblem {
    CliProblem::failed(chain(error))
}

/// Parses a time in the past: a duration ago, or a date.
pub(crate) fn since(text: Option<&str>) -> Result<Option<Timestamp>, CliProblem> {
    text.map(|text| {
        parse_time(text, Timestamp::now()).ok_or_else(|| {
            CliProblem::usage(format!(
                "`--since {text}` is not a time; use a duration (`30m`, `12h`, `7d`, `2w`) or a date (`2026-11-01`)"
            ))
        })
    })
    .transpose()
}

/// Parses a duration ago, or a date.
pub(crate) fn parse_time(text: &str, now: Timestamp) -> Option<Timestamp> {
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

/// Estimates the number of tokens of so many bytes: each model counts in its own way.
pub(crate) fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Formats a duration in about three digits.
pub(crate) fn brief(time: Duration) -> String {
    match time.as_millis() {
        milliseconds @ ..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        milliseconds @ 60_000..3_600_000 => {
            format!("{} min {} s", milliseconds / 60_000, milliseconds / 1000 % 60)
        }
        milliseconds => format!("{} h {} min", milliseconds / 3_600_000, milliseconds / 60_000 % 60),
    }
}

/// Formats a time: in full for programs, and for a person as in lists of files.
pub(crate) fn when(time: Timestamp) -> String {
    if io::stdout().is_terminal() { short(time, Timestamp::now()) } else { format!("{time:.0}") }
}

fn short(time: Timestamp, now: Timestamp) -> String {
    const HALF_A_YEAR: Duration = Duration::from_hours(4368);
    let recent = now.checked_sub(HALF_A_YEAR).is_ok_and(|then| time > then);
    time.strftime(if recent { "%m-%d %H:%MZ" } else { "%Y-%m-%d" }).to_string()
}

/// Returns a text on one line.
pub(crate) fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
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
            let parsed = parse_time(text, now).map(|time| time.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn times_long_ago_have_a_year_and_others_a_minute() {
        let now = "2026-11-16T10:00:00Z".parse().unwrap();
        let told =
            ["2026-11-16T04:12:09Z", "2025-11-16T04:12:09Z"].map(|time| short(time.parse().unwrap(), now));
        assert_eq!(told, ["11-16 04:12Z", "2025-11-16"]);
    }

    #[test]
    fn durations_are_brief() {
        let told = [0, 999, 1000, 59_949, 119_999, 7_500_000].map(|ms| brief(Duration::from_millis(ms)));
        assert_eq!(told, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 59 s", "2 h 5 min"]);
    }
}

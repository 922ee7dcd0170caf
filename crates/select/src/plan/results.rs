//! Parses the outputs of tools.

use std::collections::BTreeSet;

/// Parses numbered lines of a file: `L1: text`.
pub(super) fn numbered(output: &str) -> Option<Vec<(u64, &str)>> {
    let rows: Vec<_> = output
        .lines()
        .filter_map(|row| {
            let (number, text) = row.strip_prefix('L')?.split_once(':')?;
            Some((number.parse().ok()?, text.strip_prefix(' ').unwrap_or(text)))
        })
        .collect();
    (!rows.is_empty()).then_some(rows)
}

/// Returns the reason why a file could not be read, if that failed.
pub(super) fn unreadable(output: &str) -> Option<&str> {
    output.strip_prefix("failed to read file: ").map(str::trim_end)
}

/// The entries of a directory, as paths relative to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListedEntries<'a> {
    pub(super) files: Vec<&'a str>,
    pub(super) directories: Vec<&'a str>,
    /// True if there are more entries.
    pub(super) more: bool,
}

/// Parses a flat listing; `None` for any other output.
pub(super) fn listing(output: &str) -> Option<ListedEntries<'_>> {
    let mut rows = output.lines();
    rows.next().filter(|first| first.starts_with("Absolute path: "))?;
    let mut listing = ListedEntries::default();
    for row in rows {
        let ends = row.starts_with("More than ") && row.ends_with(" entries found");
        if ends || row.starts_with("(only ") || is_truncation_mark(row) {
            listing.more = true;
        } else if let Some(directory) = row.strip_suffix('/') {
            listing.directories.push(directory);
        } else {
            listing.files.push(row.strip_suffix(['@', '?']).unwrap_or(row));
        }
    }
    Some(listing)
}

/// The rows of a search result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResultRows<T> {
    pub(super) rows: Vec<T>,
    /// True if there are more rows.
    pub(super) more: bool,
}

impl<T> ResultRows<T> {
    /// Creates the rows, unless the output is no result: a failure is not an empty result.
    fn from_output(output: &str, rows: Vec<T>) -> Option<Self> {
        let more = output.lines().any(|row| row.starts_with("(there are more;") || is_truncation_mark(row));
        (!rows.is_empty() || output == NO_MATCHES).then_some(Self { rows, more })
    }
}

/// The output of a search without matches.
const NO_MATCHES: &str = "No matches found.";

/// Returns true if the middle of an output was cut here.
fn is_truncation_mark(row: &str) -> bool {
    row.contains(" truncated…")
}

/// A matching line, or a context line next to one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchedLine<'a> {
    pub(super) path: &'a str,
    pub(super) line: u64,
    pub(super) text: &'a str,
    /// True for a match, false for a context line.
    pub(super) fits: bool,
}

/// Parses matching lines, `path:1:text`, and context lines, `path-2-text`.
pub(super) fn matched_lines(output: &str) -> Option<ResultRows<MatchedLine<'_>>> {
    let fitting = |row| marked(row, ':').next();
    let paths: BTreeSet<_> = output.lines().filter_map(fitting).map(|hit| hit.path).collect();
    // A file name may contain either separator (`2026-11-16.md`), but only files with matches have
    // context lines.
    let around = |row| marked(row, '-').find(|hit| paths.contains(hit.path));
    ResultRows::from_output(
        output,
        output.lines().filter_map(|row| around(row).or_else(|| fitting(row))).collect(),
    )
}

/// Returns all numbers between two separators, with the text before and after.
fn marked(row: &str, mark: char) -> impl Iterator<Item = MatchedLine<'_>> {
    row.match_indices(mark).filter_map(move |(at, _)| {
        let (number, text) = row[at + 1..].split_once(mark)?;
        let is_number = at > 0 && number.bytes().all(|byte| byte.is_ascii_digit());
        let line = number.parse().ok().filter(|_| is_number)?;
        Some(MatchedLine { path: &row[..at], line, text, fits: mark == ':' })
    })
}

/// The number of matching lines in each file and in total.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MatchCounts<'a> {
    pub(super) rows: Vec<(&'a str, u64)>,
    /// True if there are more files than listed.
    pub(super) cut: bool,
    pub(super) files: u64,
    pub(super) lines: u64,
    /// True if the totals may be larger.
    pub(super) more: bool,
}

/// Parses the number of matching lines in each file, `path:3`, and the total line.
pub(super) fn counts(output: &str) -> Option<MatchCounts<'_>> {
    let rows = output.lines().filter_map(|row| row.rsplit_once(':'));
    let rows = rows.filter_map(|(path, count)| Some((path, count.parse().ok()?))).collect();
    let ResultRows { rows, more: cut } = ResultRows::from_output(output, rows)?;
    let all = output.lines().next_back().and_then(parse_totals);
    let sum = || rows.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
    let (files, lines) = all.unwrap_or_else(|| (rows.len() as u64, sum()));
    Some(MatchCounts { rows, cut, files, lines, more: cut && all.is_none() })
}

/// Parses `(in all: 3 files, 7 lines)`.
fn parse_totals(row: &str) -> Option<(u64, u64)> {
    let (files, lines) = row.strip_prefix("(in all: ")?.strip_suffix(" lines)")?.split_once(" files, ")?;
    Some((files.parse().ok()?, lines.parse().ok()?))
}

/// Parses the exit code and the output of a command.
pub(super) fn command(output: &str) -> Option<(i64, &str)> {
    let code = output.strip_prefix("Exit code: ")?;
    let (code, rest) = code.split_once('\n')?;
    let (_, printed) = rest.split_once("Output:\n")?;
    Some((code.parse().ok()?, printed))
}

/// Returns true if a test report has passed tests and no failed ones: `cargo: 3 passed, 0 failed, 1
/// skipped`.
pub(super) fn all_passed(report: &str) -> bool {
    let counts = |row: &str| {
        let (_, counts) = row.split_once(": ")?;
        let (passed, rest) = counts.split_once(" passed, ")?;
        let (failed, _) = rest.split_once(" failed, ")?;
        Some((passed.parse::<u64>().ok()?, failed.parse::<u64>().ok()?))
    };
    let counted: Vec<_> = report.lines().filter_map(counts).collect();
    counted.iter().any(|(passed, _)| *passed > 0) && counted.iter().all(|(_, failed)| *failed == 0)
}

/// Returns the location of the first failure in a test report: `FAILED name (src/lib.rs:12:5)`.
pub(super) fn first_failure(report: &str) -> Option<(&str, u64)> {
    let row = report.lines().find(|row| row.starts_with("FAILED ") && row.ends_with(')'))?;
    let (_, place) = row.rsplit_once('(')?;
    let mut parts = place.trim_end_matches(')').split(':');
    Some((parts.next()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_lines_are_told_from_those_around_them() {
        let found =
            matched_lines("/w/a-1-.rs:2:x:3:y\n/w/a-1-.rs-3-z\n--\n(there are more; narrow the search)");
        let rows = vec![
            MatchedLine { path: "/w/a-1-.rs", line: 2, text: "x:3:y", fits: true },
            MatchedLine { path: "/w/a-1-.rs", line: 3, text: "z", fits: false },
        ];
        assert_eq!(found, Some(ResultRows { rows, more: true }));
    }

    #[test]
    fn to_fail_is_not_to_find_nothing() {
        let none = MatchCounts { rows: vec![], cut: false, files: 0, lines: 0, more: false };
        assert_eq!(counts("No matches found."), Some(none));
        assert_eq!(counts("unable to access `zero.txt`: it is a device"), None);
        let cut = "a:1\n…9 tokens truncated…\nb:2";
        let some = MatchCounts { rows: vec![("a", 1), ("b", 2)], cut: true, files: 2, lines: 3, more: true };
        assert_eq!(counts(cut), Some(some));
        let all = format!("{cut}\n(in all: 9 files, 90 lines)");
        let all = counts(&all).map(|found| (found.files, found.lines, found.more));
        assert_eq!(all, Some((9, 90, false)));
    }

    #[test]
    fn other_results_are_read_too() {
        assert_eq!(numbered("L1: a\nL2:  b"), Some(vec![(1, "a"), (2, " b")]));
        assert_eq!(numbered("failed to read file"), None);
        assert_eq!(unreadable("failed to read file: `a` does not exist\n"), Some("`a` does not exist"));
        assert_eq!(unreadable("L1: failed to read file: `a` does not exist"), None);
        let listed = ListedEntries { files: vec!["a/b", "c"], directories: vec!["a"], more: true };
        assert_eq!(listing("Absolute path: /w\na/\na/b\nc@\nMore than 3 entries found"), Some(listed));
        assert_eq!(command("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno\n"), Some((1, "no\n")));
        assert_eq!(first_failure("cargo: 1 failed\n\nFAILED t (src/a.rs:4:2)\n"), Some(("src/a.rs", 4)));
    }
}

//! The line of an output that says first what went wrong.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{head, shortened};

/// What stands in a line that says what went wrong, and then what may. The first kind wins wherever it stands.
const CLEAR: [&str; 8] = [
    "error:",
    "error[",
    "fatal",
    "panicked at",
    "exception",
    "error -",
    "segmentation fault",
    "undefined reference",
];
const LIKELY: [&str; 14] = [
    "error",
    "cannot ",
    "can't ",
    "could not ",
    "unable to",
    "not found",
    "no such",
    "denied",
    "not permitted",
    "failed",
    "invalid",
    "unknown",
    "unrecognized",
    "refused",
];

/// A search that cannot be built finds nothing; its words are fixed, so a test would have told.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(CLEAR.iter().chain(&LIKELY))
        .ok()
});

/// The first line that says what went wrong, if one does.
pub(super) fn first(text: &str) -> Option<String> {
    let words = WORDS.as_ref()?;
    let mut likely = None;
    // JSON is not for reading.
    for line in text.lines().map(head).filter(|line| !line.starts_with(['{', '['])) {
        // `0 errors`, `0 failed` say that all is well.
        let speaks = |at: usize| !line[..at].ends_with("0 ") && !line[..at].ends_with("no ");
        for found in words.find_iter(line).filter(|found| speaks(found.start())) {
            if found.pattern().as_usize() < CLEAR.len() {
                return Some(shortened(line));
            }
            likely = likely.or(Some(line));
        }
    }
    likely.map(shortened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clear_word_wins_then_the_first_likely_one() {
        for (text, line) in [
            ("Compiling\nwarning: unknown lint\nerror: no such file\nerror: two\n", "error: no such file"),
            (
                "a\nls: cannot access 'x': No such file or directory\nb\n",
                "ls: cannot access 'x': No such file or directory",
            ),
            ("0 errors so far\nbash: foo: command not found\n", "bash: foo: command not found"),
        ] {
            assert_eq!(first(text).as_deref(), Some(line));
        }
        assert_eq!(first("one\ntwo\n"), None);
        assert!(WORDS.is_some());
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = format!("error: {}", "ö".repeat(1000));
        assert_eq!(first(&line).unwrap().chars().count(), 301);
    }
}

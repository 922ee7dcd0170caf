//! Finds the first line of an output that reports an error.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{head, shortened};

/// Words that certainly mark an error, and words that probably do. A certain word wins even if a
/// probable one comes earlier.
const CERTAIN_WORDS: [&str; 8] = [
    "error:",
    "error[",
    "fatal",
    "panicked at",
    "exception",
    "error -",
    "segmentation fault",
    "undefined reference",
];
const LIKELY_WORDS: [&str; 14] = [
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

/// Matches all words at once. The words are fixed, so building the matcher fails only if a test
/// fails too.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(CERTAIN_WORDS.iter().chain(&LIKELY_WORDS))
        .ok()
});

/// Returns the first line that reports an error.
pub(super) fn find(text: &str) -> Option<String> {
    let words = WORDS.as_ref()?;
    let mut likely = None;
    // Skip JSON: a person could not read the line.
    for line in text.lines().map(head).filter(|line| !line.starts_with(['{', '['])) {
        // `0 errors` and `0 failed` report success.
        let speaks = |at: usize| !line[..at].ends_with("0 ") && !line[..at].ends_with("no ");
        for found in words.find_iter(line).filter(|found| speaks(found.start())) {
            if found.pattern().as_usize() < CERTAIN_WORDS.len() {
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
            assert_eq!(find(text).as_deref(), Some(line));
        }
        assert_eq!(find("one\ntwo\n"), None);
        assert!(WORDS.is_some());
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = format!("error: {}", "ö".repeat(1000));
        assert_eq!(find(&line).unwrap().chars().count(), 301);
    }
}

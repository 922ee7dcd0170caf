//! The line of an output that says first what went wrong.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::shortened;

/// What stands in a line that says what went wrong, and then what may. The first kind wins wherever it stands.
const CLEAR: [&str; 8] =
    ["error:", "error[", "fatal", "panicked at", "exception", "error -", "segmentation fault", "traceback"];
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
    let mut likely = None;
    for found in WORDS.iter().flat_map(|words| words.find_iter(text)) {
        let line = line_around(text, found.start());
        // `0 errors`, `0 failed` say that all is well.
        if text[..found.start()].ends_with("0 ") || text[..found.start()].ends_with("no ") {
            continue;
        }
        if found.pattern().as_usize() < CLEAR.len() {
            return Some(shortened(line));
        }
        likely = likely.or(Some(line));
    }
    likely.map(shortened)
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    &text[start..end]
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

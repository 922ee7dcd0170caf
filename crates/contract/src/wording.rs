//! Counts, cuts, quotes and calls in words, for texts that models and people read.

use std::fmt;

pub use call_words::{CallWords, duration_in_words, first_line, outcome_words, shell_script, split_shell};
pub use output_excerpt::OutputExcerpt;

mod call_words;
mod output_excerpt;

/// Formats a number and a noun whose plural takes an `s`: `1 line`, `2 lines`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq + Copy>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats the progress of a call: `3 of 10: copying`.
pub fn progress_line(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let counted = match total {
        Some(total) => format!("{progress} of {total}"),
        None => progress.to_string(),
    };
    match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{counted}: {message}"),
        None => counted,
    }
}

/// Cuts a text to a number of characters. A cut is marked with `…`, which does not count.
pub fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns true if two messages differ only in words with digits, such as a delay or the id of a
/// request. A failure that repeats is reported once.
pub fn is_same_apart_from_numbers(one: &str, other: &str) -> bool {
    words_without_digits(one).eq(words_without_digits(other))
}

fn words_without_digits(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()))
}

/// Quotes a word for a POSIX shell if any shell needs it. `^` is quoted because zsh can be set to
/// read it as a pattern.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_only_if_it_is_too_long() {
        assert_eq!(["", "aé", "aéz", "aézü"].map(|text| shortened(text, 3)), ["", "aé", "aéz", "aéz…"]);
    }

    #[test]
    fn words_stay_words_in_a_shell() {
        assert_eq!(shell_quote("src/a.rs"), "src/a.rs");
        assert_eq!(shell_quote("it's; rm -rf $HOME"), r"'it'\''s; rm -rf $HOME'");
        assert_eq!(["", "HEAD^", "é"].map(shell_quote), ["''", "'HEAD^'", "'é'"]);
    }

    #[test]
    fn a_failure_with_another_delay_is_the_same_failure() {
        let busy = "slow down (request req_1a); try again in 1.5s";
        assert!(is_same_apart_from_numbers(busy, "slow down (request req_99); try again in 20s"));
        assert!(!is_same_apart_from_numbers(busy, "connection refused"));
    }

    #[test]
    fn one_has_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}

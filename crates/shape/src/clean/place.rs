//! Finds secrets by their place: in URLs, headers, program options, function arguments, and
//! similar. A place is a word to search for and a pattern that begins there.

use std::{
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use regex::bytes::Regex;

use super::{
    bytes::compiled,
    found_secret::FoundSecret,
    name::NameKind,
    rules,
    value::{self, ValueQuoting},
};

/// Maximum length of a token without a secret whose inside is scanned too. Otherwise a line of such
/// tokens would take quadratic time.
pub(super) const MAX_NESTED_TOKEN: usize = 128;
/// Maximum length of the text that a pattern gets from its word on: a header token, or a command.
const MAX_TOKEN: usize = 8 * 1024;
const MAX_COMMAND: usize = 1024;
/// Maximum distance between a word and a text that must be near it.
const MAX_NEAR: usize = 512;
/// Minimum length of text between a word and its secret that may be another secret.
const MIN_KEY_BYTES: usize = 16;

/// Abbreviations in patterns, and their expansions.
const SHORT_FORMS: [(&str, &str); 6] = [
    ("TOKEN", r"[[:alnum:]\-._~+/=%{}$<>()]"),
    ("VALUE", r#"(?<s>"[^"]*"|'[^']*'|[^\s'"`|;\-][^\s'"`|;]*)"#),
    ("PLAIN", r#"[^"'()\[\]{},]*"#),
    ("ARG", r#"(?:[^"'()\[\]{},]|"[^"]*"|'[^']*'|[(\[{](?:[^()\[\]{}]|[(\[{][^()\[\]{}]*[)\]}])*[)\]}])*,"#),
    ("READS", "(?:--password-stdin|--with-token|passwd --stdin|passphrase-fd|sudo -S)"),
    ("CMD", r"[^|;]*?\s"),
];

/// A place where a secret may be: a line of `places.txt`.
pub(super) struct PlaceRule {
    /// Words to search for, without case.
    pub(super) words: Vec<&'static str>,
    before: &'static str,
    /// Pattern with the secret in group `s`.
    pattern: &'static str,
    regex: OnceLock<Regex>,
    /// Returns true if the matched text is a secret.
    is_secret: fn(&[u8]) -> bool,
    label: &'static str,
    why: &'static str,
}

/// All rules of `places.txt`.
pub(super) static PLACES: LazyLock<Vec<PlaceRule>> = LazyLock::new(|| {
    let lines = include_str!("places.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with("# ")).filter_map(PlaceRule::parse).collect()
});

impl PlaceRule {
    /// Parses a line of the table. A word may end with a blank, which is the first of the three
    /// blanks after it.
    fn parse(line: &'static str) -> Option<Self> {
        let end = line.find("  ")?;
        let has_blank = line[end..].starts_with("   ");
        let (words, rest) = (&line[..end + usize::from(has_blank)], line[end..].trim_start());
        let mut fields = rest.split("  ");
        let [before, pattern, test, label, why] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        let is_secret = test_named(test)?;
        Some(Self {
            words: words.split('|').collect(),
            before,
            pattern,
            regex: OnceLock::new(),
            is_secret,
            label,
            why,
        })
    }

    fn compile(&self) -> Regex {
        compiled(
            &SHORT_FORMS
                .iter()
                .fold(self.pattern.to_owned(), |pattern, (word, form)| pattern.replace(word, form)),
        )
    }

    /// Returns true if the text around a word allows a secret there.
    fn allows(&self, line: &[u8], word: &Range<usize>) -> bool {
        let last = word.start.checked_sub(1).map(|at| line[at]);
        let has = |text: &str| {
            let near = &line[word.start.saturating_sub(MAX_NEAR)..line.len().min(word.end + MAX_NEAR)];
            memchr::memmem::find(near, text.as_bytes()).is_some()
        };
        match self.before.split_once(':') {
            Some(("near", text)) => has(text),
            Some((_, text)) => !has(text),
            None => match self.before {
                "edge" => last.is_none_or(|byte| !byte.is_ascii_alphanumeric()),
                "start" => last.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'-'),
                "field" => last.is_some_and(|byte| b"?&-_; ,".contains(&byte)),
                _ => true,
            },
        }
    }

    /// Checks the place of one of the words. Returns the offset to resume at if there is a match.
    pub(super) fn look(
        &self,
        line: &[u8],
        word: &Range<usize>,
        found: &mut Vec<FoundSecret>,
    ) -> Option<usize> {
        if !self.allows(line, word) {
            return None;
        }
        let back = self.before.parse().unwrap_or(0);
        let from = word.start.saturating_sub(back);
        let reach = if self.pattern.contains("TOKEN") { MAX_TOKEN } else { MAX_COMMAND };
        let behind = &line[word.end..line.len().min(word.start + reach).max(word.end)];
        // Text after the same word is checked at that word, or a line of such words would take
        // quadratic time. One repetition may be part of the place: `docker login docker.io`.
        let again = match behind.len() {
            0..=MAX_NESTED_TOKEN => None,
            _ => memchr::memmem::find_iter(behind, &line[word.clone()]).nth(1),
        };
        let text = &line[from..word.end + again.unwrap_or(behind.len())];
        let regex = self.regex.get_or_init(|| self.compile());
        let secret = regex.captures(text)?.name("s")?;
        let range = unquoted(line, from + secret.start()..from + secret.end());
        let (end, between) = (range.end, range.start.saturating_sub(word.end));
        if (self.is_secret)(&line[range.clone()]) {
            found.push(FoundSecret::value(line, range, self.label, self.why));
            return Some(if between < MIN_KEY_BYTES { end } else { word.end });
        }
        (range.len() > MAX_NESTED_TOKEN).then_some(end)
    }
}

/// Returns the test with this name in the table.
fn test_named(name: &str) -> Option<fn(&[u8]) -> bool> {
    Some(match name {
        "any" => |_| true,
        "password" => value::is_password,
        "named" => |text| value::is_secret(text, ValueQuoting::Quoted, NameKind::Password),
        "token" => |text| value::is_secret(text, ValueQuoting::Quoted, NameKind::Token),
        "typed" => |text| value::is_random_or_typed(text, 12),
        "random20" => |text| value::is_random(text, 20) || rules::key_at(text).is_some(),
        "random40" => |text| value::is_random(text, 40),
        "pair" => is_basic_pair,
        "auth" => |text| is_basic_pair(text) || value::is_random(text, 24) && !text.contains(&b'('),
        // Without capitals it is a session name.
        "session" => |text| value::is_random(text, 24) && text.iter().any(u8::is_ascii_uppercase),
        "header" => |text| {
            let is_token = || value::is_secret(text, ValueQuoting::Bare, NameKind::Token);
            !text.starts_with(b"AWS4-")
                && (is_basic_pair(text) || is_token() || rules::key_rule(text).is_some())
        },
        _ => return None,
    })
}

/// Strips the quotes around a text, and the blanks inside them.
fn unquoted(line: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &line[range.clone()];
    let [quote @ (b'"' | b'\''), inside @ .., last] = text else { return range };
    let inside = if last == quote { inside } else { &text[1..] };
    let start = range.start + 1 + inside.len() - inside.trim_ascii_start().len();
    start..start + inside.trim_ascii().len()
}

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
pub(super) const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
pub(super) const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Returns true if a text is a user and a password in base64.
fn is_basic_pair(text: &[u8]) -> bool {
    (8..4096).contains(&text.len())
        && !value::is_placeholder(text)
        && STANDARD.decode(text).is_ok_and(|pair| {
            let text = str::from_utf8(&pair).unwrap_or_default();
            text.split_once(':').is_some_and(|(_, password)| password.len() > 2)
                && !text.contains(char::is_control)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines = include_str!("places.txt").lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ")) {
            let rule = PlaceRule::parse(line);
            assert!(
                rule.is_some_and(|rule| !rule.why.is_empty() && rule.compile().captures_len() > 1),
                "{line}"
            );
        }
    }
}

//! Key formats: the table in `rules.txt`, and the matching of its patterns.

use std::{
    collections::HashMap,
    sync::{LazyLock, OnceLock},
};

use regex::bytes::Regex;

use super::{bytes::compiled, value};

/// Maximum length of a key.
const MAX_KEY_BYTES: usize = 4096;
/// Number of prefix bytes that select the rules to try.
const CHOICE_BYTES: usize = 3;

/// The format of one kind of key.
#[derive(Debug)]
pub(super) struct KeyRule {
    pub(super) label: &'static str,
    /// Description of the key, for a report.
    pub(super) what: &'static str,
    /// Prefix of its keys.
    pub(super) prefix: &'static str,
    pattern: &'static str,
    /// The pattern, compiled at the first match of the prefix.
    regex: OnceLock<Regex>,
}

/// A text with the format of a key.
#[derive(Debug)]
pub(super) struct KeyMatch {
    pub(super) rule: &'static KeyRule,
    pub(super) end: usize,
    /// False for a made-up key in documentation.
    pub(super) is_real: bool,
}

/// All rules, in the order of the table.
pub(super) static RULES: LazyLock<Vec<KeyRule>> = LazyLock::new(|| {
    let lines = include_str!("rules.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(parse).collect()
});

/// Rules by the first bytes of their keys, each list in the order of the table.
static BY_START: LazyLock<HashMap<&[u8], Vec<&'static KeyRule>>> = LazyLock::new(|| {
    let mut lists: HashMap<_, Vec<_>> = HashMap::new();
    for rule in RULES.iter() {
        lists.entry(&rule.prefix.as_bytes()[..CHOICE_BYTES]).or_default().push(rule);
    }
    lists
});

/// Parses a line of the table: one rule for each prefix.
fn parse(line: &'static str) -> Vec<KeyRule> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start();
        field
    };
    let (label, prefixes, pattern, what) = (field(), field(), field(), rest);
    let rule = |prefix| KeyRule { label, what, prefix, pattern, regex: OnceLock::new() };
    prefixes.split(',').filter(|prefix| prefix.len() >= CHOICE_BYTES).map(rule).collect()
}

impl KeyRule {
    /// Returns a key that starts at the start of the text.
    fn key(&'static self, text: &[u8]) -> Option<KeyMatch> {
        let text = &text[..text.len().min(MAX_KEY_BYTES)];
        let rest = text.strip_prefix(self.prefix.as_bytes())?;
        let regex = self.regex.get_or_init(|| compiled(&format!("^(?:{})", self.pattern)));
        let key = regex.find(rest)?.as_bytes();
        let is_cut_short = rest.get(key.len()).is_some_and(u8::is_ascii_alphanumeric);
        // Three letters are not specific: an identifier in code may begin with them.
        let is_name =
            self.prefix.len() <= 3 && key.iter().all(u8::is_ascii_alphabetic) && !value::is_unlike_words(key);
        // The random part of a real key. Other parts may be account numbers.
        let random = key.split(|byte| b"/.@".contains(byte)).max_by_key(|part| part.len()).unwrap_or(key);
        let is_real = !is_cut_short && !is_name && !value::is_placeholder_key(random);
        Some(KeyMatch { rule: self, end: self.prefix.len() + key.len(), is_real })
    }
}

/// Returns a text with the format of a key that starts here, preferably a real key.
pub(super) fn form_at(text: &[u8]) -> Option<KeyMatch> {
    let rules = BY_START.get(text.get(..CHOICE_BYTES)?)?;
    let forms = rules.iter().filter_map(|rule| rule.key(text));
    forms.reduce(|first, other| if first.is_real || !other.is_real { first } else { other })
}

/// Returns the key that starts here.
pub(super) fn key_at(text: &[u8]) -> Option<KeyMatch> {
    form_at(text).filter(|key| key.is_real)
}

/// Returns the rule that matches the whole text.
pub(super) fn key_rule(text: &[u8]) -> Option<&'static KeyRule> {
    key_at(text).filter(|key| key.end == text.len()).map(|key| key.rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines =
            include_str!("rules.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let rules = parse(line);
            assert!(!rules.is_empty(), "{line}");
            for rule in rules {
                assert!(compiled(rule.pattern).find(b"\0").is_none(), "{line}");
                assert!(!rule.what.is_empty() && rule.what.len() < 60, "{line}");
            }
        }
    }
}

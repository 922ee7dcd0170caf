//! Patterns, which come from strangers: the engine takes linear time, and what it costs is counted.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

/// Longer patterns are not checked.
const MAX_BYTES: usize = 2_000;
/// What a compiled pattern may take; beyond it, it is not checked.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// What compiling costs, in visits: up to some milliseconds.
const COMPILING: usize = 1_000;
/// How many bytes are searched for a visit.
const BYTES_A_VISIT: usize = 8;

/// The patterns of one check; those that cannot be checked are `None`. They are of the dialect of ECMAScript, of which
/// the engine lacks what cannot be done in linear time: looking around, and going back to what was found.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<Regex>>);

impl<'a> Patterns<'a> {
    /// What looking for a pattern costs, in visits.
    pub(super) fn cost(&self, pattern: &str, text: &str) -> usize {
        let compiling = if self.0.contains_key(pattern) { 0 } else { COMPILING };
        compiling + 1 + text.len() / BYTES_A_VISIT
    }

    /// Whether the pattern is anywhere in the text. None if nobody can tell.
    pub(super) fn find(&mut self, pattern: &'a str, text: &str) -> Option<bool> {
        let compiled = self.0.entry(pattern).or_insert_with(|| compile(pattern));
        compiled.as_ref().map(|pattern| pattern.is_match(text))
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(&translated(pattern));
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).nest_limit(50);
    (pattern.len() <= MAX_BYTES).then(|| builder.build().ok()).flatten()
}

/// A pattern of ECMAScript as the engine writes it. Digits and letters of words are those of ASCII there, which also
/// keeps the compiled pattern small; and a set has no sets in it.
fn translated(pattern: &str) -> String {
    let (mut out, mut in_set, mut chars) =
        (String::with_capacity(pattern.len() + 16), false, pattern.chars());
    while let Some(c) = chars.next() {
        match (c, in_set) {
            ('\\', _) => match (chars.next(), in_set) {
                (Some('d'), _) => out.push_str("[0-9]"),
                (Some('D'), _) => out.push_str("[^0-9]"),
                (Some('w'), _) => out.push_str("[0-9A-Za-z_]"),
                (Some('W'), _) => out.push_str("[^0-9A-Za-z_]"),
                (Some('b'), true) => out.push_str("\\x08"),
                (Some(letter @ ('b' | 'B')), false) => out.extend(["(?-u:\\", &String::from(letter), ")"]),
                (next, _) => out.extend(Some('\\').into_iter().chain(next)),
            },
            ('[' | '&' | '~', true) => out.extend(['\\', c]),
            _ => {
                in_set = (c == '[' || in_set) && c != ']';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_ecmascript() {
        let rows: [(&str, &[&str], &[&str]); 8] = [
            (r"^[\w.-]+@[\w.-]+\.\w{2,4}$", &["a.b@c.de"], &["a.b", "é@c.de"]),
            (r"^\d{3}\D$", &["123x"], &["١٢٣x", "1234"]),
            (r"^[^\s\d]+$", &["ab"], &["a b", "a1"]),
            (r"\bcat\b", &["a cat"], &["cats"]),
            (r"^[[a]+$", &["[a"], &["b"]),
            (r"^[a&&b~~]+$", &["a&b~"], &["c"]),
            (r"^\/[^\/]+$", &["/x"], &["//"]),
            (r"^[\u4e00-\u9fa5]+$", &["中文"], &["zh", "中a"]),
        ];
        for (pattern, right, wrong) in rows {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(right.iter().all(|text| compiled.is_match(text)), "{pattern}");
            assert!(!wrong.iter().any(|text| compiled.is_match(text)), "{pattern}");
        }
    }
}

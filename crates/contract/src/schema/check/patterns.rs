//! Patterns, which come from strangers: the engine takes linear time, and what it costs is counted.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use super::{TooComplex, Visits};

/// Longer patterns and texts are not checked.
const MAX_BYTES: usize = 1_000;
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// What a compiled pattern may take, in kilobytes: one that is larger than the last is not checked. Up to 64 letters or
/// digits (`^\w{1,64}$`) fit the second.
const SIZES: [usize; 3] = [4, 16, 64];
/// What compiling costs, in visits. A class of Unicode is written in three bytes and takes some microseconds.
const COMPILING: usize = 500;
const COMPILING_A_BYTE: usize = 20;
/// For each byte of the text the engine may have to go through all of the compiled pattern: so much of it for a visit.
const KILOBYTES_A_VISIT: usize = 32;

/// The patterns of one check; those that cannot be checked are `None`. They are of the dialect of ECMAScript, of which
/// the engine lacks what cannot be done in linear time: looking around, and going back to what was found.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<Compiled>>);

struct Compiled {
    pattern: Regex,
    kilobytes: usize,
}

impl<'a> Patterns<'a> {
    /// Whether the pattern is anywhere in the text. None if nobody can tell.
    pub(super) fn find(
        &mut self,
        pattern: &'a str,
        text: &str,
        visits: &mut Visits,
    ) -> Result<Option<bool>, TooComplex> {
        visits.spend(1)?;
        if pattern.len() > MAX_BYTES || text.len() > MAX_TEXT_BYTES {
            return Ok(None);
        }
        if !self.0.contains_key(pattern) {
            visits.spend(COMPILING + pattern.len() * COMPILING_A_BYTE)?;
            self.0.insert(pattern, compile(pattern));
        }
        let Some(Some(compiled)) = self.0.get(pattern) else { return Ok(None) };
        visits.spend(text.len() * compiled.kilobytes / KILOBYTES_A_VISIT)?;
        Ok(Some(compiled.pattern.is_match(text)))
    }
}

fn compile(pattern: &str) -> Option<Compiled> {
    let mut builder = RegexBuilder::new(&translated(pattern)?);
    builder.dfa_size_limit(256 * 1024).nest_limit(50);
    SIZES.into_iter().find_map(|kilobytes| {
        let pattern = builder.size_limit(kilobytes * 1024).build().ok()?;
        Some(Compiled { pattern, kilobytes })
    })
}

/// A pattern of ECMAScript as the engine writes it. Digits and letters of words are those of ASCII there, which also
/// keeps the compiled pattern small; and a set has no sets in it. None if the engine would read it as something else.
fn translated(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let (mut in_set, mut chars) = (false, pattern.chars());
    while let Some(c) = chars.next() {
        let rest = chars.as_str();
        match (c, in_set) {
            ('\\', _) => match (chars.next()?, in_set) {
                ('d', _) => out.push_str("[0-9]"),
                ('D', _) => out.push_str("[^0-9]"),
                ('w', _) => out.push_str("[0-9A-Za-z_]"),
                ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                ('b', true) => out.push_str("\\x08"),
                (letter @ ('b' | 'B'), false) => out.extend(["(?-u:\\", &String::from(letter), ")"]),
                // Ends of words and texts to the engine, and to others letters or nothing at all.
                ('<' | '>' | 'A' | 'z' | 'a', _) => return None,
                (next, _) => out.extend(['\\', next]),
            },
            ('[' | '&' | '~', true) => out.extend(['\\', c]),
            // What is left out, to the engine.
            ('-', true) if rest.starts_with('-') => return None,
            // From something to digits is no range: a dash like any other.
            ('-', true) if is_class(rest) => out.push_str("\\-"),
            // An empty set, and anything at all; to the engine, a set with a bracket.
            ('[', false) if rest.starts_with(']') || rest.starts_with("^]") => return None,
            // Flags. Unknown there; and to ignore the case of a class of Unicode takes milliseconds.
            ('(', false) if is_flag(rest) => return None,
            // At most so many, to the engine.
            ('{', false) if rest.starts_with(',') => return None,
            _ => {
                in_set = (c == '[' || in_set) && c != ']';
                out.push(c);
            }
        }
    }
    Some(out)
}

fn is_class(item: &str) -> bool {
    item.strip_prefix('\\').is_some_and(|escaped| escaped.starts_with(['d', 'D', 'w', 'W', 's', 'S']))
}

fn is_flag(group: &str) -> bool {
    group.strip_prefix('?').is_some_and(|kind| !kind.starts_with([':', '<', 'P']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_ecmascript() {
        let rows: [(&str, &[&str], &[&str]); 9] = [
            (r"^[\w.-]+@[\w.-]+\.\w{2,4}$", &["a.b@c.de"], &["a.b", "é@c.de"]),
            (r"^\d{3}\D$", &["123x"], &["١٢٣x", "1234"]),
            (r"^[^\s\d]+$", &["ab"], &["a b", "a1"]),
            (r"\bcat\b", &["a cat"], &["cats"]),
            (r"^[[a]+$", &["[a"], &["b"]),
            (r"^[a&&b~~]+$", &["a&b~"], &["c"]),
            (r"^[+-\d]+$", &["+-1"], &["/", ";"]),
            (r"^\/[^\/]+$", &["/x"], &["//"]),
            (r"^[\u4e00-\u9fa5]+$", &["中文"], &["zh", "中a"]),
        ];
        for (pattern, right, wrong) in rows {
            let compiled = compile(pattern).unwrap_or_else(|| panic!("{pattern}")).pattern;
            assert!(right.iter().all(|text| compiled.is_match(text)), "{pattern}");
            assert!(!wrong.iter().any(|text| compiled.is_match(text)), "{pattern}");
        }
    }
    #[test]
    fn what_the_engine_would_read_as_something_else_is_not_checked() {
        for pattern in [
            r"\<a\>", r"\Aa", r"a\z", "[a-z--b]", "[+--]", "[]a]", "[^]", "a{,3}", "(?i)a", "(?-u:a)",
            "(?x: a)",
        ] {
            assert!(compile(pattern).is_none(), "{pattern}");
        }
    }

    #[test]
    fn a_search_costs_what_the_pattern_and_the_text_make_it_cost() {
        let cost = |pattern: &str, text: &str| {
            let (mut patterns, mut visits) = (Patterns::default(), Visits(usize::MAX));
            let found = patterns.find(pattern, text, &mut visits).unwrap();
            (found, usize::MAX - visits.0)
        };
        let text = "ab".repeat(4096);
        let compiling = |pattern: &str| 1 + COMPILING + pattern.len() * COMPILING_A_BYTE;
        for (pattern, kilobytes) in [("b{3}", 4), (r"^\w{1,64}$", 16), ("a[ab]{500}c", 64)] {
            let searching = text.len() * kilobytes / KILOBYTES_A_VISIT;
            assert_eq!(cost(pattern, &text), (Some(false), compiling(pattern) + searching), "{pattern}");
            assert_eq!(cost(pattern, &format!("{text}a")), (None, 1), "{pattern}");
        }
        assert_eq!(cost("a[ab]{2000}c", &text), (None, compiling("a[ab]{2000}c")));
        assert_eq!(cost(&"a".repeat(1_000_000), "a"), (None, 1));
    }
}

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
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).nest_limit(50);
    (pattern.len() <= MAX_BYTES).then(|| builder.build().ok()).flatten()
}

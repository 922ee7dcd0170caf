//! Patterns, which come from strangers, and are searched for in texts from models.
//!
//! They are written in the dialect of ECMAScript, rewritten for `regex`, and searched for by it in
//! time linear in the text. Patterns that cannot be rewritten, and all that would take longer than
//! one check may, are left to the tool.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

mod translation;

use translation::PatternTranslation;

/// Longer patterns and texts are not checked.
const MAX_BYTES: usize = 1_000;
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// The size a compiled expression may have, in bytes.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// The steps that the patterns of one check may take, at worst: one for each part of a pattern and
/// byte of a text. The slowest engine of `regex` took 12 ns for one (release build), so all of them
/// together take about 0.1 s at most.
const MAX_STEPS: usize = 10_000_000;
/// The steps it takes to compile an expression, and each part of one. Measured: at most 0.7 µs for
/// a part.
const COMPILE_STEPS: usize = 10_000;
const COMPILE_PART_STEPS: usize = 100;

/// The patterns of one check; those that cannot be checked are `None`.
pub(super) struct PatternCache<'a> {
    compiled: HashMap<&'a str, Option<CompiledPattern>>,
    left: usize,
}

impl Default for PatternCache<'_> {
    fn default() -> Self {
        Self { compiled: HashMap::new(), left: MAX_STEPS }
    }
}

impl<'a> PatternCache<'a> {
    /// Says whether the pattern is anywhere in the text. None if that cannot be told.
    pub(super) fn find(&mut self, pattern: &'a str, text: &str) -> Option<bool> {
        if pattern.len() > MAX_BYTES || text.len() > MAX_TEXT_BYTES {
            return None;
        }
        if !self.compiled.contains_key(pattern) {
            let compiled = self.compile(pattern);
            self.compiled.insert(pattern, compiled);
        }
        let size = self.compiled.get(pattern)?.as_ref()?.size;
        self.spend(size.saturating_mul(text.len() + 1))?;
        Some(self.compiled.get(pattern)?.as_ref()?.is_match(text))
    }

    fn compile(&mut self, pattern: &str) -> Option<CompiledPattern> {
        let PatternTranslation { parts, size } = translation::translate(pattern)?;
        self.spend(parts.len() * COMPILE_STEPS + size * COMPILE_PART_STEPS)?;
        let compile = |(expression, wanted): &(String, bool)| {
            let compiled = RegexBuilder::new(expression).size_limit(MAX_COMPILED_BYTES).build().ok()?;
            Some((compiled, *wanted))
        };
        Some(CompiledPattern { parts: parts.iter().map(compile).collect::<Option<_>>()?, size })
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}

/// A pattern as expressions, each of which must be found in a text, or must not be.
struct CompiledPattern {
    parts: Vec<(Regex, bool)>,
    size: usize,
}

impl CompiledPattern {
    fn is_match(&self, text: &str) -> bool {
        self.parts.iter().all(|(expression, wanted)| expression.is_match(text) == *wanted)
    }
}

#[cfg(test)]
mod tests;

//! Untrusted patterns, which are searched for in the texts of models.
//!
//! They are written in the ECMAScript dialect, translated for `regex`, and searched in time linear
//! in the text. Patterns that cannot be translated, and work beyond the limit of one check, are
//! left to the tool.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

mod translation;

use translation::PatternTranslation;

/// Maximum length of patterns and texts that are checked.
const MAX_BYTES: usize = 1_000;
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Maximum size of a compiled expression.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of steps of all patterns in one check, in the worst case: one for each part of a
/// pattern and byte of a text. The slowest engine of `regex` took 12 ns for one (release build), so
/// all together take about 0.1 s at most.
const MAX_STEPS: usize = 10_000_000;
/// Steps counted for compiling an expression, and for each of its parts. Measured: at most 0.7 µs
/// for a part.
const COMPILE_STEPS: usize = 10_000;
const COMPILE_PART_STEPS: usize = 100;

/// The patterns of one check; `None` for those that cannot be checked.
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
    /// Returns true if the text contains the pattern, or `None` if that cannot be determined.
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

/// A pattern as expressions, each of which must, or must not, be found in a text.
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

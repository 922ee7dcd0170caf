//! Patterns, which come from strangers, and are searched for in texts from models: every step is counted.
//!
//! The dialect is that of ECMAScript, with all of it that others lack or read differently: looking around, going back to
//! what was found, digits and words of ASCII, the set of everything. An engine of our own, because none that knows these
//! can be told how many steps it may take.

use std::collections::HashMap;

use super::{Budget, TooComplex};

mod program;
mod set;
mod syntax;

use program::Program;

/// Longer patterns and texts are not checked.
const MAX_BYTES: usize = 1_000;
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The patterns of one check; those that cannot be checked are `None`.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<Program>>);

impl<'a> Patterns<'a> {
    /// Whether the pattern is anywhere in the text. None if nobody can tell.
    pub(super) fn find(
        &mut self,
        pattern: &'a str,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Option<bool>, TooComplex> {
        if pattern.len() > MAX_BYTES || text.len() > MAX_TEXT_BYTES {
            budget.run(0, 0)?;
            return Ok(None);
        }
        if !self.0.contains_key(pattern) {
            budget.compile(pattern)?;
            let program = syntax::parse(pattern).and_then(|syntax| Program::new(&syntax));
            budget.run(program.as_ref().map_or(0, Program::len), 0)?;
            self.0.insert(pattern, program);
        }
        let Some(Some(program)) = self.0.get(pattern) else { return Ok(None) };
        let search = program.search(text);
        budget.run(search.steps, search.bytes)?;
        Ok(search.found)
    }
}

#[cfg(test)]
mod tests;

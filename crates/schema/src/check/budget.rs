//! The budget of a check, and the one list of prices.

use serde_json::Value;

use super::{super::MAX_DEPTH, ValueAt};

/// The pairs of a schema and a value that one check may look at: far more than honest arguments
/// need, and done within milliseconds. Without it a few references back to unions double the work
/// with every level.
const MAX_VISITS: usize = 100_000;
/// The number of schemas that may be within one another: every level of a value takes some, with
/// its references and unions, and every one takes stack.
const MAX_STEPS: usize = 4 * MAX_DEPTH;
/// The number of names or values looked at for a visit where each takes no more than a comparison.
pub(super) const GLANCES: usize = 16;
/// The bytes of a text that are counted, compared or copied for a visit.
const BYTES: usize = 1024;
/// The bytes of a problem that are put into words for a visit.
const WORDS: usize = 64;

/// Why a check does not come to its end. It is never a problem among others: that would make a
/// `not` around it true.
#[derive(Debug, thiserror::Error)]
pub(super) enum TooComplex {
    /// All visits are used up.
    #[error("is too complex to check")]
    Work,
    #[error("is nested more than {MAX_DEPTH} deep")]
    Depth,
}

/// The visits that are left: a schema put to a value is one, and all else is counted in them.
pub(super) struct VisitBudget(usize);

impl VisitBudget {
    pub(super) fn new() -> Self {
        Self(MAX_VISITS)
    }

    /// A schema put to a value, of which it sees how many are in it.
    pub(super) fn visit(&mut self, at: ValueAt) -> Result<(), TooComplex> {
        if at.depth > MAX_DEPTH {
            return Err(TooComplex::Depth);
        }
        if at.steps > MAX_STEPS {
            return Err(TooComplex::Work);
        }
        self.spend(1 + size(at.value))
    }

    /// Names looked up.
    pub(super) fn glance(&mut self, names: usize) -> Result<(), TooComplex> {
        self.spend(names / GLANCES)
    }

    /// A value, with all that is in it, compared to so many others.
    pub(super) fn compare(&mut self, value: &Value, others: usize) -> Result<(), TooComplex> {
        // To weigh the value is work as well, even if there is nothing to compare it to.
        self.spend(others.max(1).saturating_mul(weight(value)) / GLANCES)
    }

    /// A value written down with all that is in it.
    pub(super) fn copy(&mut self, value: &Value) -> Result<(), TooComplex> {
        self.spend(weight(value))
    }

    /// A problem put into words.
    pub(super) fn tell(&mut self, problem: &str) -> Result<(), TooComplex> {
        self.spend(problem.len() / WORDS)
    }

    /// A pattern looked up. Compiling and searching have bounds of their own.
    pub(super) fn search(&mut self, pattern: &str) -> Result<(), TooComplex> {
        self.spend(1 + pattern.len() / BYTES)
    }

    fn spend(&mut self, visits: usize) -> Result<(), TooComplex> {
        self.0 = self.0.checked_sub(visits).ok_or(TooComplex::Work)?;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn spent(&self) -> usize {
        MAX_VISITS - self.0
    }
}

/// Weighs a value as it is seen from outside.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / BYTES,
        Value::Array(items) => items.len() / GLANCES,
        Value::Object(members) => members.len() / GLANCES,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Weighs a value with all that is in it.
fn weight(value: &Value) -> usize {
    let inside: usize = match value {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() / BYTES + weight(value)).sum()
        }
        Value::String(text) => text.len() / BYTES,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    1 + inside
}

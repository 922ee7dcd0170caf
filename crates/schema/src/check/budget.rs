//! The budget of a check, and the costs of its steps.

use serde_json::Value;

use super::{super::MAX_DEPTH, ValueAt};

/// Maximum number of visits, which are pairs of a schema and a value, in one check. Honest
/// arguments need far fewer, and this many take milliseconds. Without it, a few references back to
/// unions would double the work with every level.
const MAX_VISITS: usize = 100_000;
/// Maximum number of nested schemas. Every level of a value takes some, with its references and
/// unions, and every one takes stack.
const MAX_STEPS: usize = 4 * MAX_DEPTH;
/// Names or values per visit, where each takes only a comparison.
pub(super) const GLANCES: usize = 16;
/// Bytes of a text per visit that are counted, compared or copied.
const BYTES: usize = 1024;
/// Bytes per visit of the text of a problem.
const WORDS: usize = 64;

/// Reason that a check was stopped. It is not one of the problems, because that would make a `not`
/// around it true.
#[derive(Debug, thiserror::Error)]
pub(super) enum TooComplex {
    /// The budget is used up.
    #[error("is too complex to check")]
    Work,
    #[error("is nested more than {MAX_DEPTH} deep")]
    Depth,
}

/// The visits that are left. Validating a value against a schema costs one; other work is
/// converted.
pub(super) struct VisitBudget(usize);

impl VisitBudget {
    pub(super) fn new() -> Self {
        Self(MAX_VISITS)
    }

    /// Charges for validating a value, including the number of its members or items.
    pub(super) fn visit(&mut self, at: ValueAt) -> Result<(), TooComplex> {
        if at.depth > MAX_DEPTH {
            return Err(TooComplex::Depth);
        }
        if at.steps > MAX_STEPS {
            return Err(TooComplex::Work);
        }
        self.spend(1 + size(at.value))
    }

    /// Charges for looking up names.
    pub(super) fn glance(&mut self, names: usize) -> Result<(), TooComplex> {
        self.spend(names / GLANCES)
    }

    /// Charges for comparing a value, with its contents, to this many others.
    pub(super) fn compare(&mut self, value: &Value, others: usize) -> Result<(), TooComplex> {
        // Computing the weight is work too, even if there is nothing to compare with.
        self.spend(others.max(1).saturating_mul(weight(value)) / GLANCES)
    }

    /// Charges for copying a value with its contents.
    pub(super) fn copy(&mut self, value: &Value) -> Result<(), TooComplex> {
        self.spend(weight(value))
    }

    /// Charges for the text of a problem.
    pub(super) fn tell(&mut self, problem: &str) -> Result<(), TooComplex> {
        self.spend(problem.len() / WORDS)
    }

    /// Charges for looking up a pattern. Compiling and searching have their own bounds.
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

/// Returns the weight of a value without its contents.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / BYTES,
        Value::Array(items) => items.len() / GLANCES,
        Value::Object(members) => members.len() / GLANCES,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns the weight of a value with its contents.
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

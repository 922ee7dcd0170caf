//! Arguments as models really write them: what can be read safely is read, and every liberty taken is named.
//!
//! The schema leads: a value that fits is never touched, and nothing is kept that does not fit in the end. What was cut
//! off stays cut off; nobody knows what would have followed.

use serde_json::Value;
use windlass_contract::Schema;

mod fit;
mod lenient;
mod names;
mod wanted;

pub use wanted::wanted;

/// The longest text worth repairing. Nobody writes more by hand, and every repair copies it.
const MAX_BYTES: usize = 1024 * 1024;

/// How far a repair may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latitude {
    /// Only what can be read in one way. For calls that write or run something.
    Exact,
    /// What was most likely meant, too. For calls that only look.
    Likely,
}

/// Arguments that fit after all.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// What they are now.
    pub value: Value,
    /// What was done to them.
    pub repairs: Vec<Repair>,
}

/// One liberty taken with what a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// What kind.
    pub kind: RepairKind,
    /// Where, and what exactly; never a value, since values may be secret.
    pub note: String,
}

/// Kinds of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairKind {
    /// The text was not quite JSON.
    Notation,
    /// A value was of another type, or wrapped in something.
    Type,
    /// A parameter was called otherwise.
    Name,
    /// `null` was given for what may be left out.
    Null,
}

/// Why arguments cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// They end in the middle.
    CutOff,
    /// They are not JSON, nor close to it.
    Unreadable,
    /// They are JSON, but not what the tool takes: all problems, each with its path.
    Unfit(Vec<String>),
}

/// Reads arguments that may be damaged. Arguments that fit come back as they are, without repairs.
pub fn repair(schema: &Schema, text: &str, latitude: Latitude) -> Result<Repaired, Unusable> {
    if text.len() > MAX_BYTES {
        let value = serde_json::from_str(text).map_err(|error: serde_json::Error| unreadable(&error))?;
        return fitting(schema, Repaired { value, repairs: Vec::new() });
    }
    let mut repairs = Vec::new();
    let mut value = read(text, latitude, &mut repairs)?;
    if schema.check(&value).is_empty() {
        return Ok(Repaired { value, repairs });
    }
    if let Value::String(inner) = &value {
        value = read(inner, latitude, &mut repairs)?;
        repairs.push(Repair::of(RepairKind::Type, "the arguments were JSON inside a string"));
    }
    fit::Fit::new(schema, latitude, &mut repairs).root(&mut value);
    fitting(schema, Repaired { value, repairs })
}

impl Repair {
    fn of(kind: RepairKind, note: impl Into<String>) -> Self {
        Self { kind, note: note.into() }
    }
}

fn fitting(schema: &Schema, repaired: Repaired) -> Result<Repaired, Unusable> {
    let problems = schema.check(&repaired.value);
    if problems.is_empty() { Ok(repaired) } else { Err(Unusable::Unfit(problems)) }
}

/// JSON if it is JSON, and what is close to it if it is not.
fn read(text: &str, latitude: Latitude, repairs: &mut Vec<Repair>) -> Result<Value, Unusable> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => unreadable(&error),
    };
    let (value, notes) = lenient::read(text, latitude).map_err(|again| match (error, again) {
        (Unusable::CutOff, _) | (_, Unusable::CutOff) => Unusable::CutOff,
        (_, again) => again,
    })?;
    repairs.extend(notes.into_iter().map(|note| Repair::of(RepairKind::Notation, note)));
    Ok(value)
}

fn unreadable(error: &serde_json::Error) -> Unusable {
    if error.is_eof() { Unusable::CutOff } else { Unusable::Unreadable }
}

#[cfg(test)]
mod tests;

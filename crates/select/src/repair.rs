//! Arguments as models really write them: what can be read safely is read, and every liberty taken is named.
//!
//! The schema leads: a value that fits is never touched, and nothing is kept that does not fit in the end. What was cut
//! off stays cut off; nobody knows what would have followed.

use serde_json::Value;
use windlass_contract::{ParameterAlias, Schema};

mod aliases;
mod duplicates;
mod envelope;
mod expected;
mod lenient;
mod names;
mod schema_fit;

pub use expected::describe_expected;
pub use names::{is_alike, nearest, same_name};

/// The longest text worth repairing. Nobody writes more by hand, and every repair copies it.
const MAX_BYTES: usize = 1024 * 1024;

/// How far a repair may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairMode {
    /// Only what can be read in one way. For calls that write or run something.
    Exact,
    /// What was most likely meant, too. For calls that only look.
    Likely,
}

/// What the arguments of a tool must be.
#[derive(Debug, Clone, Copy)]
pub struct ToolParameters<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// Other names of the tool.
    pub tool_aliases: &'a [&'static str],
    /// What the tool takes.
    pub schema: &'a Schema,
    /// Other names of its parameters.
    pub aliases: &'a [ParameterAlias],
}

/// Arguments that fit after all.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairedArguments {
    /// What they are now.
    pub value: Value,
    /// What was done to them.
    pub repairs: Vec<ArgumentRepair>,
    /// Whether the text says just this, and can be used as it stands.
    pub is_verbatim: bool,
}

/// One liberty taken with what a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentRepair {
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
    /// A parameter was called by another name that the tool knows.
    Alias,
    /// `null` was given for what may be left out.
    Null,
    /// A parameter was given twice, with different values.
    Repeated,
}

impl RepairKind {
    /// Whether it must be told. What means exactly the same as what was written need not be.
    pub fn is_reported(self) -> bool {
        !matches!(self, Self::Alias | Self::Null)
    }
}

/// Why arguments cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentError {
    /// They end in the middle.
    CutOff,
    /// They are not JSON, nor close to it.
    Unreadable,
    /// A member is there twice, with different values: its path.
    Repeated(String),
    /// They are JSON, but not what the tool takes: all problems, each with its path.
    Unfit(Vec<String>),
}

/// Reads arguments that may be damaged. Arguments that fit come back as they are, without repairs.
pub fn repair(
    parameters: &ToolParameters<'_>,
    text: &str,
    mode: RepairMode,
) -> Result<RepairedArguments, ArgumentError> {
    let schema = parameters.schema;
    let mut repairs = Vec::new();
    let ParsedArguments { mut value, is_verbatim } = read(text, mode, &mut repairs)?;
    let problems = schema.check(&value);
    if problems.is_empty() {
        return Ok(RepairedArguments { value, repairs, is_verbatim });
    }
    if text.len() > MAX_BYTES {
        return Err(ArgumentError::Unfit(problems));
    }
    if let Value::String(inner) = &value {
        value = read(inner, mode, &mut repairs)?.value;
        repairs.push(ArgumentRepair::new(RepairKind::Type, "the arguments were JSON inside a string"));
    }
    envelope::unwrap(parameters, &mut value, mode, &mut repairs)?;
    let mut fit = schema_fit::SchemaFitter::new(parameters, mode, &mut repairs);
    fit.root(&mut value);
    let hints = fit.hints;
    let problems = schema.check(&value);
    if problems.is_empty() {
        return Ok(RepairedArguments { value, repairs, is_verbatim: false });
    }
    Err(ArgumentError::Unfit(problems.iter().map(|problem| hints.added_to(problem)).collect()))
}

impl ArgumentRepair {
    fn new(kind: RepairKind, note: impl Into<String>) -> Self {
        Self { kind, note: note.into() }
    }
}

/// What a text says, and whether it says it in JSON as it should be.
struct ParsedArguments {
    value: Value,
    is_verbatim: bool,
}

/// JSON if it is JSON, and what is close to it if it is not.
fn read(
    text: &str,
    mode: RepairMode,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<ParsedArguments, ArgumentError> {
    let error = match duplicates::read(text) {
        Ok((value, repeats)) => {
            let is_verbatim = repeats.is_empty();
            for repeat in repeats.into_iter().filter(|repeat| repeat.differs) {
                let path = repeat.path;
                if mode == RepairMode::Exact {
                    return Err(ArgumentError::Repeated(path));
                }
                let note = format!("`{path}` was given twice with different values; the last one was taken");
                repairs.push(ArgumentRepair::new(RepairKind::Repeated, note));
            }
            return Ok(ParsedArguments { value, is_verbatim });
        }
        Err(error) => unreadable(&error),
    };
    if text.len() > MAX_BYTES {
        return Err(error);
    }
    let (value, notes) = lenient::read(text, mode).map_err(|again| match (error, again) {
        (ArgumentError::CutOff, _) | (_, ArgumentError::CutOff) => ArgumentError::CutOff,
        (_, again) => again,
    })?;
    repairs.extend(notes.into_iter().map(|note| ArgumentRepair::new(RepairKind::Notation, note)));
    Ok(ParsedArguments { value, is_verbatim: false })
}

fn unreadable(error: &serde_json::Error) -> ArgumentError {
    if error.is_eof() { ArgumentError::CutOff } else { ArgumentError::Unreadable }
}

#[cfg(test)]
mod tests;

//! Repairs arguments as models write them: reads what can be read safely and reports every repair.
//!
//! The schema leads: a value that fits is never changed, and a result that does not fit is
//! rejected. Truncated arguments are not completed, because the missing part is unknown.

use serde_json::Value;
use windlass_contract::meta::ParameterAlias;
use windlass_schema::Schema;

mod aliases;
mod duplicates;
mod envelope;
mod expected;
mod lenient;
mod names;
mod schema_fit;

pub use expected::describe_expected;
pub use names::{is_alike, nearest, same_name};

/// Maximum length of a text that is repaired. Arguments are rarely longer, and every repair copies
/// them.
const MAX_BYTES: usize = 1024 * 1024;

/// The repairs that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairMode {
    /// Only unambiguous repairs. For calls that write or run something.
    Exact,
    /// The most likely reading, too. For calls that only read.
    Likely,
}

/// The parameters of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolParameters<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// Other names of the tool.
    pub tool_aliases: &'a [&'static str],
    /// The schema of the arguments.
    pub schema: &'a Schema,
    /// Other names of its parameters.
    pub aliases: &'a [ParameterAlias],
}

/// Arguments that fit the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairedArguments {
    /// The repaired value.
    pub value: Value,
    /// The repairs that were made.
    pub repairs: Vec<ArgumentRepair>,
    /// True if the text is exactly this value and can be used unchanged.
    pub is_verbatim: bool,
}

/// A change to the arguments of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentRepair {
    /// The kind of repair.
    pub kind: RepairKind,
    /// The place and the change; never a value, since values may be secret.
    pub note: String,
}

/// The kinds of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairKind {
    /// The text was not quite JSON.
    Notation,
    /// A value had another type, or was wrapped.
    Type,
    /// A parameter had another name.
    Name,
    /// A parameter had an alias that the tool declares.
    Alias,
    /// `null` was given for an optional parameter.
    Null,
    /// A parameter was given twice, with different values.
    Repeated,
}

impl RepairKind {
    /// Returns true if the model must be informed. A repair that keeps the exact meaning is not
    /// reported.
    pub fn is_reported(self) -> bool {
        !matches!(self, Self::Alias | Self::Null)
    }
}

/// The reason why arguments cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentError {
    /// They are truncated.
    CutOff,
    /// They are not JSON, nor similar to it.
    Unreadable,
    /// A member occurs twice with different values: its path.
    Repeated(String),
    /// They are JSON, but do not fit the schema: all problems, each with its path.
    Unfit(Vec<String>),
}

/// Reads arguments that may be damaged. Arguments that fit are returned unchanged, without repairs.
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
    Err(ArgumentError::Unfit(problems.iter().map(|problem| hints.attach_to(problem)).collect()))
}

impl ArgumentRepair {
    fn new(kind: RepairKind, note: impl Into<String>) -> Self {
        Self { kind, note: note.into() }
    }
}

/// The value of a text, and whether the text is valid JSON without duplicates.
struct ParsedArguments {
    value: Value,
    is_verbatim: bool,
}

/// Reads JSON, or text that is close to it.
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

//! Turns a name and an input into a call. The only place that checks arguments against the schema
//! of their tool.

mod size;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::Value;
use windlass_contract::{
    Effects, Input, ParsedCall, ToolCall, ToolError, call::InputKind, spec::SpecKind, tool::ErrorKind,
};
use windlass_schema::Schema;
use windlass_select::repair::{
    ArgumentError, RepairMode, RepairedArguments, ToolParameters, describe_expected, repair,
};
use windlass_shape::Failure;

use crate::registry::{Registered, Registry};

/// A call whose tool was looked up.
pub(crate) struct RoutedCall<'a> {
    /// The tool, if there is one.
    pub(crate) tool: Option<&'a Registered>,
    /// The call, or the reason why it makes no sense.
    pub(crate) accepted: Result<AcceptedCall, Failure>,
}

/// A call whose arguments fit the schema of its tool.
#[derive(Debug)]
pub(crate) struct AcceptedCall {
    pub(crate) parsed: ParsedCall,
    /// The effects it declares.
    pub(crate) effects: Effects,
    /// The arguments that it runs with; absent for plain text.
    pub(crate) arguments: Option<Value>,
    /// The differences from what the model wrote.
    pub(crate) repairs: Vec<String>,
}

/// Finds the tool, parses the input and gets its effects. The texts are those that models of this
/// family know.
pub(crate) fn route<'a>(registry: &'a Registry, call: &ToolCall) -> RoutedCall<'a> {
    let name = &call.name;
    let Some((found, renamed)) = registry.resolve(name.as_str()) else {
        let known = match call.input.kind() {
            InputKind::Json | InputKind::Search => "unsupported call",
            InputKind::Text => "unsupported custom tool call",
        };
        let text = format!("{known}: {name}\n{}", registry.unknown(name.as_str()));
        return RoutedCall { tool: None, accepted: Err(Failure::NotFound(text)) };
    };
    // A tool that crashes over its input ends that call, not the session.
    let crashed = |_| Err(ToolError::failed("the tool crashed over its input; this is a bug in the tool"));
    let accept = AssertUnwindSafe(|| accept(found, &call.input));
    let mut accepted = catch_unwind(accept).unwrap_or_else(crashed).map_err(Failure::Tool);
    if let Ok(accepted) = &mut accepted {
        accepted.repairs.splice(0..0, renamed);
    }
    RoutedCall { tool: Some(found), accepted }
}

/// Accepts an input that fits the schema, or makes it fit with the fewest repairs.
fn accept(found: &Registered, input: &Input) -> Result<AcceptedCall, ToolError> {
    size::check(input)?;
    let (SpecKind::Function { parameters } | SpecKind::Search { parameters }) = &found.spec.kind else {
        return prepare(found, input, None);
    };
    let schema = found.accepted.as_ref().unwrap_or(parameters);
    let (Input::Json(text) | Input::Search(text)) = input else { return prepare(found, input, None) };
    // An empty input counts as `{}`.
    let text = if text.trim().is_empty() { "{}" } else { text };
    let parameters = ToolParameters {
        tool: found.spec.name.as_str(),
        tool_aliases: &found.meta.aliases,
        schema,
        aliases: &found.meta.parameter_aliases,
    };
    let why = match repair(&parameters, text, RepairMode::Exact) {
        Ok(repaired) => return attempt(found, schema, repaired, input),
        Err(why) => why,
    };
    if why == ArgumentError::Unreadable
        && let Ok(as_written) = prepare(found, input, None)
    {
        // Some tools read more than JSON: a patch may come as it is.
        return Ok(as_written);
    }
    // A likely repair may be used to read, but never to change anything.
    let likely = repair(&parameters, text, RepairMode::Likely).ok();
    let likely = likely.and_then(|repaired| attempt(found, schema, repaired, input).ok());
    match likely {
        Some(likely) if matches!(likely.parsed, ParsedCall::Runs(_)) && !likely.effects.may_change() => {
            Ok(likely)
        }
        _ => Err(refusal(found, schema, &why, input)),
    }
}

/// Prepares a call with arguments that fit, and with the defaults of those that were left out.
fn attempt(
    found: &Registered,
    schema: &Schema,
    repaired: RepairedArguments,
    input: &Input,
) -> Result<AcceptedCall, ToolError> {
    let RepairedArguments { value, repairs, is_verbatim } = repaired;
    let mut arguments = value.clone();
    schema.complete(&mut arguments);
    let input = if is_verbatim && arguments == value {
        Cow::Borrowed(input)
    } else {
        Cow::Owned(Input::Json(arguments.to_string()))
    };
    let told =
        repairs.into_iter().filter(|repair| repair.kind.is_reported()).map(|repair| repair.note).collect();
    match prepare(found, &input, Some(arguments)) {
        Ok(accepted) => Ok(AcceptedCall { repairs: told, ..accepted }),
        Err(error) if error.kind == ErrorKind::BadInput => Err(with_shape(found, schema, error)),
        Err(error) => Err(error),
    }
}

fn prepare(found: &Registered, input: &Input, arguments: Option<Value>) -> Result<AcceptedCall, ToolError> {
    let parsed = Arc::clone(&found.tool).prepare(input)?;
    let effects = tracing::debug_span!("effects").in_scope(|| parsed.effects());
    Ok(AcceptedCall { parsed, effects, arguments, repairs: Vec::new() })
}

/// Lists all problems at once: a model that knows them, and the expected shape, needs one more
/// attempt.
fn refusal(found: &Registered, schema: &Schema, why: &ArgumentError, input: &Input) -> ToolError {
    let unread = || match prepare(found, input, None) {
        Err(error) => error.message,
        Ok(_) => "failed to parse function arguments: they are not JSON".to_owned(),
    };
    let problem = match why {
        ArgumentError::Unfit(problems) => {
            format!("failed to parse function arguments: {}", problems.join("; "))
        }
        ArgumentError::Repeated(path) => format!(
            "failed to parse function arguments: `{path}` is there twice with different values, and nothing was \
             run; send it once"
        ),
        ArgumentError::CutOff => format!(
            "{}\nthe arguments stop in the middle, and nothing was run; send the whole call again, in smaller \
             parts if it is long",
            unread()
        ),
        ArgumentError::Unreadable => unread(),
    };
    with_shape(found, schema, ToolError::bad_input(problem))
}

/// Adds the expected shape to an error about arguments.
fn with_shape(found: &Registered, schema: &Schema, error: ToolError) -> ToolError {
    let example = found.meta.examples.first().map(|example| example.input);
    ToolError { message: format!("{}\n{}", error.message, describe_expected(schema, example)), ..error }
}

#[cfg(test)]
mod tests;

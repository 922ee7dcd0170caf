//! From a name and an input to a call that makes sense.

mod size;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::Value;
use windlass_contract::{Effects, ErrorKind, Input, InputKind, Ready, Schema, SpecKind, ToolCall, ToolError};
use windlass_select::repair::{Latitude, RepairKind, Repaired, Unusable, repair, wanted};
use windlass_shape::Failure;

use crate::registry::{Registered, Registry};

/// Where a call leads.
pub(crate) struct Routed<'a> {
    /// The tool, if there is one.
    pub(crate) tool: Option<&'a Registered>,
    /// The call, or why it makes no sense.
    pub(crate) ready: Result<Understood, Failure>,
}

/// A call that makes sense.
pub(crate) struct Understood {
    /// What can be run.
    pub(crate) ready: Box<dyn Ready>,
    /// What it would do.
    pub(crate) effects: Effects,
    /// In what it is not what the model wrote.
    pub(crate) repairs: Vec<String>,
}

/// Finds the tool, parses the input and asks what it would do. The texts are the ones models of this family know.
pub(crate) fn route<'a>(registry: &'a Registry, call: &ToolCall) -> Routed<'a> {
    let name = &call.name;
    let Some(found) = registry.find(name.as_str()) else {
        let text = match call.input.kind() {
            InputKind::Json | InputKind::Search => format!("unsupported call: {name}"),
            InputKind::Text => format!("unsupported custom tool call: {name}"),
        };
        return Routed { tool: None, ready: Err(Failure::NotFound(text)) };
    };
    // A tool that crashes over its input ends that call, not the session.
    let crashed = |_| Err(ToolError::failed("the tool crashed over its input; this is a bug in the tool"));
    let understand = AssertUnwindSafe(|| understand(found, &call.input));
    let ready = catch_unwind(understand).unwrap_or_else(crashed).map_err(Failure::Tool);
    Routed { tool: Some(found), ready }
}

/// Takes an input as it is if it fits, and with the fewest repairs that make it fit if it does not.
fn understand(found: &Registered, input: &Input) -> Result<Understood, ToolError> {
    size::check(input)?;
    let as_written = prepare(found, input, Vec::new());
    let (SpecKind::Function { parameters }, Input::Json(text)) = (&found.spec.kind, input) else {
        return as_written;
    };
    // Nothing at all counts as `{}`, and what fits is not looked at twice.
    let text = if text.trim().is_empty() { "{}" } else { text };
    if as_written.is_ok()
        && serde_json::from_str(text).is_ok_and(|value: Value| parameters.check(&value).is_empty())
    {
        return as_written;
    }
    if text.len() > size::MOST_REPAIRED_BYTES {
        return as_written;
    }
    let why = match repair(parameters, text, Latitude::Exact) {
        Ok(repaired) => return chosen(found, repaired, as_written),
        Err(why) => why,
    };
    // What is only likely may be looked for, but nothing may be changed on the strength of it.
    let likely = repair(parameters, text, Latitude::Likely).ok();
    let likely = likely.and_then(|repaired| attempt(found, repaired).ok());
    match (likely, as_written) {
        // One that looks first does not say yet what it will do.
        (Some(likely), Err(_)) if !likely.effects.may_change() && likely.ready.looks().is_none() => {
            Ok(likely)
        }
        (_, Ok(as_written)) => Ok(as_written),
        (_, Err(error)) => Err(explained(found, parameters, &why, error)),
    }
}

/// The repaired call, unless the tool can do with what was written: it may know more names than its schema tells, and
/// takes `null` for nothing. Only a name it would have passed over in silence is a reason to prefer the repair.
fn chosen(
    found: &Registered,
    repaired: Repaired,
    as_written: Result<Understood, ToolError>,
) -> Result<Understood, ToolError> {
    let named = repaired.repairs.iter().any(|repair| repair.kind == RepairKind::Name);
    match as_written {
        Ok(as_written) if !named => Ok(as_written),
        _ => attempt(found, repaired),
    }
}

fn attempt(found: &Registered, repaired: Repaired) -> Result<Understood, ToolError> {
    let notes = repaired.repairs.into_iter().map(|repair| repair.note).collect();
    prepare(found, &Input::Json(repaired.value.to_string()), notes)
}

fn prepare(found: &Registered, input: &Input, repairs: Vec<String>) -> Result<Understood, ToolError> {
    let ready = Arc::clone(&found.tool).prepare(input)?;
    let effects = tracing::debug_span!("effects").in_scope(|| ready.effects());
    Ok(Understood { ready, effects, repairs })
}

/// A parser stops at the first problem; a model that is told all of them, and what would fit, needs one more attempt.
fn explained(found: &Registered, parameters: &Schema, why: &Unusable, error: ToolError) -> ToolError {
    if error.kind != ErrorKind::BadInput {
        return error;
    }
    let problem = match why {
        Unusable::Unfit(problems) => format!("failed to parse function arguments: {}", problems.join("; ")),
        Unusable::CutOff => format!(
            "{}\nthe arguments stop in the middle, and nothing was run; send the whole call again, in smaller \
             parts if it is long",
            error.message
        ),
        Unusable::Unreadable => error.message,
    };
    let example = found.meta.examples.first().map(|example| example.input);
    ToolError { message: format!("{problem}\n{}", wanted(parameters, example)), ..error }
}

#[cfg(test)]
mod tests;

//! Unwraps arguments inside a whole call: `{"name": …, "arguments": {…}}` and similar forms.

use serde_json::Value;

use super::{ArgumentError, ArgumentRepair, RepairKind, RepairMode, ToolParameters, names::same_name, read};

/// Members that some models put all arguments into.
const WRAPPERS: [&str; 9] =
    ["arguments", "parameters", "args", "params", "input", "kwargs", "tool_input", "function", "tool_call"];

/// Members next to them that name the called tool.
const NAMES: [&str; 7] =
    ["name", "tool", "tool_name", "function", "function_name", "recipient_name", "toolName"];

/// Members next to them that are ignored.
const OTHERS: [&str; 4] = ["type", "id", "call_id", "index"];

/// Maximum number of nested wrappers that are removed.
const MAX_WRAPPERS: usize = 3;

/// Removes wrappers, unless the tool has a parameter of that name or the call is for another tool.
pub(super) fn unwrap(
    parameters: &ToolParameters<'_>,
    value: &mut Value,
    mode: RepairMode,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<(), ArgumentError> {
    for _ in 0..MAX_WRAPPERS {
        let Some((wrapper, inner)) = wrapped(parameters, value)? else { return Ok(()) };
        let inner = match inner {
            Value::String(text) => read(text, mode, repairs)?.value,
            inner => inner.clone(),
        };
        if !inner.is_object() {
            return Ok(());
        }
        let place = if wrapper.is_empty() { "a list".to_owned() } else { format!("`{wrapper}`") };
        repairs.push(ArgumentRepair::new(RepairKind::Type, format!("the arguments were inside {place}")));
        *value = inner;
    }
    Ok(())
}

type WrappedArguments<'v> = Option<(&'static str, &'v Value)>;

/// Returns the content of a wrapper, if there is one.
fn wrapped<'v>(
    parameters: &ToolParameters<'_>,
    value: &'v Value,
) -> Result<WrappedArguments<'v>, ArgumentError> {
    let members = match value {
        Value::Array(items) => match items.as_slice() {
            [only @ Value::Object(_)] => return Ok(Some(("", only))),
            _ => return Ok(None),
        },
        Value::Object(members) => members,
        _ => return Ok(None),
    };
    let is_parameter = |name: &str| parameters.schema.properties().any(|(known, _)| known == name);
    let holds_all = |wrapper: &str| {
        let inner = members.get(wrapper);
        inner.is_some_and(|inner| inner.is_object() || wrapper != "function" && inner.is_string())
    };
    let Some(wrapper) = WRAPPERS.into_iter().find(|wrapper| holds_all(wrapper) && !is_parameter(wrapper))
    else {
        return Ok(None);
    };
    for (name, beside) in members.iter().filter(|(name, _)| *name != wrapper) {
        match beside {
            Value::String(tool) if NAMES.contains(&name.as_str()) => check_tool(parameters, tool)?,
            _ if OTHERS.contains(&name.as_str()) => {}
            _ => return Ok(None),
        }
    }
    Ok(members.get(wrapper).map(|inner| (wrapper, inner)))
}

/// Rejects a call of another tool.
fn check_tool(parameters: &ToolParameters<'_>, tool: &str) -> Result<(), ArgumentError> {
    let names = std::iter::once(parameters.tool).chain(parameters.tool_aliases.iter().copied());
    if names.into_iter().any(|name| same_name(name, tool)) {
        return Ok(());
    }
    let (tool, called) = (super::names::display_name(tool), parameters.tool);
    Err(ArgumentError::Unfit(vec![format!("`arguments` are a call of `{tool}`, but `{called}` was called")]))
}

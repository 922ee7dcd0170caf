//! From a name and an input to a call that makes sense.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use windlass_contract::{Effects, InputKind, Ready, ToolCall, ToolError};
use windlass_shape::Failure;

use crate::registry::{Registered, Registry};

/// Where a call leads.
pub(crate) struct Routed<'a> {
    /// The tool, if there is one.
    pub(crate) tool: Option<&'a Registered>,
    /// The parsed call and what it would do, or why it makes no sense.
    pub(crate) ready: Result<(Box<dyn Ready>, Effects), Failure>,
}

/// Finds the tool, parses the input and asks what it would do. The texts are the ones models of this family know.
pub(crate) fn route<'a>(registry: &'a Registry, call: &ToolCall) -> Routed<'a> {
    let name = &call.name;
    let Some(found) = registry.find(name.as_str()) else {
        let text = match call.input.kind() {
            InputKind::Json => format!("unsupported call: {name}"),
            InputKind::Text => format!("unsupported custom tool call: {name}"),
        };
        return Routed { tool: None, ready: Err(Failure::NotFound(text)) };
    };
    let prepare = || {
        let ready = Arc::clone(&found.tool).prepare(&call.input)?;
        let effects = tracing::debug_span!("effects").in_scope(|| ready.effects());
        Ok((ready, effects))
    };
    // A tool that crashes over its input ends that call, not the session.
    let crashed = |_| Err(ToolError::failed("the tool crashed over its input; this is a bug in the tool"));
    let ready = catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(crashed).map_err(Failure::Tool);
    Routed { tool: Some(found), ready }
}

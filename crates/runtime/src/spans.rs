//! Tracing spans of a call: one for the whole, named by OpenTelemetry's conventions for generative
//! AI, and one for each step, at `debug`. They hold no arguments and no results.

use tracing::{Span, field::Empty};
use windlass_contract::{Outcome, ToolCall};

/// Creates the span of a call, from routing to its outcome. Fields with `otel.` are instructions to
/// an exporter, not attributes.
pub(crate) fn execute_tool(call: &ToolCall) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", call.name),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %call.name,
        gen_ai.tool.call.id = %call.id,
        // Tools that run on the model's server do not come here.
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
        windlass.decision = Empty,
        windlass.held = Empty,
    )
}

/// Records the end of the call.
pub(crate) fn ended(span: &Span, outcome: &Outcome) {
    let receipt = &outcome.receipt;
    if !receipt.decision.is_empty() {
        span.record("windlass.decision", receipt.decision.as_str());
    }
    if let Some(held) = &receipt.held {
        span.record("windlass.held", held.rung.name());
    }
    if !outcome.verdict.success {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", outcome.status.name());
    }
}

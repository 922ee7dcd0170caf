//! What operators see of a call: a span for the whole, by the names of OpenTelemetry's conventions for generative AI, and one for
//! each step of the way, at `debug`. No arguments and no results.

use tracing::{Span, field::Empty};
use windlass_contract::{Outcome, ToolCall};

/// A call from its routed beginning to its outcome. Fields with `otel.` are orders to an exporter, not attributes.
pub(crate) fn execute_tool(call: &ToolCall) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", call.name),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %call.name,
        gen_ai.tool.call.id = %call.id,
        // Tools that the model's server runs by itself do not come here.
        "gen_ai.tool.type" = "function",
        "error.type" = Empty,
        windlass.decision = Empty,
        windlass.held = Empty,
    )
}

/// Adds how it ended.
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

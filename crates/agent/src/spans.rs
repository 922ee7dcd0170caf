//! What operators see of a turn: a span for the whole and one for each answer, by the names of OpenTelemetry's conventions for
//! generative AI. Nothing of what is said.

use tracing::{Span, field::Empty};
use windlass_contract::{ModelInfo, ThreadId, Usage};

use crate::AgentError;

/// A turn. Its calls are part of it.
pub(crate) fn invoke_agent(thread: &ThreadId, model: &ModelInfo) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.name = "invoke_agent windlass",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = "windlass",
        gen_ai.conversation.id = %thread,
        gen_ai.provider.name = %model.provider,
        gen_ai.request.model = %model.model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    )
}

/// One answer of the model.
pub(crate) fn chat(thread: &ThreadId, model: &ModelInfo) -> Span {
    tracing::info_span!(
        "chat",
        otel.name = %format_args!("chat {}", model.model),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.conversation.id = %thread,
        gen_ai.provider.name = %model.provider,
        gen_ai.request.model = %model.model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        "error.type" = Empty,
    )
}

/// Adds what it cost.
pub(crate) fn cost(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

/// Adds why it failed.
pub(crate) fn failed(span: &Span, error: &AgentError) {
    let kind = match error {
        AgentError::Model(_) => "model",
        AgentError::Journal(_) => "journal",
        AgentError::Stopped(_) => "stopped",
    };
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

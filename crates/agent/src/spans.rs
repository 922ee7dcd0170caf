//! Tracing spans of a turn: one for the whole and one for each answer, named by OpenTelemetry's
//! conventions for generative AI. They hold no content.

use tracing::{Span, field::Empty};
use windlass_contract::{
    id::ThreadId,
    model::{ModelInfo, Usage},
};

use crate::AgentError;

/// Creates a span about a model with the common fields: a field must be named where its span is
/// made.
macro_rules! operation {
    ($name:literal, $thread:expr, $model:expr, $($own:tt)*) => {
        tracing::info_span!(
            $name,
            $($own)*
            otel.status_code = Empty,
            gen_ai.operation.name = $name,
            gen_ai.conversation.id = %$thread,
            gen_ai.provider.name = %$model.provider,
            gen_ai.request.model = %$model.model,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            "error.type" = Empty,
        )
    };
}

/// Creates the span of a turn, which includes its calls.
pub(crate) fn invoke_agent(thread: &ThreadId, model: &ModelInfo) -> Span {
    operation!(
        "invoke_agent",
        thread,
        model,
        otel.name = "invoke_agent windlass",
        gen_ai.agent.name = "windlass",
    )
}

/// Creates the span of one answer of the model.
pub(crate) fn chat(thread: &ThreadId, model: &ModelInfo) -> Span {
    operation!(
        "chat", thread, model,
        otel.name = %format_args!("chat {}", model.model),
        otel.kind = "client",
    )
}

/// Records the token usage.
pub(crate) fn cost(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

/// Records the error.
pub(crate) fn failed(span: &Span, error: &AgentError) {
    let kind = match error {
        AgentError::Model(_) => "model",
        AgentError::Journal(_) => "journal",
        AgentError::Stopped(_) => "stopped",
        AgentError::BlockedMessage { .. } => "blocked_message",
        AgentError::UnfitAnswer { .. } => "unfit_answer",
    };
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

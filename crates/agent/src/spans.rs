//! What operators see of a turn: a span for the whole and one for each answer, by the names of OpenTelemetry's conventions for
//! generative AI. Nothing of what is said.

use tracing::{Span, field::Empty};
use windlass_contract::{
    id::ThreadId,
    model::{ModelInfo, Usage},
};

use crate::AgentError;

/// A span about a model, with what all of them have: a field must be named where its span is made.
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

/// A turn. Its calls are part of it.
pub(crate) fn invoke_agent(thread: &ThreadId, model: &ModelInfo) -> Span {
    operation!(
        "invoke_agent",
        thread,
        model,
        otel.name = "invoke_agent windlass",
        gen_ai.agent.name = "windlass",
    )
}

/// One answer of the model.
pub(crate) fn chat(thread: &ThreadId, model: &ModelInfo) -> Span {
    operation!(
        "chat", thread, model,
        otel.name = %format_args!("chat {}", model.model),
        otel.kind = "client",
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
        AgentError::UnfitAnswer { .. } => "unfit_answer",
    };
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

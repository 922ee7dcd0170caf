//! Asking a model, and telling what came back.

use std::sync::Arc;

use windlass_contract::{
    Content, Item,
    id::ThreadId,
    item::{Body, Cached, Role},
    model::{ModelClient, ModelError, ModelEvent, Prompt},
};
use windlass_model::{Options, Provider, WireApi, connect};

/// A provider at an address that does not wait long for anything.
pub(crate) fn provider(url: &str, wire_api: WireApi) -> Provider {
    Provider { base_url: Some(url.to_owned()), wire_api, stream_idle_timeout_ms: 5000, ..Provider::default() }
}

pub(crate) fn client(provider: &Provider) -> Arc<dyn ModelClient> {
    let options = Options { model: "m".to_owned(), ..Options::default() };
    connect("test", provider, options, &|_| None).unwrap()
}

/// Asks something and tells what came back, one line per event; the last line may be an error.
pub(crate) async fn ask(client: &dyn ModelClient) -> Vec<String> {
    let history = [Cached::new(Item::message(Role::User, "hi"))];
    let (thread, tools) = (ThreadId::from("thread-1"), Cached::new(vec![]));
    let prompt = Prompt {
        thread: &thread,
        instructions: "",
        history: &history,
        tools: &tools,
        parallel_calls: false,
        output_schema: None,
    };
    let mut answer = match client.open(prompt).await {
        Ok(answer) => answer,
        Err(error) => return vec![shown(&error)],
    };
    let mut lines = Vec::new();
    while let Some(event) = answer.next().await {
        match event {
            // Counted, not shown: the call that follows has them all.
            Ok(ModelEvent::CallDelta(_)) => {}
            Ok(event) => lines.push(show(event)),
            Err(error) => lines.push(shown(&error)),
        }
    }
    lines
}

/// The error as a user reads it: one line.
fn shown(error: &ModelError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "more than one line: {text}");
    format!("error: {text}")
}

pub(crate) fn show(event: ModelEvent) -> String {
    match event {
        ModelEvent::TextDelta(text) => format!("text {text}"),
        ModelEvent::ReasoningDelta(text) => format!("reasoning {text}"),
        ModelEvent::CallDelta(text) => format!("arguments {text}"),
        ModelEvent::Item(item) => match item.body {
            Body::Message { content, .. } => format!("message {}", Content::join(&content)),
            Body::Call(call) => format!("call {} {}", call.id, call.input.as_str()),
            other => format!("{other:?}"),
        },
        ModelEvent::Completed { usage, .. } => {
            format!("completed {}", usage.map(|usage| usage.total()).unwrap_or_default())
        }
        ModelEvent::Notice(text) => text,
    }
}

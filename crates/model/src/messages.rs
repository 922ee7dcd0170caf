//! Anthropic's Messages API, which other servers speak, too.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use windlass_contract::{
    BoxFuture, ToolSpec,
    item::Cached,
    model::{ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
    spec::SpecKind,
};

use crate::{
    Options, Provider, SchemaProfile,
    answer::DecodedStream,
    calls::CallIds,
    freeform,
    http::{EventStream, HttpEndpoint},
    json,
};
use conversation::ThoughtForm;
use thinking::ThinkingOptions;

mod blocks;
mod conversation;
mod stream;
mod thinking;
mod tool_schema;

/// Marks the end of a prefix that the server keeps in its cache. A request has at most four of
/// them: after the tools, after the instructions, and after the last two user messages.
const CACHE_CONTROL: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Client for the Messages API.
pub(crate) struct MessagesClient {
    info: ModelInfo,
    options: Options,
    profile: SchemaProfile,
    /// True if the server refused thinking, or its own thoughts of earlier answers, but accepted
    /// the request without them.
    is_plain: AtomicBool,
    http: HttpEndpoint,
}

impl MessagesClient {
    pub(crate) fn new(
        info: ModelInfo,
        provider: &Provider,
        options: Options,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let http = HttpEndpoint::new(&info.provider, provider, "messages", env)?;
        let profile = provider.tool_schemas;
        Ok(Self { info, options, profile, is_plain: AtomicBool::new(false), http })
    }

    /// Returns the request body. History and tools are spliced in as text that was encoded once.
    fn body(&self, prompt: &Prompt<'_>, form: ThoughtForm) -> String {
        let messages = conversation::encode(prompt.history, form);
        let thinking = ThinkingOptions::from_options(&self.options, form);
        let mut body = json::JsonObjectWriter::with_capacity(messages.len() + 4096);
        body.member("model", &self.options.model);
        body.member("max_tokens", &thinking.max_tokens);
        let tools = tools(prompt.tools, self.profile);
        if tools != "[]" {
            body.raw("tools", &tools);
            let is_single = !prompt.parallel_calls;
            body.member("tool_choice", &json!({"type": "auto", "disable_parallel_tool_use": is_single}));
        }
        if !prompt.instructions.trim().is_empty() {
            let block = json::to_text(&json!({"type": "text", "text": prompt.instructions}));
            body.raw("system", &format!("[{}]", with_cache_control(&block)));
        }
        body.raw("messages", &messages);
        body.member("stream", &true);
        if let Some(thinking) = &thinking.thinking {
            body.member("thinking", thinking);
        }
        if let Some(config) = output_config(thinking.effort, prompt.output_schema) {
            body.member("output_config", &config);
        }
        body.finish()
    }

    /// Sends a prompt. If the server rejects it, sends it once more without thoughts: those of
    /// another server, or of a model without thinking, must not end a session.
    async fn post(&self, prompt: &Prompt<'_>) -> Result<(EventStream, Option<ModelEvent>), ModelError> {
        let send = |form| self.http.post(prompt.thread, self.body(prompt, form));
        if self.is_plain.load(Ordering::Relaxed) {
            return Ok((send(ThoughtForm::LeftOut).await?, None));
        }
        let rejection = match send(ThoughtForm::Kept).await {
            Err(error @ ModelError::InvalidRequest { .. }) => error,
            opened => return Ok((opened?, None)),
        };
        if self.body(prompt, ThoughtForm::Kept) == self.body(prompt, ThoughtForm::LeftOut) {
            return Err(rejection);
        }
        match send(ThoughtForm::LeftOut).await {
            Ok(events) => {
                self.is_plain.store(true, Ordering::Relaxed);
                let notice = "the server refuses thinking, or thoughts of earlier answers; both are left out \
                              from now on";
                Ok((events, Some(ModelEvent::Notice(notice.to_owned()))))
            }
            Err(ModelError::InvalidRequest { .. }) => Err(rejection),
            Err(other) => Err(other),
        }
    }
}

impl ModelClient for MessagesClient {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        Box::pin(async move {
            let (events, notice) = self.post(&prompt).await?;
            let ids = CallIds::from_history(prompt.history);
            let decoder = stream::MessagesDecoder::new(ids, freeform::names(prompt.tools.get()));
            Ok(Box::new(DecodedStream::new(events, decoder).with_first_event(notice)) as Box<dyn ModelStream>)
        })
    }
}

/// Returns a JSON object, given as text, with a mark for the server's cache.
fn with_cache_control(object: &str) -> String {
    match object.strip_suffix('}') {
        Some(open) => format!("{open}{CACHE_CONTROL}}}"),
        None => object.to_owned(),
    }
}

fn output_config(effort: Option<&str>, schema: Option<&Value>) -> Option<Value> {
    let mut config = serde_json::Map::new();
    if let Some(effort) = effort {
        config.insert("effort".to_owned(), effort.into());
    }
    if let Some(schema) = schema {
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Returns the tools as JSON, with a mark for the cache after the last one.
fn tools(tools: &Cached<Vec<ToolSpec>>, profile: SchemaProfile) -> Cow<'_, str> {
    let key = match profile {
        SchemaProfile::Faithful => "messages",
        SchemaProfile::Lossy => "messages, lossy",
    };
    tools.encoded(key, |tools| {
        let encoded = tools.iter().filter_map(|tool| encode_tool(tool, profile));
        let mut encoded: Vec<_> = encoded.map(|tool| json::to_text(&tool)).collect();
        if let Some(last) = encoded.last_mut() {
            *last = with_cache_control(last);
        }
        format!("[{}]", encoded.join(","))
    })
}

/// Encodes a tool, or returns `None` for hosted tools, which need a server that implements them.
fn encode_tool(spec: &ToolSpec, profile: SchemaProfile) -> Option<Value> {
    let schema = match &spec.kind {
        SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
            tool_schema::without_union(profile.project(parameters))
        }
        SpecKind::Custom { grammar } => freeform::schema(grammar),
        SpecKind::LocalShell | SpecKind::WebSearch(_) => return None,
    };
    Some(json!({"name": spec.name.as_str(), "description": spec.description, "input_schema": schema}))
}

#[cfg(test)]
mod tests;

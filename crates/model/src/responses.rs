//! Client for the Responses API.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;
use windlass_contract::{
    BoxFuture, ToolSpec,
    item::Cached,
    model::{ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
    spec::{SpecKind, WebSearch},
};

use crate::{
    Options, Provider, SchemaProfile,
    answer::DecodedStream,
    calls::CallIds,
    http::{EventStream, HttpEndpoint},
    json,
};

mod sendable;
mod stream;
mod wire;

use stream::ResponsesDecoder;
use wire::{ItemForm, ItemIds};

/// Client for the Responses API.
pub(crate) struct ResponsesClient {
    info: ModelInfo,
    options: Options,
    profile: SchemaProfile,
    ids: ItemIds,
    /// True if the server refused its own items unchanged but accepted them re-encoded.
    is_plain: AtomicBool,
    http: HttpEndpoint,
}

impl ResponsesClient {
    pub(crate) fn new(
        info: ModelInfo,
        provider: &Provider,
        options: Options,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let http = HttpEndpoint::new(&info.provider, provider, "responses", env)?;
        let ids = if provider.is_azure() { ItemIds::Sent } else { ItemIds::LeftOut };
        Ok(Self {
            info,
            options,
            profile: provider.tool_schemas,
            ids,
            is_plain: AtomicBool::new(false),
            http,
        })
    }

    /// Returns the request body. History and tools are spliced in as text that was encoded once.
    fn body(&self, prompt: &Prompt<'_>, form: ItemForm) -> String {
        let input = wire::input(prompt.history, self.ids, form, self.profile);
        let mut body = json::JsonObjectWriter::with_capacity(input.len() + 4096);
        body.member("model", &self.options.model);
        if !prompt.instructions.is_empty() {
            body.member("instructions", prompt.instructions);
        }
        body.raw("input", &input);
        if !prompt.tools.get().is_empty() {
            body.raw("tools", &tools(prompt.tools, self.profile));
            body.member("tool_choice", "auto");
            body.member("parallel_tool_calls", &prompt.parallel_calls);
        }
        let reasoning = ReasoningOptions::from_options(&self.options);
        let include: &[&str] = if reasoning.is_some() { &["reasoning.encrypted_content"] } else { &[] };
        if let Some(reasoning) = reasoning {
            body.member("reasoning", &reasoning);
        }
        body.member("store", &(self.ids == ItemIds::Sent));
        body.member("stream", &true);
        body.member("include", include);
        body.member("prompt_cache_key", prompt.thread);
        if let Some(limit) = self.options.max_output_tokens {
            body.member("max_output_tokens", &limit);
        }
        if let Some(text) = TextOptions::from_options(&self.options, prompt.output_schema) {
            body.member("text", &text);
        }
        body.finish()
    }
}

impl ModelClient for ResponsesClient {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        Box::pin(async move {
            let (events, notice) = self.post(&prompt).await?;
            let decoder =
                ResponsesDecoder::new(CallIds::from_history(prompt.history), self.options.max_output_tokens);
            Ok(Box::new(DecodedStream::new(events, decoder).with_first_event(notice)) as Box<dyn ModelStream>)
        })
    }
}

impl ResponsesClient {
    /// Sends a prompt. If the server rejects it, sends it once more without the server's own
    /// additions to the conversation. A session must not end because its server refuses an item
    /// that it sent itself.
    async fn post(&self, prompt: &Prompt<'_>) -> Result<(EventStream, Option<ModelEvent>), ModelError> {
        let send = |form| self.http.post(prompt.thread, self.body(prompt, form));
        if self.is_plain.load(Ordering::Relaxed) {
            return Ok((send(ItemForm::Plain).await?, None));
        }
        let rejection = match send(ItemForm::Kept).await {
            Err(error @ ModelError::InvalidRequest { .. }) => error,
            opened => return Ok((opened?, None)),
        };
        if self.body(prompt, ItemForm::Kept) == self.body(prompt, ItemForm::Plain) {
            return Err(rejection);
        }
        match send(ItemForm::Plain).await {
            Ok(events) => {
                self.is_plain.store(true, Ordering::Relaxed);
                let notice = "the server does not take back what it has sent in this session (reasoning, items \
                              of its own); that is left out from now on";
                Ok((events, Some(ModelEvent::Notice(notice.to_owned()))))
            }
            Err(ModelError::InvalidRequest { .. }) => Err(rejection),
            Err(other) => Err(other),
        }
    }
}

#[derive(Serialize)]
struct ReasoningOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

impl<'a> ReasoningOptions<'a> {
    fn from_options(options: &'a Options) -> Option<Self> {
        let summary = options.reasoning_summary.as_deref().filter(|summary| *summary != "none");
        let effort = options.reasoning_effort.as_deref();
        (effort.is_some() || summary.is_some()).then_some(Self { effort, summary })
    }
}

#[derive(Serialize)]
struct TextOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> TextOptions<'a> {
    fn from_options(options: &'a Options, schema: Option<&'a Value>) -> Option<Self> {
        let verbosity = options.verbosity.as_deref();
        let format = schema.map(|schema| OutputFormat {
            r#type: "json_schema",
            name: crate::OUTPUT_SCHEMA_NAME,
            strict: true,
            schema,
        });
        (verbosity.is_some() || format.is_some()).then_some(Self { verbosity, format })
    }
}

/// A tool definition of this protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesTool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        strict: bool,
        parameters: Value,
    },
    LocalShell,
    WebSearch {
        external_web_access: bool,
    },
    Custom {
        name: &'a str,
        description: &'a str,
        format: GrammarFormat<'a>,
    },
    #[serde(rename = "tool_search")]
    Finder {
        execution: &'static str,
        description: &'a str,
        parameters: Value,
    },
}

#[derive(Serialize)]
struct GrammarFormat<'a> {
    r#type: &'static str,
    syntax: &'a str,
    definition: &'a str,
}

fn tools(tools: &Cached<Vec<ToolSpec>>, profile: SchemaProfile) -> std::borrow::Cow<'_, str> {
    let key = match profile {
        SchemaProfile::Faithful => "responses",
        SchemaProfile::Lossy => "responses, lossy",
    };
    tools.encoded(key, |tools| {
        json::to_text(&tools.iter().map(|tool| encode_tool(tool, profile)).collect::<Vec<_>>())
    })
}

fn encode_tool(spec: &ToolSpec, profile: SchemaProfile) -> ResponsesTool<'_> {
    let (name, description) = (spec.name.as_str(), spec.description.as_str());
    match &spec.kind {
        SpecKind::Function { parameters } => ResponsesTool::Function {
            name,
            description,
            strict: false,
            parameters: profile.project(parameters),
        },
        SpecKind::Search { parameters } => ResponsesTool::Finder {
            execution: "client",
            description,
            parameters: profile.project(parameters),
        },
        SpecKind::LocalShell => ResponsesTool::LocalShell,
        SpecKind::WebSearch(reach) => {
            ResponsesTool::WebSearch { external_web_access: *reach == WebSearch::Live }
        }
        SpecKind::Custom { grammar } => {
            let (syntax, definition) = (grammar.syntax.as_str(), grammar.definition.as_str());
            ResponsesTool::Custom {
                name,
                description,
                format: GrammarFormat { r#type: "grammar", syntax, definition },
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The Chat Completions API, which most servers of local models speak.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use windlass_contract::{
    BoxFuture, ToolSpec,
    item::Cached,
    model::{ModelClient, ModelError, ModelInfo, ModelStream, Prompt},
    spec::SpecKind,
};

use crate::{
    Options, Provider, SchemaProfile,
    answer::DecodedStream,
    calls::CallIds,
    dialect::{CallScanner, KnownTools},
    freeform,
    http::HttpEndpoint,
    json,
    provider::CallReading,
};
use stream::TextReading;

mod messages;
mod stream;

/// Client for the Chat Completions API.
pub(crate) struct ChatClient {
    info: ModelInfo,
    options: Options,
    profile: SchemaProfile,
    reading: CallReading,
    /// True if tools, calls and results are written as text in the dialect (`tool_prompt`).
    uses_tool_prompt: bool,
    /// Name of the member that limits the output. OpenAI renamed it; other servers did not.
    token_limit_member: &'static str,
    http: HttpEndpoint,
}

impl ChatClient {
    pub(crate) fn new(
        info: ModelInfo,
        provider: &Provider,
        options: Options,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let http = HttpEndpoint::new(&info.provider, provider, "chat/completions", env)?;
        let is_openai = provider.base_url.as_ref().is_some_and(|url| url.contains("//api.openai.com"));
        let token_limit_member =
            if is_openai || provider.is_azure() { "max_completion_tokens" } else { "max_tokens" };
        let (profile, reading) = (provider.tool_schemas, provider.call_reading());
        Ok(Self {
            info,
            options,
            profile,
            reading,
            uses_tool_prompt: provider.tool_prompt,
            token_limit_member,
            http,
        })
    }

    /// Returns the request body. History and tools are spliced in as text that was encoded once.
    fn body(&self, prompt: &Prompt<'_>) -> String {
        let tools = tools(prompt.tools, self.profile);
        let has_tools = tools != "[]";
        let prompt_dialect = match self.reading {
            CallReading::Dialect(dialect) => self.uses_tool_prompt.then_some(dialect),
            CallReading::Cautious | CallReading::HintOnly => None,
        };
        let instructions = match prompt_dialect.filter(|_| has_tools) {
            Some(dialect) => {
                join_instructions(prompt.instructions, &dialect.instructions(prompt.tools.get(), &tools))
                    .into()
            }
            None => Cow::Borrowed(prompt.instructions),
        };
        let messages = messages::encode(&instructions, prompt.history, prompt_dialect);
        let mut body = json::JsonObjectWriter::with_capacity(messages.len() + 4096);
        body.member("model", &self.options.model);
        body.raw("messages", &messages);
        body.member("stream", &true);
        body.member("stream_options", &json!({"include_usage": true}));
        if has_tools && prompt_dialect.is_none() {
            body.raw("tools", &tools);
            if prompt.parallel_calls {
                body.member("parallel_tool_calls", &true);
            }
        }
        if let Some(effort) = &self.options.reasoning_effort {
            body.member("reasoning_effort", effort);
        }
        if let Some(verbosity) = &self.options.verbosity {
            body.member("verbosity", verbosity);
        }
        if let Some(limit) = self.options.max_output_tokens {
            body.member(self.token_limit_member, &limit);
        }
        if let Some(schema) = prompt.output_schema {
            let schema = json!({"name": crate::OUTPUT_SCHEMA_NAME, "strict": true, "schema": schema});
            body.member("response_format", &json!({"type": "json_schema", "json_schema": schema}));
        }
        body.finish()
    }
}

impl ModelClient for ChatClient {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        Box::pin(async move {
            let events = self.http.post(prompt.thread, self.body(&prompt)).await?;
            let (ids, tools) = (CallIds::from_history(prompt.history), prompt.tools.get());
            let text = match self.reading {
                CallReading::Dialect(dialect) => CallScanner::new(dialect, || KnownTools::from_specs(tools))
                    .map_or(TextReading::Plain, TextReading::Scanned),
                // With an output schema, JSON in the text is the requested answer and no call.
                _ if tools.is_empty() || prompt.output_schema.is_some() => TextReading::Plain,
                CallReading::Cautious => TextReading::Scanned(CallScanner::cautious(
                    KnownTools::with_caution(tools, prompt.history),
                )),
                CallReading::HintOnly => TextReading::Hinted(tools.clone()),
            };
            let decoder = stream::ChatDecoder::new(ids, freeform::names(tools), text);
            Ok(Box::new(DecodedStream::new(events, decoder)) as Box<dyn ModelStream>)
        })
    }
}

/// A tool definition of this protocol.
#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum ChatTool<'a> {
    Function { name: &'a str, description: &'a str, parameters: Value },
}

fn tools(tools: &Cached<Vec<ToolSpec>>, profile: SchemaProfile) -> Cow<'_, str> {
    let key = match profile {
        SchemaProfile::Faithful => "chat",
        SchemaProfile::Lossy => "chat, lossy",
    };
    tools.encoded(key, |tools| {
        json::to_text(&tools.iter().filter_map(|tool| encode_tool(tool, profile)).collect::<Vec<_>>())
    })
}

/// Encodes a tool, or returns `None` for hosted tools, which need a server that implements them.
fn encode_tool(spec: &ToolSpec, profile: SchemaProfile) -> Option<ChatTool<'_>> {
    let (name, description) = (spec.name.as_str(), spec.description.as_str());
    match &spec.kind {
        SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
            let parameters = profile.project(parameters);
            Some(ChatTool::Function { name, description, parameters })
        }
        SpecKind::Custom { grammar } => {
            Some(ChatTool::Function { name, description, parameters: freeform::schema(grammar) })
        }
        SpecKind::LocalShell | SpecKind::WebSearch(_) => None,
    }
}

fn join_instructions(instructions: &str, about_tools: &str) -> String {
    if instructions.is_empty() { about_tools.to_owned() } else { format!("{instructions}\n\n{about_tools}") }
}

#[cfg(test)]
mod tests;

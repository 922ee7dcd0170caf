//! A tool of a server as a tool of Windlass.

use std::{fmt, sync::Arc};

use tokio::task::spawn_blocking;
use windlass_contract::{
    AnyTool, BoxFuture, Cx, Effects, Event, Input, Meta, Output, ParsedCall, Ready, ToolError, ToolName,
    ToolSpec, elicitation::Elicitor, remote::RemoteCall, spec::SpecKind, tool::ErrorKind,
};
use windlass_schema::{Schema, SchemaError};

use crate::{
    config::McpServerConfig,
    definition::RemoteToolDefinition,
    listing::ServerListing,
    names::model_tool_name,
    output::{ImageFitter, remote_output},
    pins::Pins,
    pool::{RemoteError, RemoteProgress, RemoteToolCall, ServerPool},
    result::{RemoteArguments, RemoteResult},
    schemas::{RemoteSchemaError, SchemaRoom},
    untrusted_text::{bounded_text, visible_line, visible_text},
};

/// Maximum size of a description for the model.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;
/// Maximum size of an error for the model.
const MAX_ERROR_BYTES: usize = 8 * 1024;
/// Maximum size of a message of progress.
const MAX_PROGRESS_BYTES: usize = 500;
/// Maximum number of checks of one call, if the server keeps listing other tools in between.
const MAX_CHECKS: usize = 4;

/// Everything that calls of remote tools share.
#[derive(Clone)]
pub(crate) struct RemoteCalls {
    pub(crate) pool: Arc<ServerPool>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    pub(crate) images: ImageFitter,
}

/// A tool of a server. It calls the definition that it was made from: if the server has another one
/// by then, the call is refused.
pub struct RemoteTool {
    name: ToolName,
    server: String,
    definition: RemoteToolDefinition,
    schema: Schema,
    config: Arc<McpServerConfig>,
    calls: RemoteCalls,
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl RemoteTool {
    /// Makes a tool from an approved definition, or returns the reason why that is impossible.
    pub(crate) fn new(
        server: &str,
        definition: &RemoteToolDefinition,
        config: &Arc<McpServerConfig>,
        calls: &RemoteCalls,
        room: &mut SchemaRoom,
    ) -> Result<Self, RemoteSchemaError> {
        Ok(Self {
            name: model_tool_name(server, &definition.name),
            server: server.to_owned(),
            schema: room.arguments_schema(&definition.input_schema)?,
            definition: definition.clone(),
            config: Arc::clone(config),
            calls: calls.clone(),
        })
    }

    /// Returns the name of its server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns its definition.
    pub fn definition(&self) -> &RemoteToolDefinition {
        &self.definition
    }

    fn description(&self) -> String {
        let RemoteToolDefinition { name, title, description, .. } = &self.definition;
        let text = description.as_deref().or(title.as_deref()).map(visible_text).unwrap_or_default();
        match text.trim() {
            "" => format!("The tool `{}` of the MCP server `{}`.", visible_line(name, 128), self.server),
            text => bounded_text(text, MAX_DESCRIPTION_BYTES),
        }
    }

    /// Starts the server if necessary, and checks that its definition of the tool is still the one
    /// that the user has approved and the model knows. Returns the listing that has it.
    async fn check(&self) -> Result<Arc<ServerListing>, ToolError> {
        let listing = self.calls.pool.start(&self.server).await.map_err(tool_error)?;
        match listing.tools.iter().find(|tool| tool.name == self.definition.name) {
            Some(tool) if *tool == self.definition => Ok(listing),
            Some(_) => Err(self.changed(listing).await),
            None => {
                let tool = visible_line(&self.definition.name, 128);
                let message = format!("MCP server `{}` no longer has the tool `{tool}`", self.server);
                Err(ToolError::new(ErrorKind::NotFound, message))
            }
        }
    }

    /// Returns the refusal of a call whose definition has changed.
    async fn changed(&self, listing: Arc<ServerListing>) -> ToolError {
        let (pins, config, server) =
            (Arc::clone(&self.calls.pins), Arc::clone(&self.config), self.server.clone());
        let review = spawn_blocking(move || pins.review(&server, &config, &listing)).await;
        let tool = visible_line(&self.definition.name, 128);
        let held = review.unwrap_or_default().held.into_iter().find(|held| held.tool == tool);
        let Some(held) = held else {
            let message =
                format!("the definition of the tool `{tool}` has changed; call it as it is defined now");
            return ToolError::new(ErrorKind::NoPermission, message);
        };
        // The new definition is not part of it: the model must not read it before the user has.
        let server = &self.server;
        let message = format!(
            "the tool `{tool}` is held back: {}. Do not try again; `windlass mcp pins {server}` shows the user \
             what changed, and `windlass mcp pins approve {server} {tool}` approves it.",
            held.reason
        );
        ToolError::new(ErrorKind::NoPermission, message)
    }

    async fn run(&self, arguments: &RemoteArguments, cx: &Cx) -> Result<Output, ToolError> {
        // The server can restart or change its tools between the check and the call. Then nothing
        // is sent, and the definition is checked again.
        for _ in 0..MAX_CHECKS {
            let listing = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
                checked = self.check() => checked?,
            };
            match self.send(arguments, cx, &listing).await {
                Err(RemoteError::Relisted { .. }) => {}
                Err(error) => return Err(tool_error(error)),
                Ok(result) => return Ok(remote_output(result, &*cx.host, &self.calls.images).await),
            }
        }
        let message = format!("MCP server `{}` lists its tools again and again; try later", self.server);
        Err(ToolError::new(ErrorKind::Failed, message))
    }

    async fn send(
        &self,
        arguments: &RemoteArguments,
        cx: &Cx,
        checked: &Arc<ServerListing>,
    ) -> Result<RemoteResult, RemoteError> {
        let progress = |progress: RemoteProgress| {
            cx.events.emit(Event::CallProgress {
                id: cx.id.clone(),
                progress: progress.progress,
                total: progress.total,
                message: progress.message.map(|message| visible_line(&message, MAX_PROGRESS_BYTES)),
            });
        };
        // A front end with several clients asks the one whose call this is.
        let elicitor = self.calls.elicitor.as_ref();
        let elicitor = elicitor.map(|all| all.for_call(&cx.id).unwrap_or_else(|| Arc::clone(all)));
        let call = RemoteToolCall {
            server: &self.server,
            tool: &self.definition.name,
            arguments,
            progress: &progress,
            elicitor,
            cancel: &cx.cancel,
        };
        self.calls.pool.call_listed(call, checked).await
    }
}

impl AnyTool for RemoteTool {
    fn name(&self) -> ToolName {
        self.name.clone()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let kind = SpecKind::Function { parameters: self.schema.clone() };
        Ok(ToolSpec { name: self.name(), description: self.description(), kind })
    }

    fn meta(&self) -> Meta {
        let call = self.effect();
        let change = match (call.may_change(), call.is_outward()) {
            (false, _) => None,
            (true, false) => Some("may change files that its server can write".to_owned()),
            (true, true) => Some("may change something beyond this machine".to_owned()),
        };
        Meta { side_effects: change.into_iter().collect(), ..Meta::default() }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        let arguments = input.parse(&self.name)?;
        Ok(ParsedCall::runs(RemoteToolReady { tool: self, arguments }))
    }
}

impl RemoteTool {
    fn effect(&self) -> RemoteCall {
        RemoteCall {
            server: self.server.clone(),
            tool: self.definition.name.clone(),
            reach: self.config.reach(),
            hints: self.definition.hints,
            trusted: self.config.trusted.unwrap_or(false),
            approval: self.config.approval_mode(&self.definition.name),
        }
    }
}

/// A call of a remote tool with its arguments.
struct RemoteToolReady {
    tool: Arc<RemoteTool>,
    arguments: RemoteArguments,
}

impl Ready for RemoteToolReady {
    fn effects(&self) -> Effects {
        Effects::remote(self.tool.effect())
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.tool.run(&self.arguments, cx))
    }
}

/// Turns a failed request into the failure of a call.
pub(crate) fn tool_error(error: RemoteError) -> ToolError {
    let kind = match &error {
        RemoteError::UnknownServer { .. } => ErrorKind::NotFound,
        RemoteError::TimedOut { .. } => ErrorKind::TimedOut,
        RemoteError::Cancelled => return ToolError::cancelled(),
        RemoteError::NotStarted { .. }
        | RemoteError::NeedsLogin { .. }
        | RemoteError::Died { .. }
        | RemoteError::Relisted { .. }
        | RemoteError::Protocol { .. }
        | RemoteError::BadAnswer { .. } => ErrorKind::Failed,
    };
    ToolError::new(kind, bounded_text(&visible_text(&error.to_string()), MAX_ERROR_BYTES)).with_source(error)
}

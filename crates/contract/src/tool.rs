//! Tools: the traits, and the ways to make one.

use std::{error::Error, fmt, future::Future, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, CallId, Content, Denial, Effects, Host, Input, Meta, ToolName, ToolSpec, event::EventEmitter,
    insight::Insight, outcome::Facts, report::ToolReport,
};
use windlass_schema::{Schema, SchemaError};

mod closure;
mod parse_error;
mod typed;

pub use closure::{FnTool, tool};
pub use typed::erase;

/// A tool written in Rust. Its arguments type is its schema; the type's doc comment is its
/// description.
///
/// Implemented by tool authors, wrapped by [`erase`] and called by the runtime only. A tool never
/// asks for permission, never formats a provider's JSON, never cuts its output and never decides
/// whether it succeeded.
pub trait Tool: Send + Sync + 'static {
    /// The name by which a model calls it.
    const NAME: &'static str;
    /// Arguments of a call.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Returns the effects of a call with these arguments. Must be pure, cheap and honest; if
    /// unsure, it returns the widest effects.
    fn effects(&self, args: &Self::Args) -> Effects;

    /// Returns the differences between the arguments and the way the call will run, such as a
    /// reduced time limit. Each is one note, which is shown with the result.
    fn adjustments(&self, _args: &Self::Args) -> Vec<String> {
        Vec::new()
    }

    /// Runs the call, through `cx.host` alone.
    fn call(&self, args: &Self::Args, cx: &Cx) -> impl Future<Output = Result<Output, ToolError>> + Send;

    /// Returns further facts about the tool.
    fn meta(&self) -> Meta {
        Meta::default()
    }
}

/// Any tool, independent of its arguments type. Implemented through [`erase`] and [`tool()`], and
/// directly by tools that come from elsewhere. Called by the registry and the router.
pub trait AnyTool: Send + Sync {
    /// Returns its name.
    fn name(&self) -> ToolName;

    /// Returns the description for a model, or the reason that there is none.
    fn spec(&self) -> Result<ToolSpec, SchemaError>;

    /// Returns further facts about the tool.
    fn meta(&self) -> Meta;

    /// Returns the schema that arguments are validated against, if it is wider than the one the
    /// model receives.
    fn accepted(&self) -> Option<Schema> {
        None
    }

    /// Parses an input and does nothing else. The runtime has already validated it against the
    /// schema of [`accepted`](Self::accepted), or of [`spec`](Self::spec).
    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError>;
}

/// A call whose input was parsed. Made by [`AnyTool::prepare`], consumed by the runtime.
pub enum ParsedCall {
    /// The call knows its effects and can run.
    Runs(Box<dyn Ready>),
    /// The call must read files before it can declare its effects.
    LooksFirst(Box<dyn LookFirst>),
}

impl ParsedCall {
    /// Wraps a call that can run.
    pub fn runs(ready: impl Ready + 'static) -> Self {
        Self::Runs(Box::new(ready))
    }

    /// Returns the effects of the call, or of its look.
    pub fn effects(&self) -> Effects {
        match self {
            Self::Runs(ready) => ready.effects(),
            Self::LooksFirst(look) => look.effects(),
        }
    }

    /// Returns the differences between the arguments and the way the call will run, one note each.
    pub fn adjustments(&self) -> Vec<String> {
        match self {
            Self::Runs(ready) => ready.adjustments(),
            Self::LooksFirst(look) => look.adjustments(),
        }
    }
}

impl fmt::Debug for ParsedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Runs(_) => "Runs",
            Self::LooksFirst(_) => "LooksFirst",
        };
        f.debug_tuple(name).field(&self.effects()).finish()
    }
}

/// A call that can run. Implemented by tools, run by the orchestrator once the gate has allowed it.
pub trait Ready: Send + Sync {
    /// Returns everything the call may do. Must be pure, cheap and honest.
    fn effects(&self) -> Effects;

    /// Returns the differences between the arguments and the way the call will run, one note each.
    fn adjustments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs the call.
    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// A call that must read files first. Implemented by tools, called by the orchestrator once the
/// gate has allowed the look.
pub trait LookFirst: Send + Sync {
    /// Returns everything the look reads.
    fn effects(&self) -> Effects;

    /// Returns the differences between the arguments and the way the call will run, one note each.
    fn adjustments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads the files and returns the resulting call. That call passes the gate separately.
    fn look<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Box<dyn Ready>, ToolError>>;
}

/// Context of a running call. It has four fields; a fifth needs a decision record.
#[derive(Clone)]
pub struct Cx {
    /// The call.
    pub id: CallId,
    /// The machine, confined to the call's grant.
    pub host: Arc<dyn Host>,
    /// Cancelled when the call is no longer wanted.
    pub cancel: CancellationToken,
    /// Receives progress and plans.
    pub events: Arc<dyn EventEmitter>,
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Result of a tool, before it is shaped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// Content for the model.
    pub content: Vec<Content>,
    /// The result as data, if there is any.
    pub data: Option<ToolReport>,
    /// Observed facts.
    pub facts: Facts,
    /// Meaning of the facts, if the tool knows more than its output shows.
    pub insight: Option<Insight>,
    /// Maximum number of tokens of the content that the call requests. It cannot exceed the general
    /// limit.
    pub most_tokens: Option<usize>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self { content: vec![Content::Text(text)], ..Self::default() }
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Reason that a tool failed.
#[derive(Debug)]
pub struct ToolError {
    /// Kind of failure.
    pub kind: ErrorKind,
    /// Message for the model: the cause and the remedy.
    pub message: String,
    /// Cause, for the operator.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kinds of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is invalid; nothing was done.
    BadInput,
    /// The call ran and failed.
    Failed,
    /// A file, directory or program that it needs does not exist.
    NotFound,
    /// The system denies it to this user, whatever the sandbox allows.
    NoPermission,
    /// It exceeded its time limit.
    TimedOut,
    /// The sandbox blocked it.
    Denied(Box<Denial>),
    /// It was cancelled.
    Cancelled,
}

impl ToolError {
    /// Builds a failure that the model can read and act on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, message: message.into(), source: None }
    }

    /// Builds a failure of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Builds the error for an invalid input.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::BadInput, message: message.into(), source: None }
    }

    /// Builds the error for a cancelled call.
    pub fn cancelled() -> Self {
        Self { kind: ErrorKind::Cancelled, message: "aborted by user".to_owned(), source: None }
    }

    /// Builds the error for an input of the wrong kind, in words that models of this family know.
    pub fn wrong_payload(name: &ToolName) -> Self {
        Self::bad_input(format!("tool {name} invoked with incompatible payload"))
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl Input {
    /// Parses the arguments of a function call, for tools that implement [`AnyTool`] themselves.
    pub fn parse<A: DeserializeOwned>(&self, tool: &ToolName) -> Result<A, ToolError> {
        parse(tool, self)
    }
}

/// Parses the JSON of a function call. Errors use words that models of this family know. An empty
/// input counts as `{}`.
fn parse<A: DeserializeOwned>(name: &ToolName, input: &Input) -> Result<A, ToolError> {
    let (Input::Json(text) | Input::Search(text)) = input else { return Err(ToolError::wrong_payload(name)) };
    let text = if text.trim().is_empty() { "{}" } else { text };
    let mut json = serde_json::Deserializer::from_str(text);
    let args = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!(" (at `{path}`)") };
        unparsed(&format!("{}{at}", parse_error::in_words(&error.into_inner().to_string())))
    })?;
    json.end().map(|()| args).map_err(|error| unparsed(&error.to_string()))
}

/// Builds the error for arguments that cannot be parsed.
fn unparsed(problem: &str) -> ToolError {
    ToolError::bad_input(format!("failed to parse function arguments: {problem}"))
}

#[cfg(test)]
mod tests;

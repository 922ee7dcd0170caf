//! Tools: three traits, and the ways to make one.

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

/// A tool written in Rust. Its arguments type is its schema; the type's doc comment is its description.
///
/// Implemented by tool authors, wrapped by [`erase`] and called by the runtime only. A tool never asks for permission,
/// never formats a provider's JSON, never cuts its output and never decides whether it succeeded.
pub trait Tool: Send + Sync + 'static {
    /// The name a model calls it by.
    const NAME: &'static str;
    /// What it works on.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// What a call with these arguments would do. Pure, cheap and honest; unsure means the widest thing.
    fn effects(&self, args: &Self::Args) -> Effects;

    /// In what a call will not be run as these arguments say, such as a time that is cut; one note each. They are told with
    /// the result.
    fn adjustments(&self, _args: &Self::Args) -> Vec<String> {
        Vec::new()
    }

    /// Does it, through `cx.host` alone.
    fn call(&self, args: &Self::Args, cx: &Cx) -> impl Future<Output = Result<Output, ToolError>> + Send;

    /// Everything else about it.
    fn meta(&self) -> Meta {
        Meta::default()
    }
}

/// Any tool, whatever its arguments. Implemented through [`erase`] and [`tool()`], and directly by tools that come
/// from elsewhere; called by the registry and the router.
pub trait AnyTool: Send + Sync {
    /// Its name.
    fn name(&self) -> ToolName;

    /// What a model is told about it, or why that cannot be said.
    fn spec(&self) -> Result<ToolSpec, SchemaError>;

    /// Everything else about it.
    fn meta(&self) -> Meta;

    /// The schema that arguments are held to, if it allows more than the one a model is told of.
    fn accepted(&self) -> Option<Schema> {
        None
    }

    /// Parses an input. Does nothing else: the runtime has held it to the schema of [`accepted`](Self::accepted), or of
    /// [`spec`](Self::spec), before.
    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError>;
}

/// A call whose input made sense. Made by [`AnyTool::prepare`], taken apart by the runtime.
pub enum ParsedCall {
    /// It knows its effects and can run.
    Runs(Box<dyn Ready>),
    /// It must look at files before it can say what it will do.
    LooksFirst(Box<dyn LookFirst>),
}

impl ParsedCall {
    /// A call that can run.
    pub fn runs(ready: impl Ready + 'static) -> Self {
        Self::Runs(Box::new(ready))
    }

    /// The effects of the call, or of its look.
    pub fn effects(&self) -> Effects {
        match self {
            Self::Runs(ready) => ready.effects(),
            Self::LooksFirst(look) => look.effects(),
        }
    }

    /// Differences between the arguments and the way the call will run; one note each.
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

/// A call that can run. Implemented by tools, run by the orchestrator once the gate has agreed.
pub trait Ready: Send + Sync {
    /// Everything the call may do. Pure, cheap and honest.
    fn effects(&self) -> Effects;

    /// Differences between the arguments and the way the call will run; one note each.
    fn adjustments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Does it.
    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// A call that must look first. Implemented by tools, called by the orchestrator once the gate has agreed to the look.
pub trait LookFirst: Send + Sync {
    /// Everything the look reads.
    fn effects(&self) -> Effects;

    /// Differences between the arguments and the way the call will run; one note each.
    fn adjustments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks, and returns the call that comes of it. That one passes the gate on its own.
    fn look<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Box<dyn Ready>, ToolError>>;
}

/// What a tool gets to work with. Four fields; a fifth needs a decision record.
#[derive(Clone)]
pub struct Cx {
    /// The call.
    pub id: CallId,
    /// The machine, held to the call's grant.
    pub host: Arc<dyn Host>,
    /// Set when the call is no longer wanted.
    pub cancel: CancellationToken,
    /// For progress and plans.
    pub events: Arc<dyn EventEmitter>,
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a tool gives back, before it is shaped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// For the model.
    pub content: Vec<Content>,
    /// As data, where that makes sense.
    pub data: Option<ToolReport>,
    /// What was observed.
    pub facts: Facts,
    /// What that means, where the tool knows better than its output tells.
    pub insight: Option<Insight>,
    /// How many tokens of the content the call wants at most; never more than everyone gets.
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

/// Why a tool did not do it.
#[derive(Debug)]
pub struct ToolError {
    /// Which kind of failure.
    pub kind: ErrorKind,
    /// For the model: what went wrong and what to do differently.
    pub message: String,
    /// For the operator: where it came from.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kinds of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input makes no sense; nothing was done.
    BadInput,
    /// It was tried and failed.
    Failed,
    /// A file, directory or program it needs does not exist.
    NotFound,
    /// The system does not let this user, whatever the sandbox allows.
    NoPermission,
    /// Its time was up.
    TimedOut,
    /// The sandbox stopped it.
    Denied(Box<Denial>),
    /// It was cancelled.
    Cancelled,
}

impl ToolError {
    /// A failure the model can read and act on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, message: message.into(), source: None }
    }

    /// A failure of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An input that makes no sense.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::BadInput, message: message.into(), source: None }
    }

    /// The call was cancelled.
    pub fn cancelled() -> Self {
        Self { kind: ErrorKind::Cancelled, message: "aborted by user".to_owned(), source: None }
    }

    /// The error for an input of the wrong kind, in words models of this family know.
    pub fn wrong_payload(name: &ToolName) -> Self {
        Self::bad_input(format!("tool {name} invoked with incompatible payload"))
    }

    /// Adds where it came from.
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
    /// The arguments of a function call, for tools that implement [`AnyTool`] themselves.
    pub fn parse<A: DeserializeOwned>(&self, tool: &ToolName) -> Result<A, ToolError> {
        parse(tool, self)
    }
}

/// Parses the JSON of a function call, in words models of this family know. Nothing at all counts as `{}`.
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

/// The error for arguments that make no sense.
fn unparsed(problem: &str) -> ToolError {
    ToolError::bad_input(format!("failed to parse function arguments: {problem}"))
}

#[cfg(test)]
mod tests;

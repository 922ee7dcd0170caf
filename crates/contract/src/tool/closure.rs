//! Tools made from two closures: one declares the effects, the other runs the call.

use std::{fmt, future::Future, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AnyTool, Cx, Output, ParsedCall, Ready, ToolError, parse};
use crate::{BoxFuture, Effects, Input, Meta, ToolName, ToolSpec, spec::SpecKind};
use windlass_schema::{Schema, SchemaError};

type EffectsFn<A> = dyn Fn(&A) -> Effects + Send + Sync;
type CallFn<A> = dyn Fn(A, Cx) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync;

/// Makes a tool from closures. The arguments type gives schema and description, as for
/// [`Tool`](crate::Tool).
///
/// ```
/// use windlass_contract::{Effects, Output, tool::tool};
///
/// /// Greet someone by name.
/// #[derive(Clone, serde::Deserialize, schemars::JsonSchema)]
/// struct Args {
///     /// Whom to greet.
///     name: String,
/// }
/// let greet = tool("greet", |_: &Args| Effects::none(), |args: Args, _cx| async move {
///     Ok(Output::from(format!("Hello, {}!", args.name)))
/// });
/// ```
pub fn tool<A, E, C, F>(name: &str, effects: E, call: C) -> FnTool<A>
where
    A: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static,
    E: Fn(&A) -> Effects + Send + Sync + 'static,
    C: Fn(A, Cx) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    FnTool {
        name: name.into(),
        description: None,
        schema: None,
        meta: Meta::default(),
        effects: Box::new(effects),
        call: Box::new(move |args, cx| Box::pin(call(args, cx))),
    }
}

/// A tool made of closures, see [`tool`].
pub struct FnTool<A> {
    name: ToolName,
    description: Option<String>,
    /// Parsed when it is set; `spec` reports an error in it.
    schema: Option<Result<Schema, SchemaError>>,
    meta: Meta,
    effects: Box<EffectsFn<A>>,
    call: Box<CallFn<A>>,
}

impl<A> FnTool<A> {
    /// Replaces the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Replaces the schema, for arguments only known at run time (`A` is then mostly [`Value`]).
    #[must_use]
    pub fn schema(mut self, schema: &Value) -> Self {
        self.schema = Some(Schema::new(schema));
        self
    }

    /// Sets requests that people make when they want this tool. The search for tools uses them.
    #[must_use]
    pub fn requests(mut self, requests: Vec<String>) -> Self {
        self.meta.requests = requests;
        self
    }

    /// Sets all further facts about the tool.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }
}

impl<A> fmt::Debug for FnTool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<A: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static> AnyTool for FnTool<A> {
    fn name(&self) -> ToolName {
        self.name.clone()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let (typed, comment) = Schema::of::<A>()?;
        let parameters = self.schema.clone().unwrap_or(Ok(typed))?;
        let description = self.description.clone().unwrap_or(comment);
        Ok(ToolSpec { name: self.name.clone(), description, kind: SpecKind::Function { parameters } })
    }

    fn meta(&self) -> Meta {
        self.meta.clone()
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        if let Some(Err(error)) = &self.schema {
            let message = format!("tool {} cannot be called: {error}", self.name);
            return Err(ToolError::failed(message));
        }
        let args = parse(&self.name, input)?;
        Ok(ParsedCall::runs(FnCall { tool: self, args }))
    }
}

struct FnCall<A> {
    tool: Arc<FnTool<A>>,
    args: A,
}

impl<A: Clone + Send + Sync> Ready for FnCall<A> {
    fn effects(&self) -> Effects {
        (self.tool.effects)(&self.args)
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        (self.tool.call)(self.args.clone(), cx.clone())
    }
}

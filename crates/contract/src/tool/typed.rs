//! Adapter from a [`Tool`] with its own arguments type to an [`AnyTool`].

use std::sync::Arc;

use super::{AnyTool, Cx, Output, ParsedCall, Ready, Tool, ToolError, parse};
use crate::{BoxFuture, Effects, Input, Meta, ToolName, ToolSpec, spec::SpecKind};
use windlass_schema::{Schema, SchemaError};

/// Hides the arguments type of a tool, so that different tools fit in one list.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    Arc::new(TypedTool(tool))
}

struct TypedTool<T>(T);

impl<T: Tool> AnyTool for TypedTool<T> {
    fn name(&self) -> ToolName {
        T::NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let (parameters, description) = Schema::of::<T::Args>()?;
        Ok(ToolSpec { name: self.name(), description, kind: SpecKind::Function { parameters } })
    }

    fn meta(&self) -> Meta {
        self.0.meta()
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        let args = parse(&self.name(), input)?;
        Ok(ParsedCall::runs(TypedCall { tool: self, args }))
    }
}

struct TypedCall<T: Tool> {
    tool: Arc<TypedTool<T>>,
    args: T::Args,
}

impl<T: Tool> Ready for TypedCall<T> {
    fn effects(&self) -> Effects {
        self.tool.0.effects(&self.args)
    }

    fn adjustments(&self) -> Vec<String> {
        self.tool.0.adjustments(&self.args)
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(self.tool.0.call(&self.args, cx))
    }
}

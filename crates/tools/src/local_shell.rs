//! `local_shell`: the shell tool that some models know natively. It has no schema here and runs
//! like `shell`.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    AnyTool, Cx, Effects, Input, Meta, Output, ParsedCall, Tool, ToolError, ToolName, ToolSpec, erase,
    meta::{Example, Format},
    spec::SpecKind,
};
use windlass_schema::SchemaError;

use crate::command;

/// Makes the tool.
pub(crate) fn local_shell() -> Arc<dyn AnyTool> {
    Arc::new(NativeLocalShell(erase(LocalShell)))
}

/// Arguments of a native call. It may also name a user and variables, which are ignored: a command
/// runs as the current user, with the configured environment.
#[derive(Debug, Deserialize, JsonSchema)]
struct LocalShellArgs {
    command: Vec<String>,
    #[serde(alias = "workdir")]
    working_directory: Option<PathBuf>,
    #[serde(alias = "timeout")]
    timeout_ms: Option<u64>,
}

struct LocalShell;

impl Tool for LocalShell {
    const NAME: &'static str = "local_shell";
    type Args = LocalShellArgs;

    fn effects(&self, args: &LocalShellArgs) -> Effects {
        let effects = command::effects(
            &args.command,
            args.working_directory.as_deref(),
            &command::PermissionArgs::default(),
        );
        Effects { time_limit_ms: command::time_limit(args.timeout_ms), ..effects }
    }

    fn adjustments(&self, args: &LocalShellArgs) -> Vec<String> {
        command::time_adjustments(args.timeout_ms)
    }

    async fn call(&self, args: &LocalShellArgs, cx: &Cx) -> Result<Output, ToolError> {
        command::run(
            &args.command,
            args.working_directory.as_deref(),
            command::time_limit(args.timeout_ms),
            cx,
        )
        .await
    }

    fn meta(&self) -> Meta {
        let example = Example { request: "list the files here", input: r#"{"command":["ls","-la"]}"# };
        Meta { examples: vec![example], ..command::meta(Format::Structured) }
    }
}

/// The tool with its native spec.
struct NativeLocalShell(Arc<dyn AnyTool>);

impl AnyTool for NativeLocalShell {
    fn name(&self) -> ToolName {
        self.0.name()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let description =
            "Run a program on this machine; returns what it printed and its exit code.".to_owned();
        Ok(ToolSpec { name: self.name(), description, kind: SpecKind::LocalShell })
    }

    fn meta(&self) -> Meta {
        self.0.meta()
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        Arc::clone(&self.0).prepare(input)
    }
}

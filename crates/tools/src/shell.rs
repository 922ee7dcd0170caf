//! `shell`: runs a program with its arguments, no shell in between unless the model names one.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    meta::{Example, Format},
};

use crate::command;

/// Run a program; returns what it printed and its exit code.
///
/// `command` is a list of arguments that is executed as it stands. No shell looks at it: for pipes,
/// redirections, wildcards or `&&`, use `["bash", "-c", "..."]`. Set `workdir` rather than calling
/// `cd`. Standard input is empty, so do not start anything that waits for a person (editors,
/// pagers, prompts); pass options such as `--yes` instead. Processes left in the background are
/// killed when the call ends. Do not use it to say something to the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShellArgs {
    /// The program and its arguments.
    command: Vec<String>,
    /// The directory to run in, absolute or relative to the workspace. Default: the workspace.
    workdir: Option<PathBuf>,
    /// After how many milliseconds the command and everything it started are killed. Default:
    /// 10000.
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    permissions: command::PermissionArgs,
}

pub(crate) struct ShellProgram;

impl Tool for ShellProgram {
    const NAME: &'static str = "shell";
    type Args = ShellArgs;

    fn effects(&self, args: &ShellArgs) -> Effects {
        let effects = command::effects(&args.command, args.workdir.as_deref(), &args.permissions);
        Effects { time_limit_ms: command::time_limit(args.timeout_ms), ..effects }
    }

    fn adjustments(&self, args: &ShellArgs) -> Vec<String> {
        command::time_adjustments(args.timeout_ms)
    }

    async fn call(&self, args: &ShellArgs, cx: &Cx) -> Result<Output, ToolError> {
        command::run(&args.command, args.workdir.as_deref(), command::time_limit(args.timeout_ms), cx).await
    }

    fn meta(&self) -> Meta {
        Meta {
            examples: vec![
                Example { request: "list the files here", input: r#"{"command":["ls","-la"]}"# },
                Example {
                    request: "count the Rust files below src",
                    input: r#"{"command":["bash","-c","find src -name '*.rs' | wc -l"]}"#,
                },
            ],
            aliases: vec!["container.exec"],
            parameter_aliases: command::parameter_aliases("command", "workdir"),
            ..command::meta(Format::Structured)
        }
    }
}

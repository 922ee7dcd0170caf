//! `shell_command`: runs a line of shell in the user's shell.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    meta::{Example, Format},
};

use crate::command;

/// Run a command line in the user's shell; returns its exit code and what it printed.
///
/// Pipes, redirections, wildcards and `&&` work. Set `workdir` rather than calling `cd`. Standard
/// input is empty, so do not start anything that waits for a person (editors, pagers, prompts);
/// pass options such as `--yes` instead. Processes left in the background are killed when the call
/// ends. Do not use it to say something to the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShellCommandArgs {
    /// The command line, as you would type it.
    command: String,
    /// The directory to run in, absolute or relative to the workspace. Default: the workspace.
    workdir: Option<PathBuf>,
    /// After how many milliseconds the command and everything it started are killed. Default:
    /// 10000.
    timeout_ms: Option<u64>,
    /// Whether the shell reads its login files first. Only needed if something is missing from the
    /// environment; it is slower. Default: false.
    login: Option<bool>,
    #[serde(flatten)]
    permissions: command::PermissionArgs,
}

pub(crate) struct ShellCommand {
    shell: String,
}

impl ShellCommand {
    /// Creates the tool with the user's shell.
    pub(crate) fn new(shell: &Path) -> Self {
        Self { shell: shell.to_string_lossy().into_owned() }
    }

    fn argv(&self, args: &ShellCommandArgs) -> Vec<String> {
        let flag = if args.login.unwrap_or(false) { "-lc" } else { "-c" };
        vec![self.shell.clone(), flag.to_owned(), args.command.clone()]
    }
}

impl Tool for ShellCommand {
    const NAME: &'static str = "shell_command";
    type Args = ShellCommandArgs;

    fn effects(&self, args: &ShellCommandArgs) -> Effects {
        let effects = command::effects(&self.argv(args), args.workdir.as_deref(), &args.permissions);
        Effects { time_limit_ms: command::time_limit(args.timeout_ms), ..effects }
    }

    fn adjustments(&self, args: &ShellCommandArgs) -> Vec<String> {
        command::time_adjustments(args.timeout_ms)
    }

    async fn call(&self, args: &ShellCommandArgs, cx: &Cx) -> Result<Output, ToolError> {
        command::run(&self.argv(args), args.workdir.as_deref(), command::time_limit(args.timeout_ms), cx)
            .await
    }

    fn meta(&self) -> Meta {
        let examples = vec![
            Example { request: "list the files here", input: r#"{"command":"ls -la"}"# },
            Example {
                request: "run the tests of the web directory, giving them two minutes",
                input: r#"{"command":"npm test","workdir":"web","timeout_ms":120000}"#,
            },
        ];
        let aliases = vec![
            "Bash",
            "bash",
            "run_shell_command",
            "run_terminal_cmd",
            "execute_command",
            "execute_bash",
            "developer__shell",
        ];
        let parameter_aliases = command::parameter_aliases("command", "workdir");
        Meta { examples, aliases, parameter_aliases, ..command::meta(Format::Freeform) }
    }
}

//! `exec_command`: runs a line of shell that may go on after the call, in a session.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    meta::{Example, Format},
};

use crate::{
    command,
    sessions::{CommandSession, SessionCommand, SessionTable, SessionView},
};

/// Run a command line in the user's shell; returns what it printed, and its exit code or, if it
/// still runs after `yield_time_ms`, a session ID for `write_stdin`.
///
/// Use it for anything from `ls` to a server or a program you want to talk to. Pipes, redirections,
/// wildcards and `&&` work. Set `workdir` rather than calling `cd`. With `tty` the program gets a
/// terminal and you can type to it; without, its input is empty. Do not use it to say something to
/// the user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ExecCommandArgs {
    /// The command line, as you would type it.
    cmd: String,
    /// The directory to run in, absolute or relative to the workspace. Default: the workspace.
    workdir: Option<PathBuf>,
    /// The shell that reads the line. Default: the user's.
    shell: Option<String>,
    /// Whether the shell reads its login files first. Only needed if something is missing from the
    /// environment; it is slower. Default: false.
    login: Option<bool>,
    /// Whether the program gets a terminal, which you can type to with `write_stdin`. Default:
    /// false.
    tty: Option<bool>,
    /// How many milliseconds to wait for it to end before the call returns, 250 to 30000. The call
    /// returns earlier if the program ends or waits for input. Default: 10000.
    yield_time_ms: Option<u64>,
    /// How many tokens of output to return at most. Default: 10000.
    max_output_tokens: Option<usize>,
    #[serde(flatten)]
    permissions: command::PermissionArgs,
}

/// Maximum time for which a call waits.
const MAX_YIELD_MS: u64 = 30_000;

pub(crate) struct ExecCommand {
    shell: String,
    sessions: Arc<SessionTable>,
}

impl ExecCommand {
    /// Creates the tool with the user's shell.
    pub(crate) fn new(shell: &Path, sessions: &Arc<SessionTable>) -> Self {
        Self { shell: shell.to_string_lossy().into_owned(), sessions: Arc::clone(sessions) }
    }

    fn argv(&self, args: &ExecCommandArgs) -> Vec<String> {
        let flag = if args.login.unwrap_or(false) { "-lc" } else { "-c" };
        let shell = args.shell.as_ref().unwrap_or(&self.shell);
        vec![shell.clone(), flag.to_owned(), args.cmd.clone()]
    }
}

impl Tool for ExecCommand {
    const NAME: &'static str = "exec_command";
    type Args = ExecCommandArgs;

    fn effects(&self, args: &ExecCommandArgs) -> Effects {
        let effects = command::effects(&self.argv(args), args.workdir.as_deref(), &args.permissions);
        Effects { terminal: effects.command.is_some() && args.tty.unwrap_or(false), ..effects }
    }

    fn adjustments(&self, args: &ExecCommandArgs) -> Vec<String> {
        command::yield_adjustments(args.yield_time_ms, MAX_YIELD_MS)
    }

    async fn call(&self, args: &ExecCommandArgs, cx: &Cx) -> Result<Output, ToolError> {
        let words = self.argv(args);
        if let Some(patching) = command::patch::found(&words, args.workdir.as_deref()) {
            return command::patch::apply(&patching?, cx).await;
        }
        let time = args.yield_time_ms.unwrap_or(10_000).clamp(250, MAX_YIELD_MS);
        let view = SessionView::with_time(Duration::from_millis(time), args.max_output_tokens);
        let line = SessionCommand {
            argv: words,
            command_line: args.cmd.clone(),
            workdir: args.workdir.clone(),
            has_keyboard: args.tty.unwrap_or(false),
            escalation: args.permissions.escalation(),
        };
        let started = CommandSession::new(line, cx).await?;
        self.sessions.begin(started, view, cx).await
    }

    fn meta(&self) -> Meta {
        let examples = vec![
            Example { request: "list the files here", input: r#"{"cmd":"ls -la"}"# },
            Example {
                request: "start a server and let it run",
                input: r#"{"cmd":"python3 -m http.server 8000","yield_time_ms":1000}"#,
            },
            Example { request: "talk to Python", input: r#"{"cmd":"python3 -q","tty":true}"# },
        ];
        let constraints = vec![
            "standard input is empty without `tty`".to_owned(),
            "with more than 64 sessions those used longest ago are ended".to_owned(),
        ];
        let parameter_aliases = command::parameter_aliases("cmd", "workdir");
        Meta { examples, constraints, parameter_aliases, ..command::meta(Format::Session) }
    }
}

//! `run_command`: runs a line of shell and returns standard output and error separately. Not
//! advertised: it serves models that know a tool of that name.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    host::Command,
    meta::{Example, Format},
};

use crate::command::{self, live::OutputEvents};

/// Time limit if the call has none.
const DEFAULT_SECONDS: u64 = 30;

/// Run a command line in the user's shell; returns its exit code, and standard output and error
/// apart.
///
/// Pipes, redirections, wildcards and `&&` work. Standard input is empty. Do not use it where the
/// order of what is printed to both matters: use shell_command.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RunCommandArgs {
    /// The command line, as you would type it.
    command: String,
    /// After how many seconds the command and everything it started are killed. Default: 30.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The directory to run in, absolute or relative to the workspace. Default: the workspace.
    working_dir: Option<PathBuf>,
    #[serde(flatten)]
    permissions: command::PermissionArgs,
}

pub(crate) struct RunCommand {
    shell: String,
}

impl RunCommand {
    /// Creates the tool with the user's shell.
    pub(crate) fn new(shell: &Path) -> Self {
        Self { shell: shell.to_string_lossy().into_owned() }
    }

    fn argv(&self, args: &RunCommandArgs) -> Vec<String> {
        vec![self.shell.clone(), "-c".to_owned(), args.command.clone()]
    }
}

impl Tool for RunCommand {
    const NAME: &'static str = "run_command";
    type Args = RunCommandArgs;

    fn effects(&self, args: &RunCommandArgs) -> Effects {
        let effects = command::effects(&self.argv(args), args.working_dir.as_deref(), &args.permissions);
        Effects { time_limit_ms: args.timeout.map(|seconds| seconds.saturating_mul(1000)), ..effects }
    }

    async fn call(&self, args: &RunCommandArgs, cx: &Cx) -> Result<Output, ToolError> {
        let words = self.argv(args);
        if let Some(patching) = command::patch::found(&words, args.working_dir.as_deref()) {
            return command::patch::apply(&patching?, cx).await;
        }
        let command = Command {
            argv: words,
            cwd: args.working_dir.clone(),
            env: BTreeMap::new(),
            time_limit: Some(Duration::from_secs(args.timeout.unwrap_or(DEFAULT_SECONDS))),
        };
        let live = Mutex::new(OutputEvents::new(cx));
        let lock = || live.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = cx.host.run_apart(&command, &cx.cancel, &|bytes| lock().push(bytes)).await;
        lock().flush();
        finished.map(command::result).map_err(command::tool_error)
    }

    fn meta(&self) -> Meta {
        let examples = vec![
            Example { request: "list the files here", input: r#"{"command":"ls -la"}"# },
            Example {
                request: "build the web directory, giving it two minutes",
                input: r#"{"command":"npm run build","working_dir":"web","timeout":120}"#,
            },
        ];
        let returns = "standard output, standard error and the exit code".to_owned();
        let parameter_aliases = command::parameter_aliases("command", "working_dir");
        Meta { examples, returns, parameter_aliases, ..command::meta(Format::Freeform) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_contract::{
        erase,
        host::{ApartOutput, Exit, FinishedCommand},
    };

    use super::*;
    use crate::fakes::{ToolHarness, finished};

    #[tokio::test]
    async fn what_was_printed_to_each_stream_is_given_back_apart() {
        let apart = ApartOutput { stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() };
        let ended = FinishedCommand { apart: Some(apart), ..finished(Exit::Code(3), b"out\nerr\n") };
        let desk = ToolHarness::new(&[], Ok(ended));
        let tool = erase(RunCommand::new(Path::new("/bin/sh")));
        let output = desk.call(tool, r#"{"command":"x","timeout":2,"working_dir":"sub"}"#).await.unwrap();
        assert_eq!(json!(output.data), json!({"stdout": "out\n", "stderr": "err\n", "return_code": 3}));
    }
}

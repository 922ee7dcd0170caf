//! Shared by the shell tools: runs a command and words errors for the model.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Denial, Effects, Meta, Output, Ready, ToolError,
    effects::{CommandLine, Escalation},
    host::{Command, Exit, FinishedCommand, HostError, Layer, Proof},
    meta::{AliasMeaning, Category, Format, ParameterAlias},
    outcome::Facts,
    report::{ProcessReport, StreamReport, ToolReport},
    tool::ErrorKind,
    verdict::Criteria,
};

use crate::file_error;
use interactive::InteractiveProgram;
use live::OutputEvents;
use prompt::prompt_at_end;

pub(crate) mod interactive;
pub(crate) mod live;
pub(crate) mod patch;
mod prompt;
pub(crate) mod text;

/// ENOEXEC, for which the standard library has no kind. It has the same number on every Unix.
const NOT_A_PROGRAM: i32 = 8;

/// EMFILE and ENFILE, for the same reason.
const TOO_MANY_OPEN_FILES: i32 = 24;
const TOO_MANY_IN_SYSTEM: i32 = 23;

/// Returns the effects of a command. They are unknown, so the policy decides on the command itself.
/// A call of `apply_patch` changes only the files of its patch.
pub(crate) fn effects(argv: &[String], workdir: Option<&Path>, permissions: &PermissionArgs) -> Effects {
    match patch::found(argv, workdir) {
        Some(Ok(patching)) => return patching.effects(),
        Some(Err(_)) => return Effects::none(),
        None => {}
    }
    let command = CommandLine { argv: argv.to_vec(), cwd: workdir.map(Path::to_owned) };
    Effects { escalation: permissions.escalation(), ..Effects::command(command) }
}

/// The parameters by which a model asks to leave the sandbox.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct PermissionArgs {
    /// `require_escalated` asks the user to let this command run without the sandbox. Only for a
    /// command that cannot work inside it, such as one that needs the network; expect a no.
    /// Default: `use_default`.
    #[serde(rename = "sandbox_permissions")]
    wanted: Option<SandboxPermissions>,
    /// With `require_escalated`: one question to the user that says why.
    justification: Option<String>,
    /// With `require_escalated`: the beginning of commands like this one that the user could allow
    /// for good, as a list of words.
    prefix_rule: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SandboxPermissions {
    UseDefault,
    RequireEscalated,
}

impl PermissionArgs {
    pub(crate) fn escalation(&self) -> Option<Escalation> {
        let wanted = self.wanted == Some(SandboxPermissions::RequireEscalated);
        wanted.then(|| Escalation {
            justification: self.justification.clone(),
            prefix_rule: self.prefix_rule.clone().unwrap_or_default(),
        })
    }
}

/// Returns the metadata that the shell tools share, without examples.
pub(crate) fn meta(format: Format) -> Meta {
    Meta {
        category: Category::Execution,
        examples: Vec::new(),
        requests: [
            "run make build",
            "run \"npm run build\"",
            "commit my changes",
            "execute a script",
            "install the dependencies with npm",
            "show the output of git diff",
            "which version of node is installed",
            "how much disk space is left",
            "delete the build directory",
            "delete the file",
            "remove old.log",
            "move the file a.txt to b.txt",
            "copy the file a.txt to b.txt",
            "run ls -l with a timeout of five seconds",
            "运行这个命令",
            "运行 ls -l",
            "编译这个项目",
            "安装依赖",
            "查看 git 状态",
            "删除这个文件",
        ]
        .map(str::to_owned)
        .into(),
        constraints: vec![
            "standard input is empty".to_owned(),
            "background processes end with the call".to_owned(),
        ],
        side_effects: vec!["whatever the command does".to_owned()],
        returns:
            "standard output and error in the order they were written, the exit code and the time it took"
                .to_owned(),
        parallel: false,
        aliases: Vec::new(),
        parameter_aliases: Vec::new(),
        format,
        // A command may print nothing and may use all of its time.
        criteria: Criteria::default(),
    }
}

/// Returns the names that shells of other agents use for the parameters, given our names.
pub(crate) fn parameter_aliases(line: &'static str, directory: &'static str) -> Vec<ParameterAlias> {
    let escalated = AliasMeaning::Switch("sandbox_permissions", "require_escalated");
    let mut aliases: Vec<_> = [
        ("with_escalated_permissions", escalated),
        ("dangerouslyDisableSandbox", escalated),
        ("run_in_background", AliasMeaning::AlwaysSo(false)),
        ("is_background", AliasMeaning::AlwaysSo(false)),
        ("description", AliasMeaning::Remark),
        ("explanation", AliasMeaning::Remark),
    ]
    .map(|(name, means)| ParameterAlias { name, means })
    .into();
    for (parameter, names) in [
        (line, &["command", "cmd", "command_line", "script"][..]),
        (directory, &["workdir", "working_dir", "working_directory", "cwd", "directory", "dir"]),
        ("timeout_ms", &["timeout"]),
    ] {
        aliases.extend(ParameterAlias::of(parameter, names));
    }
    aliases
}

/// Returns the time limit in milliseconds that a model asked for. Models use 0 for no preference.
pub(crate) fn time_limit(timeout_ms: Option<u64>) -> Option<u64> {
    timeout_ms.filter(|limit| *limit > 0)
}

/// Returns a note if a time limit of 0 is ignored.
pub(crate) fn time_adjustments(timeout_ms: Option<u64>) -> Vec<String> {
    let is_zero = timeout_ms == Some(0);
    is_zero.then(|| "`timeout_ms` of 0 is no time at all; the default holds".to_owned()).into_iter().collect()
}

/// Returns a note if a call asked to wait longer than the maximum.
pub(crate) fn yield_adjustments(asked_ms: Option<u64>, most_ms: u64) -> Vec<String> {
    let cut = asked_ms.filter(|asked| *asked > most_ms);
    cut.map(|asked| format!("`yield_time_ms` of {asked} was cut to {most_ms}")).into_iter().collect()
}

/// Runs a command. An exit code other than zero is a result like any other.
pub(crate) async fn run(
    argv: &[String],
    workdir: Option<&Path>,
    timeout_ms: Option<u64>,
    cx: &Cx,
) -> Result<Output, ToolError> {
    if let Some(patching) = patch::found(argv, workdir) {
        return patch::apply(&patching?, cx).await;
    }
    let command = Command {
        argv: argv.to_vec(),
        cwd: workdir.map(Path::to_owned),
        env: BTreeMap::new(),
        time_limit: timeout_ms.map(Duration::from_millis),
    };
    let live = Mutex::new(OutputEvents::new(cx));
    let lock = || live.lock().unwrap_or_else(PoisonError::into_inner);
    let finished = cx.host.run(&command, &cx.cancel, &|bytes| lock().push(bytes)).await;
    lock().flush();
    finished.map(result).map_err(tool_error)
}

/// Converts a finished command to an output.
pub(crate) fn result(finished: FinishedCommand) -> Output {
    let FinishedCommand { mut report, output, gap, apart } = finished;
    let text = text::joined(&output, gap, report.whole.as_ref());
    let wait = input_wait(&report, &text);
    let text = with_advice(report.exit, &report.denials, text);
    let text = match report.exit {
        // The caller that cancelled it knows the reason.
        Exit::Code(_) | Exit::Cancelled => text,
        Exit::TimedOut => {
            let waited = wait.as_ref().map(|wait| format!("{wait}\n")).unwrap_or_default();
            format!("command timed out after {} milliseconds\n{waited}{text}", report.duration.as_millis())
        }
        Exit::Signal(signal) => {
            format!("execution error: {}\nOutput:\n{text}", ended_by(signal, &report.denials))
        }
    };
    let data = apart.map(|apart| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stderr, stdout) = (text(&apart.stderr), text(&apart.stdout));
        ToolReport::Streams(StreamReport { return_code: report.exit.code(), stderr, stdout })
    });
    report.waits_for_input = wait.is_some();
    Output { facts: Facts::Command(Box::new(report)), data, ..Output::from(text) }
}

/// Returns advice on a command that timed out while it waited for input. Its standard input is
/// empty, so it has a terminal of its own, is an editor or pager, or asks repeatedly.
fn input_wait(report: &ProcessReport, text: &str) -> Option<String> {
    const WHAT_TO_DO: &str = "give it an option such as `-y` or its input in a pipe, or start it with exec_command \
                              (tty=true) and answer with write_stdin";
    if report.exit != Exit::TimedOut {
        return None;
    }
    if report.waits_for_input && InteractiveProgram::find(&report.running).is_none() {
        return Some(format!("it was waiting for input on a terminal: {WHAT_TO_DO}"));
    }
    if let Some(program) = InteractiveProgram::find(&report.running) {
        return Some(format!("it seemed to wait for a person in {}", program.advice()));
    }
    let prompt = prompt_at_end(text)?;
    Some(format!("it seemed to wait for input after `{prompt}`: {WHAT_TO_DO}"))
}

/// Puts one line of advice per denial that a person could allow before the output of a failed
/// command. Programs report a refused connection or file at length, and rarely say why.
pub(crate) fn with_advice(exit: Exit, denials: &[Denial], mut output: String) -> String {
    let advice = denials.iter().filter(|_| exit != Exit::Code(0)).filter_map(Denial::advice);
    let lines: String = advice.map(|line| line + "\n").collect();
    output.insert_str(0, &lines);
    output
}

/// Returns the limit or the signal that ended a command.
fn ended_by(signal: i32, denials: &[Denial]) -> String {
    if let Some(limit) = denials.iter().find(|denial| denial.layer == Layer::Limit) {
        return limit.rule.clone();
    }
    let meaning = match signal {
        4 => " (SIGILL): it has code this machine cannot run",
        6 => " (SIGABRT): it gave up by itself",
        7 | 10 | 11 => " (SIGSEGV or SIGBUS): it crashed on a bad memory access",
        8 => " (SIGFPE): it crashed on an arithmetic error, such as a division by zero",
        9 => " (SIGKILL): something else killed it, often because memory ran out; try with less at once",
        15 => " (SIGTERM): something else told it to end",
        _ => "",
    };
    format!("the command was ended by signal {signal}{meaning}")
}

/// Words an error of the host for the model: the problem, its place, and the remedy.
pub(crate) fn tool_error(error: HostError) -> ToolError {
    let kind = match &error {
        HostError::Cwd { source, .. } | HostError::Spawn { source, .. } => file_error::system_kind(source),
        _ => ErrorKind::Failed,
    };
    let message = match &error {
        HostError::EmptyCommand => {
            return ToolError::bad_input("`command` is empty: give a program and its arguments");
        }
        HostError::Nul => return ToolError::bad_input("the command contains a NUL byte: leave it out"),
        HostError::NotGranted { .. } | HostError::NotApart { .. } => error.to_string(),
        HostError::TimeUsedUp { .. } | HostError::CpuUsedUp { .. } => {
            let message = format!("{error}; say what is done and what is not");
            return denied(Layer::Limit, "the session's time for commands is limited", message, error);
        }
        HostError::NotHeld { .. } => return not_confined(error.to_string(), error),
        HostError::Confine { source, .. } => return not_confined(format!("{error}: {source}"), error),
        HostError::Cwd { source, .. } => {
            let problem = match source.kind() {
                io::ErrorKind::NotFound => "it does not exist".to_owned(),
                io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
                io::ErrorKind::PermissionDenied => "access is denied".to_owned(),
                _ => source.to_string(),
            };
            format!("{error}: {problem}; set `workdir` to an existing directory")
        }
        HostError::Spawn { program, source } => cannot_start(program, source),
        HostError::Wait { source, .. } => {
            format!("{error}: {source}; its outcome is unknown, so look before you run it again")
        }
    };
    ToolError::new(kind, format!("execution error: {message}")).with_source(error)
}

/// Returns the error of a command that did not run because it could not be confined.
fn not_confined(message: String, error: HostError) -> ToolError {
    denied(Layer::Setup, "nothing runs with weaker confinement than required", message, error)
}

fn denied(layer: Layer, rule: &str, message: String, error: HostError) -> ToolError {
    let denial = Denial {
        layer,
        what: message.clone(),
        rule: rule.to_owned(),
        need: Effects::none(),
        proof: Proof::Observed,
        remedy: String::new(),
    };
    ToolError { kind: ErrorKind::Denied(Box::new(denial)), message, source: Some(Box::new(error)) }
}

fn cannot_start(program: &str, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound if program.contains('/') => format!(
            "`{program}` does not exist, or the interpreter its first line names does not; check the path, which is \
             relative to `workdir`"
        ),
        io::ErrorKind::NotFound => format!(
            "program `{program}` was not found in any directory of PATH; check its name, give its full path, or \
             install it"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "`{program}` may not be executed; if it is a script, start it through its interpreter, such as \
             `sh {program}`, or make it executable first"
        ),
        io::ErrorKind::ArgumentListTooLong => format!(
            "the arguments for `{program}` are longer than the system takes; pass them in a file, or in several calls"
        ),
        _ if matches!(source.raw_os_error(), Some(TOO_MANY_OPEN_FILES | TOO_MANY_IN_SYSTEM)) => format!(
            "cannot start `{program}`: too many files are open; run fewer commands at once, or have the user raise the \
             limit (`ulimit -n`)"
        ),
        _ if source.raw_os_error() == Some(NOT_A_PROGRAM) => format!(
            "`{program}` is neither a program for this machine nor a script whose first line names its interpreter; \
             start a script through its interpreter, such as `sh {program}`"
        ),
        _ => format!("cannot start `{program}`: {source}"),
    }
}

#[cfg(test)]
mod tests;

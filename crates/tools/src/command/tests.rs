//! The three shell tools on a scripted machine.

use std::{sync::Arc, time::Duration};

use windlass_contract::{AnyTool, Content, Event, Input, erase, tool::ErrorKind};

use super::*;
use crate::{
    fakes::{ToolHarness, finished},
    local_shell::local_shell,
    shell::ShellProgram,
    shell_command::ShellCommand,
};

fn shell_command() -> Arc<dyn AnyTool> {
    erase(ShellCommand::new(Path::new("/bin/zsh")))
}

fn command(argv: &[&str], cwd: Option<&str>, limit_ms: Option<u64>) -> Command {
    Command {
        argv: argv.iter().map(ToString::to_string).collect(),
        cwd: cwd.map(Into::into),
        env: BTreeMap::new(),
        time_limit: limit_ms.map(Duration::from_millis),
    }
}

/// Returns the command that the tool runs, after a check of its announced effects.
async fn asks(tool: Arc<dyn AnyTool>, input: &str) -> Command {
    let desk = ToolHarness::new(&[], Ok(finished(Exit::Code(0), b"")));
    let effects = Arc::clone(&tool).prepare(&Input::Json(input.to_owned())).unwrap().effects();
    desk.call(tool, input).await.unwrap();
    let [command] = desk.asked().try_into().unwrap();
    let said = CommandLine { argv: command.argv.clone(), cwd: command.cwd.clone() };
    let time_limit_ms = command.time_limit.map(|limit| u64::try_from(limit.as_millis()).unwrap());
    let declared = Effects { time_limit_ms, ..Effects::command(said) };
    assert_eq!(effects, declared, "what is asked for must be what was declared");
    command
}

async fn answers(answer: Result<FinishedCommand, HostError>) -> Result<Output, ToolError> {
    ToolHarness::new(&[], answer).call(erase(ShellProgram), r#"{"command":["x"]}"#).await
}

async fn complains(error: HostError) -> (ErrorKind, String) {
    let error = answers(Err(error)).await.unwrap_err();
    (error.kind, error.message)
}

fn spawn_error(program: &str, kind: io::ErrorKind) -> HostError {
    HostError::Spawn { program: program.to_owned(), source: kind.into() }
}

#[tokio::test]
async fn shell_runs_the_arguments_as_they_are() {
    let input = r#"{"command":["ls","a b"],"workdir":"sub","timeout_ms":500}"#;
    assert_eq!(asks(erase(ShellProgram), input).await, command(&["ls", "a b"], Some("sub"), Some(500)));
    let input = r#"{"command":["ls"],"timeout_ms":7,"justification":"ignored","workdir":null}"#;
    assert_eq!(asks(erase(ShellProgram), input).await, command(&["ls"], None, Some(7)));
}

#[tokio::test]
async fn local_shell_runs_like_shell_and_ignores_user_and_variables() {
    let input = r#"{"command":["ls"],"working_directory":"/w","timeout_ms":5,"env":{"A":"1"},"user":"root"}"#;
    assert_eq!(asks(local_shell(), input).await, command(&["ls"], Some("/w"), Some(5)));
    assert_eq!(
        asks(local_shell(), r#"{"command":["ls"],"workdir":"w"}"#).await,
        command(&["ls"], Some("w"), None)
    );
}

#[tokio::test]
async fn shell_command_gives_the_line_to_the_users_shell() {
    let plain = asks(shell_command(), r#"{"command":"a && b"}"#).await;
    assert_eq!(plain, command(&["/bin/zsh", "-c", "a && b"], None, None));
    let login = asks(shell_command(), r#"{"command":"a","login":true}"#).await;
    assert_eq!(login, command(&["/bin/zsh", "-lc", "a"], None, None));
}

#[tokio::test]
async fn a_time_limit_of_zero_is_none_and_told() {
    let told =
        |tool: Arc<dyn AnyTool>, input: &str| tool.prepare(&Input::Json(input.into())).unwrap().adjustments();
    let zero = told(shell_command(), r#"{"command":"x","timeout_ms":0}"#);
    assert_eq!(zero, ["`timeout_ms` of 0 is no time at all; the default holds"]);
    assert_eq!(told(shell_command(), r#"{"command":"x","timeout_ms":5}"#), Vec::<String>::new());
    for limit in ["0", "null"] {
        let asked = asks(erase(ShellProgram), &format!(r#"{{"command":["x"],"timeout_ms":{limit}}}"#)).await;
        assert_eq!(asked, command(&["x"], None, None));
    }
    let error = erase(ShellProgram)
        .prepare(&Input::Json(r#"{"command":["x"],"timeout_ms":-1}"#.into()))
        .err()
        .unwrap();
    assert_eq!(error.kind, ErrorKind::BadInput);
    assert!(error.message.ends_with("(at `timeout_ms`)"), "{error}");
}

/// Returns what was observed of the command.
fn report(output: &Output) -> &ProcessReport {
    let Facts::Command(report) = &output.facts else { panic!("{:?}", output.facts) };
    report
}

#[tokio::test]
async fn an_exit_code_is_a_result_like_any_other() {
    let duration = Duration::from_millis(1500);
    let report = ProcessReport { duration, output_bytes: 3, ..ProcessReport::new(Exit::Code(3)) };
    let expected = Output { facts: Facts::Command(Box::new(report)), ..Output::from("no\n") };
    assert_eq!(answers(Ok(finished(Exit::Code(3), b"no\n"))).await.unwrap(), expected);
}

#[tokio::test]
async fn a_time_out_is_said_before_what_was_printed_until_then() {
    let output = answers(Ok(finished(Exit::TimedOut, b"half"))).await.unwrap();
    assert_eq!(output.content, [Content::Text("command timed out after 1500 milliseconds\nhalf".into())]);
    assert_eq!(report(&output).exit, Exit::TimedOut);
}

#[tokio::test]
async fn a_command_that_waited_for_input_until_its_time_was_up_is_told_what_to_do() {
    let mut waiting = finished(Exit::TimedOut, b"half\n");
    waiting.report.waits_for_input = true;
    let asking = finished(Exit::TimedOut, b"Continue? [y/N] ");
    let mut editing = finished(Exit::TimedOut, b"half\n");
    editing.report.running = ["bash", "git", "vi"].map(str::to_owned).to_vec();
    for (ended, said) in [
        (waiting, "it was waiting for input on a terminal: "),
        (asking, "it seemed to wait for input after `Continue? [y/N]`: "),
        (
            editing,
            "it seemed to wait for a person in `vi`, an editor: give the text in the call (`git commit -m`",
        ),
    ] {
        let output = answers(Ok(ended)).await.unwrap();
        let text = Content::join(&output.content);
        assert!(text.lines().nth(1).unwrap().starts_with(said), "{text}");
        assert!(report(&output).waits_for_input);
    }
    let output = answers(Ok(finished(Exit::Code(1), b"Continue? [y/N] "))).await.unwrap();
    assert!(!report(&output).waits_for_input);
}

#[tokio::test]
async fn what_the_sandbox_refused_is_said_before_the_output_of_a_command_that_failed() {
    let denial = Denial {
        layer: Layer::Network,
        what: "1.1.1.1:80".to_owned(),
        rule: "the network is off".to_owned(),
        need: Effects::none(),
        proof: Proof::Observed,
        remedy: "`-c x=true`".to_owned(),
    };
    for (exit, expected) in [
        (Exit::Code(7), "sandbox: the network is off: 1.1.1.1:80; to allow it: `-c x=true`\nno\n"),
        (Exit::Code(0), "no\n"),
    ] {
        let mut ended = finished(exit, b"no\n");
        ended.report.denials = vec![denial.clone()];
        assert_eq!(Content::join(&answers(Ok(ended)).await.unwrap().content), expected);
    }
}

#[tokio::test]
async fn what_was_not_kept_is_counted() {
    let mut cut = FinishedCommand { gap: Some((2, 96)), ..finished(Exit::Code(0), b"abcd") };
    cut.report.output_bytes = 100;
    let output = answers(Ok(cut)).await.unwrap();
    assert_eq!(output.content, [Content::Text("ab\n... 96 bytes omitted ...\ncd".into())]);
    assert_eq!(report(&output).output_bytes, 100);
}

#[tokio::test]
async fn what_a_cancelled_command_has_printed_is_kept() {
    let output = answers(Ok(finished(Exit::Cancelled, b"x"))).await.unwrap();
    assert_eq!(output.content, [Content::Text("x".into())]);
    assert_eq!(report(&output).exit, Exit::Cancelled);
}

#[tokio::test]
async fn a_crash_keeps_its_facts_and_the_last_words() {
    let output = answers(Ok(finished(Exit::Signal(6), b"assertion failed"))).await.unwrap();
    assert_eq!(
        Content::join(&output.content),
        "execution error: the command was ended by signal 6 (SIGABRT): it gave up by itself\nOutput:\nassertion failed"
    );
    assert_eq!(report(&output).exit, Exit::Signal(6));
}

#[tokio::test]
async fn a_command_that_a_limit_ended_is_told_which() {
    let limit = Denial {
        layer: Layer::Limit,
        what: "memory".to_owned(),
        rule: "the limit on memory was reached, and the command was ended".to_owned(),
        need: Effects::none(),
        proof: Proof::Observed,
        remedy: String::new(),
    };
    let mut ended = finished(Exit::KILLED, b"half");
    ended.report.denials = vec![limit];
    assert_eq!(
        Content::join(&answers(Ok(ended)).await.unwrap().content),
        "execution error: the limit on memory was reached, and the command was ended\nOutput:\nhalf"
    );
}

#[tokio::test]
async fn a_command_for_which_no_time_is_left_is_denied_by_the_limit() {
    let limit = Duration::from_mins(10);
    for error in [HostError::TimeUsedUp { limit }, HostError::CpuUsedUp { limit }] {
        let (kind, message) = complains(error).await;
        let ErrorKind::Denied(denial) = kind else { panic!("{kind:?}") };
        assert_eq!(denial.layer, Layer::Limit);
        assert!(message.contains("used up the 600 seconds"), "{message}");
    }
}

#[tokio::test]
async fn what_could_not_be_started_is_explained_with_what_to_do() {
    let cases = [
        (
            spawn_error("cargoo", io::ErrorKind::NotFound),
            ErrorKind::NotFound,
            "program `cargoo` was not found in any directory of PATH",
        ),
        (
            spawn_error("./run", io::ErrorKind::NotFound),
            ErrorKind::NotFound,
            "`./run` does not exist, or the interpreter",
        ),
        (
            spawn_error("./run", io::ErrorKind::PermissionDenied),
            ErrorKind::NoPermission,
            "`./run` may not be executed",
        ),
        (
            spawn_error("ls", io::ErrorKind::ArgumentListTooLong),
            ErrorKind::Failed,
            "the arguments for `ls` are longer",
        ),
        (
            spawn_error("ls", io::ErrorKind::OutOfMemory),
            ErrorKind::Failed,
            "cannot start `ls`: out of memory",
        ),
        (
            HostError::Spawn { program: "./run".into(), source: io::Error::from_raw_os_error(NOT_A_PROGRAM) },
            ErrorKind::Failed,
            "`./run` is neither a program for this machine nor a script",
        ),
        (
            HostError::Spawn {
                program: "ls".into(),
                source: io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES),
            },
            ErrorKind::Failed,
            "cannot start `ls`: too many files are open; run fewer commands at once",
        ),
        (
            HostError::Cwd { path: "/w/no".into(), source: io::ErrorKind::NotFound.into() },
            ErrorKind::NotFound,
            "cannot use `/w/no` as the working directory: it does not exist; set `workdir`",
        ),
        (
            HostError::Cwd { path: "/w/file".into(), source: io::ErrorKind::NotADirectory.into() },
            ErrorKind::Failed,
            "cannot use `/w/file` as the working directory: it is not a directory; set `workdir`",
        ),
        (
            HostError::Wait { program: "x".into(), source: io::ErrorKind::NotFound.into() },
            ErrorKind::Failed,
            "lost track of `x`: entity not found; its outcome is unknown",
        ),
    ];
    for (error, expected_kind, expected) in cases {
        let (kind, message) = complains(error).await;
        assert_eq!(kind, expected_kind, "{message}");
        assert!(message.starts_with(&format!("execution error: {expected}")), "{message}");
    }
}

#[tokio::test]
async fn a_command_that_makes_no_sense_is_bad_input() {
    assert_eq!(complains(HostError::EmptyCommand).await.0, ErrorKind::BadInput);
    assert_eq!(complains(HostError::Nul).await.0, ErrorKind::BadInput);
}

fn shown(desk: &ToolHarness) -> Vec<String> {
    let text = |event: Event| match event {
        Event::CallOutput { id, text } if id.as_str() == "call-1" => text,
        other => panic!("unexpected: {other:?}"),
    };
    desk.events().into_iter().map(text).collect()
}

async fn show(pieces: &[&[u8]]) -> Vec<String> {
    let desk = ToolHarness::new(pieces, Ok(finished(Exit::Code(0), b"")));
    desk.call(erase(ShellProgram), r#"{"command":["x"]}"#).await.unwrap();
    shown(&desk)
}

#[tokio::test]
async fn output_is_shown_as_it_comes_and_characters_stay_whole() {
    assert_eq!(show(&[b"a\xc3", b"\xb6b", b"\xe2\x82", b"\xac"]).await, ["a", "öb", "€"]);
    assert_eq!(show(&[b"a\xff", b"b\xc3"]).await, ["a\u{fffd}", "b", "\u{fffd}"]);
}

#[tokio::test]
async fn no_more_is_shown_than_anyone_could_read() {
    let many: Vec<&[u8]> = vec![b"x"; 10_050];
    assert_eq!(show(&many).await.len(), 10_000);
    let chunk = vec![b'x'; 300_000];
    let large: Vec<&[u8]> = vec![&chunk; 5];
    assert_eq!(show(&large).await.concat().len(), 1024 * 1024);
}

//! The table and its two tools on a scripted machine.

use std::path::Path;

use windlass_contract::{
    AnyTool, Content, Effects, Input, effects::Typed, erase, grant::Mechanism, host::Whole,
};
use windlass_fakes::run_parsed;

use super::{running::CommandSessions, *};
use crate::{
    exec_command::ExecCommand,
    fakes::{FakeSessionState, ScriptedSessions},
    write_stdin::WriteStdin,
};

struct SessionHarness {
    machine: Arc<ScriptedSessions>,
    sessions: Arc<SessionTable>,
    cx: Cx,
}

impl SessionHarness {
    fn new(text: &'static str, pose: FakeSessionState) -> Self {
        let machine = Arc::new(ScriptedSessions::default());
        *machine.next.lock().unwrap() = (text, pose);
        let cx = machine.desk();
        Self { machine, sessions: Arc::default(), cx }
    }

    fn tool(&self, name: &str) -> Arc<dyn AnyTool> {
        match name {
            "exec_command" => erase(ExecCommand::new(Path::new("/bin/zsh"), &self.sessions)),
            _ => erase(WriteStdin::new(&self.sessions)),
        }
    }

    /// Returns the output, the facts, and the elapsed milliseconds.
    async fn call(&self, name: &str, input: &str) -> Result<(String, SessionReport, u128), ToolError> {
        let begun = Instant::now();
        let ready = self.tool(name).prepare(&Input::Json(input.to_owned()))?;
        let output = run_parsed(&ready, &self.cx).await?;
        let Facts::Session(facts) = output.facts else { panic!("{:?}", output.facts) };
        Ok((Content::join(&output.content), *facts, begun.elapsed().as_millis()))
    }

    async fn exec(&self, input: &str) -> (String, SessionReport, u128) {
        self.call("exec_command", input).await.unwrap()
    }

    async fn write(&self, id: u32, rest: &str) -> Result<(String, SessionReport, u128), ToolError> {
        self.call("write_stdin", &format!(r#"{{"session_id":{id}{rest}}}"#)).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_in_time_needs_no_session() {
    let desk = SessionHarness::new("hi\n", FakeSessionState::Over(Exit::Code(3)));
    let (text, facts, millis) = desk.exec(r#"{"cmd":"true"}"#).await;
    assert_eq!(
        (text.as_str(), facts.report.exit, facts.session, millis),
        ("hi\n", Some(Exit::Code(3)), 0, 0)
    );
    assert_eq!((facts.started, facts.report.held.unwrap().rung), (true, Mechanism::Namespaces));
    assert!(desk.sessions.entries().is_empty());
    let (command, keyboard, _) = desk.machine.opened.lock().unwrap()[0].clone();
    assert_eq!(
        (command.argv, keyboard),
        (vec!["/bin/zsh".into(), "-c".into(), "true".into()], Keyboard::Absent)
    );
    assert_eq!(command.env["TERM"], "dumb");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_shown_whole_is_told_where_it_is() {
    let desk = SessionHarness::new("0123456789abcdef", FakeSessionState::Over(Exit::Code(0)));
    assert_eq!(desk.exec(r#"{"cmd":"true"}"#).await.1.report.whole, None);
    let (_, facts, _) = desk.exec(r#"{"cmd":"true","max_output_tokens":3}"#).await;
    let path = "/outputs/1.txt".into();
    assert_eq!(facts.report.whole, Some(Whole::File { path, bytes: 16, complete: true }));
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_time_is_up_says_so() {
    let desk = SessionHarness::new("half of it\n", FakeSessionState::Over(Exit::TimedOut));
    let (text, facts, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    assert_eq!((text, facts.report.exit), (format!("{TIME_IS_UP}\nhalf of it\n"), Some(Exit::TimedOut)));
}

#[tokio::test]
async fn a_terminal_is_part_of_what_is_asked_for() {
    let desk = SessionHarness::new("", FakeSessionState::Works);
    let terminal = |input: &str| {
        desk.tool("exec_command").prepare(&Input::Json(input.into())).unwrap().effects().terminal
    };
    assert!(terminal(r#"{"cmd":"bash","tty":true}"#));
    assert!(!terminal(r#"{"cmd":"bash"}"#));
}

#[tokio::test(start_paused = true)]
async fn what_goes_on_is_told_with_a_number_after_the_time_to_yield() {
    for (asked, expected) in
        [("", 10_000), (r#","yield_time_ms":1"#, 250), (r#","yield_time_ms":99999"#, 30_000)]
    {
        let desk = SessionHarness::new("begun\n", FakeSessionState::Works);
        let (text, facts, millis) = desk.exec(&format!(r#"{{"cmd":"serve"{asked}}}"#)).await;
        assert_eq!((text.as_str(), facts.report.exit, millis), ("begun\n", None, expected));
        assert_eq!((facts.session, facts.report.waits_for_input), (1_000, false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_sees_what_runs_and_can_end_it() {
    let desk = SessionHarness::new("begun\n", FakeSessionState::Works);
    let (_, facts, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    let running = CommandSessions(Arc::clone(&desk.sessions));
    let list = running.list();
    assert_eq!((list.len(), list[0].id, list[0].command_line.as_str()), (1, facts.session, "serve"));
    assert!(running.end(facts.session).await && !running.end(7).await);
    assert!(running.list().is_empty());
    let (_, ended, _) = desk.write(facts.session, "").await.unwrap();
    assert_eq!(ended.report.exit, Some(Exit::Signal(15)), "the model learns it");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_waits_for_input_is_told_at_once_and_only_once() {
    let desk = SessionHarness::new("name? ", FakeSessionState::Waits);
    let (text, facts, millis) = desk.exec(r#"{"cmd":"ask","tty":true}"#).await;
    assert_eq!((text.as_str(), facts.report.waits_for_input, millis), ("name? ", true, 100));
    // A caller that looks again without typing waits for something else.
    let (_, again, millis) = desk.write(facts.session, "").await.unwrap();
    assert_eq!((again.report.waits_for_input, millis), (true, 5_000));
    let (_, typed, millis) = desk.write(facts.session, r#","chars":"you\n""#).await.unwrap();
    assert_eq!((typed.report.waits_for_input, millis), (true, 250));
    assert_eq!(*desk.machine.last().typed.lock().unwrap(), "you\n");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_forgotten_when_its_end_was_told() {
    let desk = SessionHarness::new("", FakeSessionState::Works);
    let (_, facts, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    desk.machine.last().act("bye\n", FakeSessionState::Over(Exit::Code(0)));
    let (text, ended, millis) = desk.write(facts.session, "").await.unwrap();
    assert_eq!((text.as_str(), ended.report.exit, millis), ("bye\n", Some(Exit::Code(0)), 0));
    let error = desk.write(facts.session, "").await.unwrap_err();
    assert_eq!(error.message, format!("write_stdin failed: Unknown process id {}", facts.session));
}

#[tokio::test(start_paused = true)]
async fn without_a_terminal_only_ctrl_c_gets_through_and_ends_it() {
    let desk = SessionHarness::new("", FakeSessionState::Works);
    let (_, facts, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    let error = desk.write(facts.session, r#","chars":"y\n""#).await.unwrap_err();
    assert!(error.message.ends_with("rerun exec_command with tty=true to keep stdin open"), "{error}");
    let (_, ended, _) = desk.write(facts.session, r#","chars":"\u0003""#).await.unwrap();
    assert_eq!(ended.report.exit, Some(Exit::Signal(15)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_takes_along_only_what_nobody_knows_of() {
    let desk = SessionHarness::new("", FakeSessionState::Works);
    let (_, facts, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    desk.cx.cancel.cancel();
    assert!(desk.write(facts.session, "").await.is_err());
    assert!(desk.sessions.find(facts.session).is_some());
    assert!(desk.call("exec_command", r#"{"cmd":"other"}"#).await.is_err());
    assert_eq!(desk.sessions.entries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn when_there_are_too_many_the_ended_and_then_the_least_used_makes_room() {
    let desk = SessionHarness::new("", FakeSessionState::Works);
    let mut ids = Vec::new();
    for _ in 0..MAX_SESSIONS {
        ids.push(desk.exec(r#"{"cmd":"serve"}"#).await.1.session);
    }
    let all = |desk: &SessionHarness| desk.sessions.entries().iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(all(&desk), ids);
    desk.machine.opened.lock().unwrap()[5].2.act("", FakeSessionState::Over(Exit::Code(0)));
    desk.write(ids[0], "").await.unwrap();
    let (text, first, _) = desk.exec(r#"{"cmd":"serve"}"#).await;
    assert!(text.starts_with("Warning: 64 sessions are open"), "{text}");
    assert!(!all(&desk).contains(&ids[5]));
    let second = desk.exec(r#"{"cmd":"serve"}"#).await.1;
    assert!(!all(&desk).contains(&ids[1]) && all(&desk).contains(&ids[0]));
    assert_eq!(all(&desk)[MAX_SESSIONS - 3..], [ids[0], first.session, second.session]);
}

#[tokio::test(start_paused = true)]
async fn what_is_typed_is_shown_to_whoever_decides() {
    let desk = SessionHarness::new("", FakeSessionState::Waits);
    let escalated = r#"{"cmd":"bash","tty":true,"sandbox_permissions":"require_escalated"}"#;
    for (input, leaves) in [(r#"{"cmd":"bash","tty":true}"#, false), (escalated, true)] {
        let id = desk.exec(input).await.1.session;
        let effects = |chars: &str| {
            let input = Input::Json(format!(r#"{{"session_id":{id},"chars":"{chars}"}}"#));
            desk.tool("write_stdin").prepare(&input).unwrap().effects()
        };
        assert_eq!((effects("").may_change(), effects(r"\u0003").may_change()), (false, false));
        let typed = effects(r"rm x\n");
        assert_eq!(typed.typed, Some(Typed { to: "bash".into(), text: "rm x\n".into() }));
        assert_eq!(typed.escalation.is_some(), leaves);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_typed_before_a_program_runs_never_reaches_one() {
    let desk = SessionHarness::new("$ ", FakeSessionState::Waits);
    let early = desk
        .tool("write_stdin")
        .prepare(&Input::Json(r#"{"session_id":1000,"chars":"id\n"}"#.into()))
        .unwrap();
    assert_eq!(early.effects(), Effects::none(), "nobody is asked about it");
    let (_, facts, _) = desk.exec(r#"{"cmd":"sh","tty":true,"yield_time_ms":250}"#).await;
    assert_eq!(facts.session, 1001);
    let error = run_parsed(&early, &desk.cx).await.unwrap_err();
    assert_eq!(error.message, "write_stdin failed: Unknown process id 1000");
}

//! `windlass exec` at a terminal: questions, live progress, and the answer once.

use std::{sync::Arc, thread, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Emulator, Reply, Running, Server, Step, User, Wire, chunk, lines};

const SIZE: (u16, u16) = (40, 80);

fn shell(command: &str) -> Value {
    json!({"name": "shell_command", "arguments": {"command": command}})
}

fn exec(user: &User, turns: &Value, options: &[&str]) -> Emulator {
    let script = user.script(turns);
    Emulator::start(&user.program(&[&["exec", "--script", &script], options, &["go"]].concat()), SIZE)
}

const ASKS: [&str; 4] = ["-a", "untrusted", "-s", "workspace-write"];

#[test]
fn a_person_is_asked_and_obeyed() {
    for (answer, code, is_done) in [("y\r", 0, true), ("n use git\r", 3, false), ("q\r", 130, false)] {
        let user = User::new();
        let turns = json!([{"calls": [shell("touch here")]}, {"text": "The end."}]);
        let mut terminal = exec(&user, &turns, &ASKS);
        let screen = terminal.until("Allow it?");
        assert!(screen.contains("shell_command wants to run:\n  touch here\n"), "{screen}");
        terminal.type_in(answer);
        assert_eq!(terminal.end(), Some(code), "{}", terminal.screen());
        assert_eq!(user.work().join("here").exists(), is_done, "{answer}");
        let screen = terminal.screen();
        assert_eq!(screen.matches("The end.").count(), usize::from(code != 130), "{screen}");
        if code == 3 {
            assert!(screen.contains("  refused: rejected by user: use git\n"), "{screen}");
            assert!(!screen.contains("to allow it"), "{screen}");
        }
        assert!(terminal.is_cooked() && terminal.is_plain());
    }
}

#[test]
fn an_interrupt_at_a_question_cancels_the_turn() {
    let user = User::new();
    let mut terminal = exec(&user, &json!([{"calls": [shell("touch here")]}, {"text": "Late."}]), &ASKS);
    terminal.until("Allow it?");
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    assert!(!user.work().join("here").exists() && !terminal.screen().contains("Late."));
}

#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let user = User::new();
    let busy = user.named_pipe("busy");
    // Harmless, so nobody is asked about it; it goes on until something is written.
    let turns = json!([{"calls": [shell("cat busy")]}, {"calls": [shell("touch here")]}, {"text": "ok"}]);
    let mut terminal = exec(&user, &turns, &ASKS);
    terminal.until("• run cat busy");
    terminal.type_in("y\ry\r");
    thread::sleep(Duration::from_millis(100));
    busy.say("go on\n");
    terminal.until("Allow it?");
    thread::sleep(Duration::from_millis(300));
    assert!(!user.work().join("here").exists());
    terminal.type_in("n\r");
    assert_eq!(terminal.end(), Some(3), "{}", terminal.screen());
}

#[test]
fn without_a_person_it_is_refused_and_the_way_to_allow_it_is_told() {
    let user = User::new();
    let turns = json!([{"calls": [shell("touch here")]}, {"text": "No."}]);
    let script = user.script(&turns);
    let line = format!("exec --script {script} -a untrusted -s workspace-write go");
    for (extra, because) in [("--no-input", "of `--no-input`"), ("", "`CI` is set")] {
        let mut program = user.program_on_a_terminal(&format!("{line} {extra}"));
        if extra.is_empty() {
            program.env("CI", "true");
        }
        let ended = Running::start(program).end();
        ended.assert_code(3);
        let shown = ended.stdout.replace("\r\n", "\n").replace("\n    ", " ");
        assert!(shown.contains("  to allow it: `windlass policy allow 'touch here'`"), "{shown}");
        assert!(shown.contains(because) && !shown.contains("Allow it?"), "{shown}");
    }
    let ended =
        user.run(&["exec", "--script", &script, "-a", "untrusted", "-s", "workspace-write", "--json", "go"]);
    let events = ended.events();
    let hint = events.last().unwrap()["refusals"][0]["hint"].as_str().unwrap();
    assert!(hint.ends_with("because there is no terminal)"), "{hint}");
}

#[test]
fn never_never_asks() {
    let user = User::new();
    let push = shell("git push --force");
    let mut terminal = exec(&user, &json!([{"calls": [push]}, {"text": "No."}]), &["-a", "never"]);
    assert_eq!(terminal.end(), Some(3), "{}", terminal.screen());
    assert!(!terminal.screen().contains("Allow it?"), "{}", terminal.screen());
}

#[test]
fn questions_of_parallel_calls_come_one_after_the_other() {
    let user = User::new();
    let turns = json!([{"calls": [shell("touch one"), shell("touch two")]}, {"text": "ok"}]);
    let mut terminal = exec(&user, &turns, &[&ASKS[..], &["-c", "parallel_commands=true"]].concat());
    for number in 1..=2 {
        terminal.until_screen("question", |screen| screen.matches("Allow it?").count() == number);
        terminal.type_in("y\r");
    }
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(user.work().join("one").exists() && user.work().join("two").exists());
}

#[test]
fn events_stay_pure_while_a_person_is_asked() {
    let user = User::new();
    let script = user.script(&json!([{"calls": [shell("touch here")]}, {"text": "ok"}]));
    let line = format!("$windlass exec --json --script {script} -a untrusted -s workspace-write go > events");
    let mut terminal = Emulator::start(&user.shell(&line), SIZE);
    terminal.until("Allow it?");
    terminal.type_in("y\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let events = lines(&user.read("events"));
    assert!(events.iter().any(|event| event["type"] == "approval.answered" && event["by"] == "person"));
    assert!(user.work().join("here").exists());
}

#[test]
fn what_runs_is_shown_with_its_last_line_and_replaced_by_its_end() {
    let user = User::new();
    let busy = user.named_pipe("busy");
    let command = "printf 'one\\n\\033[31mtwo\\033[0m\\n'; cat busy";
    let read =
        json!({"name": "read_file", "arguments": {"file_path": user.work().join("script.json"), "limit": 3}});
    let turns = json!([{"text": "I look.", "calls": [shell(command), read]}, {"text": "All is well."}]);
    let mut terminal = exec(&user, &turns, &["-s", "danger-full-access"]);
    let screen = terminal.until("  two");
    assert!(screen.contains("directory: ~/work\nmodel: scripted (scripted)\n"), "{screen}");
    assert!(screen.contains("\nI look.\n") && screen.contains("\n• run printf"), "{screen}");
    busy.say("three\n");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("\n  | one\n  | two\n  | three\n"), "{screen}");
    assert!(screen.contains("\n• read script.json lines 1-3\n  done, "), "{screen}");
    assert_eq!(screen.matches("• run printf").count(), 1, "{screen}");
    assert_eq!(screen.matches("All is well.").count(), 1, "{screen}");
}

#[test]
fn the_text_of_the_model_is_shown_as_it_arrives_and_goes_to_stdout_once() {
    let user = User::new();
    let words = "alpha beta gamma delta ".repeat(20);
    let script = user.script(&json!([{"text": words.trim_end()}]));
    for columns in [60, 80, 120] {
        let line = format!("$windlass exec --script {script} go > answer");
        let mut terminal = Emulator::start(&user.shell(&line), (40, columns));
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        let screen = terminal.screen();
        let shown: Vec<_> = screen.lines().filter(|line| line.contains("alpha")).collect();
        assert!(shown.iter().all(|line| line.len() < columns.into()), "{screen}");
        assert_eq!(shown.join(" "), words.trim_end(), "{screen}");
        assert_eq!(user.read("answer"), format!("{}\n", words.trim_end()));
    }
}

#[test]
fn a_message_is_on_the_screen_before_its_end_has_arrived() {
    let (user, wire, seen) = (User::new(), Wire::Chat, Arc::new(Notify::new()));
    let begun = Wire::begins(&wire.text("The first half ")).then(Step::Wait(Arc::clone(&seen)));
    let rest = [wire.text("and the second half."), wire.done()].concat();
    let rest = rest.into_iter().map(|event| chunk(format!("data: {event}\n\n").as_bytes()));
    let server = Server::start([rest.fold(begun, Reply::then).then(Step::Close)]);
    user.use_server(&server, wire);
    let mut terminal = Emulator::start(&user.program(&["exec", "go"]), SIZE);
    terminal.until("\nThe first half\n");
    seen.notify_one();
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let screen = terminal.screen();
    assert_eq!(screen.matches("\nThe first half and the second half.\n").count(), 1, "{screen}");
    assert_eq!(screen.matches("The first half").count(), 1, "{screen}");
}

#[test]
fn the_plan_is_shown_once() {
    let user = User::new();
    let plan =
        json!({"plan": [{"step": "look", "status": "completed"}, {"step": "act", "status": "pending"}]});
    let calls = json!([{"name": "update_plan", "arguments": plan}]);
    let script = user.script(&json!([{"calls": calls}, {"text": "ok"}]));
    let shown = user.run(&["exec", "--script", &script, "go"]).stderr;
    assert!(shown.ends_with("\nplan:\n  [x] look\n  [ ] act\n"), "{shown}");
}

#[test]
fn a_pipe_gets_plain_lines_and_a_dumb_terminal_no_movements() {
    let user = User::new();
    let script = user.script(&json!([{"text": "I look.", "calls": [shell("echo one")]}, {"text": "Done."}]));
    let ended = user.run(&["exec", "--script", &script, "-s", "danger-full-access", "go"]);
    assert!(!ended.stderr.contains(['\u{1b}', '\r']), "{ended:#?}");
    assert!(ended.stderr.contains("\nI look.\n• run echo one\n  done, "), "{ended:#?}");
    assert_eq!(ended.stdout, "Done.\n");
    let line = format!("exec --script {script} -s danger-full-access go");
    let mut program = user.program_on_a_terminal(&line);
    program.env("TERM", "dumb");
    let ended = Running::start(program).end();
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:#?}");
    assert_eq!(ended.stdout.matches("Done.").count(), 1, "{ended:#?}");
}

#[test]
fn results_of_two_calls_say_whose_they_are() {
    let user = User::new();
    let wire = Wire::Responses;
    let meet = |id: &str| {
        let sleep = if id == "first" { 300 } else { 0 };
        json!({"barrier": {"id": "both", "participants": 2, "timeout_ms": 60_000}, "sleep_after_ms": sleep})
    };
    let asked =
        wire.asks(&[("c1", "test_sync_tool", meet("first")), ("c2", "test_sync_tool", meet("second"))]);
    let server = Server::start([asked, wire.says("ok")]);
    user.use_server(&server, wire);
    let ended = user.run(&["exec", "-c", "include_test_sync_tool=true", "go"]);
    ended.assert_code(0);
    let calls: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with('•')).collect();
    let [first, second, second_end, first_end] = calls[..] else { panic!("{ended:#?}") };
    assert!(first_end.starts_with(&format!("{first}: done, ")), "{ended:#?}");
    assert!(second_end.starts_with(&format!("{second}: done, ")), "{ended:#?}");
    assert_ne!(first, second);
}

#[test]
fn two_equal_calls_at_once_are_told_apart() {
    let user = User::new();
    let meet = json!({"barrier": {"id": "both", "participants": 2, "timeout_ms": 60_000}});
    let call = json!({"name": "test_sync_tool", "arguments": meet});
    let script = user.script(&json!([{"calls": [call, call]}, {"text": "ok"}]));
    let ended = user.run(&["exec", "--script", &script, "-c", "include_test_sync_tool=true", "go"]);
    ended.assert_code(0);
    for title in ["• test_sync_tool barrier: 3 fields", "• test_sync_tool barrier: 3 fields (2)"] {
        assert!(ended.stderr.contains(&format!("\n{title}\n")), "{ended:#?}");
        assert!(ended.stderr.contains(&format!("\n{title}: done, ")), "{ended:#?}");
    }
}

#[test]
fn what_the_sandbox_blocked_is_told_once_with_the_way_to_allow_it() {
    let user = User::new();
    // Its many lines would hide the first one.
    let write = |name: &str| shell(&format!("touch /usr/{name}; status=$?; seq 20 >&2; exit $status"));
    let turns = json!([{"calls": [write("one")]}, {"calls": [write("one")]}, {"calls": [shell("true")]}, {"text": "No."}]);
    let script = user.script(&turns);
    let ended = user.run(&["exec", "--script", &script, "-s", "workspace-write", "-a", "never", "go"]);
    let told = "  sandbox: it is outside of what may be written: /usr/one";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{ended:#?}");
    assert!(!ended.stderr.contains("| sandbox:"), "{ended:#?}");
}

#[test]
fn a_changed_file_is_shown_with_its_changes() {
    let user = User::new();
    let path = user.file("app.conf", "debug: false\nport: 80\n");
    let edit = json!({"path": path, "old_string": "false", "new_string": "true"});
    let script = user.script(&json!([{"calls": [{"name": "edit_file", "arguments": edit}]}, {"text": "ok"}]));
    let shown = user.run(&["exec", "--script", &script, "-s", "workspace-write", "go"]).stderr;
    let change = "\n  M app.conf\n    @@ -1,2 +1,2 @@\n    -debug: false\n    +debug: true\n     port: 80\n";
    assert!(shown.contains(change), "{shown}");
}

#[test]
fn the_model_is_told_the_policy_in_force() {
    for policy in ["untrusted", "on-failure", "on-request"] {
        let user = User::new();
        let mut terminal = exec(&user, &json!([{"text": "The end."}]), &["-a", policy]);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        let record = std::fs::read_to_string(&user.sessions()[0]).unwrap();
        assert!(record.contains(&format!("<approval_policy>{policy}</approval_policy>")), "{record}");
        assert!(!record.contains("nobody can be asked"), "{record}");
    }
}

#[test]
fn a_single_call_is_shown_while_it_runs() {
    let user = User::new();
    let busy = user.named_pipe("busy");
    let input = json!({"command": "echo begun; cat busy"}).to_string();
    let program = user.program(&["call", "-s", "danger-full-access", "shell_command", &input]);
    let mut terminal = Emulator::start(&program, SIZE);
    terminal.until_screen("a clock", |screen| {
        screen.starts_with("• run echo begun; cat busy  ") && screen.contains(" s  begun\n")
    });
    busy.say("ended\n");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().starts_with("begun\nended\n"), "{}", terminal.screen());
}

#[test]
fn a_terminal_that_hangs_does_not_hold_up_the_calls() {
    let user = User::new();
    let done = user.named_pipe("done");
    // More lines than any buffer between the program and the terminal holds.
    let long = json!({"name": "shell_command", "arguments": {"command": "seq 3000; exit 1"}});
    let calls: Vec<Value> = std::iter::repeat_n(long, 5).chain([shell("echo ended > done")]).collect();
    let turns = json!([{"text": "word ".repeat(20_000), "calls": calls}, {"text": "The end."}]);
    // A window that holds all of it: a summary would take a turn of the script.
    let options = ["-s", "danger-full-access", "-c", "model_context_window=1000000"];
    let mut terminal = exec(&user, &turns, &options);
    terminal.while_hanging(|| assert_eq!(done.hear(), "ended\n"));
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().contains("The end."), "{}", terminal.screen());
}

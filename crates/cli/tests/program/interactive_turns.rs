//! What a person can do with the agent during an interactive session.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::support::{Emulator, User};

const SIZE: (u16, u16) = (40, 100);

/// Longer than the time in which a new question takes no keys.
const READING_TIME: Duration = Duration::from_millis(600);

fn session(user: &User, turns: &Value, options: &[&str]) -> Emulator {
    let script = user.script(turns);
    let terminal = Emulator::start(&user.program(&[&["chat", "--script", &script], options].concat()), SIZE);
    terminal.until("Ask, or / for commands");
    terminal
}

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]})
}

fn idle(terminal: &mut Emulator) {
    terminal.until_screen("idle", |screen| !screen.contains("working"));
}

fn leave(mut terminal: Emulator) {
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

/// Returns the messages of the user in the session file, in order, with the outputs of calls.
fn recorded(records: &str) -> Vec<String> {
    let values = records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |value: Value| {
        let body = &value["payload"]["body"];
        match (value["type"].as_str(), body["role"].as_str()) {
            (_, Some("user")) => body["content"][0]["text"].as_str().map(str::to_owned),
            (Some("outputs"), _) => Some("outputs".to_owned()),
            _ => None,
        }
    };
    values.filter_map(text).filter(|text| !text.starts_with("<environment_context>")).collect()
}

const FREE: [&str; 4] = ["-s", "danger-full-access", "-a", "never"];

#[test]
fn a_message_joins_the_running_turn_and_another_one_waits_for_the_next() {
    let user = User::new();
    let wait = "while [ ! -e go ]; do sleep 0.05; done; echo went";
    let turns = json!([shell(wait), {"text": "First turn."}, {"text": "Second turn."}]);
    let mut terminal = session(&user, &turns, &FREE);
    terminal.type_in("begin\r");
    terminal.until("while [");
    terminal.type_in("use the other file\r");
    terminal.until("this turn: use the other file");
    terminal.type_in("and then rest\t");
    terminal.until("next turn: and then rest");
    terminal.type_in("a mistake\t");
    terminal.until("next turn: a mistake");
    terminal.type_in("\x1b[1;3A");
    terminal.until_screen("taken back", |screen| {
        screen.contains("› a mistake") && !screen.contains("next turn: a mistake")
    });
    terminal.type_in(&"\x7f".repeat("a mistake".len()));
    fs::write(user.work().join("go"), "").unwrap();
    let screen = terminal.until("Second turn.");
    assert!(screen.contains("› use the other file") && screen.contains("› and then rest"), "{screen}");
    idle(&mut terminal);
    leave(terminal);
    let records = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert_eq!(recorded(&records), ["begin", "outputs", "use the other file", "and then rest"]);
}

#[test]
fn the_sandbox_and_the_policy_change_between_turns_and_approvals_stay() {
    let user = User::new();
    let turns = json!([
        shell("echo one > first"),
        {"text": "One."},
        shell("echo two > second"),
        {"text": "Two."},
        shell("echo one > first"),
        {"text": "Three."}
    ]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "untrusted"]);
    terminal.type_in("go on\r");
    terminal.until("Allow it?");
    thread::sleep(READING_TIME);
    terminal.type_in("s");
    terminal.until("One.");
    idle(&mut terminal);
    terminal.type_in("/sandbox read-only\r");
    terminal.until("sandbox: read-only");
    idle(&mut terminal);
    terminal.type_in("/approvals never\r");
    terminal.until("approval policy: never");
    idle(&mut terminal);
    terminal.type_in("again\r");
    terminal.until("Two.");
    assert!(!user.work().join("second").exists(), "{}", terminal.screen());
    idle(&mut terminal);
    terminal.type_in("/sandbox danger-full-access\r");
    terminal.until("sandbox: danger-full-access");
    idle(&mut terminal);
    terminal.type_in("/approvals untrusted\r");
    terminal.until("approval policy: untrusted");
    idle(&mut terminal);
    terminal.type_in("/approvals\r");
    terminal.until("s1   in this session: echo one > first");
    fs::remove_file(user.work().join("first")).unwrap();
    terminal.type_in("once more\r");
    terminal.until("Three.");
    assert_eq!(user.read("first"), "one\n");
    idle(&mut terminal);
    terminal.type_in("/approvals revoke s1\r");
    terminal.until("it will be asked about again");
    terminal.type_in("/approvals\r");
    terminal.until("nothing was allowed in this session");
    leave(terminal);
    let records = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert_eq!(user.sessions().len(), 1);
    let told = "<approval_policy>never</approval_policy>\\n  <sandbox_mode>read-only</sandbox_mode>";
    assert!(records.contains(told), "{records}");
}

#[test]
fn a_plan_is_approved_before_anything_is_changed() {
    let user = User::new();
    let write = json!({"calls": [{"name": "write_file", "arguments": {"path": "made", "content": "x\n"}}]});
    let turns = json!([
        write,
        shell("echo x > made"),
        {"text": "1. Write the file."},
        {"text": "1. Write the file.\n2. Check it."},
        write,
        {"text": "Written."}
    ]);
    let mut terminal = session(&user, &turns, &["-s", "workspace-write", "-a", "never", "--plan"]);
    terminal.until("PLAN MODE");
    terminal.type_in("write a file\r");
    terminal.until("approve the plan");
    assert!(!user.work().join("made").exists(), "{}", terminal.screen());
    assert!(terminal.screen().contains("refused"), "{}", terminal.screen());
    thread::sleep(READING_TIME);
    terminal.type_in("k");
    terminal.until("write what should be different");
    terminal.type_in("check it too\r");
    terminal.until("2. Check it.");
    terminal.until("approve the plan");
    thread::sleep(READING_TIME);
    terminal.type_in("y");
    terminal.until("Written.");
    assert_eq!(user.read("made"), "x\n");
    idle(&mut terminal);
    assert!(!terminal.screen().contains("PLAN MODE"), "{}", terminal.screen());
    leave(terminal);
    let messages = recorded(&fs::read_to_string(&user.sessions()[0]).unwrap());
    assert_eq!(messages.last().map(String::as_str), Some("outputs"));
    assert!(messages.contains(&"The plan is approved. Begin.".to_owned()), "{messages:?}");
}

#[test]
fn a_command_that_runs_across_calls_is_listed_and_ended() {
    let user = User::new();
    let command = "echo ready; while sleep 1; do :; done";
    let calls = json!([{"name": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 250}}]);
    let turns = json!([{"calls": calls}, {"text": "It runs."}]);
    let options = [&FREE[..], &["-c", "shell_tool=unified_exec"]].concat();
    let mut terminal = session(&user, &turns, &options);
    terminal.type_in("serve\r");
    terminal.until("It runs.");
    terminal.until("1 running");
    idle(&mut terminal);
    // The command outlives a change of the settings.
    terminal.type_in("/approvals on-request\r");
    terminal.until("approval policy: on-request");
    idle(&mut terminal);
    terminal.type_in("/ps\r");
    terminal.until(": ready");
    let screen = terminal.screen();
    assert!(screen.contains("1  echo ready; while sleep 1") && screen.contains(": ready"), "{screen}");
    terminal.type_in("/ps kill 1\r");
    for _ in 0..50 {
        terminal.type_in("/ps\r");
        thread::sleep(Duration::from_millis(200));
        if terminal.screen().contains("no command runs across calls") {
            terminal.until_screen("none running", |screen| !screen.contains("1 running"));
            return leave(terminal);
        }
    }
    panic!("it still runs:\n{}", terminal.screen());
}

#[test]
fn calls_show_their_diff_and_expand_and_the_session_has_one_diff() {
    let user = User::new();
    fs::write(user.work().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let edit = |old: &str, new: &str| {
        let arguments = json!({"path": "a.txt", "old_string": old, "new_string": new});
        json!({"name": "edit_file", "arguments": arguments})
    };
    let read = json!({"name": "read_file", "arguments": {"file_path": "a.txt", "offset": 1, "limit": 2}});
    let list = json!({"name": "list_dir", "arguments": {"dir_path": "."}});
    let plan = json!({"name": "update_plan", "arguments": {"plan": [
        {"step": "Look", "status": "completed"}, {"step": "Change", "status": "in_progress"}
    ]}});
    let turns = json!([
        {"reasoning": "I should look first.\nThen change it.", "calls": [read, list, plan]},
        {"calls": [edit("two", "2")]},
        shell("echo more >> a.txt; seq 30"),
        {"text": "Changed."}
    ]);
    let options = ["-s", "workspace-write", "-a", "never"];
    let mut terminal = session(&user, &turns, &options);
    terminal.type_in("change it\r");
    terminal.until("Changed.");
    idle(&mut terminal);
    let screen = terminal.screen();
    assert!(screen.contains("✓ read a.txt lines 1-2  done") && screen.contains("#2"), "{screen}");
    assert!(screen.contains("2 - two") && screen.contains("2 + 2"), "{screen}");
    assert!(screen.contains("∴ I should look first. … (/expand reasoning)"), "{screen}");
    assert!(screen.contains("[>] Change"), "{screen}");
    terminal.type_in("/expand reasoning\r");
    terminal.until("Then change it.");
    terminal.type_in("/expand 5\r");
    let screen = terminal.until("allowed because:");
    assert!(screen.contains("confined by: "), "{screen}");
    terminal.type_in("/diff\r");
    terminal.until_screen("the diff", |screen| screen.contains("3   three\n4 + more"));
    leave(terminal);
}

#[test]
fn the_model_changes_and_comes_back_and_a_wrong_one_changes_nothing() {
    let user = User::new();
    let turns = json!([{"text": "First answer."}, {"text": "Second answer."}]);
    let mut terminal = session(&user, &turns, &FREE);
    terminal.type_in("one\r");
    terminal.until("First answer.");
    idle(&mut terminal);
    terminal.type_in("/model big nowhere\r");
    terminal.until("there is no provider `nowhere`");
    idle(&mut terminal);
    terminal.type_in("/model rules rules\r");
    terminal.until("model: rules (rules)");
    idle(&mut terminal);
    terminal.type_in("/model scripted scripted\r");
    terminal.until("model: scripted (scripted)");
    idle(&mut terminal);
    terminal.type_in("two\r");
    terminal.until("Second answer.");
    idle(&mut terminal);
    leave(terminal);
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn a_rule_is_revoked_and_asked_about_again() {
    let user = User::new();
    let rule = "[[rule]]\nprefix = [\"touch\"]\ndecision = \"allow\"\n";
    fs::create_dir_all(user.home().join("rules")).unwrap();
    fs::write(user.home().join("rules/mine.rules.toml"), rule).unwrap();
    let turns = json!([shell("touch a"), {"text": "Allowed."}, shell("touch b"), {"text": "Asked."}]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "untrusted"]);
    terminal.type_in("go\r");
    terminal.until("Allowed.");
    idle(&mut terminal);
    terminal.type_in("/approvals\r");
    let screen = terminal.until("allow touch");
    let line = screen.lines().find(|line| line.contains("allow touch")).unwrap();
    let id = line.split_whitespace().next().unwrap().to_owned();
    terminal.type_in(&format!("/approvals revoke {id}\r"));
    terminal.until("[y/N]");
    terminal.type_in("y\r");
    terminal.until("removed rule");
    idle(&mut terminal);
    terminal.type_in("again\r");
    terminal.until("Allow it?");
    thread::sleep(READING_TIME);
    terminal.type_in("y");
    terminal.until("Asked.");
    idle(&mut terminal);
    leave(terminal);
}

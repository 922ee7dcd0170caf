//! `windlass exec` without a model: rules answer.

use crate::support::{Running, User};

#[test]
fn without_a_key_rules_answer_and_say_so() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    let ended = user.run(&["exec", "show notes.txt"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt, line 1:\n    1  buy paper\n");
    let who = "offline rules, no model: set OPENAI_API_KEY or choose a --provider for one";
    assert_eq!(ended.stderr.lines().nth(1), Some(who));
}

#[test]
fn a_change_that_nobody_can_approve_is_refused_and_told() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    let ended = user.run(&["exec", "delete notes.txt"]);
    ended.assert_code(3);
    assert!(
        ended.stdout.contains("read-only sandbox") && ended.stdout.contains("-s workspace-write"),
        "{}",
        ended.stdout
    );
    assert_eq!(user.read("notes.txt"), "buy paper\n");
}

#[test]
fn rules_answer_where_nobody_else_was_chosen() {
    let user = User::new();
    let chosen = user.run(&["exec", "-m", "gpt-5", "hello"]);
    chosen.assert_code(2);
    assert!(chosen.stderr.contains("no API key"), "{}", chosen.stderr);
    let mut program = user.program(&["exec", "-p", "builtin", "hello"]);
    program.env("OPENAI_API_KEY", "sk-user");
    let forced = Running::start(program).end();
    forced.assert_code(0);
    assert!(forced.stdout.starts_with("This is windlass, without a model"), "{}", forced.stdout);
}

#[test]
fn a_session_of_rules_goes_on() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    user.run(&["exec", "show notes.txt"]).assert_code(0);
    let ended = user.run(&["exec", "resume", "--last", "notes.txt 有多少行"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt：1 行\n");
    let ended = user.run(&["exec", "resume", "--last", "show it"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt, line 1:\n    1  buy paper\n");
}

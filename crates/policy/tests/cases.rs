//! Tables of commands: harmless, hidden, secret-revealing, destructive. One line, one command.

use serde_json::Value;
use windlass_contract::effects::CommandLine;
use windlass_policy::{Class, Rules, judge};

fn class(command: &str) -> Class {
    let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
    judge(&CommandLine { argv, cwd: None }, &Rules::default()).class
}

/// Returns every line of a table with another result than expected.
fn wrong(table: &str, right: impl Fn(Class) -> bool) -> Vec<String> {
    let commands = table.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    let judged = commands.map(|command| (class(command), command));
    judged
        .filter(|(class, _)| !right(*class))
        .map(|(class, command)| format!("{class:?}: {command}"))
        .collect()
}

#[test]
fn everyday_commands_run_without_a_question() {
    let table = include_str!("cases/harmless.txt");
    assert_eq!(wrong(table, |class| class == Class::Safe), Vec::<String>::new());
}

#[test]
fn a_command_that_only_looks_harmless_is_not() {
    let table = include_str!("cases/tricks.txt");
    assert_eq!(wrong(table, |class| class > Class::Safe), Vec::<String>::new());
}

#[test]
fn what_is_hidden_in_a_command_is_seen() {
    for line in include_str!("cases/hidden.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let command = case["cmd"].as_str().unwrap();
        assert!(class(command) > Class::Safe, "{command:?}");
    }
}

#[test]
fn credentials_are_not_read_without_a_question() {
    let table = include_str!("cases/secrets.txt");
    assert_eq!(wrong(table, |class| class > Class::Safe), Vec::<String>::new());
}

#[test]
fn searches_for_secrets_and_programs_without_an_end_are_not_harmless() {
    let table = include_str!("cases/searches.txt");
    assert_eq!(wrong(table, |class| class > Class::Safe), Vec::<String>::new());
}

#[test]
fn ordinary_work_is_left_to_the_approval_policy() {
    let table = include_str!("cases/ordinary.txt");
    assert_eq!(wrong(table, |class| class == Class::Ordinary), Vec::<String>::new());
}

#[test]
fn what_destroys_is_asked_about() {
    let table = include_str!("cases/dangerous.txt");
    assert_eq!(wrong(table, |class| class == Class::Dangerous), Vec::<String>::new());
}

#[test]
fn what_no_agent_does_is_refused() {
    let table = include_str!("cases/forbidden.txt");
    assert_eq!(wrong(table, |class| class == Class::Forbidden), Vec::<String>::new());
}

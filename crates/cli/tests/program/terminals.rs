//! Terminals that go away, hang, stop, and have odd sizes, under an interactive session.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::support::{Emulator, FULL_ACCESS, User};

const SIZE: (u16, u16) = (30, 90);

fn shell(command: &str) -> Value {
    json!({"name": "shell_command", "arguments": {"command": command}})
}

fn start(user: &User, turns: &Value, options: &[&str]) -> Emulator {
    let script = user.script(turns);
    let arguments = [&["chat", "-a", "never", "--script", &script], &FULL_ACCESS[..], options].concat();
    Emulator::start(&user.program(&arguments), SIZE)
}

/// A session with a command that holds a pipe open and takes too long.
fn busy(user: &User) -> Emulator {
    let command = "exec 3> held; echo so far; echo > started; sleep 60";
    let turns = json!([{"calls": [shell(command)]}, {"text": "Here again."}]);
    let started = user.named_pipe("started");
    let terminal = start(user, &turns, &["do it now"]);
    started.hear();
    terminal.until("so far");
    terminal
}

/// Goes on with the session, which must know what happened.
fn assert_can_be_resumed(user: &User) {
    let outcome = user.records().into_iter().find(|record| record["type"] == "outcome").unwrap();
    let text = outcome["payload"]["outcome"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("aborted: the program was ended") && text.contains("so far"), "{outcome}");
    let script = user.work().join("script.json");
    let arguments = ["exec", "--script", script.to_str().unwrap(), "resume", "--last", "go on"];
    assert_eq!(user.run(&arguments).assert_code(0).stdout, "Here again.\n");
}

#[test]
fn a_terminal_that_is_closed_ends_the_session_and_its_commands() {
    let user = User::new();
    let gone = user.named_pipe("held").listen();
    let mut terminal = busy(&user);
    terminal.close();
    assert_eq!(terminal.end(), Some(129));
    gone.wait();
    assert_can_be_resumed(&user);
}

#[test]
fn every_signal_ends_the_session_in_order_and_restores_the_terminal() {
    for (signal, code) in [("TERM", 130), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let user = User::new();
        let gone = user.named_pipe("held").listen();
        let mut terminal = busy(&user);
        assert!(!terminal.is_as_before());
        terminal.signal(signal);
        assert_eq!(terminal.end(), Some(code), "{}", terminal.screen());
        assert!(terminal.is_as_before() && terminal.is_plain(), "{signal}: {}", terminal.screen());
        gone.wait();
        assert_can_be_resumed(&user);
    }
}

#[test]
fn a_signal_ends_a_session_whose_terminal_does_not_read() {
    let user = User::new();
    let gone = user.named_pipe("held").listen();
    let command = "exec 3> held; echo so far; seq 1 300 | while read n; do echo $n; sleep 0.02; done; \
                   echo > written; sleep 60";
    let turns = json!([{"calls": [shell(command)]}, {"text": "Here again."}]);
    let mut terminal = start(&user, &turns, &[]);
    terminal.until("Ask, or / for commands");
    let written = user.named_pipe("written");
    terminal.while_hanging(|| {
        terminal.type_in("go on\r");
        written.hear();
    });
    assert_eq!(terminal.end_while_hanging("TERM"), Some(130));
    assert!(terminal.is_as_before());
    gone.wait();
    assert_can_be_resumed(&user);
}

#[test]
fn a_signal_ends_a_session_whose_output_is_stopped() {
    let user = User::new();
    let mut terminal = start(&user, &json!([]), &[]);
    terminal.until("Ask, or / for commands");
    terminal.stop_output();
    terminal.type_in("some text");
    assert_eq!(terminal.end_while_hanging("TERM"), Some(130));
    assert!(terminal.is_as_before());
}

#[test]
fn kill_loses_nothing_of_the_record() {
    let user = User::new();
    let turns = json!([{"text": "First answer."}, {"calls": [shell("echo > started; sleep 60")]}, {"text": "Last answer."}]);
    let started = user.named_pipe("started");
    let mut terminal = start(&user, &turns, &["say something first"]);
    terminal.until("First answer.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("and then wait\r");
    started.hear();
    let before = fs::read_to_string(&user.sessions()[0]).unwrap();
    terminal.signal("KILL");
    assert_eq!(terminal.end(), None);
    let script = user.work().join("script.json");
    let arguments = ["resume", "--last", "--script", script.to_str().unwrap()];
    let mut terminal = Emulator::start(&user.program(&arguments), SIZE);
    terminal.until("Ask, or / for commands");
    terminal.type_in("go on\r");
    terminal.until("Last answer.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.is_as_before());
    let after = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(after.starts_with(&before) && after.contains("First answer."), "{after}");
}

#[test]
fn the_list_of_sessions_ends_with_its_terminal_too() {
    let user = User::new();
    let script = user.script(&json!([{"text": "Done."}]));
    user.run(&["exec", "--script", &script, "say something"]).assert_code(0);
    let list = || Emulator::start(&user.program(&["resume"]), SIZE);
    let mut terminal = list();
    terminal.until("say something");
    terminal.signal("TERM");
    assert_eq!(terminal.end(), Some(130));
    assert!(terminal.is_as_before() && terminal.is_plain());
    let mut terminal = list();
    terminal.until("say something");
    terminal.close();
    assert_eq!(terminal.end(), Some(129));
}

#[test]
fn a_session_that_waits_uses_no_processor() {
    let user = User::new();
    let mut terminal = start(&user, &json!([{"text": "Done."}]), &["say something"]);
    terminal.until("Done.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    thread::sleep(Duration::from_secs(1));
    let before = terminal.ticks();
    thread::sleep(Duration::from_secs(3));
    assert!(terminal.ticks() - before <= 1, "{before} {}", terminal.ticks());
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_terminal_that_hangs_does_not_hold_up_a_turn() {
    let user = User::new();
    let flood = |name: &str| shell(&format!("seq 1 20000; echo x > {name}"));
    let turns = json!([{"calls": [flood("one"), flood("two")]}, {"calls": [flood("three")]}, {"text": "It is done."}]);
    let mut terminal = start(&user, &turns, &[]);
    terminal.until("Ask, or / for commands");
    terminal.while_hanging(|| {
        terminal.type_in("count\r");
        let is_done = || {
            let records = user.sessions().first().map(|path| fs::read_to_string(path).unwrap());
            records.is_some_and(|records| records.contains("It is done."))
        };
        while !is_done() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(["one", "two", "three"].map(|name| user.read(name)), ["x\n"; 3]);
    terminal.until("It is done.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_terminal_of_any_size_can_be_used_and_resized() {
    for size in [(0, 0), (1, 1), (3, 10), (2, 200)] {
        let user = User::new();
        let turns =
            json!([{"calls": [shell("echo one; echo two")]}, {"text": "A long answer of several words."}]);
        let script = user.script(&turns);
        let arguments = [&["chat", "-a", "never", "--script", &script], &FULL_ACCESS[..]].concat();
        for display in [&[][..], &["--fullscreen"]] {
            let mut terminal = Emulator::start(&user.program(&[&arguments[..], display].concat()), size);
            terminal.type_in("go on\r");
            terminal.resize(5, 20);
            terminal.resize(1, 2);
            terminal.resize(24, 80);
            terminal.until("several words.");
            terminal.until_screen("one status line", |screen| {
                !screen.contains("working") && screen.matches("Ask, or").count() == 1
            });
            terminal.type_in("\x04");
            assert_eq!(terminal.end(), Some(0), "{size:?}\n{}", terminal.screen());
        }
    }
}

#[test]
fn a_stopped_session_comes_back_with_its_modes_and_its_picture() {
    for display in ["inline", "--fullscreen"] {
        let user = User::new();
        let options = if display == "--fullscreen" { &["--fullscreen"][..] } else { &[] };
        let mut terminal = start(&user, &json!([{"text": "Still there."}]), options);
        terminal.until("Ask, or / for commands");
        terminal.signal("STOP");
        terminal.cook();
        terminal.signal("CONT");
        terminal.until_screen("Ask, or", |screen| screen.contains("Ask, or") && !terminal.is_cooked());
        terminal.type_in("are you there\r");
        terminal.until("Still there.");
        terminal.until_screen("idle", |screen| !screen.contains("working"));
        terminal.type_in("\x04");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        assert!(terminal.is_plain());
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    for option in ["", "--fullscreen"] {
        let user = User::new();
        let script = user.script(&json!([{"text": "Still there."}]));
        let mut bash = user.shell("exec bash --norc --noprofile -i");
        bash.env("PS1", "ready> ");
        let mut terminal = Emulator::start(&bash, SIZE);
        terminal.until("ready>");
        terminal.type_in(&format!("$windlass chat {option} --script {script}\r"));
        terminal.until("Ask, or / for commands");
        terminal.type_in("\x1a");
        terminal.until("Stopped");
        terminal.type_in("echo shell-$((1+1))\r");
        terminal.until("shell-2");
        terminal.type_in("fg\r");
        terminal.until("Ask, or / for commands");
        terminal.type_in("are you there\r");
        terminal.until("Still there.");
        terminal.until_screen("idle", |screen| !screen.contains("working"));
        terminal.type_in("\x04");
        terminal.until("to go on:");
        terminal.type_in("exit\r");
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    }
}

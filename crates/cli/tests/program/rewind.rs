//! `windlass rewind` and `windlass fork`: a conversation goes back, with its files or without.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Emulator, FULL_ACCESS, Running, Server, User, Wire, command, lines};

fn write(path: &str, content: &str) -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]})
}

fn shell(line: &str) -> Value {
    json!({"calls": [{"name": "shell_command", "arguments": {"command": line}}]})
}

/// Runs one turn of a session for each prompt. The script goes on where the conversation is.
fn turns(user: &User, steps: &[Value], prompts: &[&str]) -> String {
    let script = user.script(&json!(steps));
    for (at, prompt) in prompts.iter().enumerate() {
        let resume: &[&str] = if at == 0 { &[] } else { &["resume", "--last"] };
        let args = [&["exec", "-s", "workspace-write", "--script", &script], resume, &[prompt]].concat();
        user.run(&args).assert_code(0);
    }
    fs::remove_file(script).unwrap();
    session_id(user)
}

fn session_id(user: &User) -> String {
    user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

/// A session of three turns. The first creates `a`, the second changes it with a tool and makes `b`
/// with a command, the third removes `a` and creates `c`.
fn three_turns(user: &User) -> String {
    turns(
        user,
        &[
            write("a", "1\n"),
            json!({"text": "made"}),
            write("a", "2\n"),
            shell("echo b > b"),
            json!({"text": "changed"}),
            shell("rm a; mkdir d; echo c > d/c"),
            json!({"text": "removed"}),
        ],
        &["make it", "change it", "remove it"],
    )
}

fn messages(user: &User) -> Vec<(u64, u64, String)> {
    let listed = lines(&user.run(&["rewind", "--json"]).assert_code(0).stdout);
    let message = |line: &Value| {
        let text = line["text"].as_str().unwrap().to_owned();
        (line["message"].as_u64().unwrap(), line["files"].as_u64().unwrap(), text)
    };
    listed.iter().map(message).collect()
}

fn numbered(expected: &[(u64, u64, &str)]) -> Vec<(u64, u64, String)> {
    expected.iter().map(|(number, files, text)| (*number, *files, (*text).to_owned())).collect()
}

#[test]
fn the_conversation_goes_back_with_everything_that_tools_and_commands_changed() {
    let user = User::new();
    let id = three_turns(&user);
    assert_eq!(messages(&user), numbered(&[(1, 1, "make it"), (2, 2, "change it"), (3, 3, "remove it")]));
    assert!(!user.work().join("a").exists() && user.read("d/c") == "c\n");

    let before = fs::read(&user.sessions()[0]).unwrap();
    let shown = user.run(&["rewind", "2", "--dry-run"]);
    shown.assert_code(0);
    assert!(shown.stdout.starts_with("message 2  change it\nmessage 3  remove it\n"), "{shown:#?}");
    assert!(shown.stdout.contains("-2\n") && shown.stdout.contains("$ rm a; mkdir d"), "{shown:#?}");
    assert_eq!(fs::read(&user.sessions()[0]).unwrap(), before, "only shown");
    assert!(user.work().join("d/c").exists());

    let ended = user.run(&["rewind", "2"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains(&format!("session {id} is back before message 2; 3 changes undone")));
    assert_eq!(user.read("a"), "1\n");
    assert!(!user.work().join("b").exists() && !user.work().join("d").exists());
    assert_eq!(messages(&user), numbered(&[(1, 1, "make it")]));

    let after = fs::read(&user.sessions()[0]).unwrap();
    assert!(after.starts_with(&before), "nothing is removed from the file");
    let record = user.records().pop().unwrap();
    assert_eq!((&record["type"], &record["payload"]["turn"]), (&json!("rewound"), &json!(2)));
    assert_eq!(record["payload"]["undone"].as_array().unwrap().len(), 3);
    user.run(&["audit", "verify", &id]).assert_code(0);
}

#[test]
fn the_model_gets_the_conversation_as_it_was_and_new_turns_can_be_taken_back_too() {
    let wire = Wire::Responses;
    let server = Server::start(["one", "two", "three", "four", "five"].map(|text| wire.says(text)));
    let user = User::new();
    user.use_server(&server, wire);
    user.run(&["exec", "first"]).assert_code(0);
    for prompt in ["second", "third"] {
        user.run(&["exec", "resume", "--last", prompt]).assert_code(0);
    }
    user.run(&["rewind", "2"]).assert_code(0);
    user.run(&["exec", "resume", "--last", "other"]).assert_code(0);
    let sent = |at: usize| wire.conversation(&server.requests()[at]);
    assert_eq!(sent(3).len(), sent(1).len());
    let text = Value::Array(sent(3)).to_string();
    assert!(text.contains("first") && text.contains("other") && !text.contains("second"), "{text}");
    assert_eq!(messages(&user), numbered(&[(1, 0, "first"), (2, 0, "other")]));
    user.run(&["rewind", "2"]).assert_code(0);
    user.run(&["exec", "resume", "--last", "last"]).assert_code(0);
    assert_eq!(messages(&user), numbered(&[(1, 0, "first"), (2, 0, "last")]));
}

#[test]
fn a_file_that_has_changed_since_is_shown_before_anything_changes() {
    let user = User::new();
    three_turns(&user);
    let before = fs::read(&user.sessions()[0]).unwrap();
    user.file("d/c", "mine\n");
    for args in [&["rewind", "1"][..], &["rewind", "1", "--dry-run"]] {
        let ended = user.run(args);
        ended.assert_code(1);
        assert!(ended.stderr.contains("not undone") && ended.stderr.contains("+mine"), "{ended:#?}");
    }
    assert!(!user.work().join("a").exists() && user.read("b") == "b\n");
    assert_eq!(fs::read(&user.sessions()[0]).unwrap(), before);
    user.run(&["rewind", "1", "--keep-changed"]).assert_code(0);
    assert_eq!(user.read("d/c"), "mine\n");
    assert!(!user.work().join("a").exists() && !user.work().join("b").exists());
    assert_eq!(messages(&user), []);
}

#[test]
fn a_change_between_two_changes_is_shown_before_anything_changes() {
    let user = User::new();
    user.file("a", "0\n");
    let step = |line: &str| [shell(line), json!({"text": "done"})];
    let script = user.script(&json!([step("echo 1 >> a; echo x > b"), step("echo 2 >> a")].concat()));
    let turn = |rest: &[&str]| {
        user.run(&[&["exec", "-s", "workspace-write", "--script", &script], rest].concat()).assert_code(0);
    };
    turn(&["one"]);
    user.file("a", "0\n1\nmine\n");
    turn(&["resume", "--last", "two"]);
    let ended = user.run(&["rewind", "1"]);
    ended.assert_code(1);
    let said = "was also changed between these changes, which was not recorded";
    assert!(ended.stderr.contains(said) && ended.stderr.contains("+mine"), "{ended:#?}");
    assert_eq!((user.read("a"), user.read("b")), ("0\n1\nmine\n2\n".to_owned(), "x\n".to_owned()));
    user.run(&["rewind", "2"]).assert_code(0);
    assert_eq!(user.read("a"), "0\n1\nmine\n");
    user.file("a", "0\n1\n");
    user.run(&["rewind", "1"]).assert_code(0);
    assert_eq!(user.read("a"), "0\n");
}

#[test]
fn files_can_stay_as_they_are() {
    let user = User::new();
    three_turns(&user);
    user.file("d/c", "mine\n");
    let ended = user.run(&["rewind", "2", "--keep-files"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("the files are as they were"), "{ended:#?}");
    assert_eq!((user.read("b"), user.read("d/c")), ("b\n".to_owned(), "mine\n".to_owned()));
    assert_eq!(messages(&user), numbered(&[(1, 4, "make it")]), "a rewind to it would undo all of them");
}

#[test]
fn a_rewind_that_was_killed_after_the_files_is_finished_by_the_same_command() {
    let user = User::new();
    let id = three_turns(&user);
    // As far as it had come: the files are back, and the record is not written.
    for _ in 0..3 {
        user.run(&["undo", "--session", &id]).assert_code(0);
    }
    assert_eq!(user.read("a"), "1\n");
    let ended = user.run(&["rewind", "2"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("no file had been changed"), "{ended:#?}");
    assert_eq!(messages(&user), numbered(&[(1, 1, "make it")]));
}

#[test]
fn what_cannot_be_taken_back_is_explained() {
    let user = User::new();
    let ended = user.run(&["rewind", "1"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("no session was started in"), "{ended:#?}");
    let id = three_turns(&user);
    for number in ["0", "4"] {
        let ended = user.run(&["rewind", number, "--session", &id[..18]]);
        ended.assert_code(2);
        let expected = format!(
            "there is no message {number}: the conversation has 3; `windlass rewind --session {id}` lists them"
        );
        assert!(ended.stderr.contains(&expected), "{ended:#?}");
        let ended = user.run(&["fork", &id, "--at", number]);
        ended.assert_code(2);
        assert!(ended.stderr.contains(&format!("there is no message {number}")), "{ended:#?}");
    }
    user.run(&["rewind", "1", "-s", "read-only"]).assert_code(2);
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn a_fork_goes_on_with_the_conversation_and_leaves_files_and_parent_alone() {
    let wire = Wire::Responses;
    let server = Server::start(
        [wire.asks(&[command("c1", "echo hi > made")]), wire.says("one"), wire.says("two")]
            .into_iter()
            .chain(["three", "four"].map(|text| wire.says(text))),
    );
    let user = User::new();
    user.use_server(&server, wire);
    user.run(&[&["exec", "first"], &FULL_ACCESS[..]].concat()).assert_code(0);
    user.run(&[&["exec", "resume", "--last", "second"], &FULL_ACCESS[..]].concat()).assert_code(0);
    let (parent, path) = (session_id(&user), user.sessions()[0].clone());
    let before = fs::read(&path).unwrap();

    let whole = user.run(&["fork", &parent[..18]]);
    whole.assert_code(0);
    assert!(whole.stderr.contains("with 2 messages of") && whole.stderr.contains("no file was changed"));
    let shorter: Value =
        serde_json::from_str(&user.run(&["fork", &parent, "--at", "2", "--json"]).stdout).unwrap();
    assert_eq!((&shorter["messages"], &shorter["before_message"]), (&json!(1), &json!(2)));
    user.run(&[&["exec", "resume", whole.stdout.trim(), "third"], &FULL_ACCESS[..]].concat()).assert_code(0);
    let requests = server.requests();
    let (second, third) = (wire.conversation(&requests[2]), wire.conversation(&requests[3]));
    assert_eq!(third[..second.len()], second, "the same conversation, word for word");
    assert_eq!(wire.outputs(&requests[3])[0].0, "c1");
    let shorter = shorter["id"].as_str().unwrap();
    user.run(&[&["exec", "resume", shorter, "other"], &FULL_ACCESS[..]].concat()).assert_code(0);
    let text = Value::Array(wire.conversation(&server.requests()[4])).to_string();
    assert!(text.contains("first") && !text.contains("\"second\""), "{text}");

    assert_eq!((fs::read(&path).unwrap(), user.read("made")), (before, "hi\n".to_owned()));
    let listed = lines(&user.run(&["sessions", "list", "--json"]).stdout);
    let forks: Vec<_> = listed.iter().filter(|line| line["parent"]["id"] == parent.as_str()).collect();
    assert!(forks.len() == 2 && forks.iter().all(|fork| fork["parent"]["kind"] == "fork"), "{listed:#?}");
    assert!(user.run(&["sessions", "list"]).stdout.contains("(fork) first"));
    assert!(user.run(&["sessions", "show", shorter]).stdout.contains(&format!("fork of {parent}, before")));
    assert_eq!(lines(&user.run(&["history", "--json"]).stdout).len(), 1, "the call is that of the parent");
    user.run(&["audit", "verify", shorter]).assert_code(0);
}

#[test]
fn a_session_in_use_names_its_holder_and_can_be_forked() {
    let user = User::new();
    let call = json!({"name": "shell_command", "arguments": {"command": "echo > started; sleep 60", "timeout_ms": 60_000}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "done"}]));
    let started = user.named_pipe("started");
    let running: Running = user.start(&[&["exec", "--script", &script, "go"], &FULL_ACCESS[..]].concat());
    started.hear();
    let id = session_id(&user);
    let holder: Value =
        serde_json::from_slice(&fs::read(user.sessions()[0].with_extension("holder")).unwrap()).unwrap();
    let named = format!("is in use by process {}", holder["pid"]);
    for args in [&["exec", "resume", &id, "on"][..], &["rewind", "1", "--session", &id]] {
        let ended = user.run(args);
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(&named) && ended.stderr.contains(" since "), "{ended:#?}");
    }
    assert!(user.run(&["exec", "resume", &id, "on"]).stderr.contains("`windlass fork`"));
    user.run(&["rewind", "1", "--dry-run", "--session", &id]).assert_code(0);
    user.run(&["fork", &id]).assert_code(0);
    running.signal("KILL");
    running.end();
    // The name of the killed process stays behind and keeps no one out.
    let script = user.script(&json!([{"text": "skipped"}, {"text": "done"}, {"text": "done"}]));
    user.run(&[&["exec", "--script", &script, "resume", &id, "on"], &FULL_ACCESS[..]].concat())
        .assert_code(0);
    assert!(user.sessions().iter().all(|path| !path.with_extension("holder").exists()));
}

#[test]
fn a_session_whose_directory_is_gone_says_so_and_goes_on_where_it_is_told_to() {
    let user = User::new();
    let (there, script) = (user.work().join("there"), user.script(&json!([{"text": "a"}, {"text": "b"}])));
    fs::create_dir(&there).unwrap();
    user.run(&["exec", "-C", "there", "--script", &script, "hi"]).assert_code(0);
    let id = session_id(&user);
    let args = ["exec", "--script", &script, "resume", &id, "on"];
    let elsewhere = user.run(&args);
    elsewhere.assert_code(0);
    assert!(elsewhere.stderr.contains("note: this session was begun in "), "{elsewhere:#?}");
    fs::remove_dir(&there).unwrap();
    let ended = user.run(&args);
    ended.assert_code(2);
    let said = &ended.stderr;
    assert!(
        said.contains(&format!("the directory of session {id} is gone: `{}`", there.display())),
        "{said}"
    );
    assert!(said.contains(&format!("windlass resume {id} -C .")), "{said}");
    let script = user.script(&json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]));
    user.run(&["exec", "-C", ".", "--script", &script, "resume", &id, "on"]).assert_code(0);
    let forked = user.run(&["fork", &id, "-C", "."]);
    forked.assert_code(0);
    let forked = forked.stdout.trim().to_owned();
    user.run(&["exec", "--script", &script, "resume", &forked, "on"]).assert_code(0);
}

fn idle(terminal: &Emulator) {
    terminal.until_screen("idle", |screen| !screen.contains("working"));
}

#[test]
fn a_session_on_the_screen_goes_back_and_its_message_can_be_written_anew() {
    let user = User::new();
    let script = user.script(&json!([
        {"text": "Hello."},
        write("a", "1\n"),
        {"text": "Made."},
    ]));
    let args = [&["chat", "--script", &script], &FULL_ACCESS[..]].concat();
    let mut terminal = Emulator::start(&user.program(&args), (40, 100));
    terminal.type_in("greet me\r");
    terminal.until("Hello.");
    idle(&terminal);
    terminal.type_in("make the file a\r");
    terminal.until("Made.");
    idle(&terminal);
    terminal.type_in("/rewind\r");
    terminal.until("2        ");
    idle(&terminal);
    terminal.type_in("/rewind 2\r");
    terminal.until("Take this back? [y/N]");
    assert_eq!(user.read("a"), "1\n");
    terminal.type_in("y\r");
    terminal.until("the message is in the input");
    idle(&terminal);
    assert!(!user.work().join("a").exists());
    terminal.until("› make the file a");
    terminal.type_in(" again\r");
    // The script goes on where the conversation is.
    terminal.until("  #2");
    terminal.until_screen("the answer again", |screen| screen.matches("Made.").count() == 2);
    idle(&terminal);
    assert_eq!(user.read("a"), "1\n");
    terminal.type_in("/fork --at 1\r");
    terminal.until("no file was changed");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert_eq!(user.sessions().len(), 2);
    let parent = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert_eq!(parent.matches("\"type\":\"rewound\"").count(), 1);
    assert!(parent.contains("make the file a again"));
}

#[test]
fn a_session_of_another_directory_is_chosen_with_all_and_goes_on_there() {
    let user = User::new();
    let script = user.script(&json!([{"text": "First answer."}, {"text": "Second answer."}]));
    fs::create_dir(user.work().join("there")).unwrap();
    user.run(&["exec", "-C", "there", "--script", &script, "say it"]).assert_code(0);
    let mut terminal = Emulator::start(&user.program(&["resume"]), (24, 100));
    terminal.until("`windlass resume --all` lists all");
    assert_eq!(terminal.end(), Some(0));
    let args = ["resume", "--all", "--script", &script];
    let mut terminal = Emulator::start(&user.program(&args), (24, 100));
    terminal.until("say it");
    terminal.type_in("\r");
    terminal.until("resumed");
    terminal.type_in("go on\r");
    terminal.until("Second answer.");
    idle(&terminal);
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let contexts = user.records().into_iter().filter(|record| record["type"] == "turn_context");
    let there = user.work().join("there");
    let directories: Vec<_> = contexts.map(|record| record["payload"]["cwd"].clone()).collect();
    assert_eq!(directories, [json!(there), json!(there)]);
}

//! `windlass sessions search|rename|delete|export`.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::support::{Emulator, FULL_ACCESS, Running, User, lines};

const SECRET: &str = "AKIAQ3EGRFU5HJ2LTVXZ";

/// Runs a session with one command, and gives its id.
fn worked(user: &User, prompt: &str, command: &str, answer: &str) -> String {
    let call = json!({"name": "shell_command", "arguments": {"command": command}});
    let script = user.script(&json!([{"calls": [call]}, {"text": answer}]));
    user.run(&[&["exec", "--script", &script, prompt], &FULL_ACCESS[..]].concat()).assert_code(0);
    fs::remove_file(script).unwrap();
    let newest = user.sessions().into_iter().max().unwrap();
    newest.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn sessions_are_found_by_the_words_of_prompts_and_answers() {
    let user = User::new();
    let one =
        worked(&user, "Why does the parser fail?", "echo quiet", "Tabs.\nThe PARSER takes tabs for words.");
    let other = worked(&user, "读一下这个文件", "true", "Über alles");
    let search = |words: &[&str]| -> Vec<(String, String)> {
        let ended = user.run(&[&["sessions", "search", "--json"], words].concat());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        lines(&ended.stdout).iter().map(|found| (text(&found["id"]), text(&found["line"]))).collect()
    };
    assert_eq!(search(&["parser"]), [(one.clone(), "Why does the parser fail?".to_owned())]);
    assert_eq!(search(&["TABS parser"]), [(one.clone(), "The PARSER takes tabs for words.".to_owned())]);
    assert_eq!(search(&["文件"]), [(other.clone(), "读一下这个文件".to_owned())]);
    assert_eq!(search(&["über"]), [(other.clone(), "Über alles".to_owned())]);
    assert_eq!(search(&["quiet"]), [], "outputs and arguments are not searched; `history --grep` does that");
    user.run(&["sessions", "search", "nowhere"]).assert_code(1);
    user.run(&["sessions", "search", " "]).assert_code(2);
    user.run(&["sessions", "rename", &one, "tabs"]).assert_code(0);
    let shown = user.run(&["sessions", "search", "takes"]).stdout;
    assert!(shown.contains("tabs") && shown.contains("The PARSER takes tabs"), "{shown}");
}

#[test]
fn a_thousand_sessions_are_searched_at_once() {
    let user = User::new();
    let id = worked(&user, "the first one", "true", "done");
    let text = fs::read_to_string(&user.sessions()[0]).unwrap();
    let folder = user.sessions()[0].parent().unwrap().to_owned();
    for number in 0..1000 {
        // Another session of the same day.
        let copy = format!("{}{number:012x}", &id[..24]);
        fs::write(
            folder.join(format!("{copy}.jsonl")),
            text.replace("first one", &format!("number {number}")),
        )
        .unwrap();
    }
    let begun = Instant::now();
    let found = lines(&user.run(&["sessions", "search", "--json", "number", "777"]).stdout);
    eprintln!("1,001 sessions searched in {:?}", begun.elapsed());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(lines(&user.run(&["sessions", "search", "--json", "number"]).stdout).len(), 20);
}

#[test]
fn a_name_is_shown_accepted_and_outlives_everything_but_the_session() {
    let user = User::new();
    let one = worked(&user, "first", "echo x > x", "done");
    let other = worked(&user, "second", "true", "done");
    let verified = user.run(&["audit", "verify", &one]).stdout;
    user.run(&["sessions", "rename", &one, "  Parser   work "]).assert_code(0);
    assert_eq!(user.run(&["audit", "verify", "parser work"]).stdout, verified);
    assert!(user.run(&["sessions", "list"]).stdout.contains("Parser work"));
    assert_eq!(lines(&user.run(&["sessions", "list", "--json"]).stdout)[1]["name"], "Parser work");
    assert!(user.run(&["sessions", "show", &one]).stdout.contains("name       Parser work\n"));
    let taken = user.run(&["sessions", "rename", &other, "parser work"]);
    assert!(taken.stderr.contains("already has the name"), "{taken:?}");
    for name in ["", "cafe", &one[..13]] {
        user.run(&["sessions", "rename", &other, name]).assert_code(2);
    }
    let secret = user.run(&["sessions", "rename", &other, &format!("key {SECRET}")]);
    assert!(!secret.stdout.contains(SECRET), "{secret:?}");
    user.run(&["sessions", "gc", "--older-than", "0m"]).assert_code(0);
    let terminal = Emulator::start(&user.program(&["resume"]), (30, 100));
    assert!(terminal.until("Parser work").contains("[REDACTED"), "{}", terminal.screen());
    drop(terminal);
    let script = user.script(&json!([{"text": "Again."}, {"text": "Here."}, {"text": "Here we are."}]));
    let terminal = Emulator::start(&user.program(&["resume", "--script", &script, "parser WORK"]), (30, 100));
    terminal.until("Ask, or / for commands");
    terminal.type_in("go on\r");
    terminal.until("Here we are.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    drop(terminal);
    user.run(&["sessions", "rename", "parser work", "--clear"]).assert_code(0);
    user.run(&["sessions", "show", "parser work"]).assert_code(2);
    // A name of a session that was removed is free again.
    user.run(&["sessions", "rename", &other, "free"]).assert_code(0);
    fs::remove_file(user.sessions().iter().find(|path| path.ends_with(format!("{other}.jsonl"))).unwrap())
        .unwrap();
    user.run(&["sessions", "rename", &one, "free"]).assert_code(0);
}

#[test]
fn a_session_is_deleted_with_all_that_belongs_to_it_after_a_question() {
    let user = User::new();
    let kept = worked(&user, "keep me", "echo kept > kept", "done");
    let gone = worked(&user, "delete me", "echo gone > gone", "done");
    user.run(&["sessions", "rename", &gone, "old work"]).assert_code(0);
    let refused = user.run(&["sessions", "delete", "old work"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("pass `--yes`"), "{refused:?}");
    for part in [gone.as_str(), "old work", "1 turn, 1 call, ", "1 change can no longer be undone"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let mut terminal = Emulator::start(&user.program(&["sessions", "delete", "old work"]), (30, 90));
    terminal.until("Delete 1 session?");
    terminal.type_in("n\r");
    assert_eq!(terminal.end(), Some(3), "{}", terminal.screen());
    assert_eq!(user.sessions().len(), 2);

    user.run(&["sessions", "delete", "--yes", "old work", &gone]).assert_code(0);
    assert_eq!(user.sessions().len(), 1);
    assert!(
        !user.home().join("edits").join(&gone).exists() && user.home().join("edits").join(&kept).exists()
    );
    let history = lines(&user.run(&["history", "--json"]).stdout);
    assert!(history.iter().all(|call| call["session"] == json!(kept)) && history.len() == 1, "{history:?}");
    user.run(&["sessions", "show", "old work"]).assert_code(2);
    assert_eq!(user.read("gone"), "gone\n", "files stay");
    user.run(&["undo", "--yes"]).assert_code(0);
    assert!(!user.work().join("kept").exists());
}

#[test]
fn a_session_in_use_is_not_deleted() {
    let user = User::new();
    let go = user.named_pipe("go");
    let shell = json!({"name": "shell_command", "arguments": {"command": "echo begun; read x < go"}});
    let script = user.script(&json!([{"calls": [shell]}, {"text": "ok"}]));
    let mut running = Running::start(
        user.program(&[&["exec", "--json", "--script", &script, "wait"], &FULL_ACCESS[..]].concat()),
    );
    running.until_stdout("item.started");
    let id = user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let refused = user.run(&["sessions", "delete", "--yes", &id]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("is in use"), "{refused:?}");
    assert_eq!(user.sessions().len(), 1);
    go.say("go\n");
    running.end().assert_code(0);
    user.run(&["sessions", "delete", "--yes", &id]).assert_code(0);
    assert_eq!(user.sessions().len(), 0);
}

#[test]
fn an_export_has_prompts_answers_calls_verdicts_and_diffs_and_no_secret() {
    let user = User::new();
    user.file("notes", "one\n");
    let command = format!("echo two >> notes; echo '<b>' {SECRET}; exit 3");
    let id = worked(&user, &format!("use {SECRET}"), &command, "All ```done```.");
    let export = |more: &[&str]| user.run(&[&["sessions", "export", &id], more].concat()).stdout;
    let markdown = export(&[]);
    let parts = [
        "## Prompt\n\n> use [REDACTED",
        "### shell_command: `echo two >> notes",
        "exit code 3 after ",
        "- allowed because: ",
        "- verdict: ",
        "```diff\n",
        "+two\n",
        "## Answer\n\nAll ```done```.\n",
        &id,
    ];
    for part in parts {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let html = export(&["--format", "html"]);
    assert!(html.starts_with("<!doctype html>") && html.contains("<ins>+two</ins>"), "{html}");
    assert!(html.contains("&lt;b&gt;") && !html.contains("<b>' "), "{html}");
    let json: Value = serde_json::from_str(&export(&["--format", "json"])).unwrap();
    let kinds: Vec<_> = json["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["prompt", "call", "answer"]);
    assert_eq!(
        (&json["parts"][1]["status"], &json["parts"][1]["error"]),
        (&json!("error"), &json!("exit code 3"))
    );
    assert!(json["parts"][1]["diff"].as_str().unwrap().contains("+two"), "{json:#}");
    for (name, start) in [("t.html", "<!doctype"), ("t.json", "{"), ("t.md", "# ")] {
        user.run(&["sessions", "export", &id, "-o", name]).assert_code(0);
        assert!(user.read(name).starts_with(start), "{name}");
        assert!(!user.read(name).contains(SECRET), "{name}");
    }
    user.run(&["sessions", "export", &id, "-o", "t.md"]).assert_code(2);
}

//! Instruction files: `AGENTS.md`, skills and prompts, and the trust that those of a project need.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{Emulator, Ended, Server, User, Wire};

/// Returns the texts of the messages that a request carries, with their roles.
fn messages(request: &Value) -> Vec<(String, String)> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        parts => {
            let parts = parts.as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    };
    let items = request["messages"].as_array().into_iter().flatten();
    items.map(|item| (item["role"].as_str().unwrap_or_default().to_owned(), text(&item["content"]))).collect()
}

/// Runs `exec` on a server, and returns the end with the messages of its first request.
fn exec(user: &User, words: &[&str]) -> (Ended, Vec<(String, String)>) {
    let server = Server::start([Wire::Chat.says("Done.")]);
    user.use_server(&server, Wire::Chat);
    let ended = user.run(&[&["exec", "--no-input"], words].concat());
    let requests = server.requests();
    let sent = requests.first().map(|request| messages(&request.body)).unwrap_or_default();
    (ended, sent)
}

fn texts(sent: &[(String, String)], role: &str) -> Vec<String> {
    sent.iter().filter(|(each, _)| each == role).map(|(_, text)| text.clone()).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn add_skill(directory: &Path, name: &str, description: &str) {
    let text = format!("---\nname: {name}\ndescription: {description}\n---\n\nThe steps of {name}.\n");
    write(&directory.join(format!(".agents/skills/{name}/SKILL.md")), &text);
}

/// The home directory of the user, not of the program.
fn user_home(user: &User) -> std::path::PathBuf {
    user.home().parent().unwrap().to_owned()
}

#[test]
fn documents_are_sent_before_the_first_request_and_shown_with_their_sizes() {
    let user = User::new();
    user.file("AGENTS.md", "Use tabs.");
    fs::create_dir(user.work().join(".git")).unwrap();
    write(&user.home().join("AGENTS.md"), "Answer briefly.");
    write(&user.work().join("sub/AGENTS.md"), "In sub: spaces.");
    let sub = user.work().join("sub");
    let (ended, sent) = exec(&user, &["-C", "sub", "hello"]);
    ended.assert_code(0);
    let user_messages = texts(&sent, "user");
    let expected = format!(
        "# AGENTS.md instructions for {}\n\n<INSTRUCTIONS>\nAnswer briefly.\n\n--- project-doc ---\n\nUse tabs.\n\n\
         In sub: spaces.\n</INSTRUCTIONS>",
        sub.display()
    );
    assert_eq!(user_messages[0], expected);
    assert!(user_messages[1].starts_with("<environment_context>"), "{user_messages:?}");
    assert_eq!(user_messages[2], "hello");
    // They are no words of the user.
    let listed = user.run(&["sessions", "list"]);
    assert!(listed.stdout.contains("hello") && !listed.stdout.contains("AGENTS.md"), "{listed:#?}");
    let shown = user.run(&["instructions", "-C", "sub"]);
    shown.assert_code(0);
    for part in ["built in: small", "AGENTS.md", "../AGENTS.md", "total"] {
        assert!(shown.stdout.contains(part) || part.starts_with(".."), "{part}: {}", shown.stdout);
    }
    let parts: Value = serde_json::from_str(&user.run(&["instructions", "--json"]).stdout).unwrap();
    assert_eq!(parts["parts"][2]["source"], json!("AGENTS.md"));
    assert_eq!(parts["parts"][2]["bytes"], json!(9));
    let full = user.run(&["instructions", "--full"]).stdout;
    assert!(full.contains("--- user ---\n# AGENTS.md instructions for"), "{full}");
}

#[test]
fn a_limit_cuts_documents_with_a_note_and_zero_turns_them_off() {
    let user = User::new();
    user.file("AGENTS.md", "x".repeat(100));
    user.file("CLAUDE.md", "fallback");
    let shown = user.run(&["instructions", "-c", "project_doc_max_bytes=10"]);
    assert!(shown.stdout.contains("(cut; the file has 100 bytes)"), "{shown:#?}");
    assert!(shown.stderr.contains("AGENTS.md is cut"), "{shown:#?}");
    let shown = user.run(&["instructions", "-c", "project_doc_max_bytes=0"]);
    assert!(!shown.stdout.contains("AGENTS.md"), "{shown:#?}");
    fs::remove_file(user.work().join("AGENTS.md")).unwrap();
    let fallback = "project_doc_fallback_filenames=[\"CLAUDE.md\"]";
    assert!(user.run(&["instructions", "-c", fallback]).stdout.contains("CLAUDE.md"));
    assert!(!user.run(&["instructions"]).stdout.contains("CLAUDE.md"));
}

#[test]
fn skills_of_the_user_are_listed_to_the_model_and_loaded_when_named() {
    let user = User::new();
    add_skill(&user_home(&user), "pdf", "Read PDF files");
    let (ended, sent) = exec(&user, &["hello"]);
    ended.assert_code(0);
    let list = &texts(&sent, "user")[0];
    let file = user_home(&user).join(".agents/skills/pdf/SKILL.md");
    assert!(list.contains(&format!("\n- pdf: Read PDF files ({})\n", file.display())), "{list}");
    // The model reads it with an ordinary tool.
    let call = user.run(&["call", "read_file", &json!({"file_path": file}).to_string()]);
    assert!(call.assert_code(0).stdout.contains("The steps of pdf."), "{call:#?}");
    for words in ["use $pdf for a.pdf", "/pdf for a.pdf"] {
        let (ended, sent) = exec(&user, &[words]);
        ended.assert_code(0);
        let user_messages = texts(&sent, "user");
        let [.., request, skill] = &user_messages[..] else { panic!("{sent:?}") };
        assert!(request.contains("$pdf") && request.ends_with("for a.pdf"), "{request}");
        assert!(skill.starts_with("<skill>\n<name>pdf</name>\n"), "{skill}");
        assert!(skill.contains("The steps of pdf.\n</skill>"), "{skill}");
    }
}

#[test]
fn skills_and_prompts_of_a_project_are_used_once_it_is_trusted_until_they_change() {
    let user = User::new();
    add_skill(&user.work(), "lint", "Check style");
    add_skill(&user.work(), "test", "Run tests");
    write(&user.work().join(".agents/prompts/fix.md"), "Fix $1 now.");
    let (ended, sent) = exec(&user, &["use $lint"]);
    let note = "left out 3 skills and prompts of ";
    assert!(
        ended.stderr.contains(note) && ended.stderr.contains("(lint, test, /fix): not trusted;"),
        "{ended:#?}"
    );
    assert!(!format!("{sent:?}").contains("Check style") && !format!("{sent:?}").contains("The steps"));
    let refused = user.run(&["exec", "/fix a"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("`/fix` belongs to a project that is not trusted"), "{refused:#?}");
    let trusted = user.run(&["trust", "--yes"]);
    trusted.assert_code(0);
    assert!(trusted.stdout.contains("lint: Check style") && trusted.stdout.contains("fix: Fix $1 now."));
    let (ended, sent) = exec(&user, &["/fix a"]);
    assert!(!ended.stderr.contains("left out"), "{ended:#?}");
    assert_eq!(texts(&sent, "user").last().unwrap(), "Fix a now.");
    assert!(format!("{sent:?}").contains("lint: Check style"));
    // One that changes is left out; the others stay.
    add_skill(&user.work(), "lint", "Do something else");
    let (ended, sent) = exec(&user, &["use $lint"]);
    assert!(ended.stderr.contains("(lint): not trusted, or changed since"), "{ended:#?}");
    let sent = format!("{sent:?}");
    assert!(
        sent.contains("test: Run tests") && !sent.contains("something else") && !sent.contains("The steps")
    );
    let list: Value = serde_json::from_str(&user.run(&["skills", "list", "--json"]).stdout).unwrap();
    let states: Vec<_> = list["skills"].as_array().unwrap().iter().map(|skill| &skill["state"]).collect();
    assert_eq!(states, ["enabled", "changed"]);
    user.run(&["trust", "--revoke"]).assert_code(0);
    user.run(&["trust"]).assert_code(2);
    let shown: Value = serde_json::from_str(&user.run(&["trust", "--json"]).stdout).unwrap();
    assert_eq!((&shown["state"], &shown["skills"][0]["name"]), (&json!("untrusted"), &json!("lint")));
}

#[test]
fn a_damaged_file_of_decisions_trusts_no_skill() {
    let user = User::new();
    add_skill(&user.work(), "lint", "Check style");
    user.run(&["trust", "--yes"]).assert_code(0);
    fs::write(user.home().join("trust.json"), "{").unwrap();
    let list = user.run(&["skills", "list"]);
    assert!(list.stdout.contains("untrusted") && list.stderr.contains("nothing is trusted"), "{list:#?}");
}

#[test]
fn faulty_skills_are_left_out_with_the_reason_and_shown_before_they_are_trusted() {
    let user = User::new();
    add_skill(&user.work(), "good", "Works");
    write(&user.work().join(".claude/skills/bad/SKILL.md"), "---\nname: bad\ndescription: use: it\n---\n");
    write(&user.work().join(".claude/skills/huge/SKILL.md"), &"x".repeat(10 << 20));
    let text = "---\nname: git\ndescription: d\nallowed-tools: Bash(rm *)\n---\n";
    write(&user.work().join(".claude/skills/git/SKILL.md"), text);
    let list = user.run(&["skills", "list"]);
    list.assert_code(0);
    assert!(list.stderr.contains("bad/SKILL.md: line 3: it is not YAML"), "{list:#?}");
    assert!(list.stderr.contains("huge/SKILL.md: it has 10485760 bytes"), "{list:#?}");
    let shown = user.run(&["skills", "show", "good"]);
    shown.assert_code(0);
    assert!(shown.stdout.contains("The steps of good.") && shown.stderr.contains("this skill is untrusted"));
    let wish = user.run(&["skills", "show", "git"]).stderr;
    assert!(wish.contains("`allowed-tools` (Bash(rm *)) is a wish"), "{wish}");
    let unknown = user.run(&["skills", "show", "goods"]);
    unknown.assert_code(2);
    assert!(unknown.stderr.contains("did you mean `good`?"), "{unknown:#?}");
    let faulty = user.run(&["skills", "show", "bad"]);
    assert!(faulty.stderr.contains("line 3: it is not YAML"), "{faulty:#?}");
}

#[test]
fn a_wish_for_tools_allows_nothing() {
    let user = User::new();
    let text = "---\nname: git\ndescription: d\nallowed-tools: Bash, shell_command\n---\nRun touch.\n";
    write(&user_home(&user).join(".agents/skills/git/SKILL.md"), text);
    let call = json!({"name": "shell_command", "arguments": {"command": "touch x"}});
    let script = user.script(&json!([{"calls": [call]}, {"text": "Done."}]));
    let ended =
        user.run(&["exec", "--script", &script, "-s", "danger-full-access", "-a", "untrusted", "use $git"]);
    ended.assert_code(3);
    assert!(!user.work().join("x").exists(), "{ended:#?}");
}

#[test]
fn prompts_of_the_user_take_arguments_and_other_text_stays() {
    let user = User::new();
    write(&user.home().join("prompts/review.md"), "---\nargument-hint: FILE\n---\nReview $1: $ARGUMENTS");
    let (_, sent) = exec(&user, &["/review 'a b' c"]);
    assert_eq!(texts(&sent, "user").last().unwrap(), "Review a b: 'a b' c");
    for same in ["/tmp is full", "/etc/passwd: what is it?", " /review x", "/ and more"] {
        let (ended, sent) = exec(&user, &[same]);
        ended.assert_code(0);
        assert_eq!(texts(&sent, "user").last().unwrap(), same);
    }
    for (wrong, said) in [("/reveiw a", "did you mean `review`?"), ("/nothing", "`windlass prompts list`")] {
        let ended = user.run(&["exec", wrong]);
        ended.assert_code(2);
        assert!(ended.stderr.contains(said), "{ended:#?}");
    }
    let list = user.run(&["prompts", "list"]);
    assert!(list.stdout.contains("/review FILE") && list.stdout.contains("enabled"), "{list:#?}");
    let shown = user.run(&["prompts", "show", "review", "x y", "z"]);
    assert_eq!(shown.stdout, "Review x y: \"x y\" z\n");
}

#[test]
fn instructions_of_a_file_replace_the_standing_ones() {
    let user = User::new();
    let own = user.file("own.md", "Speak like a pirate.");
    let file = format!("model_instructions_file={own}");
    let (_, sent) = exec(&user, &["-c", &file, "hello"]);
    assert_eq!(texts(&sent, "system")[0], "Speak like a pirate.");
    assert!(user.run(&["instructions", "-c", &file]).stdout.contains("own.md"));
    let large = user.run(&["instructions", "-c", "model=gpt-5.2-codex", "--full"]).stdout;
    assert!(large.contains("## Checking") && large.contains("*** Begin Patch"), "{large}");
    let small = user.run(&["instructions", "-c", "model=qwen2.5:1.5b", "--full"]).stdout;
    assert!(small.len() < 1000, "{small}");
}

#[test]
fn the_session_completes_prompts_and_sends_them() {
    let user = User::new();
    add_skill(&user_home(&user), "pdf", "Read PDF files");
    write(
        &user.home().join("prompts/review.md"),
        "---\ndescription: Review a file\n---\nReview the file $1.",
    );
    write(&user.home().join("prompts/shell.md"), "!touch x");
    let script = user.script(&json!([{"text": "One."}, {"text": "Two."}, {"text": "Three."}]));
    let mut terminal = Emulator::start(&user.program(&["chat", "--script", &script]), (40, 100));
    terminal.until("Ask, or / for commands");
    terminal.type_in("/rev");
    terminal.until("Review a file");
    terminal.type_in("iew a.rs\r");
    terminal.until("Review the file a.rs.");
    terminal.until("One.");
    terminal.type_in("/pdf now\r");
    terminal.until("$pdf now");
    terminal.until("Two.");
    terminal.type_in("/shell now\r");
    terminal.until("Three.");
    assert!(!user.work().join("x").exists(), "a prompt is no command for the shell");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let records = user.records();
    let has = |text: &str| records.iter().any(|record| record.to_string().contains(text));
    assert!(has("<name>pdf</name>") && has("Prompt:\\n!touch x"));
}

//! Ids: what one command prints, every command accepts.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, User, lines};

/// A user with two sessions that changed a file each, and a call outside of any.
struct UserWithIds {
    user: User,
    /// Oldest first.
    sessions: Vec<String>,
    /// The calls of the sessions.
    calls: Vec<String>,
    outside: String,
}

fn user_with_ids() -> UserWithIds {
    let user = User::new();
    for name in ["one", "two"] {
        let shell =
            json!({"name": "shell_command", "arguments": {"command": format!("echo {name} > {name}")}});
        let script = user.script(&json!([{"calls": [shell]}, {"text": "ok"}]));
        user.run(&[&["exec", "--script", &script, name], &FULL_ACCESS[..]].concat()).assert_code(0);
    }
    user.run(&["call", "shell_command", r#"{"command":"true"}"#]).assert_code(0);
    let sessions: Vec<String> = user.sessions().iter().map(|path| stem(path)).collect();
    let history = lines(&user.run(&["history", "--json"]).stdout);
    let text = |call: &Value, key: &str| call[key].as_str().unwrap().to_owned();
    let of = |session: &String| {
        let call = history.iter().find(|call| text(call, "session") == *session).unwrap();
        text(call, "call")
    };
    let calls = sessions.iter().map(of).collect();
    let outside = history.iter().find(|call| !sessions.contains(&text(call, "session"))).unwrap();
    let outside = text(outside, "call");
    UserWithIds { user, sessions, calls, outside }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The shortest beginning of an id that is not one of the other.
fn prefix(id: &str, other: &str) -> String {
    let same = id.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    id[..=same].to_owned()
}

#[test]
fn a_session_is_known_by_its_id_a_prefix_its_name_and_its_calls() {
    let UserWithIds { user, sessions, calls, .. } = user_with_ids();
    let session = &sessions[1];
    user.run(&["sessions", "rename", session, "The second"]).assert_code(0);
    let short = prefix(session, &sessions[0]);
    let upper = session.to_uppercase();
    for name in [session.as_str(), &upper, &short, "the second", &calls[1], &calls[1][..6]] {
        let run = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(|arg| if *arg == "ID" { name } else { *arg }).collect();
            let ended = user.run(&args);
            ended.assert_code(0);
            ended
        };
        assert!(run(&["sessions", "show", "ID"]).stdout.contains(session.as_str()), "{name}");
        assert_eq!(lines(&run(&["history", "--session", "ID", "--json"]).stdout).len(), 1, "{name}");
        assert!(run(&["audit", "verify", "ID"]).stdout.contains("verified"), "{name}");
        assert!(run(&["audit", "export", "--redacted", "ID"]).stdout.contains(session.as_str()), "{name}");
        assert!(run(&["undo", "--session", "ID", "--preview"]).stdout.contains("two"), "{name}");
        assert!(run(&["undo", "--session", "ID", "--list"]).stdout.contains(&calls[1]), "{name}");
        run(&["policy", "suggest", "--session", "ID"]);
        assert!(run(&["sessions", "export", "ID"]).stdout.contains(session.as_str()), "{name}");
        run(&["sessions", "rename", "ID", "the second"]);
        // The session has used up two turns of its script, and one more with every name.
        let script = user.script(&json!(vec![json!({"text": "again"}); 10]));
        assert_eq!(run(&["exec", "--script", &script, "resume", "ID", "go on"]).stdout, "again\n", "{name}");
    }
    assert_eq!(user.sessions().len(), 2);
}

#[test]
fn a_call_is_known_by_what_history_prints_wherever_one_is() {
    let UserWithIds { user, calls, .. } = user_with_ids();
    std::fs::create_dir(user.work().join("elsewhere")).unwrap();
    for name in [calls[0].as_str(), &calls[0][..5]] {
        assert!(user.run(&["show", name]).stdout.contains("echo one"), "{name}");
        user.run(&["feedback", name, "good"]).assert_code(0);
        let shown = user.run(&["undo", "-C", "elsewhere", name, "--preview"]);
        shown.assert_code(0);
        assert!(shown.stdout.contains("/one"), "{name}: {shown:?}");
    }
    user.run(&["undo", "-C", "elsewhere", &calls[0], "--yes"]).assert_code(0);
    assert!(!user.work().join("one").exists() && user.work().join("two").exists());
    let again = user.run(&["undo", &calls[0]]);
    assert!(again.stderr.contains("is already undone"), "{again:?}");
    user.run(&["undo", "--to", &calls[1], "--yes"]).assert_code(0);
    assert!(!user.work().join("two").exists());
}

#[test]
fn an_id_of_another_kind_is_named_with_the_right_command() {
    let UserWithIds { user, sessions, calls, outside } = user_with_ids();
    let session = sessions[0].as_str();
    let says = |ended: &Ended, said: &str| {
        ended.assert_code(2);
        assert!(ended.stderr.contains(said), "{said}: {ended:?}");
    };
    says(&user.run(&["feedback", session, "good"]), &format!("`windlass history --session {session}`"));
    says(&user.run(&["undo", session]), &format!("`windlass undo --session {session}`"));
    says(&user.run(&["undo", &outside]), "changed no files that are on record");
    says(&user.run(&["undo", "ffffff"]), "there is no call `ffffff`");
    says(
        &user.run(&["sessions", "delete", "--yes", &calls[0]]),
        &format!("`windlass sessions delete {session}`"),
    );
    says(&user.run(&["sessions", "rename", &outside, "x"]), "is a call outside of any session");
    says(&user.run(&["exec", "resume", &outside, "x"]), "is a call outside of any session");
    says(&user.run(&["sessions", "show", "ffffff"]), "there is no session `ffffff`");
    // A session is shown as one.
    assert!(user.run(&["show", session]).stdout.starts_with(&format!("session    {session}")));
    // The thread of a call outside of any session can be shown and verified.
    user.run(&["sessions", "show", &outside]).assert_code(0);
    user.run(&["audit", "verify", &outside]).assert_code(0);
}

#[test]
fn an_ambiguous_prefix_is_told_with_all_that_match() {
    let UserWithIds { user, sessions, .. } = user_with_ids();
    let common = &sessions[0][..4];
    for command in
        [&["sessions", "show"][..], &["audit", "verify"], &["undo", "--session"], &["exec", "resume"]]
    {
        let ended = user.run(&[command, &[common]].concat());
        ended.assert_code(2);
        assert!(ended.stderr.contains("is ambiguous"), "{command:?}: {ended:?}");
        assert!(sessions.iter().all(|id| ended.stderr.contains(id)), "{command:?}: {ended:?}");
    }
}

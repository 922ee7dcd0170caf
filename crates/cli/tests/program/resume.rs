//! `exec resume`: a session goes on where it was.

use std::fs;

use serde_json::{Value, json};

use crate::support::{FULL_ACCESS, Server, User, Wire, command, lines};

/// A user with one finished turn.
fn user_with_a_session(wire: Wire, more: &[&str]) -> (User, Server) {
    let answers = more.iter().map(|text| wire.says(text));
    let server = Server::start(
        [wire.asks(&[command("c1", "echo hi")]), wire.says("first")].into_iter().chain(answers),
    );
    let user = User::new();
    user.use_server(&server, wire);
    user.run(&[&["exec", "one"], &FULL_ACCESS[..]].concat()).assert_code(0);
    (user, server)
}

fn session_id(user: &User) -> String {
    user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_same_conversation_is_sent_again_and_grows() {
    for wire in Wire::ALL {
        let (user, server) = user_with_a_session(wire, &["second", "third"]);
        let id = session_id(&user);
        let before = fs::read(&user.sessions()[0]).unwrap();
        let ended = user.run(&["exec", "resume", &id, "two"]);
        ended.assert_code(0);
        assert_eq!(ended.stdout, "second\n");
        assert!(ended.stderr.contains(&format!("session: {id}\n")), "{ended:#?}");
        assert_eq!(user.run(&["exec", "resume", "--last", "three"]).stdout, "third\n");
        let after = fs::read(&user.sessions()[0]).unwrap();
        assert!(after.starts_with(&before) && after.len() > before.len());
        assert_eq!(user.sessions().len(), 1);
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        for pair in requests.windows(2) {
            let (before, after) = (wire.conversation(&pair[0]), wire.conversation(&pair[1]));
            assert_eq!(&after[..before.len()], before);
            assert_eq!(pair[0].body["instructions"], pair[1].body["instructions"]);
            assert_eq!(pair[0].header("session_id"), pair[1].header("session_id"));
        }
        assert_eq!(wire.outputs(&requests[3]), wire.outputs(&requests[1]));
    }
}

#[test]
fn a_session_goes_on_over_the_other_wire() {
    let (user, _server) = user_with_a_session(Wire::Responses, &[]);
    let server = Server::start([Wire::Chat.says("second")]);
    user.use_server(&server, Wire::Chat);
    user.run(&["exec", "resume", "--last", "two"]).assert_code(0);
    let requests = server.requests();
    assert_eq!(Wire::Chat.outputs(&requests[0]), [("c1", "Exit code: 0\nOutput:\nhi".to_owned())]);
}

#[test]
fn the_model_is_told_when_a_session_goes_on_elsewhere_or_under_other_rules() {
    let (user, server) = user_with_a_session(Wire::Responses, &["second", "third", "fourth"]);
    let id = session_id(&user);
    fs::create_dir(user.work().join("elsewhere")).unwrap();
    let elsewhere = user.work().join("elsewhere");
    let cases: [(&[&str], Option<String>); 3] = [
        (&FULL_ACCESS, None),
        (&[], Some("<sandbox_mode>read-only</sandbox_mode>".to_owned())),
        (&["--cd", "elsewhere"], Some(format!("<cwd>{}</cwd>", elsewhere.display()))),
    ];
    for (options, told) in cases {
        user.run(&[&["exec", "resume", &id, "go on"], options].concat()).assert_code(0);
        let requests = server.requests();
        let conversation = Wire::Responses.conversation(requests.last().unwrap());
        let before = conversation[conversation.len() - 2].to_string();
        match told {
            Some(told) => assert!(before.contains(&told), "{told}: {before}"),
            None => assert!(before.contains("first"), "{before}"),
        }
    }
}

#[test]
fn the_prompt_comes_from_stdin_here_too() {
    let (user, server) = user_with_a_session(Wire::Responses, &["second", "third"]);
    let id = session_id(&user);
    user.run_with_input(&["exec", "resume", &id], b"from stdin").assert_code(0);
    user.run_with_input(&["exec", "resume", "--last", "-"], b"again").assert_code(0);
    let requests = server.requests();
    let last =
        |at: usize| Wire::Responses.conversation(&requests[at]).last().unwrap()["content"][0]["text"].clone();
    assert_eq!((last(2), last(3)), (json!("from stdin"), json!("again")));
}

#[test]
fn a_session_that_is_not_there_is_wrong_usage() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    let cases: [(&[&str], &str); 5] = [
        (&["resume", "01890a5d-ac96-774b-bcce-b302099a8057", "hi"], "there is no session `01890a5d-"),
        (&["resume", "../../etc/passwd", "hi"], "there is no session `../../etc/passwd`"),
        (&["resume", "--last", "hi"], "no session was started in"),
        (&["resume"], "no session given; pass its id"),
        (&["resume", "", "hi"], "there is no session ``"),
    ];
    for (args, said) in cases {
        let ended = user.run(&[&["exec", "--script", &script], args].concat());
        ended.assert_code(2);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(said), "{args:?}: {ended:#?}");
    }
}

#[test]
fn the_last_session_is_that_of_this_directory() {
    let (user, _server) = user_with_a_session(Wire::Responses, &[]);
    fs::create_dir(user.work().join("elsewhere")).unwrap();
    let ended = user.run(&["exec", "--cd", "elsewhere", "resume", "--last", "two"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("elsewhere"), "{ended:#?}");
}

#[test]
fn a_session_in_use_by_another_process_is_left_alone() {
    let user = User::new();
    let wait = json!({"name": "shell_command", "arguments": {"command": "echo > started; read x < go", "timeout_ms": 60_000}});
    let script = user.script(&json!([{"calls": [wait]}, {"text": "one"}, {"text": "two"}]));
    let (started, go) = (user.named_pipe("started"), user.named_pipe("go"));
    let running = user.start(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    started.hear();
    let ended = user.run(&["exec", "--script", &script, "resume", "--last", "me too"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("is in use by process "), "{ended:#?}");
    go.say("go\n");
    running.end().assert_code(0);
    let ended = user.run(&["exec", "--script", &script, "resume", "--last", "now"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "two\n");
}

#[test]
fn a_damaged_file_is_mended_and_the_user_is_told() {
    let (user, server) = user_with_a_session(Wire::Responses, &["second"]);
    let path = &user.sessions()[0];
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<_> = text
        .lines()
        .map(|line| if line.contains("\"type\":\"outputs\"") { "garbage" } else { line })
        .collect();
    fs::write(path, lines.join("\n") + "\n{\"torn").unwrap();
    let ended = user.run(&["exec", "resume", "--last", "two"]);
    ended.assert_code(0);
    let aside = path.with_extension("jsonl.damaged");
    let said = format!(
        "warning: line 10 is damaged: the conversation ends before it, and 5 records are left out; kept in `{}`\n",
        aside.display()
    );
    assert!(ended.stderr.contains(&said), "{said}: {ended:#?}");
    let kept = fs::read_to_string(aside).unwrap();
    assert!(kept.starts_with("garbage\n") && kept.ends_with("\n{\"torn"), "{kept}");
    let requests = server.requests();
    let outputs = Wire::Responses.outputs(requests.last().unwrap());
    assert_eq!(outputs, [("c1", "Exit code: 0\nOutput:\nhi".to_owned())], "its outcome is before the damage");
    let id = session_id(&user);
    assert!(user.run(&["sessions", "show", &id]).stdout.contains("turns      2\n"));
}

#[test]
fn a_changed_call_id_never_gets_to_the_model() {
    let (user, server) = user_with_a_session(Wire::Responses, &["second"]);
    let path = &user.sessions()[0];
    let text = fs::read_to_string(path).unwrap();
    let changed = text.replace("\"call_id\":\"c1\"", "\"call_id\":\"c0\"");
    assert_ne!(changed, text);
    fs::write(path, &changed).unwrap();
    let id = session_id(&user);
    let shown = user.run(&["sessions", "show", &id]);
    assert!(shown.stdout.contains("problem    line "), "{shown:#?}");
    assert_eq!(fs::read_to_string(path).unwrap(), changed, "showing changes nothing");
    let ended = user.run(&["exec", "resume", &id, "two"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("is damaged: the conversation ends before it"), "{ended:#?}");
    assert_eq!(Wire::Responses.outputs(server.requests().last().unwrap()), []);
}

#[test]
fn a_file_that_is_no_session_cannot_be_resumed() {
    let (user, _server) = user_with_a_session(Wire::Responses, &[]);
    let id = session_id(&user);
    fs::write(&user.sessions()[0], "\u{0}not a session\n").unwrap();
    let ended = user.run(&["exec", "resume", &id, "two"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("line 1"), "{ended:#?}");
    assert_eq!(ended.stderr.lines().count(), 1);
}

#[test]
fn every_line_of_a_session_file_is_a_record() {
    let (user, _server) = user_with_a_session(Wire::Chat, &[]);
    let records: Vec<Value> = lines(&fs::read_to_string(&user.sessions()[0]).unwrap());
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "session_meta",
            "item",
            "event",
            "turn_context",
            "item",
            "item",
            "intent",
            "event",
            "outcome",
            "outputs",
            "event",
            "item",
            "event",
        ]
    );
    let secret = fs::metadata(&user.sessions()[0]).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&secret.permissions()) & 0o777, 0o600);
}

#[test]
fn a_session_is_not_taken_up_by_rules_because_a_key_is_missing_today() {
    let user = User::new();
    let script = user.script(&json!([{"text": "one"}, {"text": "two"}]));
    let provider = |key: &str| {
        user.configure(&format!(
            "[model_providers.mine]\nwire_api = \"scripted\"\nscript = \"{script}\"\n{key}"
        ));
    };
    provider("");
    user.run(&["exec", "--provider", "mine", "-m", "m", "hi"]).assert_code(0);
    provider("env_key = \"MY_LLM_KEY\"\n");
    let ended = user.run(&["exec", "resume", "--last", "go on"]);
    ended.assert_code(2);
    let expected =
        "error: this session was held with `m` of provider `mine`; `MY_LLM_KEY` is not set; set it";
    assert!(ended.stderr.contains(expected), "{ended:#?}");
    provider("");
    let ended = user.run(&["exec", "resume", "--last", "go on"]);
    assert!(ended.stderr.contains("choose it with `--provider mine`"), "{ended:#?}");
    assert_eq!(
        user.run(&["exec", "--provider", "mine", "-m", "m", "resume", "--last", "go on"]).stdout,
        "two\n"
    );
}

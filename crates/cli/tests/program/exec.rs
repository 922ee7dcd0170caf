//! `windlass exec` against a server, over both wires.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{FULL_ACCESS, Reply, Request, Running, Server, Step, User, Wire, chunk, command};

/// A user whose model says these things.
fn user_of(wire: Wire, answers: impl IntoIterator<Item = Reply>) -> (User, Server) {
    let (user, server) = (User::new(), Server::start(answers));
    user.use_server(&server, wire);
    (user, server)
}

#[test]
fn the_answer_alone_is_on_stdout_and_the_next_request_holds_the_output() {
    for wire in Wire::ALL {
        let (user, server) =
            user_of(wire, [wire.asks(&[command("c1", "echo hi; exit 3")]), wire.says("It said hi.")]);
        let ended = user.run(&[&["exec", "do it"], &FULL_ACCESS[..]].concat());
        ended.assert_code(0);
        assert_eq!(ended.stdout, "It said hi.\n");
        let varies = |line: &&str| ["session: ", "directory: "].iter().any(|part| line.starts_with(part));
        let told = ended.stderr.lines().filter(|line| !varies(line));
        // The time a call took is behind the comma.
        let told = told.map(|line| if line.starts_with("  exit") { &line[..8] } else { line });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "model: m (test)",
                "sandbox: danger-full-access (none)",
                "approval: on-request, but nobody is asked, because there is no terminal",
                "• run echo hi; exit 3",
                "  exit 3",
                "  | hi",
                "tokens: 10 in, 4 out",
            ]
        );
        let requests = server.requests();
        assert_eq!(requests.iter().map(Request::path).collect::<Vec<_>>(), [wire.path(); 2]);
        assert_eq!(wire.outputs(&requests[1]), [("c1", "Exit code: 3\nOutput:\nhi".to_owned())]);
    }
}

#[test]
fn each_request_begins_with_the_one_before_it_and_uses_the_same_connection() {
    for wire in Wire::ALL {
        let ask = |id| wire.asks(&[command(id, "true")]);
        let (user, server) = user_of(wire, [ask("c1"), ask("c2"), wire.says("ok")]);
        user.run(&[&["exec", "do it"], &FULL_ACCESS[..]].concat()).assert_code(0);
        let requests = server.requests();
        for pair in requests.windows(2) {
            let (before, after) = (wire.conversation(&pair[0]), wire.conversation(&pair[1]));
            assert_eq!(&after[..before.len()], before);
            assert_eq!(pair[0].body["tools"], pair[1].body["tools"]);
        }
        assert_eq!((requests.len(), server.connections()), (3, 1));
    }
}

#[test]
fn an_id_that_a_server_uses_twice_does_not_mix_up_two_calls() {
    for wire in Wire::ALL {
        let ask = |line| wire.asks(&[command("c1", line)]);
        let (user, server) = user_of(wire, [ask("echo first"), ask("echo second"), wire.says("ok")]);
        user.run(&[&["exec", "do it"], &FULL_ACCESS[..]].concat()).assert_code(0);
        let requests = server.requests();
        let outputs = wire.outputs(&requests[2]);
        assert_eq!(outputs.len(), 2);
        assert_ne!(outputs[0].0, outputs[1].0);
        assert!(outputs[0].1.contains("first") && outputs[1].1.contains("second"), "{outputs:?}");
        assert_eq!(wire.outputs(&requests[1])[0], outputs[0]);
    }
}

#[test]
fn a_call_runs_while_the_rest_of_the_answer_still_arrives() {
    let wire = Wire::Responses;
    let heard = Arc::new(Notify::new());
    let begun = Wire::begins(&wire.calls(&[command("c1", "echo ran > started")]));
    let rest = wire.done().into_iter().map(|event| chunk(format!("data: {event}\n\n").as_bytes()));
    let reply = rest.fold(begun.then(Step::Wait(Arc::clone(&heard))), Reply::then).then(Step::Close);
    let (user, _server) = user_of(wire, [reply, wire.says("ok")]);
    let started = user.named_pipe("started");
    let running = user.start(&[&["exec", "do it"], &FULL_ACCESS[..]].concat());
    assert_eq!(started.hear(), "ran\n");
    heard.notify_one();
    running.end().assert_code(0);
}

#[test]
fn the_key_goes_to_its_server_and_nowhere_else() {
    let wire = Wire::Responses;
    let server = Server::start([wire.asks(&[command("c1", "env")]), wire.says("ok")]);
    let user = User::new();
    let url = format!("openai_base_url=\"{}\"", server.url());
    let mut program = user.program(&[&["exec", "--json", "-c", &url, "do it"], &FULL_ACCESS[..]].concat());
    program.env("OPENAI_API_KEY", "sk-user").env("CODEX_API_KEY", "sk-handed-over");
    let ended = Running::start(program).end();
    ended.assert_code(0);
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-handed-over"));
    let files: String = user.sessions().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for text in [&ended.stdout, &ended.stderr, &files, &requests[1].body.to_string()] {
        assert!(!text.contains("sk-"), "{text}");
    }
}

#[test]
fn an_image_and_an_output_schema_reach_the_server() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    for wire in Wire::ALL {
        let (user, server) = user_of(wire, [wire.says("{}")]);
        let image = user.file("dot.jpg", png);
        let schema = user.file("schema.json", r#"{"type":"object","properties":{}}"#);
        user.run(&["exec", "--image", &image, "--output-schema", &schema, "look"]).assert_code(0);
        let body = &server.requests()[0].body;
        let bytes = "iVBORw0KGgpyZXN0";
        let image = match wire {
            Wire::Responses | Wire::Chat => format!("data:image/png;base64,{bytes}"),
            Wire::Messages => format!(r#""data":"{bytes}","media_type":"image/png""#),
        };
        assert!(body.to_string().contains(&image), "{body:#}");
        let format = match wire {
            Wire::Responses => &body["text"]["format"]["schema"],
            Wire::Chat => &body["response_format"]["json_schema"]["schema"],
            Wire::Messages => &body["output_config"]["format"]["schema"],
        };
        assert_eq!(*format, json!({"type": "object", "properties": {}}), "{body:#}");
    }
}

#[test]
fn files_that_are_not_what_they_should_be_are_wrong_usage() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    let text = user.file("text.png", "no image");
    let broken = user.file("broken.json", "{");
    let list = user.file("list.json", "[]");
    let cases: [(&[&str], &str); 8] = [
        (&["--image", &text], "`{}` is not a PNG, JPEG, GIF or WebP image"),
        (&["--image", "/no/such.png"], "cannot read the image `/no/such.png`"),
        (&["--output-schema", &broken], "is not JSON"),
        (&["--output-schema", &list], "must be a JSON Schema of type `object`"),
        (&["--output-schema", "/no/such"], "cannot read the output schema `/no/such`"),
        (&["--cd", "/no/such"], "cannot work in `/no/such`"),
        (&["--script", &broken], "broken.json`"),
        (&["--provider", "nowhere"], "there is no provider `nowhere`; the providers are "),
    ];
    for (args, said) in cases {
        let script = if args[0] == "--script" || args[0] == "--provider" {
            &[][..]
        } else {
            &["--script", script.as_str()]
        };
        let ended = user.run(&[&["exec"], args, script, &["hi"]].concat());
        ended.assert_code(2);
        let said = said.replace("{}", &text);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains(&said), "{args:?}: {ended:#?}");
        assert_eq!((ended.stderr.lines().count(), ended.stdout.as_str()), (1, ""), "{args:?}: {ended:#?}");
    }
    assert!(user.sessions().is_empty());
}

#[test]
fn the_last_message_goes_to_a_file_too() {
    let user = User::new();
    let script = user
        .script(&json!([{"text": "first", "calls": [{"name": "nope", "arguments": {}}]}, {"text": "last"}]));
    let ended = user.run(&["exec", "--script", &script, "-o", "answer.txt", "hi"]);
    ended.assert_code(0);
    assert_eq!((ended.stdout.as_str(), user.read("answer.txt").as_str()), ("last\n", "last"));
}

#[test]
fn an_answer_whose_file_cannot_be_written_is_still_printed() {
    let user = User::new();
    let script = user.script(&json!([{"text": "the answer"}]));
    user.file("other", "mine");
    std::os::unix::fs::symlink("other", user.work().join("link")).unwrap();
    let ended = user.run(&["exec", "--script", &script, "-o", "link", "hi"]);
    ended.assert_code(2);
    assert!(ended.last_word().contains("symbolic link"), "{ended:#?}");
    assert_eq!(user.read("other"), "mine");
    let ended = user.run(&["exec", "--script", &script, "-o", "/no/such/place", "hi"]);
    ended.assert_code(2);
    assert_eq!(ended.stdout, "the answer\n");
    assert!(ended.last_word().contains("cannot write the answer to `/no/such/place`"), "{ended:#?}");
}

#[test]
fn the_work_happens_where_the_user_says() {
    let user = User::new();
    std::fs::create_dir(user.work().join("below")).unwrap();
    let pwd = json!({"name": "shell_command", "arguments": {"command": "pwd > here"}});
    let script = user.script(&json!([{"calls": [pwd]}, {"text": "ok"}]));
    user.run(&[&["exec", "--script", &script, "--cd", "below", "hi"], &FULL_ACCESS[..]].concat())
        .assert_code(0);
    assert_eq!(user.read("below/here"), format!("{}/below\n", user.work().display()));
}

#[test]
fn hidden_characters_of_a_model_cannot_rewrite_the_screen() {
    let user = User::new();
    let sneaky = "\u{1b}[2K\u{202e}\r";
    let shell = json!({"name": "shell_command", "arguments": {"command": format!("true {sneaky}")}});
    let unknown = json!({"name": sneaky, "arguments": {"a": sneaky}});
    let script = user.script(&json!([
        {"reasoning": sneaky, "text": sneaky, "calls": [shell, unknown]}, {"text": "half", "broken": sneaky},
        {"error": sneaky}
    ]));
    let ended = user.run(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat());
    ended.assert_code(1);
    let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ended.stderr.contains(hidden), "{ended:#?}");
}

#[test]
fn an_answer_for_a_program_is_left_as_it_is() {
    let user = User::new();
    let script = user.script(&json!([{"text": "\u{1b}[1mbold\u{1b}[0m\ttab"}]));
    assert_eq!(user.run(&["exec", "--script", &script, "hi"]).stdout, "\u{1b}[1mbold\u{1b}[0m\ttab\n");
}

#[test]
fn an_answer_on_a_terminal_cannot_give_it_orders() {
    let user = User::new();
    let script = user.script(&json!([{"text": "one\u{1b}]0;title\u{7}\ntwo"}]));
    let line = format!("exec --script {script} hi 2> /dev/null");
    let ended = Running::start(user.program_on_a_terminal(&line)).end();
    ended.assert_code(0);
    assert_eq!(ended.stdout.replace('\r', ""), "one\\u{1b}]0;title\\u{7}\ntwo\n");
}

#[test]
fn sixteen_calls_that_change_nothing_run_together() {
    let meet = json!({"barrier": {"id": "all", "participants": 16, "timeout_ms": 60_000}});
    let calls: Vec<Value> = (0..16).map(|_| json!({"name": "test_sync_tool", "arguments": meet})).collect();
    let user = User::new();
    let script = user.script(&json!([{"calls": calls}, {"text": "ok"}]));
    let switch = ["-c", "include_test_sync_tool=true"];
    let ended = user.run(&[&["exec", "--json", "--script", &script, "hi"], &switch[..]].concat());
    ended.assert_code(0);
    let completed = ended.events().iter().filter(|event| event["item"]["status"] == "completed").count();
    assert_eq!(completed, 16, "{ended:#?}");
}

#[test]
fn two_commands_never_overlap_and_keep_their_order() {
    let user = User::new();
    // Each takes the lock, or says that someone else has it.
    let command = |name: &str| format!("mkdir lock || echo taken >> log; echo {name} >> log; rmdir lock");
    let names: Vec<_> = (0..8).map(|number| format!("n{number}")).collect();
    let calls =
        names.iter().map(|name| json!({"name": "shell_command", "arguments": {"command": command(name)}}));
    let script = user.script(&json!([{"calls": calls.collect::<Vec<_>>()}, {"text": "ok"}]));
    user.run(&[&["exec", "--script", &script, "hi"], &FULL_ACCESS[..]].concat()).assert_code(0);
    assert_eq!(user.read("log"), names.join("\n") + "\n");
}

#[test]
fn a_long_output_is_told_by_its_path_and_a_contained_command_can_read_it_there() {
    let user = User::new();
    let call =
        |command: String| json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]});
    let long = call("seq 100000".to_owned());
    let read = call(format!("tail -n 1 {}/outputs/*/1.txt", user.home().display()));
    let script = user.script(&json!([long, read, {"text": "ok"}]));
    let ended = user.run(&["exec", "--json", "--script", &script, "hi"]);
    ended.assert_code(0);
    let outputs: Vec<_> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == "item.completed")
        .filter_map(|event| event["item"]["aggregated_output"].as_str().map(str::to_owned))
        .collect();
    assert!(outputs[0].contains("truncated…\n[whole output: "), "{}", outputs[0]);
    assert_eq!(outputs[1], "100000\n");
    let called = user.run(&["call", "shell_command", r#"{"command": "seq 100000"}"#]);
    assert!(
        called.stdout.contains("truncated…") && !called.stdout.contains("whole output"),
        "{}",
        called.stdout
    );
}

#[test]
fn calls_written_into_the_text_run_as_the_provider_says_they_are_written() {
    let rows = [
        (
            "hermes",
            "Wait. <tool_call>{\"name\": \"shell_command\", \"arguments\": {\"command\": \"echo hi\"}}</tool_call>",
        ),
        (
            "json",
            "Wait. \n```json\n{\"name\": \"shell_command\", \"arguments\": {\"command\": \"echo hi\"}}\n```",
        ),
        ("pythonic", "Wait. \n[shell_command(command='echo hi')]"),
        ("xml", "Wait. <function=shell_command>\n<parameter=command>\necho hi\n</parameter>\n</function>"),
        ("mistral", "Wait. [TOOL_CALLS]shell_command[ARGS]{\"command\": \"echo hi\"}"),
    ];
    for (dialect, text) in rows {
        for told in ["false", "true"] {
            let (user, server) = user_of(Wire::Chat, [Wire::Chat.says(text), Wire::Chat.says("It said hi.")]);
            let dialect = format!("model_providers.test.tool_dialect={dialect}");
            let told = format!("model_providers.test.tool_prompt={told}");
            let ended =
                user.run(&[&["exec", "do it", "-c", &dialect, "-c", &told], &FULL_ACCESS[..]].concat());
            ended.assert_code(0);
            assert_eq!(ended.stdout, "It said hi.\n");
            assert!(ended.stderr.contains("Wait.") && !ended.stderr.contains('<'), "{ended:#?}");
            let requests = server.requests();
            let has_tools = requests[0].body.get("tools").is_some();
            assert_eq!(has_tools, told.ends_with("false"), "{dialect} {told}");
            let messages = Wire::Chat.conversation(&requests[1]);
            let [.., call, result] = messages.as_slice() else { panic!("{messages:?}") };
            if has_tools {
                assert_eq!(call["tool_calls"][0]["function"]["name"], "shell_command");
                assert_eq!(
                    (&result["role"], &result["tool_call_id"]),
                    (&json!("tool"), &call["tool_calls"][0]["id"])
                );
            } else {
                assert_eq!((&call["role"], call.get("tool_calls")), (&json!("assistant"), None));
                assert!(call["content"].as_str().unwrap().contains("echo hi"), "{call}");
                assert_eq!(result["role"], "user");
            }
            assert!(result["content"].as_str().unwrap().contains("Output:\nhi"), "{result}");
        }
    }
}

#[test]
fn a_person_reads_paths_as_they_are_called_here_and_a_program_reads_all_of_them() {
    let user = User::new();
    let path = user.work().canonicalize().unwrap().join("new.txt");
    let write = json!({"name": "write_file", "arguments": {"path": path, "content": "x\n"}});
    let script = user.script(&json!([{"calls": [write]}, {"text": "done"}]));
    let args = ["exec", "--script", &script, "-s", "workspace-write", "hi"];
    let shown = user.run(&args);
    shown.assert_code(0);
    assert!(shown.stderr.contains("• write new.txt\n  done, "), "{shown:#?}");
    assert!(shown.stderr.contains("\n  A new.txt\n"), "{shown:#?}");
    std::fs::remove_file(&path).unwrap();
    let told = user.run(&[&args[..], &["--json"]].concat());
    assert!(told.stdout.contains(&format!("\"path\":\"{}\"", path.display())), "{told:#?}");
}

#[test]
fn lines_that_are_not_shown_are_counted_and_one_of_a_kind_is_one() {
    let user = User::new();
    let run = |command: &str, more: Value| {
        let call = json!({"name": "shell_command", "arguments": {"command": command}});
        let turns = [vec![json!({"calls": [call]})], serde_json::from_value(more).unwrap()].concat();
        user.run(&["exec", "--script", &user.script(&Value::from(turns)), "go"]).stderr
    };
    for (command, told) in [("seq 1 3000", "2\n  | … 2994 lines"), ("seq 1 8", "2\n  | … 2 lines")] {
        let shown = run(command, json!([{"text": "done"}]));
        assert!(shown.contains(&format!("\n  | {told}\n  | ")), "{command}: {shown}");
    }
    let ended = run("true", json!([]));
    assert!(ended.contains("1 turn") && !ended.contains("1 turns"), "{ended}");
    user.file("a.md", "one\n");
    let counted = user.run(&["exec", "how many files are there"]).stdout;
    assert!(counted.starts_with("2 files"), "{counted}");
    let counted = user.run(&["exec", "how many *.md files are there"]).stdout;
    assert!(counted.starts_with("1 file") && !counted.contains("1 files"), "{counted}");
}

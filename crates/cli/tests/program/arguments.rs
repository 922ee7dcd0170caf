//! Arguments and names as models and people write them, and the results that say what became of the
//! call.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Ended, FULL_ACCESS, Server, User, Wire};

fn call(user: &User, args: &[&str]) -> Ended {
    user.run(&[&["call"], args, &FULL_ACCESS[..]].concat())
}

/// The result of a call as JSON.
fn result(user: &User, name: &str, input: &str) -> Value {
    let ended = call(user, &[name, input, "--json"]);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

fn repairs(result: &Value) -> Vec<String> {
    serde_json::from_value(result["receipt"]["repairs"].clone()).unwrap_or_default()
}

/// A user with a directory `sub` and two files that say `main`.
fn user() -> User {
    let user = User::new();
    fs::create_dir(user.work().join("sub")).unwrap();
    user.file("a.py", "def main():\n  pass\n");
    user.file("a.rs", "fn main() {}\n");
    user
}

#[test]
fn what_is_not_there_is_not_found_for_every_tool_and_the_message_is_the_real_one() {
    let user = user();
    for (name, input, message) in [
        ("read_file", r#"{"file_path":"nope"}"#, "nope` does not exist"),
        ("list_dir", r#"{"dir_path":"nope"}"#, "nope` does not exist"),
        ("grep_files", r#"{"pattern":"x","path":"nope"}"#, "nope` does not exist"),
        ("edit_file", r#"{"path":"nope","old_string":"a","new_string":"b"}"#, "`nope` does not exist"),
        ("view_image", r#"{"path":"nope.png"}"#, "nope.png` does not exist"),
        (
            "apply_patch",
            "*** Begin Patch\n*** Delete File: nope\n*** End Patch",
            "Failed to delete file nope",
        ),
        ("shell", r#"{"command":["nosuchprogram"]}"#, "program `nosuchprogram` was not found"),
        ("shell_command", r#"{"command":"nosuchprogram"}"#, "exit code 127: "),
        ("shell_command", r#"{"command":"pwd","workdir":"nope"}"#, "it does not exist"),
        ("write_stdin", r#"{"session_id":1}"#, "Unknown process id 1"),
    ] {
        let result = result(&user, name, input);
        assert_eq!(result["status"], "not_found", "{result:#}");
        let error = result["error"].as_str().unwrap_or_default();
        assert!(error.contains(message), "{name}: {error}");
        assert!(!result.to_string().contains("could not do it"), "{result:#}");
    }
    let timeout = result(&user, "shell_command", r#"{"command":"sleep 9","timeout_ms":100}"#);
    assert_eq!((&timeout["status"], &timeout["data"]["return_code"]), (&json!("timeout"), &json!(124)));
    let page = call(&user, &["read_file", r#"{"file_path":"nope"}"#, "--markdown"]);
    page.assert_code(1);
    assert!(
        page.stdout.contains("`read_file`: not_found\n\n- **Success**: no\n- **Error**: failed to"),
        "{page:#?}"
    );
}

#[test]
fn a_result_has_its_parameters_and_the_two_streams_apart() {
    let user = user();
    for (name, input) in [
        (
            "run_command",
            r#"{"command":"echo out; echo err >&2; pwd; exit 3","working_dir":"sub","timeout":9}"#,
        ),
        ("shell_command", r#"{"command":"echo out; echo err >&2; pwd; exit 3","workdir":"sub"}"#),
    ] {
        let result = result(&user, name, input);
        assert_eq!(result["parameters"], serde_json::from_str::<Value>(input).unwrap());
        let sub = user.work().join("sub").canonicalize().unwrap();
        let stdout = format!("out\n{}\n", sub.display());
        assert_eq!(result["data"], json!({"stdout": stdout, "stderr": "err\n", "return_code": 3}), "{name}");
        assert_eq!(result["status"], "error");
    }
    let plain = call(&user, &["shell_command", r#"{"command":"echo a; echo b >&2; echo c"}"#]);
    assert_eq!(plain.stdout, "a\nb\nc\n", "in order where the streams are not asked for apart");
    let read = result(&user, "read_file", r#"{"file_path":"a.rs"}"#);
    assert_eq!(read["data"], "L1: fn main() {}");
    let unread = result(&user, "read_file", "{broken");
    assert_eq!((&unread["status"], &unread["parameters"]), (&json!("error"), &json!("{broken")));
}

#[test]
fn names_of_other_agents_tools_and_parameters_work() {
    let user = user();
    for (name, input, expected) in [
        ("shell_command", r#"{"command":"basename $PWD","working_dir":"sub"}"#, "sub\n"),
        ("shell_command", r#"{"command":"basename $PWD","cwd":"sub"}"#, "sub\n"),
        (
            "shell_command",
            r#"{"command":"echo x","with_escalated_permissions":true,"justification":"j"}"#,
            "x\n",
        ),
        ("Bash", r#"{"command":"echo x","description":"say x","timeout":5000}"#, "x\n"),
        ("run_shell_command", r#"{"command":"basename $PWD","directory":"sub"}"#, "sub\n"),
        ("grep_files", r#"{"pattern":"main","glob":"*.py","output_mode":"count"}"#, "a.py:1"),
        ("search_code", r#"{"query":"main","file_pattern":"*.py","output_mode":"count"}"#, "a.py:1"),
        (
            "Grep",
            r#"{"pattern":"MAIN","-i":true,"-n":true,"glob":"*.rs","output_mode":"content"}"#,
            "a.rs:1:fn",
        ),
        ("Read", r#"{"file_path":"a.rs"}"#, "L1: fn main() {}"),
        ("read", r#"{"filePath":"a.rs","limit":1}"#, "L1: fn main() {}"),
        ("LS", r#"{"path":"sub"}"#, "sub"),
        ("Write", r#"{"file_path":"w.txt","content":"one"}"#, "Made w.txt"),
        ("Edit", r#"{"file_path":"w.txt","old_string":"one","new_string":"two"}"#, "Edited w.txt"),
        ("apply_patch", "*** Begin Patch\n*** Add File: p\n+x\n*** End Patch", "A p"),
    ] {
        let ended = call(&user, &[name, input]);
        ended.assert_code(0);
        assert!(ended.stdout.contains(expected), "{name} {input}: {ended:#?}");
    }
    assert_eq!(user.read("w.txt"), "two");
    let background = call(&user, &["Bash", r#"{"command":"echo x","run_in_background":true}"#]);
    background.assert_code(1);
    assert!(
        background.stdout.contains("`arguments.run_in_background` is not known; here it can only be false")
    );
    let both = call(&user, &["shell_command", r#"{"command":"pwd","cwd":"sub","workdir":"."}"#]);
    assert!(both.stdout.contains("it is another name of `workdir`, which is given too"), "{both:#?}");
}

#[test]
fn what_is_written_otherwise_is_repaired_and_told() {
    let user = user();
    for (name, input, told) in [
        ("readFile", r#"{"file_path":"a.rs"}"#, "the tool `readFile` was read as `read_file`"),
        ("read-file", r#"{"file_path":"a.rs"}"#, "the tool `read-file` was read as `read_file`"),
        (
            "functions.read_file",
            r#"{"file_path":"a.rs"}"#,
            "the tool `functions.read_file` was read as `read_file`",
        ),
        ("read_file", r#"{"name":"read_file","arguments":{"file_path":"a.rs"}}"#, "were inside `arguments`"),
        ("read_file", r#"{"name":"readFile","arguments":"{\"path\":\"a.rs\"}"}"#, "were inside `arguments`"),
        ("read_file", r#""{\"file_path\":\"a.rs\"}""#, "the arguments were JSON inside a string"),
        ("read_file", r#"[{"file_path":"a.rs"}]"#, "the arguments were inside a list"),
        ("read_file", r#"{"file_path":"a.rs",,"limit":"1",}"#, "an extra comma was dropped"),
        ("read_file", r#"{"file_path":"a.rs","limit":2.0}"#, ""),
    ] {
        let result = result(&user, name, input);
        assert_eq!(result["data"], "L1: fn main() {}", "{name} {input}: {result:#}");
        let repairs = repairs(&result);
        assert!(told.is_empty() || repairs.iter().any(|note| note.contains(told)), "{repairs:?}");
        let text = call(&user, &[name, input]);
        assert!(text.stderr.contains(told), "{text:#?}");
    }
    let other = result(&user, "read_file", r#"{"name":"write_file","arguments":{"file_path":"a.rs"}}"#);
    assert!(
        other["error"].as_str().unwrap().contains("are a call of `write_file`, but `read_file` was called")
    );
}

#[test]
fn what_cannot_be_used_names_what_is_missing_and_what_is_allowed() {
    let user = user();
    for (name, input, problem) in [
        ("write_file", r#"{"file_path":"w"}"#, "`arguments.content` is missing"),
        ("read_file", r#"{"file_path":"a.rs","limit":-1}"#, "`arguments.limit` must be at least 1"),
        ("read_file", r#"{"file_path":"a.rs","limit":0}"#, "`arguments.limit` must be at least 1"),
        ("read_file", r#"{"file_path":"a.rs","limit":1e30}"#, "a whole number from 0 to"),
        ("read_file", r#"{"file_path":["a","b"]}"#, "`arguments.file_path` must be string, found array"),
        ("read_file", r#"{"file_path":null}"#, "`arguments.file_path` must be string, found null"),
        ("read_file", "{}", "`arguments.file_path` is missing"),
        ("read_file", "null", "`arguments` must be object, found null"),
        ("read_file", r#"{"file_path":"a.rs","mode":"odd"}"#, r#"must be one of "slice", "indentation""#),
        ("write_stdin", r#"{"session_id":5000000000}"#, "a whole number from 0 to 4294967295"),
        (
            "shell_command",
            r#"{"command":"touch made","wrkdir":"sub"}"#,
            "`arguments.wrkdir` is not known; the nearest is `workdir`",
        ),
        (
            "shell_command",
            r#"{"command":"touch made","colour":1}"#,
            "`arguments.colour` is not known; there are `command`",
        ),
        ("shell_command", "{\"c\u{3bf}mmand\":\"touch made\"}", "is not known; the nearest is `command`"),
        (
            "shell_command",
            r#"{"command":"touch made","command":"pwd"}"#,
            "`arguments.command` is there twice with different values",
        ),
        ("write_file", r#"{"path":"made","path":"b","content":"x"}"#, "`arguments.path` is there twice"),
    ] {
        let ended = call(&user, &[name, input]);
        ended.assert_code(1);
        assert!(ended.stdout.contains(problem), "{name} {input}: {ended:#?}");
        assert!(ended.stdout.contains("\nexpected: {"), "{ended:#?}");
        for rust in ["usize", "u32", "u64", "struct"] {
            assert!(!ended.stdout.contains(rust), "{ended:#?}");
        }
    }
    assert!(!user.work().join("made").exists() && !user.work().join("b").exists());
    let looked = result(&user, "read_file", r#"{"file_path":"a.py","file_path":"a.rs"}"#);
    assert!(repairs(&looked)[0].contains("was given twice with different values"), "{looked:#}");
}

#[test]
fn a_tool_that_is_not_there_is_told_once_with_the_nearest_first() {
    let ended = call(&User::new(), &["read_fil", "{}"]);
    ended.assert_code(2);
    let told =
        "unsupported call: read_fil\nthere is no tool `read_fil`; there are, the nearest first: read_file, ";
    assert!(ended.stdout.starts_with(told), "{ended:#?}");
    assert_eq!(ended.stderr, "");
    let ended = call(&User::new(), &["nope", "{}"]);
    ended.assert_code(2);
    assert!(ended.stdout.starts_with("unsupported call: nope\nthere is no tool `nope`; "), "{ended:#?}");
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_session_that_goes_on_says_so_in_every_form() {
    let user = User::new();
    let call = |form: &[&str]| {
        let args = ["exec_command", r#"{"cmd":"echo hi; exec sleep 60","yield_time_ms":300}"#];
        let ended = call(&user, &[&args, form].concat());
        ended.assert_code(0);
        ended.stdout
    };
    let text = call(&[]);
    assert!(text.starts_with("hi\n[still running after 0."), "{text}");
    for part in ["as session ", "it was ended with this call", "`write_stdin` with session_id "] {
        assert!(text.contains(part), "{text}");
    }
    let page = call(&["--markdown"]);
    assert!(page.contains("- **Success**: yes\n") && page.contains("- **Note**: still running"), "{page}");
    let json: Value = serde_json::from_str(&call(&["--json"])).unwrap();
    assert!(json["note"].as_str().unwrap().starts_with("still running"), "{json:#}");
    assert_eq!((&json["data"]["running"], &json["data"]["return_code"]), (&json!(true), &Value::Null));
    assert_eq!(json["data"]["session_id"], json["facts"]["session"]);
}

const LIST: &str = r#"{"name":"forecast","description":"The weather.","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","default":"celsius"},"days":{"type":"integer","default":3,"maximum":7}},"required":["city"],"additionalProperties":false},"command":["echo"]}
{"name":"bad name","description":"x","command":["echo"]}
{"name":"unfit","description":"x","parameters":{"type":"string"},"command":["echo"]}
{"name":"still","description":"x"}
nonsense
{"name":"run_command","description":"Mine.","command":["echo","mine"]}
"#;

#[test]
fn a_bad_tool_of_a_list_is_left_out_alone_and_defaults_reach_the_program() {
    let user = User::new();
    let list = user.file("tools.jsonl", LIST);
    let ended = call(&user, &["--tools", &list, "forecast", r#"{"city":"Oslo"}"#]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "{\"city\":\"Oslo\",\"days\":3,\"unit\":\"celsius\"}\n");
    for told in [
        "tools.jsonl`, line 2: tool `bad name`: the name must be 1 to 64 letters",
        "line 3: tool `unfit`: parameters must be a JSON Schema of type `object`",
        "line 4: tool `still` has no `command`",
        "line 5: expected ident",
    ] {
        assert!(ended.stderr.contains(told), "{told}: {ended:#?}");
    }
    assert_eq!(ended.stderr.matches("it is left out").count(), 4, "{ended:#?}");
    let many = call(&user, &["--tools", &list, "forecast", r#"{"city":"Oslo","days":8}"#]);
    assert!(many.stdout.contains("`arguments.days` must be at most 7"), "{many:#?}");
    let mine = call(&user, &["--tools", &list, "run_command", "{}"]);
    assert_eq!(mine.stdout, "mine {}\n", "a tool of the user's is found by its own name first");
    let bad = user.file("bad.jsonl", "nonsense\n");
    call(&user, &["--tools", &bad, "forecast", "{}"]).assert_code(2);
    let listed = user.run(&["tools", "list", "--tools", &list]);
    listed.assert_code(0);
    assert!(listed.stdout.contains("\nforecast ") && listed.stdout.contains("\nread_file "), "{listed:#?}");
    assert!(!listed.stdout.contains("test_sync_tool"), "{listed:#?}");
    let manifest = user.run(&["tools", "manifest", "--tools", &list]);
    for tool in ["forecast", "shell", "exec_command", "read_file", "write_file", "run_tests"] {
        assert!(manifest.stdout.contains(&format!("### {tool}\n")), "{tool}: {manifest:#?}");
    }
}

#[test]
fn a_model_is_told_of_repairs_and_its_results_keep_the_order_of_its_calls() {
    for wire in Wire::ALL {
        let calls = [
            ("c1", "read_file", r#"{"file_path": "#),
            ("c2", "readFile", r#"{"path": "a.rs"}"#),
            ("c3", "browser", "{}"),
            ("c4", "Read", r#"{"file_path": "nope"}"#),
        ];
        let server = Server::start([wire.asks_in_writing(&calls), wire.says("done")]);
        let user = user();
        user.use_server(&server, wire);
        user.run(&[&["exec", "go"], &FULL_ACCESS[..]].concat()).assert_code(0);
        let requests = server.requests();
        let outputs = wire.outputs(&requests[1]);
        let ids: Vec<_> = outputs.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, ["c1", "c2", "c3", "c4"], "{wire:?}");
        let history = Value::from(wire.conversation(&requests[1])).to_string();
        let asked: Vec<_> = ids.iter().map(|id| history.find(&format!("\"{id}\"")).unwrap()).collect();
        assert!(asked.is_sorted(), "{wire:?}: {history}");
        assert!(outputs[0].1.contains("the arguments stop in the middle"), "{outputs:?}");
        assert!(outputs[1].1.contains("L1: fn main() {}"), "{outputs:?}");
        assert!(outputs[1].1.contains("the tool `readFile` was read as `read_file`"), "{outputs:?}");
        let unknown = "unsupported call: browser\nthere is no tool `browser`; there are, the nearest first: ";
        assert!(outputs[2].1.starts_with(unknown), "{outputs:?}");
        assert!(outputs[3].1.contains("does not exist"), "{outputs:?}");
    }
}

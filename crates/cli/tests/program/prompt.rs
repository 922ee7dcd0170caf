//! Where the prompt of `windlass exec` comes from.

use std::process::Stdio;

use serde_json::json;

use crate::support::{Running, Server, User, Wire};

/// What the model was told last by the user.
fn asked(server: &Server) -> String {
    let requests = server.requests();
    let conversation = Wire::Responses.conversation(&requests[0]);
    conversation.last().unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

fn user_with_server() -> (User, Server) {
    let (user, server) = (User::new(), Server::start([Wire::Responses.says("ok")]));
    user.use_server(&server, Wire::Responses);
    (user, server)
}

#[test]
fn a_pipe_that_the_parent_leaves_open_is_not_waited_for() {
    let (user, server) = user_with_server();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut program = user.program(&["exec", "from the argument"]);
    program.stdin(Stdio::from(reader));
    let ended = Running::start(program).end();
    ended.assert_code(0);
    // Open until here: whoever had waited for its end would still do so.
    drop(writer);
    assert_eq!(asked(&server), "from the argument");
    assert!(ended.stderr.contains("add `< /dev/null`"), "{ended:#?}");
    assert!(ended.stderr.contains("going on without it"), "{ended:#?}");
}

#[test]
fn text_on_stdin_is_a_block_behind_the_prompt() {
    let (user, server) = user_with_server();
    user.run_with_input(&["exec", "review this"], "+größe\n".as_bytes()).assert_code(0);
    assert_eq!(asked(&server), "review this\n\n<stdin>\n+größe\n</stdin>");
}

#[test]
fn a_part_of_the_pipeline_that_is_slow_is_waited_for() {
    let (user, server) = user_with_server();
    let ended = Running::start(user.shell("(sleep 7; echo late) | $windlass exec 'review this'")).end();
    ended.assert_code(0);
    assert_eq!(asked(&server), "review this\n\n<stdin>\nlate\n</stdin>");
    assert!(ended.stderr.starts_with("reading standard input"), "{ended:#?}");
}

#[test]
fn stdin_without_anything_to_add_changes_nothing() {
    for line in ["< /dev/null", "< empty", "<&-"] {
        let (user, server) = user_with_server();
        user.file("empty", " \n");
        Running::start(user.shell(&format!("$windlass exec 'as it is' {line}"))).end().assert_code(0);
        assert_eq!(asked(&server), "as it is", "{line}");
    }
}

#[test]
fn stdin_that_is_no_text_or_too_much_is_wrong_usage() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    for (input, said) in
        [(b"a\0b".to_vec(), "not text (byte 1)"), (vec![b'a'; 2 << 20], "larger than 1024 KiB")]
    {
        let ended = user.run_with_input(&["exec", "--script", &script, "hi"], &input);
        ended.assert_code(2);
        assert!(ended.stderr.contains(said), "{ended:#?}");
    }
    assert!(user.sessions().is_empty());
}

#[test]
fn without_an_argument_or_with_a_dash_it_is_read_from_stdin() {
    for args in [&["exec"][..], &["exec", "-"]] {
        let (user, server) = user_with_server();
        user.run_with_input(args, "from stdin: größe\n".as_bytes()).assert_code(0);
        assert_eq!(asked(&server), "from stdin: größe\n");
    }
}

#[test]
fn a_prompt_that_is_none_is_wrong_usage_and_begins_nothing() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    let empty = "error: the prompt is empty; give it as an argument or on stdin\n";
    let cases: [(&[&str], &[u8], &str); 5] = [
        (&[], b"", empty),
        (&["-"], b" \n\t", empty),
        (&[""], b"not read", empty),
        (&[" "], b"not read", empty),
        (&[], b"ab\xffcd", "error: the prompt on stdin is not UTF-8 text (byte 2)\n"),
    ];
    for (prompt, input, said) in cases {
        let ended = user.run_with_input(&[&["exec", "--script", &script], prompt].concat(), input);
        ended.assert_code(2);
        assert_eq!((ended.stderr.as_str(), ended.stdout.as_str()), (said, ""), "{prompt:?}");
    }
    assert!(user.sessions().is_empty());
}

#[test]
fn a_prompt_larger_than_any_is_refused() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    let ended = user.run_with_input(&["exec", "--script", &script], &vec![b'a'; 33 * 1024 * 1024]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("longer than"), "{ended:#?}");
}

#[test]
fn a_prompt_that_looks_like_a_command_or_an_option_can_be_given_behind_two_dashes() {
    for prompt in ["resume", "--json", "help"] {
        let (user, server) = user_with_server();
        user.run(&["exec", "--", prompt]).assert_code(0);
        assert_eq!(asked(&server), prompt);
    }
}

#[test]
fn an_image_may_come_without_words() {
    let (user, server) = user_with_server();
    let image = user.file("dot.png", b"\x89PNG\r\n\x1a\n");
    user.run_with_input(&["exec", "--image", &image], b"").assert_code(0);
    let requests = server.requests();
    let conversation = Wire::Responses.conversation(&requests[0]);
    let content = &conversation.last().unwrap()["content"];
    assert_eq!(content.as_array().unwrap().len(), 1);
    assert_eq!(content[0]["type"], "input_image");
}

#[test]
fn a_model_is_told_that_nobody_can_be_asked() {
    let server = Server::start([Wire::Responses.says("ok")]);
    let user = User::new();
    user.use_server(&server, Wire::Responses);
    user.run(&["exec", "-a", "on-request", "hi"]).assert_code(0);
    let told = server.requests()[0].body.to_string();
    assert!(told.contains("nobody can be asked: what would need approval is refused"), "{told}");
}

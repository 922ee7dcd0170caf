//! Tools that read files, through the program.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::{FileExt, symlink},
};

use serde_json::json;

use crate::support::{Ended, Server, User, Wire};

fn call(user: &User, tool: &str, input: &str, mode: &str) -> Ended {
    user.run(&["call", tool, input, "--sandbox", mode])
}

/// A user whose home holds a key, and whose work a link to it.
fn with_secret() -> User {
    let user = User::new();
    let ssh = user.work().parent().unwrap().join(".ssh");
    fs::create_dir(&ssh).unwrap();
    fs::write(ssh.join("id_rsa"), "secret\n").unwrap();
    symlink(ssh.join("id_rsa"), user.work().join("link")).unwrap();
    user.file("notes.txt", "one\ntwo\n");
    user
}

#[test]
fn a_file_is_read_in_every_mode_and_a_secret_only_without_a_sandbox() {
    let user = with_secret();
    for (mode, held) in
        [("read-only", true), ("workspace-write", true), ("danger-full-access", false), ("external", false)]
    {
        let read = call(&user, "read_file", r#"{"file_path":"notes.txt"}"#, mode);
        read.assert_code(0);
        assert_eq!(read.stdout, "L1: one\nL2: two\n", "{mode}");
        for path in ["link", "../.ssh/id_rsa"] {
            let read = call(&user, "read_file", &json!({"file_path": path}).to_string(), mode);
            assert_eq!(read.stdout.contains("secret"), !held, "{mode} {path}: {read:#?}");
            assert_eq!(
                read.stdout.contains("the sandbox does not allow it"),
                held,
                "{mode} {path}: {read:#?}"
            );
        }
        let found = call(&user, "grep_files", r#"{"pattern":"secret|two","path":"..","hidden":true}"#, mode);
        assert_eq!(found.stdout.contains(".ssh"), !held, "{mode}: {found:#?}");
        assert!(found.stdout.contains("work/notes.txt"), "{mode}: {found:#?}");
        let listed = call(&user, "list_dir", r#"{"dir_path":"."}"#, mode);
        assert!(listed.stdout.ends_with("link@\nnotes.txt\n"), "{mode}: {listed:#?}");
    }
}

#[test]
fn a_slice_of_a_huge_file_costs_what_the_slice_costs() {
    let user = User::new();
    let path = user.work().join("huge");
    let mut file = File::create(&path).unwrap();
    file.write_all("a line of text\n".repeat(1000).as_bytes()).unwrap();
    file.write_all_at(b"end\n", 1 << 30).unwrap();
    let read = |offset: usize, limit: usize| {
        let input = json!({"file_path": path, "offset": offset, "limit": limit}).to_string();
        call(&user, "read_file", &input, "read-only").stdout
    };
    assert_eq!(read(999, 2), "L999: a line of text\nL1000: a line of text\n");
    // One line of a gigabyte, of which the beginning is shown.
    assert!(read(1001, 1).starts_with("L1001: "));
}

#[test]
fn a_model_is_shown_what_it_reads_and_sees() {
    const DOT: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x01D\0;";
    let user = with_secret();
    user.file("dot.gif", DOT);
    let calls = [
        json!({"name": "read_file", "arguments": {"file_path": "notes.txt", "offset": 2}}),
        json!({"name": "view_image", "arguments": {"path": "dot.gif"}}),
    ];
    let script = user.script(&json!([{"calls": calls}, {"text": "done"}]));
    user.run(&["exec", "--script", &script, "look"]).assert_code(0);
    let outputs = serde_json::to_string(&user.records()).unwrap();
    assert!(outputs.contains("L2: two"), "{outputs}");
    assert!(outputs.contains("data:image/png;base64,"), "{outputs}");
}

#[test]
fn a_model_nobody_knows_is_told_about_the_tools_and_gets_their_answers() {
    let user = with_secret();
    let call = ("call-1", "grep_files", json!({"pattern": "tw."}));
    let wire = Wire::Responses;
    let server = Server::start([wire.asks(&[call]), wire.says("done")]);
    user.use_server(&server, wire);
    user.run(&["exec", "find it"]).assert_code(0);
    let requests = server.requests();
    let offered =
        requests[0].body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    assert!(
        ["grep_files", "read_file", "list_dir", "view_image"]
            .iter()
            .all(|name| offered.clone().any(|tool| tool == *name))
    );
    let path = user.work().join("notes.txt").display().to_string();
    assert_eq!(wire.outputs(&requests[1]), [("call-1", path)]);
}

#[test]
fn a_file_that_may_hold_secrets_is_asked_about_by_every_tool_alike() {
    let user = User::new();
    let home = user.work().parent().unwrap().to_owned();
    fs::create_dir(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/id_ed25519"), "hush\n").unwrap();
    fs::write(home.join(".netrc"), "machine x login hush password hush\n").unwrap();
    let own = [".ssh/id_ed25519", ".netrc"].map(|name| home.join(name).display().to_string());
    let paths = ["/etc/shadow", "~/.ssh/id_ed25519", "~/.netrc", &own[0], &own[1]];
    for (path, mode) in paths.iter().flat_map(|path| [(path, "read-only"), (path, "danger-full-access")]) {
        for (tool, input) in [
            ("read_file", json!({"file_path": path})),
            ("grep_files", json!({"pattern": ".", "path": path, "output_mode": "content"})),
            ("shell_command", json!({"command": format!("head {path}")})),
        ] {
            let ended = user.run(&["call", "-a", "untrusted", "-s", mode, tool, &input.to_string()]);
            ended.assert_code(3);
            let told = format!("`{path}` may hold secrets");
            assert!(
                ended.stdout.contains(&told) && !ended.stdout.contains("hush"),
                "{tool} {mode}: {ended:#?}"
            );
        }
    }
}

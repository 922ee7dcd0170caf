//! `windlass tools`: which tools there are.

use serde_json::Value;

use crate::support::User;

fn json(user: &User, args: &[&str]) -> Value {
    let ended = user.run(args);
    ended.assert_code(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_list_has_every_tool_and_says_which_are_offered() {
    let ended = User::new().run(&["tools", "list"]);
    ended.assert_code(0);
    insta::assert_snapshot!(ended.stdout, @r"
    TOOL                OFFERED    DESCRIPTION
    shell               if called  Run a program; returns what it printed and its exit code
    local_shell         if called  Run a program on this machine; returns what it printed and its exit code
    shell_command       yes        Run a command line in the user's shell; returns its exit code and what it printed
    exec_command        if called  Run a command line in the user's shell; returns what it printed, and its exit code or, if it still runs after `yield_time_ms`, a session ID for `write_stdin`
    write_stdin         if called  Type to a program that `exec_command` started, or wait for more of its output; returns what it printed since, and its exit code once it has ended
    update_plan         yes        Show the user your plan for the task and how far you are
    apply_patch         yes        Use the `apply_patch` tool to change files
    edit_file           if called  Replace a piece of text in a file
    write_file          if called  Make a file, or rewrite a whole one
    grep_files          if called  Find files whose contents match a regular expression; returns their paths, the one that changed last first
    read_file           if called  Read a file; returns its lines with their numbers, as `L1: text`
    list_dir            if called  List what is in a directory; returns one name per line, indented by depth: `/` marks directories, `@` links
    view_image          yes        Look at an image file (PNG, JPEG, GIF or WebP)
    run_tests           if called  Run the project's tests; returns totals, every failure with its message and place, and the slowest tests
    read_output         yes        Read more of an output that was cut
    request_user_input  if called  Ask the user one to three short questions, and wait for the answers
    run_command         if called  Run a command line in the user's shell; returns its exit code, and standard output and error apart
    ");
}

#[test]
fn the_list_depends_on_the_model_and_the_configuration() {
    let user = User::new();
    let offered = |args: &[&str]| {
        let list = json(&user, &[&["tools", "list", "--json"], args].concat());
        let offered = list.as_array().unwrap().iter().filter(|tool| tool["advertised"] == true);
        offered.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let gpt = |shell| vec![shell, "update_plan", "apply_patch", "view_image", "read_output"];
    assert_eq!(offered(&["-c", "model=\"gpt-5\""]), gpt("shell"));
    assert_eq!(offered(&["-c", "model=\"codex-mini-latest\""]), gpt("local_shell"));
    assert_eq!(offered(&["-c", "shell_tool=\"disabled\""]), gpt("")[1..]);
    let unified = |value: &str, model: &str| {
        offered(&["-c", &format!("features.unified_exec={value}"), "-c", model])[0].clone()
    };
    assert_eq!(unified("true", "model=\"gpt-5\""), "exec_command");
    assert_eq!(unified("false", "model=\"gpt-5.4\""), "shell_command");
    assert_eq!(unified("false", "model=\"gpt-5\""), "shell");
    assert_eq!(unified("true", "shell_tool=\"shell\""), "shell", "the key of our own says more");
    let all = [
        "shell_command",
        "update_plan",
        "apply_patch",
        "grep_files",
        "read_file",
        "list_dir",
        "view_image",
        "run_tests",
        "read_output",
    ];
    assert_eq!(offered(&["-c", "file_tools=\"enabled\""]), all);
    let local = offered(&["-c", "model=\"qwen3\""]);
    assert_eq!(local[..4], ["shell_command", "update_plan", "edit_file", "write_file"]);
    assert_eq!(local[4..], all[3..]);
    assert_eq!(offered(&["-c", "model=\"qwen3\"", "-c", "edit_tool=\"apply_patch\""]), all);
    assert_eq!(
        offered(&["-c", "model=\"gpt-5\"", "-c", "edit_tool=\"edit_file\""]),
        ["shell", "update_plan", "edit_file", "write_file", "view_image", "read_output"]
    );
    assert_eq!(
        offered(&["-c", "model=\"gpt-oss-20b\"", "-c", "file_tools=\"enabled\""])[..3],
        ["shell", "update_plan", "apply_patch"]
    );
    assert_eq!(
        offered(&["-c", "model=\"gpt-oss-20b\""]),
        ["shell", "update_plan", "apply_patch", "read_output"]
    );
    assert_eq!(
        offered(&["-c", "file_tools=\"disabled\""]),
        ["shell_command", "update_plan", "apply_patch", "read_output"]
    );
    assert_eq!(
        offered(&["-c", "web_search=\"live\"", "-c", "shell_tool=\"shell\""]),
        ["shell", "update_plan", "apply_patch", "web_search", "view_image", "read_output"]
    );
}

#[test]
fn a_disabled_shell_cannot_be_called_under_any_name() {
    let user = User::new();
    for name in ["shell", "shell_command", "local_shell", "container.exec"] {
        let settings = ["-c", "shell_tool=\"disabled\"", "--sandbox", "danger-full-access"];
        user.run(&[&["call", name, r#"{"command":["true"]}"#], &settings[..]].concat()).assert_code(2);
    }
}

#[test]
fn one_tool_is_shown_by_name_or_alias() {
    let user = User::new();
    let shell = user.run(&["tools", "show", "shell"]);
    shell.assert_code(0);
    assert!(shell.stdout.starts_with("# shell\n\nRun a program;"), "{shell:#?}");
    for part in ["\nParameters:\n- `command` (array, required): ", "\nExamples:\n", "- `container.exec`\n"] {
        assert!(shell.stdout.contains(part), "{part}: {shell:#?}");
    }
    assert_eq!(user.run(&["tools", "show", "container.exec"]), shell);
    assert_eq!(json(&user, &["tools", "show", "shell", "--json"])["spec"]["name"], "shell");
}

#[test]
fn an_unknown_tool_is_wrong_usage_that_names_a_near_one() {
    let said = |name| User::new().run(&["tools", "show", name]).assert_code(2).stderr.clone();
    assert_eq!(said("nope"), "error: there is no tool `nope`; `windlass tools list` lists all\n");
    assert_eq!(said("read_fille"), "error: there is no tool `read_fille`; did you mean `read_file`?\n");
}

#[test]
fn the_manifest_has_every_tool_by_category_and_is_always_the_same() {
    let user = User::new();
    let manifest = user.run(&["tools", "manifest"]);
    manifest.assert_code(0);
    let headings: Vec<_> = manifest.stdout.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# Tools",
            "## Execution",
            "### shell",
            "### local_shell",
            "### shell_command",
            "### exec_command",
            "### write_stdin",
            "### run_tests",
            "### run_command",
            "## Files",
            "### apply_patch",
            "### edit_file",
            "### write_file",
            "### grep_files",
            "### read_file",
            "### list_dir",
            "### view_image",
            "### read_output",
            "## Planning",
            "### update_plan",
            "### request_user_input"
        ]
    );
    assert_eq!(user.run(&["tools", "manifest"]), manifest);
    let categories = json(&user, &["tools", "manifest", "--json"]);
    let names = categories.as_array().unwrap().iter().map(|each| &each["tools"][0]["spec"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["shell", "apply_patch", "update_plan"]);
}

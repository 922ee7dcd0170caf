//! `windlass exec` without a model: rules answer.

use crate::support::{Running, User};

#[test]
fn without_a_key_rules_answer_and_say_so() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    let ended = user.run(&["exec", "show notes.txt"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt, line 1:\n    1  buy paper\n");
    let who = "offline rules, no model: set OPENAI_API_KEY or choose a --provider for one";
    assert_eq!(ended.stderr.lines().nth(1), Some(who));
}

#[test]
fn a_change_that_nobody_can_approve_is_refused_and_told() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    let ended = user.run(&["exec", "delete notes.txt"]);
    ended.assert_code(3);
    assert!(
        ended.stdout.contains("read-only sandbox") && ended.stdout.contains("-s workspace-write"),
        "{}",
        ended.stdout
    );
    assert_eq!(user.read("notes.txt"), "buy paper\n");
}

#[test]
fn rules_answer_where_nobody_else_was_chosen() {
    let user = User::new();
    let chosen = user.run(&["exec", "-m", "gpt-5", "hello"]);
    chosen.assert_code(2);
    assert!(chosen.stderr.contains("no API key"), "{}", chosen.stderr);
    let mut program = user.program(&["exec", "-p", "builtin", "hello"]);
    program.env("OPENAI_API_KEY", "sk-user");
    let forced = Running::start(program).end();
    forced.assert_code(0);
    assert!(forced.stdout.starts_with("This is windlass, without a model"), "{}", forced.stdout);
}

#[test]
fn a_session_of_rules_goes_on() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    user.run(&["exec", "show notes.txt"]).assert_code(0);
    let ended = user.run(&["exec", "resume", "--last", "notes.txt 有多少行"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt：1 行\n");
    let ended = user.run(&["exec", "resume", "--last", "show it"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt, line 1:\n    1  buy paper\n");
}

#[test]
fn the_former_name_of_the_rules_is_still_known() {
    let user = User::new();
    user.run(&["exec", "-p", "rules", "hello"]).assert_code(0);
    user.run(&["exec", "-c", "model_provider=\"builtin\"", "hello"]).assert_code(0);
}

#[test]
fn a_value_is_changed_and_never_its_key() {
    let user = User::new();
    user.file("settings.yaml", "debug: false\nport: 80\n");
    user.file("app.js", "const PORT = process.env.PORT || 3000;\n");
    let write = |request: &str| user.run(&["exec", "-s", "workspace-write", request]);
    let ended = write("change debug to true in settings.yaml");
    ended.assert_code(0);
    let difference = "settings.yaml:1\n- debug: false\n+ debug: true\n";
    assert!(ended.stdout.ends_with(difference), "{}", ended.stdout);
    assert_eq!(user.read("settings.yaml"), "debug: true\nport: 80\n");
    // It is said before it is done.
    let [said, done] = ["+ debug: true", "edit_file"].map(|text| ended.stderr.find(text));
    assert!(said.is_some() && said < done, "{}", ended.stderr);
    let ended = write("change PORT to 9000 in app.js");
    ended.assert_code(1);
    assert_eq!(user.read("app.js"), "const PORT = process.env.PORT || 3000;\n");
}

#[test]
fn what_ends_badly_or_is_not_done_is_1() {
    let user = User::new();
    user.file("app.log", "INFO a\nERROR b\nERROR c\n");
    user.file("a.py", "import os\n");
    for (request, code, said) in [
        ("run \"false\"", 1, "exit code 1"),
        ("write a hello world in python", 1, "`write`"),
        ("undo that", 1, "`windlass undo`"),
        ("run the command: printf '%s' \"$((6*7))\"", 0, "42"),
        ("how many ERROR lines in the log", 0, "`ERROR` is on 2 lines in 1 file"),
        ("日志最后 2 行", 0, "ERROR c"),
        ("list the python files, ignore a.py", 1, "`ignore`"),
        ("which files use os.path?", 0, "`os.path` is nowhere to be found"),
        ("show a.py; how many lines does a.py have", 0, "a.py: 1 line"),
    ] {
        let ended = user.run(&["exec", request]);
        ended.assert_code(code);
        assert!(ended.stdout.contains(said), "{request}: {}", ended.stdout);
    }
}

//! `windlass exec` without a model: rules answer.

use crate::support::{Running, User};

#[test]
fn without_a_key_rules_answer_and_say_so() {
    let user = User::new();
    user.file("notes.txt", "buy paper\n");
    let ended = user.run(&["exec", "show notes.txt"]);
    ended.assert_code(0);
    assert_eq!(ended.stdout, "notes.txt, line 1:\n    1  buy paper\n");
    let who = "offline rules, no model; for a model, set OPENAI_API_KEY or choose a --provider";
    assert_eq!(ended.stderr.lines().nth(1), Some(format!("model: {who}").as_str()));
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
    let [said, done] = ["+ debug: true", "edit settings.yaml"].map(|text| ended.stderr.find(text));
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

#[test]
fn tests_that_fail_and_commands_that_time_out_are_1() {
    let user = User::new();
    user.file(
        "test_a.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.fail()\n",
    );
    let ended = user.run(&["exec", "-s", "workspace-write", "run the tests"]);
    ended.assert_code(1);
    assert!(ended.stdout.contains("0 passed, 1 failed"), "{ended:#?}");
    let ended = user.run(&["exec", "-c", "command_time_limit_sec=1", "run \"sleep 50\""]);
    ended.assert_code(1);
    assert!(ended.stdout.contains("timed out"), "{ended:#?}");
}

/// A user with a project of a few files, two branches and one commit.
fn user_with_a_project() -> User {
    let user = User::new();
    for directory in ["config", "archive", "tests"] {
        std::fs::create_dir(user.work().join(directory)).unwrap();
    }
    user.file("config/settings.yaml", SETTINGS);
    user.file("app.js", APP);
    user.file("main.py", MAIN);
    user.file("archive/old.py", "total = 1\n");
    user.file("tests/test_main.py", "total = 2\n");
    user.file("app.log", "INFO a\nERROR b\nERROR c\n");
    let git = "git init -q -b main && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm one \
               && git branch release/0.3 && git branch feature/refund";
    Running::start(user.shell(git)).end().assert_code(0);
    user
}

const SETTINGS: &str = "debug: false\nport: 80\n";
const APP: &str = "const PORT = process.env.PORT || 3000;\nconsole.log(PORT);\n";
const MAIN: &str = "TIMEOUT = 8\ntax_rate = 0.2\n";

#[test]
fn what_is_understood_is_done_as_it_was_said() {
    for (request, said, changed) in [
        (
            "change debug to true in config/settings.yaml",
            "- debug: false\n+ debug: true\n",
            Some(("config/settings.yaml", "debug: true\nport: 80\n")),
        ),
        (
            "把 TIMEOUT 改成 10",
            "- TIMEOUT = 8\n+ TIMEOUT = 10\n",
            Some(("main.py", "TIMEOUT = 10\ntax_rate = 0.2\n")),
        ),
        ("which files use console.log?", "`console.log` is in 1 file:\n  app.js: 1\n", None),
        ("日志里有几条 ERROR", "`ERROR` 出现在 1 个文件的 2 行中\n  app.log: 2\n", None),
        ("tax_rate 在哪儿定义的", "main.py:2: tax_rate = 0.2\n", None),
        ("how many ERROR lines in the log", "`ERROR` is on 2 lines in 1 file\n", None),
        ("日志最后 10 行", "3  ERROR c\n", None),
        ("run the command: python3 -c \"print(6*7)\"", "42\n", None),
    ] {
        let user = user_with_a_project();
        let ended = user.run(&["exec", "-s", "workspace-write", request]);
        ended.assert_code(0);
        assert!(ended.stdout.contains(said), "{request}: {ended:#?}");
        for (path, before) in [("config/settings.yaml", SETTINGS), ("app.js", APP), ("main.py", MAIN)] {
            let after = changed.filter(|(name, _)| *name == path).map_or(before, |(_, after)| after);
            assert_eq!(user.read(path), after, "{request}: {path}");
        }
    }
}

#[test]
fn what_is_not_understood_whole_is_declined_and_nothing_is_run() {
    let user = user_with_a_project();
    for (request, said) in [
        ("what changed between release/0.3 and main", "do not understand this"),
        ("这周谁提交了代码", "不明白"),
        ("commits did each author make", "`each`"),
        ("feature/refund 比 main 多了什么", "没有理解这个请求"),
        ("find every TODO except in archive", "`except`"),
        ("list the python files, ignore archive", "`ignore`"),
        ("列出 python 文件，不要 main.py", "不要"),
        ("show main.py; deploy it to the moon", "`deploy`"),
        ("先看 main.py，再飞到月球", "不明白"),
        ("write a hello world in python", "`write`"),
    ] {
        let ended = user.run(&["exec", "-s", "workspace-write", request]);
        ended.assert_code(1);
        assert!(ended.stdout.contains(said), "{request}: {ended:#?}");
        assert!(!ended.stderr.contains("• "), "{request}: {ended:#?}");
    }
    // This one has to look first.
    let ended = user.run(&["exec", "-s", "workspace-write", "change PORT to 9000 in app.js"]);
    ended.assert_code(1);
    assert_eq!(user.read("app.js"), APP);
}

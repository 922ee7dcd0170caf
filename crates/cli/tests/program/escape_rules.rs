//! Rules that let a command leave the sandbox: what was approved runs, and nothing that a workspace
//! put around it.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Ended, Running, User};

/// In the sandbox, with nobody to ask.
const HELD: [&str; 5] = ["-s", "workspace-write", "-a", "never", "--json"];

/// A workspace with an environment of its own in front of the search path, and a place outside of
/// it.
struct Workspace {
    user: User,
    outside: PathBuf,
}

impl Workspace {
    /// With a rule that lets exactly this leave the sandbox.
    fn with_rule(argv: impl Fn(&Path) -> Vec<String>) -> Self {
        let user = User::new();
        let outside = user.home().parent().unwrap().join("outside");
        for directory in [&outside, &user.home().join("rules"), &user.work().join(".venv/bin")] {
            fs::create_dir_all(directory).unwrap();
        }
        let argv = json!(argv(&outside));
        let rule = format!("[[rule]]\nargv = {argv}\ndecision = \"allow\"\nescape_sandbox = true\n");
        fs::write(user.home().join("rules/mine.toml"), rule).unwrap();
        Self { user, outside }
    }

    fn touching() -> Self {
        Self::with_rule(|outside| vec!["/usr/bin/touch".to_owned(), text(&outside.join("approved"))])
    }

    /// The approved line, by a name that is looked up and by the path of the file.
    fn touch(&self) -> (String, String) {
        let file = text(&self.outside.join("approved"));
        (format!("touch {file}"), format!("/usr/bin/touch {file}"))
    }

    /// Puts a program into the environment, which can only leave a mark if nothing holds it.
    fn plant(&self, path: &str) {
        let script = format!("#!/bin/dash\n: > {}\n", text(&self.outside.join("planted")));
        let path = self.user.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn call(&self, tool: &str, input: &Value, options: &[&str]) -> Ended {
        let mut program = self.user.program(&[&["call", tool, &input.to_string()], options].concat());
        program.env("PATH", self.search_path());
        Running::start(program).end()
    }

    fn search_path(&self) -> String {
        format!("{}:/usr/local/bin:/usr/bin:/bin", text(&self.user.work().join(".venv/bin")))
    }

    /// Whether the approved program, and whether a planted one has run outside; forgets both.
    fn marks(&self) -> (bool, bool) {
        let taken = |name: &str| fs::remove_file(self.outside.join(name)).is_ok();
        (taken("approved"), taken("planted"))
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_command_that_may_leave_is_started_directly_and_the_receipt_says_so() {
    let workspace = Workspace::touching();
    let (named, by_path) = workspace.touch();
    for line in [named.clone(), by_path, format!("{named} 2>&1 </dev/null >/dev/null")] {
        let ended = workspace.call("shell_command", &json!({"command": line}), &HELD);
        ended.assert_code(0);
        assert_eq!(workspace.marks(), (true, false), "{line}");
        let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(outcome["receipt"]["held"]["rung"], "unconfined");
        let decision = outcome["receipt"]["decision"].as_str().unwrap();
        assert!(decision.contains("allowed by the rule"), "{decision}");
        assert!(decision.ends_with("; started directly, without a shell"), "{decision}");
    }
}

#[test]
fn planted_wrappers_and_shells_do_not_run_outside() {
    let workspace = Workspace::touching();
    for name in ["timeout", "time", "nice", "bash", "sh", "dash", "zsh"] {
        workspace.plant(&format!(".venv/bin/{name}"));
    }
    let (_, line) = workspace.touch();
    for wrapper in ["timeout 5 ", "time ", "nice ", "env ", "LC_ALL=C "] {
        workspace.call("shell_command", &json!({"command": format!("{wrapper}{line}")}), &HELD);
        assert_eq!(workspace.marks(), (false, false), "{wrapper}");
    }
    for shell in ["bash", "sh", "dash"] {
        workspace.call("shell_command", &json!({"command": format!("{shell} -c '{line}'")}), &HELD);
        assert_eq!(workspace.marks(), (false, false), "{shell} in a line");
        // As a tool runs a line: no shell is needed for what was approved.
        workspace.call("shell", &json!({"command": [shell, "-c", line]}), &HELD);
        assert_eq!(workspace.marks(), (true, false), "{shell}");
    }
    for shell in ["zsh", "./.venv/bin/bash", ".venv/bin/zsh"] {
        workspace.call("exec_command", &json!({"cmd": line, "shell": shell}), &HELD);
        assert_eq!(workspace.marks(), (false, false), "{shell}");
    }
}

#[test]
fn a_login_shell_with_a_path_of_its_own_stays_in_the_sandbox() {
    let workspace = Workspace::touching();
    workspace.plant("node_modules/.bin/touch");
    let home = workspace.user.home();
    for profile in [".profile", ".bash_profile"] {
        let path = home.parent().unwrap().join(profile);
        fs::write(path, "export PATH=./node_modules/.bin:$PATH\n").unwrap();
    }
    let (line, _) = workspace.touch();
    workspace.call("shell_command", &json!({"command": line, "login": true}), &HELD);
    workspace.call("exec_command", &json!({"cmd": line, "login": true}), &HELD);
    workspace.call("shell", &json!({"command": ["bash", "-lc", line]}), &HELD);
    workspace.call("shell_command", &json!({"command": format!("bash -lc '{line}'")}), &HELD);
    assert_eq!(workspace.marks(), (false, false));
}

#[test]
fn input_that_nobody_approved_does_not_leave_with_the_command() {
    let workspace =
        Workspace::with_rule(|outside| vec!["/usr/bin/tee".to_owned(), text(&outside.join("approved"))]);
    let written = workspace.outside.join("approved");
    let line = format!("tee {}", text(&written));
    workspace.call("shell_command", &json!({"command": line}), &HELD).assert_code(0);
    assert_eq!(fs::read_to_string(&written).unwrap(), "", "what was approved reads nothing");
    workspace.user.file("evil", "owned\n");
    let inputs = ["<<< owned", "< evil", "<<E\nowned\nE", "0< evil"].map(|input| format!("{line} {input}"));
    for other in inputs.into_iter().chain([format!("echo owned | {line}")]) {
        workspace.call("shell_command", &json!({"command": other}), &HELD);
        assert_eq!(fs::read_to_string(&written).unwrap(), "", "{other}");
    }
}

#[test]
fn a_terminal_that_could_be_typed_to_is_not_covered_by_a_rule() {
    let workspace = Workspace::touching();
    let (line, _) = workspace.touch();
    workspace.call("exec_command", &json!({"cmd": line, "tty": true}), &HELD);
    assert_eq!(workspace.marks(), (false, false));
    workspace.call("exec_command", &json!({"cmd": line}), &HELD).assert_code(0);
    assert_eq!(workspace.marks(), (true, false));
}

#[test]
fn a_program_that_may_leave_finds_no_programs_in_the_workspace() {
    let search_path = env::var_os("PATH").unwrap();
    let mut found = env::split_paths(&search_path).map(|path| path.join("git"));
    let git = found.find(|path| path.is_file()).expect("git is on the search path");
    let git = text(&git.parent().unwrap().canonicalize().unwrap().join("git"));
    let workspace = Workspace::with_rule(|_| vec![git.clone(), "fetch".to_owned()]);
    workspace.plant(".venv/bin/ssh");
    let work = workspace.user.work();
    for arguments in [&["init", "--quiet"][..], &["remote", "add", "origin", "ssh://localhost:9/x"]] {
        let made = Command::new(&git).args(arguments).current_dir(&work).status().unwrap();
        assert!(made.success());
    }
    let ended = workspace.call("shell_command", &json!({"command": format!("{git} fetch")}), &HELD);
    assert_eq!(workspace.marks(), (false, false), "git took its `ssh` from the workspace");
    assert!(ended.stdout.contains("started directly"), "{ended:#?}");
}

#[test]
fn a_planted_program_is_not_known_to_be_harmless_where_nothing_holds_it() {
    let workspace = Workspace::touching();
    let options = ["-s", "danger-full-access", "-a", "untrusted"];
    workspace.call("shell_command", &json!({"command": "ls"}), &options).assert_code(0);
    for name in ["ls", "timeout", "zsh"] {
        workspace.plant(&format!(".venv/bin/{name}"));
    }
    for (tool, input) in [
        ("shell_command", json!({"command": "ls"})),
        ("shell_command", json!({"command": "timeout 5 date"})),
        ("exec_command", json!({"cmd": "date", "shell": "zsh"})),
    ] {
        workspace.call(tool, &input, &options).assert_code(3);
        assert_eq!(workspace.marks(), (false, false), "{input}");
    }
    workspace.call("shell_command", &json!({"command": "date"}), &options).assert_code(0);
}

/// The lines of a question about a command, which is then refused.
fn question(user: &User, input: &Value, options: &str) -> String {
    let mut program = user.program_on_a_terminal(&format!("call shell_command '{input}' {options}"));
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("wants to run");
    running.feed(b"n\n").end().stdout
}

/// Which answers beside yes and no are offered for leaving the sandbox with a command.
fn offered(user: &User, command: &str) -> String {
    let input = json!({"command": command, "sandbox_permissions": "require_escalated"});
    let asked = question(user, &input, "-s workspace-write -a on-request");
    assert!(asked.contains("WITHOUT the sandbox"), "{asked}");
    let is_offered = |answer: &&char| asked.lines().any(|line| line.starts_with(&format!("  {answer}  yes")));
    ['s', 'p', 'a'].iter().filter(is_offered).collect()
}

#[test]
fn only_what_no_workspace_steers_is_offered_for_good() {
    let user = User::new();
    assert_eq!(offered(&user, "df -h"), "spa");
    for command in ["sh x.sh", "git fetch", "tee x", "awk -f x.awk"] {
        assert_eq!(offered(&user, command), "s", "{command}");
    }
    for command in [
        "git push",
        "git fetch --upload-pack=x",
        "timeout 5 df",
        "tee x <<< y",
        "LC_ALL=C df",
        "df | cat",
        "df; df",
        "df > x",
    ] {
        assert_eq!(offered(&user, command), "", "{command}");
    }
}

#[test]
fn a_secret_gets_no_rule_and_rules_with_one_are_listed_without_it() {
    let user = User::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let asked =
        question(&user, &json!({"command": format!("tee {token}")}), "-s workspace-write -a untrusted");
    assert!(asked.contains("hold a secret") && asked.contains("  s  yes"), "{asked}");
    assert!(!asked.contains("  p  yes") && !asked.contains("  a  yes"), "{asked}");
    fs::create_dir_all(user.home().join("rules")).unwrap();
    let rule = format!("[[rule]]\nprefix = [\"make\", \"{token}\"]\ndecision = \"allow\"\n");
    fs::write(user.home().join("rules/mine.toml"), rule).unwrap();
    for listed in [user.run(&["policy", "rules"]), user.run(&["policy", "rules", "--json"])] {
        listed.assert_code(0);
        assert!(!listed.stdout.contains(&token) && listed.stdout.contains("[REDACTED:"), "{listed:#?}");
    }
    let listed = user.run(&["policy", "rules", "--json"]);
    let rules: Value = serde_json::from_str(&listed.stdout).unwrap();
    let revoked = user.run(&["policy", "revoke", rules[0]["id"].as_str().unwrap(), "--yes"]);
    revoked.assert_code(0);
    assert!(!revoked.stderr.contains(&token), "{revoked:#?}");
}

/// Runs commands of a script, one a turn.
fn exec(user: &User, calls: &[Value], options: &[&str]) -> Ended {
    let turns = calls.iter().map(|call| json!({"calls": [call]}));
    let turns: Vec<_> = turns.chain([json!({"text": "done"})]).collect();
    let script = user.script(&json!(turns));
    user.run(&[&["exec", "--script", &script, "go"], options].concat())
}

#[test]
fn while_a_command_in_the_background_can_change_settings_nothing_leaves_by_a_rule() {
    let git = if Path::new("/usr/local/bin/git").exists() { "/usr/local/bin/git" } else { "/usr/bin/git" };
    let workspace = Workspace::with_rule(|_| vec![git.to_owned(), "status".to_owned()]);
    let mark = text(&workspace.outside.join("planted"));
    let plant =
        format!("git init -q . && git config core.fsmonitor ': > {mark}; false' && echo ready; sleep 60");
    let background = json!({"name": "exec_command", "arguments": {"cmd": plant, "yield_time_ms": 3000}});
    let status = json!({"name": "shell_command", "arguments": {"command": "git status"}});
    let ended = exec(&workspace.user, &[background, status], &["-s", "workspace-write", "-a", "never"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("nothing added to commit"), "{}", ended.stderr);
    assert_eq!(workspace.marks(), (false, false));
    let records = serde_json::to_string(&workspace.user.records()).unwrap();
    assert!(records.contains("; in the sandbox, because `"), "{records}");
    // Alone, it leaves.
    let ended = workspace.call("shell_command", &json!({"command": "git status"}), &HELD);
    assert!(ended.stdout.contains("; started directly, without a shell"), "{}", ended.stdout);
    assert_eq!(workspace.marks(), (false, false), "what was planted is gone");
}

#[test]
fn a_home_directory_as_workspace_keeps_the_files_of_windlass_and_lets_nothing_leave() {
    let workspace = Workspace::touching();
    let (line, _) = workspace.touch();
    let home = workspace.user.work();
    let own = home.join(".windlass");
    fs::create_dir_all(own.join("rules")).unwrap();
    fs::copy(workspace.user.home().join("rules/mine.toml"), own.join("rules/mine.toml")).unwrap();
    for line in [line.as_str(), "echo a > a; d=.wind; echo x > ${d}lass/x"] {
        let input = json!({"command": line}).to_string();
        let mut program = workspace.user.program(&[&["call", "shell_command", &input][..], &HELD].concat());
        program.env("HOME", &home).env_remove("WINDLASS_HOME");
        Running::start(program).end().assert_code(1);
    }
    assert_eq!(workspace.marks(), (false, false));
    let names: Vec<_> =
        fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name == "running"), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("refused") || name == "x"), "{names:?}");
}

#[test]
fn a_run_without_a_person_refuses_what_the_chosen_policy_would_ask_about() {
    let user = User::new();
    let push = json!({"name": "shell_command", "arguments": {"command": "git push nowhere HEAD"}});
    let ended = exec(&user, std::slice::from_ref(&push), &["-s", "danger-full-access", "-a", "on-request"]);
    ended.assert_code(3);
    assert!(ended.stderr.contains("it pushes to a repository that others share"), "{}", ended.stderr);
    let ended = exec(&user, &[push], &["-s", "danger-full-access", "-a", "never"]);
    assert!(!ended.stderr.contains("nobody is there"), "{}", ended.stderr);
}

//! `windlass policy allow` and `windlass policy deny`.

use serde_json::{Value, json};

use crate::support::User;

const UNTRUSTED: [&str; 4] = ["-a", "untrusted", "-s", "read-only"];

fn decision(user: &User, command: &str) -> Value {
    let ended = user.run(&[&["policy", "explain", "--json", command], &UNTRUSTED[..]].concat());
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    shown["decision"].clone()
}

fn rules(user: &User) -> Vec<Value> {
    serde_json::from_str(&user.run(&["policy", "rules", "--json"]).stdout).unwrap()
}

#[test]
fn an_allowed_command_runs_without_a_question_and_is_told_with_its_neighbours() {
    let user = User::new();
    let before = decision(&user, "cargo test");
    let allowed = user.run(&["policy", "allow", "cargo test"]);
    allowed.assert_code(0);
    for part in [
        "prefix = [\"cargo\", \"test\"]",
        "also matches",
        "  cargo test --verbose\n",
        "not match",
        "  cargo\n",
    ] {
        assert!(allowed.stdout.contains(part), "{part}: {allowed:?}");
    }
    let after = decision(&user, "cargo test -p x");
    assert_ne!(before, after);
    // The examples are true.
    let (also, not) = allowed.stdout.split_once("It does not match").unwrap();
    let examples = |text: &str| {
        text.lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| line.contains("cargo") && !line.starts_with(' '))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (also, not) = (examples(also), examples(not));
    assert!(also.len() >= 3 && not.len() >= 3, "{also:?} {not:?}");
    assert!(also.iter().all(|line| decision(&user, line) == after), "{also:?}");
    assert!(not.iter().all(|line| decision(&user, line) != after), "{not:?}");
    let id = allowed.stdout.lines().last().unwrap().rsplit(' ').next().unwrap();
    user.run(&["policy", "revoke", "--yes", id]).assert_code(0);
    assert_eq!(decision(&user, "cargo test"), before);
}

#[test]
fn a_rule_is_for_this_project_unless_all_are_meant() {
    let user = User::new();
    std::fs::create_dir(user.work().join("other")).unwrap();
    for directory in ["", "other"] {
        std::fs::create_dir(user.work().join(directory).join(".git")).unwrap();
    }
    let elsewhere = |command: &str| {
        let ended =
            user.run(&[&["-C", "other", "policy", "explain", "--json", command], &UNTRUSTED[..]].concat());
        serde_json::from_str::<Value>(&ended.stdout).unwrap()["decision"].clone()
    };
    user.run(&["policy", "allow", "make check", "--project"]).assert_code(0);
    user.run(&["policy", "allow", "ninja check", "--user"]).assert_code(0);
    assert_eq!(decision(&user, "make check"), decision(&user, "ninja check"));
    assert_ne!(elsewhere("make check"), elsewhere("ninja check"));
    user.run(&["policy", "allow", "make check", "--user", "--project"]).assert_code(2);
    let seen = user.run(&["policy", "allow", "go vet", "--dry-run", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&seen.stdout).unwrap()["written"], json!(false));
    assert_eq!(rules(&user).len(), 2);
}

#[test]
fn a_denied_command_is_refused_behind_any_wrapper() {
    let user = User::new();
    user.run(&["policy", "deny", "--user", "git push"]).assert_code(0);
    for line in ["git push", "sudo git push origin", "env X=1 git push"] {
        assert_eq!(decision(&user, line), "refuse", "{line}");
    }
    let allowed = user.run(&["policy", "allow", "git push"]);
    allowed.assert_code(2);
    assert!(allowed.stderr.contains("forbidden by the rule `git push`"), "{allowed:?}");
    user.run(&["policy", "deny", "git push"]).assert_code(0);
    assert_eq!(rules(&user).len(), 1, "it was refused already");
}

#[test]
fn a_rule_without_effect_is_not_written_and_the_reason_is_told() {
    let user = User::new();
    for (command, reason) in [
        ("git", "it does very different things"),
        ("npm run", "it does very different things"),
        ("git push --force", "it is asked about each time"),
        ("rm -rf /", "it is refused"),
        ("make > out", "redirections"),
        ("make $x", "its text does not say what it does"),
        ("  ", "the command is empty"),
        ("echo AKIAQ3EGRFU5HJ2LTVXZ", "contains a secret"),
    ] {
        let ended = user.run(&["policy", "allow", command]);
        ended.assert_code(2);
        assert!(ended.stderr.contains(reason), "{command}: {ended:?}");
    }
    let safe = user.run(&["policy", "allow", "ls"]);
    safe.assert_code(0);
    assert!(safe.stdout.contains("already runs without a question"), "{safe:?}");
    assert_eq!(rules(&user).len(), 0);
}

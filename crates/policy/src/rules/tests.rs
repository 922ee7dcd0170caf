//! Tests of this module.

use super::*;
use crate::shell::{Dialect, Script};

fn load(text: &str, trust: Trust) -> Result<Rules, RuleError> {
    Rules::load(&[RuleFile { name: "r.toml", text, trust }])
}

fn found(rules: &Rules, source: &str) -> Option<Action> {
    let script = Script::parse(source, Dialect::Bash);
    rules.find(&script.commands[0].words).map(|rule| rule.decision)
}

fn rule(prefix: &str, decision: &str) -> String {
    format!("[[rule]]\nprefix = {prefix}\ndecision = \"{decision}\"\n")
}

#[test]
fn a_rule_fits_commands_that_begin_with_its_words() {
    let rules = load(&rule(r#"["git", ["push", "pull"]]"#, "allow"), Trust::User).unwrap();
    assert_eq!(found(&rules, "git push origin main"), Some(Action::Allow));
    assert_eq!(found(&rules, "'git' pull"), Some(Action::Allow));
    assert_eq!(found(&rules, "/usr/bin/git pull"), Some(Action::Allow));
    for other in ["git", "git fetch", "git -c a=b push", "./git push", "/tmp/git push", "git p*", "git $x"] {
        assert_eq!(found(&rules, other), None, "{other}");
    }
}

#[test]
fn what_forbids_sees_a_program_behind_any_path() {
    let rules = load(&rule(r#"["curl"]"#, "forbid"), Trust::Project).unwrap();
    for source in ["curl x", "/usr/bin/curl x", "./curl", "/opt/x/curl"] {
        assert_eq!(found(&rules, source), Some(Action::Forbid), "{source}");
    }
}

#[test]
fn the_strictest_rule_wins() {
    let text = rule(r#"["git", "push"]"#, "allow")
        + &rule(r#"["git"]"#, "ask")
        + &rule(r#"["git", "push", "-f"]"#, "forbid");
    let rules = load(&text, Trust::User).unwrap();
    assert_eq!(found(&rules, "git push"), Some(Action::Ask));
    assert_eq!(found(&rules, "git push -f"), Some(Action::Forbid));
}

#[test]
fn a_project_may_only_tighten() {
    let text = rule(r#"["cargo", "test"]"#, "allow") + &rule(r#"["cargo", "run"]"#, "ask");
    let rules = load(&text, Trust::Project).unwrap();
    assert_eq!(found(&rules, "cargo test"), None);
    assert_eq!(found(&rules, "cargo run"), Some(Action::Ask));
    assert_eq!(
        rules.notes(),
        [
            "`r.toml`, line 1: the rule for `cargo test` is ignored: a project may ask and forbid, only the user may allow"
        ]
    );
}

#[test]
fn examples_are_checked_on_load() {
    let good = rule(r#"["git", "push"]"#, "allow")
        + "match = [\"git push x\", [\"git\", \"push\"]]\nnot_match = [\"git pull\"]\n";
    assert!(load(&good, Trust::User).is_ok());
    let misses = rule(r#"["git", "push"]"#, "allow") + "match = [\"git pull\"]\n";
    assert_eq!(
        load(&misses, Trust::User).unwrap_err().to_string(),
        "`r.toml`, line 1: the rule `git push` does not match its example `git pull`"
    );
    let hits = "\n".to_owned() + &rule(r#"["git", "push"]"#, "allow") + "not_match = [\"git push -f\"]\n";
    assert_eq!(
        load(&hits, Trust::User).unwrap_err().to_string(),
        "`r.toml`, line 2: the rule `git push` matches `git push -f`, which it must not"
    );
    let two = rule(r#"["git", "push"]"#, "allow") + "match = [\"git push && ls\"]\n";
    assert!(matches!(load(&two, Trust::User), Err(RuleError::Example { .. })));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let cases = [
        ("[[rule]]\nprefix = [\"a\"]\ndecision = \"alow\"\n", "`r.toml`, line 3: "),
        ("[[rule]]\nprefix = [\"a\"]\ndecision = \"allow\"\ncolour = 1\n", "`r.toml`, line 4: "),
        ("x = \n", "`r.toml`, line 1: "),
        ("[[rule]]\nprefix = []\ndecision = \"ask\"\n", "`r.toml`, line 1: `prefix` needs"),
        ("[[rule]]\nprefix = [[]]\ndecision = \"ask\"\n", "`r.toml`, line 1: `prefix` needs"),
        (
            "[[rule]]\nprefix = [\"a\"]\ndecision = \"ask\"\nescape_sandbox = true\n",
            "`r.toml`, line 1: `escape_sandbox`",
        ),
    ];
    for (text, begin) in cases {
        let error = load(text, Trust::User).unwrap_err().to_string();
        assert!(error.starts_with(begin), "{error}");
    }
}

#[test]
fn nobody_can_allow_everything() {
    for prefix in [
        r#"["bash"]"#,
        r#"["bash", "-c"]"#,
        r#"["python3"]"#,
        r#"["python3", "-c"]"#,
        r#"["python3", "-m"]"#,
        r#"["node", "-e"]"#,
        r#"["sudo"]"#,
        r#"["env"]"#,
        r#"["env", "A=1"]"#,
        r#"["xargs"]"#,
        r#"["timeout", "5"]"#,
        r#"["git"]"#,
        r#"["rm"]"#,
        r#"["npm", "run"]"#,
        r#"["sudo", "bash"]"#,
        r#"[["cargo", "sh"]]"#,
        r#"["/bin/bash"]"#,
        r#"["find"]"#,
        r#"["eval"]"#,
        r#"["exec"]"#,
    ] {
        let text = rule(prefix, "allow");
        assert!(matches!(load(&text, Trust::User), Err(RuleError::TooWide { .. })), "{prefix}");
        assert!(load(&rule(prefix, "forbid"), Trust::User).is_ok(), "{prefix}");
    }
    for prefix in [
        r#"["python3", "-m", "pytest"]"#,
        r#"["bash", "build.sh"]"#,
        r#"["sudo", "systemctl", "restart"]"#,
        r#"["npm", "run", "test"]"#,
        r#"["cargo"]"#,
        r#"["git", "push"]"#,
        r#"["rm", "-rf", "build"]"#,
        r#"["make"]"#,
    ] {
        assert!(load(&rule(prefix, "allow"), Trust::User).is_ok(), "{prefix}");
    }
}

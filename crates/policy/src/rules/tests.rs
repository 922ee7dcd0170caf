//! Tests of this module.

use super::*;
use crate::shell::{ShellDialect, ShellScript};

fn load(text: &str, trust: Trust) -> Result<Rules, RuleError> {
    Rules::load(&[RuleFile { name: "r.toml", text, trust }])
}

/// Returns the first problem.
fn problem(text: &str) -> RuleProblem {
    load(text, Trust::User).unwrap_err().faults.remove(0).problem
}

fn found(rules: &Rules, source: &str) -> Option<RuleDecision> {
    let script = ShellScript::parse(source, ShellDialect::Bash);
    rules.find(&script.commands[0].words, &Surroundings::unknown()).map(|rule| rule.decision)
}

fn rule(prefix: &str, decision: &str) -> String {
    format!("[[rule]]\nprefix = {prefix}\ndecision = \"{decision}\"\n")
}

#[test]
fn a_rule_fits_commands_that_begin_with_its_words() {
    let rules = load(&rule(r#"["git", ["push", "pull"]]"#, "allow"), Trust::User).unwrap();
    assert_eq!(found(&rules, "git push origin main"), Some(RuleDecision::Allow));
    assert_eq!(found(&rules, "'git' pull"), Some(RuleDecision::Allow));
    assert_eq!(found(&rules, "/usr/bin/git pull"), Some(RuleDecision::Allow));
    for other in ["git", "git fetch", "git -c a=b push", "./git push", "/tmp/git push", "git p*", "git $x"] {
        assert_eq!(found(&rules, other), None, "{other}");
    }
}

#[test]
fn what_forbids_sees_a_program_behind_any_path() {
    let rules = load(&rule(r#"["curl"]"#, "forbid"), Trust::Project).unwrap();
    for source in ["curl x", "/usr/bin/curl x", "./curl", "/opt/x/curl"] {
        assert_eq!(found(&rules, source), Some(RuleDecision::Forbid), "{source}");
    }
}

#[test]
fn the_strictest_rule_wins() {
    let text = rule(r#"["git", "push"]"#, "allow")
        + &rule(r#"["git"]"#, "ask")
        + &rule(r#"["git", "push", "-f"]"#, "forbid");
    let rules = load(&text, Trust::User).unwrap();
    assert_eq!(found(&rules, "git push"), Some(RuleDecision::Ask));
    assert_eq!(found(&rules, "git push -f"), Some(RuleDecision::Forbid));
}

#[test]
fn a_project_may_only_tighten() {
    let text = rule(r#"["cargo", "test"]"#, "allow") + &rule(r#"["cargo", "run"]"#, "ask");
    let rules = load(&text, Trust::Project).unwrap();
    assert_eq!(found(&rules, "cargo test"), None);
    assert_eq!(found(&rules, "cargo run"), Some(RuleDecision::Ask));
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
    assert!(matches!(problem(&two), RuleProblem::Example { .. }));
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
        ("[[rule]]\ndecision = \"ask\"\n", "`r.toml`, line 1: the rule has no `prefix`"),
        ("[[rule]]\nprefix = [\"a\"]\n", "`r.toml`, line 1: the rule has no `decision`"),
        ("[rule]\nprefix = [\"a\"]\n", "`r.toml`, line 1: `rule` must be a list of tables"),
        ("[[rule]]\neffect = \"push\"\ndecision = \"allow\"\n", "`r.toml`, line 1: `effect` is for rules"),
        (
            "[[rule]]\nargv = [\"make\"]\ndecision = \"allow\"\nescape_sandbox = true\n",
            "`r.toml`, line 1: `make` is not an absolute path",
        ),
        (
            "[[rule]]\nargv = [\"a\"]\nprefix = [\"a\"]\ndecision = \"ask\"\n",
            "`r.toml`, line 1: a rule has one of",
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
        assert!(matches!(problem(&text), RuleProblem::TooWide { .. }), "{prefix}");
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

#[test]
fn all_mistakes_of_all_files_are_told_in_our_words() {
    let one = "[[rule]]\nprefix = \"git\"\ndecision = \"alow\"\n\n[[rule]]\nprefix = [\"make\"]\ndecision = \"ask\"\ncolour = 1\n";
    let other = "rules = 3\n";
    let files = [("a.toml", one), ("b.toml", other)];
    let files = files.map(|(name, text)| RuleFile { name, text, trust: Trust::User });
    assert_eq!(
        Rules::load(&files).unwrap_err().to_string(),
        "`a.toml`, line 2: `prefix` must be a list of words in quotes, or of lists of alternatives; found string \"git\"\n\
         `a.toml`, line 3: `decision` must be one of \"allow\", \"ask\", \"forbid\"; found string \"alow\"\n\
         `a.toml`, line 8: unknown key `colour`; allowed: `prefix`, `argv`, `effect`, `decision`, `justification`, `match`, \
         `not_match`, `escape_sandbox`, `answered`\n\
         `b.toml`, line 1: unknown key `rules`; allowed: `[[rule]]`"
    );
}

/// Programs of the system are in `/usr/bin`; one of the workspace is never found.
fn programs(name: &str) -> Option<PathBuf> {
    let name = name.strip_prefix("/usr/bin/").unwrap_or(name);
    (!name.contains('/')).then(|| format!("/usr/bin/{name}").into())
}

fn leaves(rules: &Rules, line: &str, programs: &dyn Fn(&str) -> Option<PathBuf>, cwd: &str) -> bool {
    let argv = ["bash", "-c", line].map(str::to_owned).to_vec();
    let command = CommandLine { argv, cwd: Some(cwd.into()) };
    let surroundings = Surroundings { workspace: Some(Path::new("/w")), programs, replaceable: None };
    crate::judge_in(&surroundings, &command, rules).escape_sandbox
}

fn leaving(argv: &str) -> String {
    format!("[[rule]]\nargv = {argv}\ndecision = \"allow\"\nescape_sandbox = true\n")
}

#[test]
fn a_rule_that_leaves_the_sandbox_fits_the_very_command_alone() {
    let text = leaving(r#"["/usr/bin/git", "fetch"]"#)
        + &leaving(r#"["/usr/bin/go", "test", "./..."]"#)
        + &leaving(r#"["/usr/bin/tar", "tf", "x"]"#)
        + &leaving(r#"["/usr/bin/make", "build"]"#)
        + &leaving(r#"["/usr/bin/df", "/srv"]"#);
    let rules = load(&text, Trust::User).unwrap();
    for line in ["git fetch", "/usr/bin/git fetch", "make build", "go test ./...", "df /srv", "df -h /srv"] {
        assert!(leaves(&rules, line, &programs, "/w"), "{line}");
    }
    for line in include_str!("tails.txt").lines().filter(|line| !line.is_empty()) {
        assert!(!leaves(&rules, line, &programs, "/w"), "{line}");
    }
}

#[test]
fn a_rule_that_leaves_the_sandbox_is_about_the_file_of_its_program() {
    let rules = load(&leaving(r#"["/usr/bin/make", "build"]"#), Trust::User).unwrap();
    assert!(leaves(&rules, "make build", &programs, "/w"));
    // An active environment of the workspace comes first in `PATH`.
    assert!(!leaves(&rules, "make build", &|_| None, "/w"), "a program that commands can write");
    let other = |name: &str| Some(if name.starts_with('/') { name.into() } else { "/opt/bin/make".into() });
    assert!(!leaves(&rules, "make build", &other, "/w"), "another file");
    // `/bin` is a link to `/usr/bin`.
    let linked = |name: &str| Some(format!("/usr/bin/{}", name.rsplit('/').next()?).into());
    let through_link = load(&leaving(r#"["/bin/make", "build"]"#), Trust::User).unwrap();
    for line in ["make build", "/bin/make build", "/usr/bin/make build"] {
        assert!(leaves(&through_link, line, &linked, "/w"), "{line}");
    }
    assert!(!leaves(&through_link, "make build", &programs, "/w"), "there is no link");
    assert!(!leaves(&rules, "make build", &programs, "/w/sub"), "another directory has other files");
    let rules = load(&leaving(r#"["/usr/bin/env", "make"]"#), Trust::User).unwrap();
    assert!(!leaves(&rules, "env make", &programs, "/w"), "a wrapper is not the program that runs");
}

#[test]
fn an_old_rule_with_any_words_behind_it_is_asked_about_again_until_there_is_an_exact_one() {
    let old = "[[rule]]\nprefix = [\"git\", \"fetch\"]\ndecision = \"allow\"\nescape_sandbox = true\n";
    let rules = load(old, Trust::User).unwrap();
    assert!(
        rules.notes()[0].contains("line 1: the rule `git fetch` would let any words follow"),
        "{:?}",
        rules.notes()
    );
    let judged = |rules: &Rules| {
        let argv = ["git", "fetch"].map(str::to_owned).to_vec();
        let surroundings = Surroundings { programs: &programs, ..Surroundings::unknown() };
        let judged = crate::judge_in(&surroundings, &CommandLine { argv, cwd: None }, rules);
        (judged.class, judged.escape_sandbox, judged.asks_to_leave_again)
    };
    assert_eq!(judged(&rules), (crate::Class::Dangerous, false, true));
    let both = load(&(old.to_owned() + &leaving(r#"["/usr/bin/git", "fetch"]"#)), Trust::User).unwrap();
    assert_eq!(judged(&both), (crate::Class::Safe, true, false));
}

#[test]
fn a_rule_may_be_about_what_goes_beyond_the_machine() {
    let text = "[[rule]]\neffect = \"publish\"\ndecision = \"forbid\"\n[[rule]]\neffect = \"install\"\ndecision = \"ask\"\n";
    let rules = load(text, Trust::Project).unwrap();
    let class = |line: &str| {
        let argv = ["bash", "-c", line].map(str::to_owned).to_vec();
        crate::judge(&CommandLine { argv, cwd: None }, &rules).class
    };
    assert_eq!(class("docker push x"), crate::Class::Forbidden);
    assert_eq!(class("cd web && npm ci"), crate::Class::Dangerous);
    assert_eq!(class("sudo apt-get install jq"), crate::Class::Dangerous);
    assert_eq!(class("git push"), crate::Class::Ordinary);
}

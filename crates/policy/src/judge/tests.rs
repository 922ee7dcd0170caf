//! Tests of this module.

use super::*;
use crate::{RuleFile, Trust};

fn line(source: &str) -> CommandLine {
    CommandLine { argv: vec!["bash".into(), "-lc".into(), source.into()], cwd: None }
}

fn class(source: &str) -> Class {
    judge(&line(source), &Rules::default()).class
}

fn with_rules(source: &str, text: &str) -> Judgement {
    let rules = Rules::load(&[RuleFile { name: "r.toml", text, trust: Trust::User }]).unwrap();
    judge(&line(source), &rules)
}

const ALLOW: &str = "[[rule]]\nprefix = [\"cargo\", [\"test\", \"check\"]]\ndecision = \"allow\"\n";

#[test]
fn a_command_is_as_safe_as_its_worst_part() {
    assert_eq!(class("ls && pwd | wc -l"), Class::Safe);
    assert_eq!(class("ls && cargo build"), Class::Ordinary);
    assert_eq!(class("ls && rm -rf build"), Class::Dangerous);
    assert_eq!(class("ls && rm -rf /"), Class::Forbidden);
}

#[test]
fn what_is_unclear_is_never_safe() {
    for source in [
        "ls $x",
        "echo $(pwd)",
        "(ls)",
        "ls &",
        "cat <<E\nx\nE",
        "FOO=1 ls",
        "x=1",
        "",
        "#",
        "ls > f",
        "ls 2> e",
    ] {
        assert_eq!(class(source), Class::Ordinary, "{source}");
    }
    for source in
        ["ls 2>/dev/null", "ls >/dev/null 2>&1", "LC_ALL=C sort f", "TZ=America/New_York date", "cat < f"]
    {
        assert_eq!(class(source), Class::Safe, "{source}");
    }
}

#[test]
fn what_runs_inside_counts() {
    for source in ["timeout 5 ls", "time ls", "bash -c 'ls'", "sh -c 'ls -la | wc'", "timeout 5 bash -c 'ls'"]
    {
        assert_eq!(class(source), Class::Safe, "{source}");
    }
    for source in [
        "sudo ls",
        "env ls",
        "xargs ls",
        "find . -exec ls {} +",
        "nohup ls",
        "eval ls",
        "./bash -c ls",
        "bash -xc ls",
    ] {
        assert_eq!(class(source), Class::Ordinary, "{source}");
    }
    for source in [
        "sudo rm -rf x",
        "bash -c 'rm -rf x'",
        "env A=1 timeout 5 nice rm -rf x",
        "ls | xargs rm -rf",
        "eval 'rm -rf x'",
        "echo $(rm -rf x)",
        "bash <<'E'\nrm -rf x\nE",
        "echo 'rm -rf x' | sh",
        "f() { rm -rf x; }",
        "trap 'rm -rf x' EXIT",
        "sudo sh -c \"bash -c 'rm -rf x'\"",
        "busybox rm -rf x",
    ] {
        assert_eq!(class(source), Class::Dangerous, "{source}");
    }
}

#[test]
fn a_cd_leads_later_names_elsewhere() {
    for source in [
        "cd ~ && grep -r x .",
        "cd ~/.ssh && cat id",
        "cd / && cat etc/shadow",
        "cd .. && rg x",
        "cd x && git status",
    ] {
        assert_eq!(class(source), Class::Ordinary, "{source}");
    }
    assert_eq!(class("cd src && grep -rn x . && cat main.rs"), Class::Safe);
    assert_eq!(class("cd / && rm -rf *"), Class::Forbidden);
    let there = CommandLine { argv: vec!["cat".into(), "id".into()], cwd: Some("/home/u/.ssh".into()) };
    assert_eq!(judge(&there, &Rules::default()).class, Class::Ordinary);
}

#[test]
fn own_files_in_a_hidden_workspace_are_no_settings() {
    let class = |workspace: &str, cwd: &str, source: &str| {
        let command = CommandLine { cwd: Some(cwd.into()), ..line(source) };
        let surroundings = Surroundings { workspace: Some(Path::new(workspace)), ..Surroundings::unknown() };
        judge_in(&surroundings, &command, &Rules::default()).class
    };
    for workspace in ["/home/ada/.dotfiles", "/home/ada/.config/nvim", "/root/.x/proj", "/root/.x/proj/"] {
        for source in ["cat README.md", "cd lua && cat init.lua", "rg -n x", "head < a"] {
            assert_eq!(class(workspace, workspace, source), Class::Safe, "{workspace}: {source}");
        }
        for source in ["cat .env", "cat id_rsa", "cat ../.x", "cat ~/.kaggle/kaggle.json", "cd .. && cat .x"]
        {
            assert_eq!(class(workspace, workspace, source), Class::Ordinary, "{workspace}: {source}");
        }
    }
    assert_eq!(class("/root/.x/proj", "/tmp", "cat /root/.x/proj/a"), Class::Safe);
    // A call may choose the directory it runs in, but not where the user works.
    assert_eq!(class("/root/p", "/root/.weechat", "cat sec.conf"), Class::Ordinary);
    assert_eq!(class("/root/.x/proj", "/root/.x/project", "cat a"), Class::Ordinary);
    // None of these is the directory of one project.
    assert_eq!(class("/root", "/root", "cat .databrickscfg"), Class::Ordinary);
    assert_eq!(class("/", "/", "cat root/.databrickscfg"), Class::Ordinary);
    assert_eq!(class("/home/ada/.config", "/home/ada/.config", "cat stripe/config.toml"), Class::Ordinary);
}

#[test]
fn words_without_a_shell_are_taken_as_they_are() {
    let class = |words: &[&str]| {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        judge(&CommandLine { argv, cwd: None }, &Rules::default()).class
    };
    assert_eq!(class(&["ls", "$x", "*"]), Class::Safe);
    assert_eq!(class(&["echo", "$(rm -rf /)"]), Class::Safe);
    assert_eq!(class(&["rm", "-rf", "/"]), Class::Forbidden);
    assert_eq!(class(&["ls", "a\u{202e}b"]), Class::Ordinary);
    assert_eq!(class(&[]), Class::Ordinary);
}

#[test]
fn a_rule_allows_only_if_every_part_is_allowed() {
    for source in [
        "cargo test -p x",
        "cargo test 2>&1 | tail -5",
        "RUST_BACKTRACE=1 cargo test",
        "timeout 60 cargo test",
        "cargo test tests/*.rs",
    ] {
        assert_eq!(with_rules(source, ALLOW).class, Class::Safe, "{source}");
    }
    for source in [
        "cargo test && cargo run",
        "cargo test $x",
        "cargo test *",
        "PATH=. cargo test",
        "sudo cargo test",
        "cargo test > out",
        "cargo test | sh",
        "(cargo test)",
        "./cargo test",
        "xargs cargo test",
    ] {
        assert!(with_rules(source, ALLOW).class > Class::Safe, "{source}");
    }
}

#[test]
fn an_allowed_command_may_change_things_and_stays_in_the_sandbox() {
    let judged = with_rules("cargo test", ALLOW);
    assert!(!judged.changes_nothing && !judged.escape_sandbox);
    assert!(with_rules("ls", ALLOW).changes_nothing);
    let escape = |verb: &str| {
        format!(
            "[[rule]]\nargv = [\"/usr/bin/cargo\", \"{verb}\"]\ndecision = \"allow\"\nescape_sandbox = true\n"
        )
    };
    let text = escape("test") + &escape("check");
    let rules = Rules::load(&[RuleFile { name: "r.toml", text: &text, trust: Trust::User }]).unwrap();
    let programs = |name: &str| Some(format!("/usr/bin/{name}").into());
    let surroundings = Surroundings { programs: &programs, ..Surroundings::unknown() };
    let judged = |source: &str| {
        let argv = ["bash", "-c", source].map(str::to_owned).to_vec();
        judge_in(&surroundings, &CommandLine { argv, cwd: None }, &rules)
    };
    let runs = judged("cargo test 2>&1").direct_argv.unwrap();
    assert_eq!(runs, ["/usr/bin/cargo", "test"], "the file that was approved, and its words");
    for other in [
        "cargo test && cargo check",
        "cargo test && ls",
        "timeout 9 cargo check",
        "time cargo check",
        "bash -c 'cargo check'",
        "LC_ALL=C cargo check",
        "cargo check <<< x",
        "cargo check < x",
        "cargo check | cat",
    ] {
        let judged = judged(other);
        assert_eq!((judged.escape_sandbox, judged.direct_argv), (false, None), "{other}");
    }
    for shell in [["bash", "-lc"], ["zsh", "-c"], ["bash", "-ic"], ["./bash", "-c"]] {
        let argv = [shell[0], shell[1], "cargo test"].map(str::to_owned).to_vec();
        let judged = judge_in(&surroundings, &CommandLine { argv, cwd: None }, &rules);
        assert!(!judged.escape_sandbox, "{shell:?}");
    }
    // Without knowledge of the machine, nothing leaves the sandbox.
    assert!(!judge(&line("cargo test"), &rules).escape_sandbox);
}

#[test]
fn a_danger_is_allowed_only_by_a_rule_that_spells_it() {
    let rule = |prefix: &str| format!("[[rule]]\nprefix = {prefix}\ndecision = \"allow\"\n");
    assert_eq!(with_rules("git push --force", &rule(r#"["git", "push"]"#)).class, Class::Dangerous);
    assert_eq!(with_rules("git push --force", &rule(r#"["git", "push", "--force"]"#)).class, Class::Safe);
    assert_eq!(with_rules("rm -rf build", &rule(r#"["rm", "-rf", "build"]"#)).class, Class::Safe);
    assert_eq!(with_rules("rm -rf build /", &rule(r#"["rm", "-rf", "build"]"#)).class, Class::Forbidden);
}

#[test]
fn a_rule_that_names_a_wrapper_and_its_program_covers_both() {
    let rule = "[[rule]]\nprefix = [\"sudo\", \"systemctl\", \"restart\"]\ndecision = \"allow\"\n";
    assert_eq!(with_rules("sudo systemctl restart nginx", rule).class, Class::Safe);
    assert_eq!(with_rules("sudo systemctl stop nginx", rule).class, Class::Ordinary);
    assert_eq!(with_rules("systemctl restart nginx", rule).class, Class::Ordinary);
}

#[test]
fn what_asks_or_forbids_is_found_behind_wrappers() {
    let rules = "[[rule]]\nprefix = [\"ls\"]\ndecision = \"ask\"\njustification = \"because\"\n\
                 [[rule]]\nprefix = [\"curl\"]\ndecision = \"forbid\"\n";
    for source in ["ls", "timeout 5 ls", "bash -c ls", "echo $(ls)"] {
        assert_eq!(with_rules(source, rules).class, Class::Dangerous, "{source}");
    }
    for source in ["curl x", "sudo curl x", "ls; if true; then /usr/bin/curl x; fi", "env A=1 ./curl x"] {
        assert_eq!(with_rules(source, rules).class, Class::Forbidden, "{source}");
    }
    let why = "to be asked about by the rule `ls` (`r.toml`, line 1): because";
    assert_eq!(with_rules("ls", rules).why, why);
}

#[test]
fn more_than_can_be_read_is_asked_about() {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let many = "ls;".repeat(300) + "ls";
    let long = format!("echo {}", "a".repeat(200_000));
    let deep = (0..12).fold("ls".to_owned(), |script, _| format!("bash -c {}", quoted(&script)));
    for source in [many, long, deep] {
        assert_eq!(class(&source), Class::Dangerous);
    }
}

#[test]
fn a_judgement_shows_its_parts_and_files() {
    let judged = judge(&line("FOO=1 ls 'a b' > out 2>&1 < in"), &Rules::default());
    assert_eq!(
        serde_json::to_value(&judged).unwrap(),
        serde_json::json!({
            "class": "ordinary",
            "why": "`ls` is not known to be harmless: it sets `FOO`, which may change what runs",
            "parts": [{
                "argv": ["ls", "a b"],
                "class": "ordinary",
                "reason": {"by": "not_known", "why": "it sets `FOO`, which may change what runs"},
                "facts": ["sets FOO=1", "writes `out`", "reads `in`"],
            }],
            "unclear": [],
            "files": [
                {"path": "out", "access": "write", "clear": true},
                {"path": "in", "access": "read", "clear": true},
            ],
            "changes_nothing": false,
            "escape_sandbox": false,
        })
    );
}

#[test]
fn what_is_typed_to_a_running_program_is_read_as_a_script() {
    let typed = |text: &str| {
        let typed = Typed { to: "bash".into(), text: text.into() };
        judge_typed(&typed, Path::new("/w"), &Rules::default()).class
    };
    assert_eq!((typed("y\n"), typed("ls\n"), typed("")), (Class::Ordinary, Class::Ordinary, Class::Ordinary));
    assert_eq!(typed("git push --force\n"), Class::Dangerous);
    assert_eq!(typed("ls; rm -rf /\n"), Class::Forbidden);
}

#[test]
fn where_nothing_holds_it_a_name_is_harmless_only_if_no_command_could_replace_its_file() {
    let planted = |names: &'static [&'static str], argv: &[&str]| {
        let replaceable = |name: &str| names.contains(&name);
        let surroundings = Surroundings { replaceable: Some(&replaceable), ..Surroundings::unknown() };
        let command = CommandLine { argv: argv.iter().map(|&word| word.to_owned()).collect(), cwd: None };
        judge_in(&surroundings, &command, &Rules::default()).class
    };
    assert_eq!(planted(&[], &["bash", "-c", "ls | head"]), Class::Safe);
    assert_eq!(planted(&["ls"], &["bash", "-c", "ls | head"]), Class::Ordinary);
    assert_eq!(planted(&["head"], &["bash", "-c", "ls | head"]), Class::Ordinary);
    assert_eq!(planted(&["timeout"], &["bash", "-c", "timeout 5 ls"]), Class::Ordinary);
    assert_eq!(planted(&["zsh"], &["zsh", "-c", "ls"]), Class::Ordinary);
    assert_eq!(planted(&[], &["bash", "-lc", "ls"]), Class::Ordinary, "its path is another one");
    assert_eq!(planted(&["ls"], &["ls"]), Class::Ordinary);
}

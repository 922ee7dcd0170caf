//! Completion scripts and the manual.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::support::{Running, User};

#[test]
fn each_shell_accepts_its_script() {
    let user = User::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = user.run(&["completions", shell]);
        script.assert_code(0);
        assert!(script.stdout.contains("windlass") && script.stderr.is_empty(), "{shell}");
        let path = user.file("script", &script.stdout);
        match Command::new(shell).args([check, &path]).stdin(Stdio::null()).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
            Err(error) => {
                assert_ne!(shell, "bash", "{error}");
                eprintln!("skipped: there is no {shell} here");
            }
        }
    }
    user.run(&["completions", "powershell"]).assert_code(0);
    user.run(&["completions", "elvish"]).assert_code(0);
}

#[test]
fn bash_completes_commands_and_values_and_nothing_hidden() {
    let user = User::new();
    let script = user.file("script", user.run(&["completions", "bash"]).stdout);
    let complete = |words: &str| {
        let line = format!(
            "bind() {{ :; }}; . '{script}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _windlass windlass \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let mut bash = user.shell("exec bash -c \"$LINE\"");
        bash.env("LINE", line);
        Running::start(bash).end().stdout.trim().to_owned()
    };
    assert_eq!(complete("windlass hist"), "history");
    assert_eq!(complete("windlass exec --sandbox work"), "workspace-write");
    assert_eq!(complete("windlass config se"), "set");
    assert_eq!(complete("windlass redact --sand"), "");
    assert_eq!(complete("windlass vers"), "");
}

#[test]
fn the_manual_is_one_page_or_one_for_each_command() {
    let user = User::new();
    let page = user.run(&["man"]);
    assert!(page.assert_code(0).stdout.contains(".TH windlass 1") && page.stdout.contains("windlass\\-exec"));
    let directory = user.work().join("pages");
    user.run(&["man", "--dir", directory.to_str().unwrap()]).assert_code(0);
    let pages: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let has = |name: &str| pages.iter().any(|page| page == name);
    assert!(has("windlass.1") && has("windlass-config-set.1") && !has("windlass-version.1"), "{pages:?}");
    let redact = fs::read_to_string(directory.join("windlass-redact.1")).unwrap();
    assert!(redact.contains("shapes\\-only") && !redact.contains("ask\\-for\\-approval"), "{redact}");
    assert_eq!(user.run(&["version"]).stdout, user.run(&["--version"]).stdout);
}

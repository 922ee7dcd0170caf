//! `windlass config get|set|unset|edit`.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Emulator, Running, User};

const FILE: &str = "# mine\nmodel = \"a\" # first\n\n[limits]\nprocesses = 5\n";

fn file(user: &User) -> String {
    fs::read_to_string(user.home().join("config.toml")).unwrap()
}

fn edit(user: &User, editor: &str) -> crate::support::Ended {
    let mut program = user.program(&["config", "edit"]);
    program.env("EDITOR", editor);
    Running::start(program).end()
}

#[test]
fn a_key_is_set_read_and_removed_and_comments_stay() {
    let user = User::new();
    user.configure(FILE);
    let ended = user.run(&["config", "set", "limits.processes", "7"]);
    assert!(ended.assert_code(0).stderr.contains("wrote ") && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(file(&user), FILE.replace('5', "7"));
    let got = |arguments: &[&str]| user.run(&[&["config", "get"], arguments].concat());
    assert_eq!(got(&["model"]).stdout, "a\n");
    assert_eq!(got(&["limits.processes", "-c", "limits.processes=9", "--origin"]).stdout, "9  # -c\n");
    assert!(got(&["limits", "--origin"]).stdout.ends_with("config.toml:5\n"));
    user.run(&["config", "unset", "model"]).assert_code(0);
    assert_eq!(file(&user), "# mine\n\n[limits]\nprocesses = 7\n");
    let unset = got(&["model"]);
    assert_eq!((unset.code, unset.stderr.as_str()), (Some(1), "`model` is not set\n"));
    user.run(&["config", "unset", "model"]).assert_code(1);
}

#[test]
fn a_mistake_is_explained_and_changes_nothing() {
    let user = User::new();
    user.configure(FILE);
    for (arguments, said) in [
        (&["set", "modle", "x"][..], "error: unknown key `modle`; did you mean `model`?"),
        (&["set", "plugins.x", "1"], "error: unknown key `plugins`\n"),
        (&["set", "limits.processes", "many"], "must be a whole number, at least 0; found string \"many\""),
        (&["set", "model_provider", "olama"], "did you mean `ollama`?"),
        (&["get", "limit"], "unknown key `limit`; did you mean `limits`?"),
        (&["set", "a b", "x"], "`a b` is not a key"),
        (&["set", "model", "x", "-s", "read-only"], "--sandbox has no effect on `windlass config set`"),
    ] {
        let ended = user.run(&[&["config"], arguments].concat());
        assert!(ended.assert_code(2).stderr.contains(said), "{arguments:?}: {ended:?}");
    }
    assert_eq!(file(&user), FILE);
}

#[test]
fn a_new_file_is_private_and_secrets_are_not_printed() {
    let user = User::new();
    user.run(&["config", "set", "model_providers.x.experimental_bearer_token", "hush"]).assert_code(0);
    let text = file(&user);
    assert!(text.starts_with("# Configuration of Windlass") && text.contains("hush"), "{text}");
    let mode = fs::metadata(user.home().join("config.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let got = user.run(&["config", "get", "model_providers.x"]);
    assert!(got.stdout.contains("<hidden>") && !got.stdout.contains("hush"), "{got:?}");
}

#[test]
fn an_edited_file_replaces_the_old_one_only_if_it_is_valid() {
    let user = User::new();
    user.configure(FILE);
    assert!(edit(&user, "sed -i s/5/6/").assert_code(0).stderr.contains("wrote "));
    assert_eq!(file(&user), FILE.replace('5', "6"));
    let ended = edit(&user, "sed -i s/processes/proceses/");
    assert!(ended.assert_code(2).stderr.contains("did you mean `limits.processes`?"), "{ended:?}");
    assert!(edit(&user, "true").assert_code(0).stderr.contains("nothing was changed"));
    assert!(edit(&user, "false").assert_code(1).stderr.contains("the editor `false` failed"));
    assert_eq!(file(&user), FILE.replace('5', "6"));
    let entries = fs::read_dir(user.home()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(entries.filter(|name| name.to_string_lossy().contains("draft")).count(), 0);
}

#[test]
fn at_a_terminal_a_wrong_file_can_be_edited_again() {
    let user = User::new();
    user.configure(FILE);
    // The first run makes a mistake, the second one corrects it.
    let editor = user.file(
        "editor",
        "#!/bin/sh\nif grep -q wrong \"$1\"; then sed -i s/wrong/8/ \"$1\"; \
         else sed -i s/5/wrong/ \"$1\"; fi\n",
    );
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    let mut program = user.program(&["config", "edit"]);
    program.env("VISUAL", &editor);
    let mut terminal = Emulator::start(&program, (24, 100));
    terminal.until("Edit it again? [Y/n]");
    assert_eq!(file(&user), FILE);
    terminal.type_in("\r");
    terminal.until("wrote ");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(file(&user), FILE.replace('5', "8"));
}

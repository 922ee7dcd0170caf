//! `windlass undo` beside a person: what they changed since stays, what they press counts, and
//! nothing of ours is left.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Stdio,
};

use serde_json::json;

use crate::support::{Ended, Running, User};

fn command(user: &User, line: &str) {
    let input = json!({"command": line}).to_string();
    user.run(&["call", "--sandbox", "workspace-write", "shell_command", &input]).assert_code(0);
}

/// Everything in the workspace, one line each, but for times.
fn tree(user: &User) -> Vec<String> {
    let mut lines = Vec::new();
    let mut queue = vec![user.work()];
    while let Some(directory) = queue.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let found = entry.path().symlink_metadata().unwrap();
            let shown = if found.is_symlink() {
                format!("-> {}", entry.path().read_link().unwrap().display())
            } else if found.is_dir() {
                queue.push(entry.path());
                "directory".to_owned()
            } else {
                fs::read_to_string(entry.path()).unwrap()
            };
            lines.push(format!("{} {:o} {shown}", entry.path().display(), found.permissions().mode()));
        }
    }
    lines.sort();
    lines
}

fn drafts(user: &User) -> Vec<PathBuf> {
    let all = fs::read_dir(user.work()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().contains(".windlass-")).collect()
}

#[test]
fn a_mode_that_a_person_set_since_stays() {
    let user = User::new();
    user.file("a", "1\n");
    user.file("b", "1\n");
    let set = |mode| fs::set_permissions(user.work().join("a"), fs::Permissions::from_mode(mode)).unwrap();
    set(0o640);
    command(&user, "chmod 777 a; echo 2 > b");
    set(0o600);
    let ended = user.run(&["undo"]);
    ended.assert_code(1);
    assert!(ended.stderr.contains("mode 777") && ended.stderr.contains("mode 600"), "{}", ended.stderr);
    user.run(&["undo", "--keep-changed"]).assert_code(0);
    let mode = fs::metadata(user.work().join("a")).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode, user.read("b").as_str()), (0o600, "1\n"));
}

#[test]
fn a_conflict_with_a_command_shows_the_difference() {
    let user = User::new();
    user.file("a", "one\n");
    command(&user, "echo two > a");
    user.file("a", "three\n");
    let Ended { stderr, .. } = user.run(&["undo"]);
    assert!(stderr.contains("-two\n+three"), "{stderr}");
    fs::remove_file(user.work().join("a")).unwrap();
    symlink("elsewhere", user.work().join("a")).unwrap();
    let Ended { stderr, .. } = user.run(&["undo"]);
    assert!(stderr.contains("was a file with mode 644, is now a link to elsewhere"), "{stderr}");
}

#[test]
fn directories_and_links_that_a_command_exchanged_come_back_and_go_again() {
    for line in
        ["mv d real && ln -s real d", "rm l && mkdir l && cp d/f l/f", "rm d/f l && rmdir d && ln -s l d"]
    {
        let user = User::new();
        fs::create_dir(user.work().join("d")).unwrap();
        user.file("d/f", "one\n");
        symlink("d", user.work().join("l")).unwrap();
        let before = tree(&user);
        command(&user, line);
        let after = tree(&user);
        assert_ne!(after, before, "{line}");
        user.run(&["undo"]).assert_code(0);
        assert_eq!(tree(&user), before, "{line}");
        user.run(&["redo"]).assert_code(0);
        assert_eq!(tree(&user), after, "{line}");
    }
}

#[test]
fn a_file_that_became_a_directory_or_a_link_is_left_and_the_others_are_undone() {
    for is_link in [false, true] {
        let user = User::new();
        user.file("f", "one\n");
        user.file("g", "one\n");
        let update = |name: &str| format!("*** Update File: {name}\n@@\n-one\n+two\n");
        let patch = format!("*** Begin Patch\n{}{}*** End Patch\n", update("f"), update("g"));
        user.run(&["apply-patch", &patch]).assert_code(0);
        fs::remove_file(user.work().join("f")).unwrap();
        if is_link {
            symlink("/nowhere", user.work().join("f")).unwrap();
        } else {
            fs::create_dir(user.work().join("f")).unwrap();
        }
        user.run(&["undo"]).assert_code(1);
        assert_eq!(user.read("g"), "two\n");
        let ended = user.run(&["undo", "--keep-changed"]);
        ended.assert_code(0);
        assert!(
            ended.stderr.contains("left as it is: ") && ended.stderr.contains("/f\n"),
            "{}",
            ended.stderr
        );
        assert_eq!(user.read("g"), "one\n");
        assert_eq!(user.work().join("f").is_symlink(), is_link);
    }
}

#[test]
fn an_interrupt_at_the_question_is_a_no() {
    let user = User::new();
    user.file("a", "1\n");
    command(&user, "echo 2 > a");
    let mut program = user.program_on_a_terminal("undo");
    program.stdin(Stdio::piped());
    let mut running = Running::start(program);
    running.until_stdout("+1");
    running.type_in("\u{3}");
    running.end().assert_code(130);
    assert_eq!(user.read("a"), "2\n");
}

#[test]
fn the_drafts_of_a_killed_undo_go_with_the_next_command() {
    const COUNT: usize = 300;
    let user = User::new();
    let name = |at: usize| format!("f{at}");
    for at in 0..COUNT {
        user.file(&name(at), "old\n");
    }
    command(&user, "for f in f*; do echo new > $f; done");
    let running = user.start(&["undo", "--yes"]);
    while drafts(&user).is_empty() && user.read("f0") == "new\n" {}
    running.signal("KILL");
    running.end();
    user.run(&["undo", "--list"]).assert_code(0);
    assert_eq!(drafts(&user), Vec::<PathBuf>::new());
    user.run(&["undo", "--yes"]);
    assert!((0..COUNT).all(|at| user.read(&name(at)) == "old\n"));
}

//! `windlass undo`: what tools have changed is taken back, and that again.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::User;

/// A user whose model makes these calls, one after the other, in a turn.
fn work(user: &User, calls: &[(&str, Value)]) {
    let mut turns: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| json!({"calls": [{"name": name, "arguments": arguments}]}))
        .collect();
    turns.push(json!({"text": "done"}));
    let script = user.script(&Value::Array(turns));
    user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "go"]).assert_code(0);
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

#[test]
fn calls_are_taken_back_one_by_one_and_the_taking_back_too() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[write("a", "1\n"), write("a", "2\n")]);
    assert_eq!(user.read("a"), "2\n");
    for expected in ["1\n", "0\n"] {
        user.run(&["undo"]).assert_code(0);
        assert_eq!(user.read("a"), expected);
    }
    user.run(&["undo"]).assert_code(2);
    let list = user.run(&["undo", "--list"]).stdout;
    let newest = list.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(newest.starts_with("undo:"), "{list}");
    user.run(&["undo", &newest]).assert_code(0);
    assert_eq!(user.read("a"), "1\n");
    user.run(&["undo", &newest]).assert_code(2);
}

#[test]
fn a_turn_is_taken_back_as_a_whole_and_the_one_before_stays() {
    let user = User::new();
    work(&user, &[write("a", "1\n")]);
    // A script goes on where the conversation is.
    let script = user.script(&json!([
        {"text": "before"},
        {"text": "before"},
        {"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "2\n"}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "b", "content": "new\n"}}]},
        {"calls": [{"name": "edit_file", "arguments": {"path": "a", "old_string": "2", "new_string": "3"}}]},
        {"text": "done"}
    ]));
    user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "resume", "--last", "go"])
        .assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("3\n", "new\n"));
    user.run(&["undo", "--turn"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.work().join("b").exists()), ("1\n", false));
}

#[test]
fn what_someone_has_changed_since_is_shown_and_left_alone() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[write("a", "1\n")]);
    user.file("a", "mine\n");
    let ended = user.run(&["undo"]);
    ended.assert_code(1);
    assert!(ended.stderr.contains("-1\n+mine\n"), "{ended:#?}");
    assert_eq!(user.read("a"), "mine\n");
}

#[test]
fn a_patch_by_hand_can_be_taken_back_as_well() {
    let user = User::new();
    user.run(&["apply-patch", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"]).assert_code(0);
    user.run(&["undo"]).assert_code(0);
    assert!(!user.work().join("a").exists());
    user.run(&["undo"]).assert_code(2);
}

#[test]
fn the_answer_of_a_turn_that_has_changed_something_is_said_once() {
    let user = User::new();
    let calls = json!({"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "1\n"}}]});
    let script = user.script(&json!([calls, {"text": "It is done."}]));
    let ended = user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "go"]);
    assert_eq!(ended.stdout, "It is done.\n");
    assert!(!ended.stderr.contains("It is done."), "{}", ended.stderr);
}

#[test]
fn a_turn_ends_with_a_diff_of_what_it_has_changed() {
    let user = User::new();
    user.file("a", "0\n");
    let script = user.script(&json!([
        {"calls": [{"name": "apply_patch", "input": "*** Begin Patch\n*** Update File: a\n@@\n-0\n+1\n*** End Patch"}]},
        {"text": "done"}
    ]));
    let ended = user.run(&["exec", "--json", "--sandbox", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let items: Vec<_> = lines.iter().filter(|line| line["item"]["type"] == "file_change").collect();
    assert_eq!(items.len(), 2, "{lines:#?}");
    assert_eq!(items[1]["item"]["changes"], json!([{"path": "a", "kind": "update"}]));
    assert_eq!(items[1]["item"]["status"], "completed");
    let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-0\n+1\n";
    assert_eq!(lines.last().unwrap()["diff"], diff);
}

#[test]
fn a_link_planted_after_an_edit_leads_nothing_elsewhere() {
    let user = User::new();
    let outside = user.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(user.work().join("d")).unwrap();
    user.file("d/key", "planted\n");
    user.file("gone.patch", "*** Begin Patch\n*** Delete File: d/key\n*** End Patch\n");
    let patch = user.read("gone.patch");
    user.run(&["apply-patch", &patch]).assert_code(0);
    fs::remove_dir(user.work().join("d")).unwrap();
    symlink(&outside, user.work().join("d")).unwrap();
    let ended = user.run(&["undo"]);
    ended.assert_code(1);
    assert!(ended.last_word().contains("is a link now"), "{}", ended.stderr);
    assert!(!outside.join("key").exists());
}

#[test]
fn what_was_done_elsewhere_is_not_taken_back_here() {
    let user = User::new();
    for directory in ["one", "other"] {
        fs::create_dir(user.work().join(directory)).unwrap();
    }
    let patch = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n";
    user.run(&["apply-patch", "-C", "one", patch]).assert_code(0);
    user.run(&["undo", "-C", "other"]).assert_code(2);
    user.run(&["undo", "-C", "one", "--sandbox", "read-only"]).assert_code(2);
    assert_eq!(user.read("one/made"), "x\n");
    user.run(&["undo", "-C", "one"]).assert_code(0);
    assert_eq!(user.read("one/made"), "");
}

#[test]
fn no_file_tool_makes_a_repository() {
    let user = User::new();
    let write = |path: &str| {
        let input = json!({"path": path, "content": "x\n"}).to_string();
        user.run(&["call", "write_file", &input, "--sandbox", "workspace-write", "-a", "never"])
    };
    write("sub/HEAD").assert_code(1);
    write("config").assert_code(0);
    user.file("HEAD", "ref: refs/heads/m\n");
    for path in ["config", "objects/x", "refs/heads/m", "hooks/pre-commit"] {
        write(path).assert_code(1);
    }
    assert_eq!(user.read("config"), "x\n");
}

#[test]
fn directories_that_a_call_made_go_with_it() {
    let user = User::new();
    work(&user, &[write("a/b/c", "1\n"), write("a/d", "2\n")]);
    user.run(&["undo"]).assert_code(0);
    assert!(user.work().join("a/b/c").exists());
    user.run(&["undo"]).assert_code(0);
    assert!(!user.work().join("a").exists());
    let list = user.run(&["undo", "--list"]).stdout;
    let newest = list.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    user.run(&["undo", &newest]).assert_code(0);
    assert_eq!(user.read("a/b/c"), "1\n");
}

#[test]
fn a_mode_that_was_given_since_stays() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[write("a", "1\n")]);
    let path = user.work().join("a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    user.run(&["undo"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), fs::metadata(path).unwrap().mode() & 0o777), ("0\n", 0o755));
}

#[test]
fn what_a_person_changes_between_two_runs_is_not_overwritten() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[("read_file", json!({"file_path": user.work().join("a")}))]);
    user.file("a", "mine\n");
    let turns = [json!({"text": "before"}), json!({"text": "before"})];
    let calls = [json!({"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "1\n"}}]})];
    let script = user.script(&json!([&turns[..], &calls[..], &[json!({"text": "done"})][..]].concat()));
    user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "resume", "--last", "go"])
        .assert_code(0);
    assert_eq!(user.read("a"), "mine\n");
    let told =
        user.records().iter().any(|record| record.to_string().contains("a has changed since you last read"));
    assert!(told, "{:#?}", user.records());
}

#[test]
fn a_large_file_whose_time_was_set_back_is_not_overwritten() {
    let user = User::new();
    let long = "line\n".repeat(100_000);
    user.file("a", &long);
    let change = "touch -r a before; printf mine | dd of=a conv=notrunc status=none; touch -r before a";
    work(
        &user,
        &[
            ("read_file", json!({"file_path": user.work().join("a"), "limit": 2})),
            ("shell_command", json!({"command": change})),
            ("write_file", json!({"path": "a", "content": "1\n"})),
        ],
    );
    assert_eq!(user.read("a"), format!("mine{}", &long[4..]));
    let told =
        user.records().iter().any(|record| record.to_string().contains("a has changed since you last read"));
    assert!(told, "{:#?}", user.records());
}

#[test]
fn a_file_that_was_removed_comes_back_with_its_attributes() {
    let user = User::new();
    user.file("a", "0\n");
    let file = fs::File::open(user.work().join("a")).unwrap();
    rustix::fs::fsetxattr(&file, "user.origin", b"\xff there", rustix::fs::XattrFlags::empty()).unwrap();
    drop(file);
    work(&user, &[("apply_patch", json!({"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"}))]);
    assert!(!user.work().join("a").exists());
    user.run(&["undo"]).assert_code(0);
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(user.work().join("a"), "user.origin", &mut value[..]).unwrap();
    assert_eq!((&value[..length], user.read("a").as_str()), (&b"\xff there"[..], "0\n"));
}

#[test]
fn sessions_are_gone_back_through_one_after_the_other() {
    let user = User::new();
    user.file("a", "0\n");
    for number in 1..=3 {
        work(&user, &[write(&format!("new{number}"), "x\n"), write("a", &format!("{number}\n"))]);
    }
    assert_eq!(user.run(&["undo", "--list"]).stdout.lines().count(), 6);
    for number in (1..=3).rev() {
        assert_eq!(user.read("a"), format!("{number}\n"));
        user.run(&["undo"]).assert_code(0);
        user.run(&["undo"]).assert_code(0);
        assert!(!user.work().join(format!("new{number}")).exists());
    }
    assert_eq!(user.read("a"), "0\n");
    user.run(&["undo"]).assert_code(2);
}

#[test]
fn a_move_over_another_file_is_taken_back_with_modes_and_times_of_both() {
    let user = User::new();
    let look = |name: &str| {
        let found = fs::metadata(user.work().join(name)).unwrap();
        (found.mode() & 0o777, (found.mtime(), found.mtime_nsec()), user.read(name))
    };
    for (name, mode, seconds_before_1970) in [("a", 0o640, 1_000_000), ("b", 0o755, 5)] {
        user.file(name, format!("{name}\n"));
        let file = fs::File::options().write(true).open(user.work().join(name)).unwrap();
        file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        let time = SystemTime::UNIX_EPOCH - Duration::from_millis(seconds_before_1970 * 1000 + 250);
        file.set_modified(time).unwrap();
    }
    let before = (look("a"), look("b"));
    assert!(before.0.1.0 < 0 && before.1.1.0 < 0);
    let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n+moved\n*** End Patch\n";
    work(&user, &[("apply_patch", json!({"input": patch}))]);
    assert_eq!((look("b").0, look("b").2.as_str()), (0o640, "moved\n"));
    user.run(&["undo"]).assert_code(0);
    assert_eq!((look("a"), look("b")), before);
}

#[test]
fn an_undo_recovers_first_and_follows_the_order_of_the_log() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[write("a", "1\n"), write("a", "2\n")]);
    // As if the clock had been set back by years between the two.
    let directory = fs::read_dir(user.home().join("edits")).unwrap().map(|entry| entry.unwrap().path());
    let log = directory.map(|path| path.join("log.jsonl")).find(|path| path.exists()).unwrap();
    let mut lines: Vec<Value> =
        fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[1]["time"] = json!("1969-01-01T00:00:00Z");
    fs::write(&log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let open = user.home().join("edits/open");
    let beside = user.work().join(".windlass-x.new");
    fs::write(&beside, "other\n").unwrap();
    let note = format!(
        "windlass change 1\0file\0{}\0.windlass-x.new\0.windlass-x.old\0",
        user.work().join("a").display()
    );
    fs::write(open.join("x.change"), note).unwrap();
    let ended = user.run(&["undo"]);
    ended.assert_code(0);
    assert!(
        ended.stderr.starts_with("warning: an earlier run ended while it was changing files"),
        "{}",
        ended.stderr
    );
    assert_eq!((user.read("a").as_str(), beside.exists()), ("1\n", true));
    assert_eq!(user.run(&["undo"]).stderr, "");
    assert_eq!(user.read("a"), "0\n");
}

fn command(line: &str) -> (&'static str, Value) {
    ("shell_command", json!({"command": line}))
}

/// The names of calls, the oldest first, as `--list` shows them.
fn listed(user: &User) -> Vec<String> {
    let list = user.run(&["undo", "--list"]).stdout;
    list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn what_a_command_changed_is_taken_back_like_an_edit() {
    let user = User::new();
    user.file("a", "one\n");
    fs::create_dir(user.work().join("d")).unwrap();
    user.file("d/x", "deep\n");
    work(
        &user,
        &[
            command("echo two > a; chmod 600 a; mv d e; mkdir -p n/m; echo new > n/m/f; ln -s a l"),
            write("b", "tool\n"),
            command("echo three >> a; rm b"),
        ],
    );
    assert_eq!(user.read("a"), "two\nthree\n");
    user.run(&["undo"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("two\n", "tool\n"));
    user.run(&["undo"]).assert_code(0);
    assert!(!user.work().join("b").exists());
    let ended = user.run(&["undo"]);
    ended.assert_code(0);
    assert!(ended.stdout.contains("$ echo two > a; chmod 600 a"), "{}", ended.stdout);
    assert_eq!((user.read("a").as_str(), user.read("d/x").as_str()), ("one\n", "deep\n"));
    assert_eq!(fs::metadata(user.work().join("a")).unwrap().permissions().mode() & 0o777, 0o644);
    for gone in ["e", "n", "l"] {
        assert!(user.work().join(gone).symlink_metadata().is_err(), "{gone}");
    }
    user.run(&["undo"]).assert_code(2);
    for _ in 0..3 {
        user.run(&["undo", "--redo"]).assert_code(0);
    }
    assert_eq!((user.read("a").as_str(), user.read("e/x").as_str()), ("two\nthree\n", "deep\n"));
    user.run(&["undo", "--redo"]).assert_code(2);
}

#[test]
fn a_preview_shows_everything_and_changes_nothing() {
    let user = User::new();
    user.file("a", "one\n");
    work(&user, &[command("echo two > a")]);
    let shown = user.run(&["undo", "--preview"]);
    shown.assert_code(0);
    for part in ["of session ", "$ echo two > a", "  M ", "-two\n+one\n", "ignored files"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert_eq!(user.read("a"), "two\n");
    let json: Value = serde_json::from_str(&user.run(&["undo", "--preview", "--json"]).stdout).unwrap();
    assert_eq!((&json[0]["command"], &json[0]["conflicts"]), (&json!("echo two > a"), &json!([])));
    assert_eq!(json[0]["files"][0]["change"], "M");
}

#[test]
fn calls_have_the_names_that_history_shows_and_their_beginnings_will_do() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[command("echo 1 > a"), write("b", "x\n"), command("echo 2 > a"), command("echo 3 > c")]);
    let history: Vec<Value> = user
        .run(&["history", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut handles: Vec<_> = history.iter().map(|call| call["call"].as_str().unwrap().to_owned()).collect();
    handles.reverse();
    assert_eq!(listed(&user), handles);
    // The third call and the one since, and not those before.
    user.run(&["undo", "--to", &handles[2][..6]]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("1\n", "x\n"));
    assert!(!user.work().join("c").exists());
    user.run(&["undo", &handles[2][..6]]).assert_code(2);
    user.run(&["undo", "nothing"]).assert_code(2);
    let undone = format!("undo:{}", &handles[2][..6]);
    user.run(&["undo", &undone]).assert_code(0);
    assert_eq!(user.read("a"), "2\n");
}

#[test]
fn a_person_s_change_is_a_conflict_and_the_rest_can_be_undone_without_it() {
    let user = User::new();
    user.file("a", "0\n");
    user.file("b", "0\n");
    work(&user, &[command("echo 1 > a; echo 1 > b")]);
    user.file("a", "mine\n");
    let ended = user.run(&["undo"]);
    ended.assert_code(1);
    assert!(ended.stderr.contains("--keep-changed"), "{}", ended.stderr);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("mine\n", "1\n"));
    user.run(&["undo", "--keep-changed"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("b").as_str()), ("mine\n", "0\n"));
}

#[test]
fn what_a_person_changes_between_commands_is_not_the_command_s() {
    let user = User::new();
    user.file("a", "0\n");
    work(&user, &[command("echo 1 > a")]);
    user.file("a", "mine\n");
    user.file("new", "mine\n");
    work(&user, &[command("echo more >> a")]);
    user.run(&["undo"]).assert_code(0);
    assert_eq!((user.read("a").as_str(), user.read("new").as_str()), ("mine\n", "mine\n"));
}

#[test]
fn what_cannot_be_kept_is_told_before_and_after() {
    let user = User::new();
    user.configure("[undo]\nmax_file_megabytes = 1\n");
    user.file("a", "0\n");
    user.file("large", "x".repeat(2_000_000));
    let script = user.script(&json!([
        {"calls": [{"name": "shell_command", "arguments": {"command": "echo 1 > a; echo y >> large"}}]},
        {"text": "done"}
    ]));
    let ended = user.run(&["exec", "--sandbox", "workspace-write", "--script", &script, "go"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("undo: 1 of the files not kept: large (too large)"), "{}", ended.stderr);
    let ended = user.run(&["undo"]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("large (too large)"), "{}", ended.stderr);
    assert_eq!(user.read("a"), "0\n");
    assert_eq!(user.read("large").len(), 2_000_002);
    assert!(user.run(&["doctor"]).stdout.contains("undo of changes by commands"));
}

#[test]
fn a_workspace_over_the_limit_and_a_switch_that_is_off_are_told() {
    let user = User::new();
    user.configure("[undo]\nmax_files = 3\n");
    for name in ["a", "b", "c", "d"] {
        user.file(name, "0\n");
    }
    work(&user, &[command("echo 1 > a")]);
    let shown = user.run(&["history", "--json"]).stdout;
    let call: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    let shown = user.run(&["show", call["call"].as_str().unwrap()]).stdout;
    assert!(shown.contains("undo: not available"), "{shown}");
    user.run(&["undo"]).assert_code(2);
    user.configure("[undo]\ncommands = false\n");
    work(&user, &[command("echo 2 > a")]);
    user.run(&["undo"]).assert_code(2);
    assert!(user.run(&["doctor"]).stdout.contains("`undo.commands` is false"));
}

#[test]
fn another_session_s_newer_work_is_told_and_left_alone() {
    let user = User::new();
    work(&user, &[command("echo 1 > a")]);
    let first: Value = serde_json::from_str(&user.run(&["undo", "--list", "--json"]).stdout).unwrap();
    work(&user, &[command("echo 2 > b")]);
    let session = first[0]["session"].as_str().unwrap();
    let ended = user.run(&["undo", "--session", session]);
    ended.assert_code(0);
    assert!(ended.stderr.contains("changed files here since then"), "{}", ended.stderr);
    assert!(!user.work().join("a").exists());
    assert_eq!(user.read("b"), "2\n");
}

#[test]
fn redo_does_again_what_was_taken_back() {
    let user = User::new();
    fs::write(user.work().join("a"), "one\n").unwrap();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch\n";
    user.run(&["apply-patch", patch]).assert_code(0);
    user.run(&["undo", "--yes"]).assert_code(0);
    assert_eq!(user.read("a"), "one\n");
    let preview = user.run(&["redo", "--preview"]);
    preview.assert_code(0);
    assert!(preview.stdout.contains("+two"), "{}", preview.stdout);
    assert_eq!(user.read("a"), "one\n");
    let redone = user.run(&["redo", "--yes"]);
    redone.assert_code(0);
    assert!(redone.stdout.starts_with("redid "), "{}", redone.stdout);
    assert_eq!(user.read("a"), "two\n");
}

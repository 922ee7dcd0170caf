//! `windlass apply-patch`: the cases of the patch engine through the program, and what only the
//! program can show.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::support::{Running, User};

type Tree = BTreeMap<PathBuf, Vec<u8>>;

fn tree(root: &Path) -> Tree {
    let mut files = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn add(path: &str) -> String {
    format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")
}

#[test]
fn every_case_of_the_engine_comes_out_the_same() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../patch/tests/cases");
    let cases: Vec<_> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    for case in cases {
        let user = User::new();
        for (path, bytes) in tree(&case.join("input")) {
            let path = user.work().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let patch = fs::read_to_string(case.join("patch.txt")).unwrap();
        let ended = user.run(&["apply-patch", &patch]);
        let fails = case.join("error.txt").exists();
        ended.assert_code(i32::from(fails));
        assert_eq!(ended.stdout.is_empty(), fails, "{}: {ended:#?}", case.display());
        assert_eq!(tree(&user.work()), tree(&case.join("expected")), "{}", case.display());
    }
}

#[test]
fn a_patch_comes_from_stdin_as_well() {
    for args in [&["apply-patch"][..], &["apply-patch", "-"]] {
        let user = User::new();
        let ended = user.run_with_input(args, add("sub/a").as_bytes());
        ended.assert_code(0);
        assert_eq!(ended.stdout, "Success. Updated the following files:\nA sub/a\n");
        assert_eq!(user.read("sub/a"), "x\n");
    }
    let user = User::new();
    user.run_with_input(&["apply-patch"], b"").assert_code(2);
    user.run(&["apply-patch", "a", "b"]).assert_code(2);
}

#[test]
fn what_fails_is_told_on_stderr_alone() {
    let user = User::new();
    let ended = user.run(&["apply-patch", "nonsense"]);
    ended.assert_code(1);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("", "Invalid patch: The first line of the patch must be '*** Begin Patch'\n")
    );
}

#[test]
fn nothing_outside_of_the_directory_changes_unless_it_is_allowed_to() {
    let user = User::new();
    let outside = user.work().parent().unwrap().join("outside");
    for path in ["../outside", outside.to_str().unwrap(), ".git/hooks/post-commit"] {
        user.run(&["apply-patch", &add(path)]).assert_code(1);
    }
    std::os::unix::fs::symlink("..", user.work().join("up")).unwrap();
    user.run(&["apply-patch", &add("up/outside")]).assert_code(1);
    assert!(!outside.exists() && !user.work().join(".git").exists());
    user.run(&["apply-patch", "--sandbox", "danger-full-access", &add("../outside")]).assert_code(0);
    assert!(outside.exists());
}

#[test]
fn a_change_that_was_cut_short_is_taken_back_at_the_next_start() {
    let user = User::new();
    user.file("a", "new\n");
    user.file(".windlass-1-1-0-0.new", "old\n");
    let open = user.home().join("edits/open");
    fs::create_dir_all(&open).unwrap();
    let sha256 = |text: &str| {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    // What a process leaves that was killed after it had exchanged the first of two files.
    let (a, b) = (user.work().join("a"), user.work().join("b"));
    let note = format!(
        "windlass change 2\0log\0{}\0transaction\x001-1-0\0file\0{}\x001-1-0-0\0{} 4 1\0{} 4\0file\0{}\x001-1-0-1\0\0{} 4\0",
        user.home().join("edits/outside/log.jsonl").display(),
        a.display(),
        sha256("old\n"),
        sha256("new\n"),
        b.display(),
        sha256("new\n"),
    );
    let note = format!("{note}end\0{}\0", sha256(&note));
    fs::write(open.join("1-1-0.change"), note).unwrap();
    let ended = user.run(&["apply-patch", &add("c")]);
    ended.assert_code(0);
    assert!(
        ended.stderr.starts_with("warning: an earlier run ended while it was changing files"),
        "{ended:#?}"
    );
    assert_eq!(tree(&user.work()).keys().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!((user.read("a").as_str(), fs::read_dir(open).unwrap().count()), ("old\n", 0));
}

#[test]
fn a_disk_without_room_is_told_before_anything_changes() {
    let user = User::new();
    fs::create_dir(user.work().join("disk")).unwrap();
    // A disk of one megabyte that only this command sees. The first file fits, the second does not.
    let line = |text: &str| format!("+{}\n", text.repeat(60 * 1024));
    let patch = format!(
        "*** Begin Patch\n*** Update File: disk/a\n@@\n-old\n{}*** Add File: disk/sub/b\n{}*** End Patch",
        line("0123456789"),
        line("0123456789"),
    );
    fs::write(user.work().join("patch"), patch).unwrap();
    let mounted =
        "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o size=1m none disk || exit 77";
    let ended = Running::start(user.shell(&format!(
        "{mounted}; echo old > disk/a; $windlass apply-patch - < patch; echo code $?; ls -A disk; cat disk/a' || exit 77"
    )))
    .end();
    if ended.code == Some(77) {
        println!("skipped: no namespace with a disk of its own: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.stdout, "code 1\na\nold\n", "{ended:#?}");
    let told = ["no room on the disk", "1228802 bytes are needed and", "are free; nothing was written"];
    assert!(told.iter().all(|text| ended.stderr.contains(text)), "{ended:#?}");
}

#[test]
fn a_patch_of_more_files_than_may_be_open_is_applied() {
    let user = User::new();
    let files: String = (0..200).map(|at| format!("*** Add File: d{at}/a\n+x\n")).collect();
    fs::write(user.work().join("patch"), format!("*** Begin Patch\n{files}*** End Patch")).unwrap();
    let ended = Running::start(user.shell("ulimit -n 80; $windlass apply-patch - < patch")).end();
    ended.assert_code(0);
    assert!((0..200).all(|at| user.read(&format!("d{at}/a")) == "x\n"));
    user.run(&["undo"]).assert_code(0);
    assert_eq!(tree(&user.work()).len(), 1);
    assert!(!user.work().join("d0").exists());
}

#[test]
fn what_cannot_be_patched_is_told_in_one_line_and_nothing_changes() {
    let user = User::new();
    user.file("kept", "x\n");
    fs::create_dir(user.work().join("folder")).unwrap();
    std::os::unix::fs::symlink("loop", user.work().join("loop")).unwrap();
    let pipe = user.named_pipe("pipe");
    let long = "long/".repeat(1000);
    let update = |path: &str| format!("*** Update File: {path}\n@@\n-x\n+y\n");
    for (path, reason) in [
        ("missing", "No such file or directory"),
        ("folder", "is a directory"),
        ("pipe", "named pipe"),
        ("/dev/zero", "outside of the project"),
        ("loop", "loop of links"),
        ("../outside", "outside of the project"),
        ("C:\\Users\\x", "backslash"),
        (&long, "too long"),
        ("kept/below", "No such file or directory"),
        ("/proc/self/environ", "outside of the project"),
    ] {
        let patch = format!("*** Begin Patch\n{}{}*** End Patch", update("kept"), update(path));
        let ended = user.run(&["apply-patch", &patch]);
        ended.assert_code(1);
        assert!(ended.stderr.contains(reason), "{path}: {}", ended.stderr);
        assert_eq!(user.read("kept"), "x\n", "{path}");
    }
    drop(pipe);
    let patch = format!("*** Begin Patch\n{}*** End Patch", update("/dev/zero"));
    let ended = user.run(&["apply-patch", "--sandbox", "danger-full-access", &patch]);
    assert!(ended.stderr.contains("is a device"), "{ended:#?}");
}

#[test]
fn a_patch_of_a_hundred_megabytes_is_refused() {
    let user = User::new();
    let line = format!("+{}\n", "x".repeat(1023)).repeat(100 * 1024);
    let patch = format!("*** Begin Patch\n*** Add File: a\n{line}*** End Patch");
    let ended = user.run_with_input(&["apply-patch", "-"], patch.as_bytes());
    assert_ne!(ended.code, Some(0), "{ended:#?}");
    assert!(!user.work().join("a").exists());
}

#[test]
fn a_unified_diff_is_a_patch_and_can_be_undone() {
    let user = User::new();
    user.file("n.txt", "1\n2\n3\n");
    user.file("gone.txt", "x");
    user.file("old.txt", "moved\n");
    let diff = "diff --git a/n.txt b/n.txt\nindex 1..2 100644\n--- a/n.txt\n+++ b/n.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n\
                diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                \\ No newline at end of file\n\
                diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n\
                diff --git a/old.txt b/sub/old.txt\nsimilarity index 100%\nrename from old.txt\nrename to sub/old.txt\n";
    let before = tree(&user.work());
    let ended = user.run_with_input(&["apply-patch"], diff.as_bytes());
    ended.assert_code(0);
    let after = tree(&user.work());
    let names: Vec<_> = after.keys().map(|path| path.display().to_string()).collect();
    assert_eq!(names, ["n.txt", "new.txt", "sub/old.txt"]);
    assert_eq!(user.read("n.txt"), "1\ntwo\n3\n");
    user.run_with_input(&["apply-patch"], diff.as_bytes()).assert_code(1);
    assert_eq!(tree(&user.work()), after, "what does not fit any more changes nothing");
    user.run(&["undo", "--yes"]).assert_code(0);
    assert_eq!(tree(&user.work()), before);
}

#[test]
fn what_a_diff_has_that_cannot_be_applied_is_named() {
    let user = User::new();
    user.file("x", "1\n");
    let mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    let ended = user.run_with_input(&["apply-patch"], mode.as_bytes());
    ended.assert_code(1);
    assert!(
        ended.stderr.contains("Invalid diff on line 3: a change of mode (to 100755) cannot be applied"),
        "{ended:#?}"
    );
    let content = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-2\n+3\n";
    user.run_with_input(&["apply-patch"], content.as_bytes()).assert_code(1);
    assert_eq!(user.read("x"), "1\n");
}

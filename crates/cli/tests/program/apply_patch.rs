//! `windlass apply-patch`: the cases of the patch engine through the program, and what only the program can show.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::support::User;

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
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(user.work().join("a")).unwrap());
    let open = user.home().join("edits/open");
    fs::create_dir_all(&open).unwrap();
    // What a process leaves that was killed after it had exchanged the first of two files.
    let (a, b) = (user.work().join("a"), user.work().join("b"));
    let note = format!(
        "windlass change 1\0file\0{}\0.windlass-1-1-0-0.new\0.windlass-1-1-0-0.old\0file\0{}\0.windlass-1-1-0-1.new\0\
         .windlass-1-1-0-1.old\0ready\0{inode}\0\0",
        a.display(),
        b.display(),
    );
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

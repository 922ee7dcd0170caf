//! Kept contents can be loaded, and a damaged line in the log hides only itself.

use std::{fs::OpenOptions, io::Write};

use ring::digest::{SHA256, digest};
use windlass_contract::edit::HashedContent;

use super::*;

fn version(text: &str) -> Version {
    Version {
        bytes: text.as_bytes().into(),
        mode: 0o644,
        owner: Some((1, 2)),
        modified: Some((-7, 999_999_999)),
        attributes: Attributes::new(),
    }
}

fn changed(before: Option<&str>, after: Option<&str>) -> Changed {
    Changed {
        path: "/w/a".into(),
        before: before.map(version),
        after: after.map(version),
        stamp: None,
        folders: Vec::new(),
        other_names: 0,
    }
}

/// Keeps and logs an edit; its call is its transaction.
fn edit(edits: &Edits, call: &str, files: &[Changed]) {
    let hashed = |version: &Option<Version>| {
        version.as_ref().map(|version| HashedContent {
            bytes: Arc::clone(&version.bytes),
            sha256: digest(&SHA256, &version.bytes).as_ref().try_into().unwrap(),
        })
    };
    let pairs =
        files.iter().map(|file| ContentPair { before: hashed(&file.before), after: hashed(&file.after) });
    let kept = edits.keep(&pairs.collect::<Vec<_>>()).unwrap();
    edits.log(&EditRecord { transaction: call, call: &call.into(), files, kept: &kept }).unwrap();
}

fn calls(edits: &Edits) -> Vec<String> {
    edits.list().unwrap().iter().map(|edit| edit.call.to_string()).collect()
}

#[test]
fn what_files_were_and_became_is_kept_by_content() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    assert_eq!(edits.list().unwrap(), []);
    edit(&edits, "one", &[changed(None, Some("a"))]);
    edit(&edits, "two", &[changed(Some("a"), Some("b"))]);
    let list = edits.list().unwrap();
    assert_eq!(calls(&edits), ["one", "two"]);
    assert!(list[0].order() < list[1].order());
    assert_eq!(edits.version(list[1].files[0].before.as_ref().unwrap()).unwrap(), version("a"));
    assert_eq!(fs::read_dir(edits.contents.directory()).unwrap().count(), 2);
}

#[test]
fn content_that_was_damaged_is_not_given_back() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    edit(&edits, "one", &[changed(Some("a"), None)]);
    let kept = edits.list().unwrap()[0].files[0].before.clone().unwrap();
    fs::write(edits.contents.directory().join(&kept.content), "other").unwrap();
    assert!(edits.version(&kept).is_err());
}

#[test]
fn an_undo_can_be_undone_and_ids_may_come_again() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    let state = |call: &str| {
        edit(&edits, call, &[]);
        edits.list().unwrap().iter().map(|edit| edit.undone).collect::<Vec<_>>()
    };
    assert_eq!(state("a"), [false]);
    assert_eq!(state("a"), [false, false]);
    assert_eq!(state("undo:a"), [false, true, false]);
    assert_eq!(state("undo:undo:a"), [false, false, true, false]);
    assert_eq!(state("undo:undo:undo:a"), [false, true, false, true, false]);
}

#[test]
fn a_torn_line_hides_neither_those_before_nor_those_after() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    edit(&edits, "one", &[]);
    let whole = fs::read(edits.log_path()).unwrap();
    for torn in [&b"{\"time\":\n"[..], b"{\"time\":", &[0; 100], b"\xff\xfe", &whole[..whole.len() - 1]] {
        fs::write(edits.log_path(), [&whole, torn].concat()).unwrap();
        edit(&edits, "two", &[]);
        let calls = calls(&edits);
        assert_eq!(
            (calls.first().map(String::as_str), calls.last().map(String::as_str)),
            (Some("one"), Some("two"))
        );
        assert!(
            edits.is_logged(&edits.log_path(), "one").unwrap()
                && edits.is_logged(&edits.log_path(), "two").unwrap()
        );
    }
}

#[test]
fn a_line_that_is_torn_is_not_logged() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    let log = edits.log_path();
    assert!(!edits.is_logged(&log, "one").unwrap(), "there is no log");
    edit(&edits, "one", &[changed(None, Some("a"))]);
    let whole = fs::read(&log).unwrap();
    for cut in 0..whole.len() {
        fs::write(&log, &whole[..cut]).unwrap();
        assert!(!edits.is_logged(&log, "one").unwrap(), "cut at {cut}");
    }
    fs::write(&log, &whole).unwrap();
    assert!(edits.is_logged(&log, "one").unwrap() && !edits.is_logged(&log, "on").unwrap());
}

#[test]
fn lines_of_earlier_versions_are_read() {
    let home = tempfile::tempdir().unwrap();
    let edits = Edits::outside(home.path());
    edit(&edits, "new", &[]);
    let line = r#"{"time":"2026-11-16T10:00:00Z","call":"old","files":[{"path":"/w/a","before":{"content":"00","mode":420}}]}"#;
    let mut log = OpenOptions::new().append(true).open(edits.log_path()).unwrap();
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
    let list = edits.list().unwrap();
    let kept = list[1].files[0].before.clone().unwrap();
    assert_eq!((list[1].sequence, kept.owner, kept.modified, kept.mode), (None, None, None, 0o644));
}

#[test]
fn edits_of_many_threads_at_once_are_all_there() {
    let home = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let edits = Edits::outside(home.path());
            scope.spawn(move || {
                (0..10)
                    .for_each(|at| edit(&edits, &format!("{thread}-{at}"), &[changed(Some("a"), Some("b"))]));
            });
        }
    });
    let list = Edits::outside(home.path()).list().unwrap();
    assert_eq!(list.len(), 40);
    assert!(list.is_sorted_by(|one, other| one.order() < other.order()));
}

//! Tests of errors, crashes and saves by a person at each fail point of an undo.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::*;
use crate::fail_points::{ConcurrentAction, InjectedFault};

/// A fixture in which a command made one change of each kind, and the changes that take them back.
fn fixture_with_every_change() -> (RestoreFixture, Vec<EntryChange>) {
    let mut place = RestoreFixture::new();
    let top = place.top.clone();
    for (path, text) in [("edited", "new"), ("made", "made"), ("was_link", "file"), ("dir/inner", "inner")] {
        fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        fs::write(top.join(path), text).unwrap();
    }
    symlink("elsewhere", top.join("was_dir")).unwrap();
    fs::set_permissions(top.join("dir"), fs::Permissions::from_mode(0o555)).unwrap();
    let (old, new, made) = (place.file("old", 0o644), place.file("new", 0o644), place.file("made", 0o644));
    let (file, inner, gone) =
        (place.file("file", 0o644), place.file("inner", 0o644), place.file("gone", 0o600));
    let (link, was_dir) = (place.link("edited"), place.link("elsewhere"));
    let (open, shut) = (place.directory(0o755), place.directory(0o555));
    let changes = vec![
        place.change("dir", shut, open.clone()),
        place.change("dir/inner", inner, None),
        place.change("edited", new, old),
        place.change("gone", None, gone.clone()),
        place.change("made", made, None),
        place.change("was_dir", was_dir, open),
        place.change("was_dir/gone", None, gone),
        place.change("was_link", file, link),
    ];
    (place, changes)
}

fn undone() -> (Vec<String>, usize) {
    let (place, changes) = fixture_with_every_change();
    let fail_points = FailPoints::default();
    place.apply_with_fail_points(&changes, &fail_points).unwrap();
    assert_eq!(fs::read_dir(place.notes.path()).unwrap().count(), 0);
    (place.tree(), fail_points.hits.load(Ordering::SeqCst))
}

fn drafts(tree: &[String]) -> Vec<&String> {
    tree.iter().filter(|line| line.contains(".windlass-undo-")).collect()
}

#[test]
fn an_error_at_any_step_leaves_everything_as_it_was() {
    let (expected, count) = undone();
    for at in 0..count {
        let (place, changes) = fixture_with_every_change();
        let before = place.tree();
        let fail_points = FailPoints { fault: Some(InjectedFault::Error(at)), ..FailPoints::default() };
        let end = place.apply_with_fail_points(&changes, &fail_points);
        assert_eq!(place.tree(), if end.is_ok() { expected.clone() } else { before }, "{at}: {end:?}");
        recover_restores(place.notes.path()).unwrap();
        assert_eq!(fs::read_dir(place.notes.path()).unwrap().count(), 0, "{at}");
    }
}

#[test]
fn after_a_death_at_any_step_the_drafts_go_and_the_same_undo_ends_it() {
    let (expected, count) = undone();
    let mut left = 0;
    for at in 0..count {
        let (place, changes) = fixture_with_every_change();
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        let _dead = place.apply_with_fail_points(&changes, &fail_points);
        left += drafts(&place.tree()).len();
        assert!(recover_restores(place.notes.path()).unwrap().is_empty(), "{at}");
        let tree = place.tree();
        assert!(drafts(&tree).is_empty(), "{at}: {tree:?}");
        place.apply(&changes).unwrap_or_else(|error| panic!("{at}: {error} {tree:#?}"));
        assert_eq!(place.tree(), expected, "{at}");
        assert_eq!(fs::read_dir(place.notes.path()).unwrap().count(), 0, "{at}");
    }
    assert!(left > 3, "no draft was ever left, so this test shows nothing");
}

/// Runs an undo while someone saves a file at a fail point, with an optional fault.
fn undo_while_saving(path: &'static str, at: usize, fault: Option<InjectedFault>) {
    let (place, changes) = fixture_with_every_change();
    let before = place.tree();
    let (top, was_saved) = (place.top.clone(), Arc::new(AtomicBool::new(false)));
    let (saved, draft) = (Arc::clone(&was_saved), place.notes.path().join("draft"));
    let act = move |step| {
        if step == at {
            fs::write(&draft, "mine").unwrap();
            saved.store(fs::rename(&draft, top.join(path)).is_ok(), Ordering::SeqCst);
            let _left = fs::remove_file(&draft);
        }
    };
    let fail_points =
        FailPoints { concurrent: Some(ConcurrentAction(Box::new(act))), fault, ..FailPoints::default() };
    let end = place.apply_with_fail_points(&changes, &fail_points);
    recover_restores(place.notes.path()).unwrap();
    let tree = place.tree();
    assert!(drafts(&tree).is_empty(), "{path} {at} {fault:?}: {tree:#?}");
    if was_saved.load(Ordering::SeqCst) {
        let is_mine = |line: &String| line.starts_with(path) && line.ends_with(" mine");
        assert!(tree.iter().any(is_mine), "{path} {at} {fault:?}: {end:?} {tree:#?}");
    }
    if fault.is_none() && end.is_err() {
        let others = |tree: &[String]| {
            let is_other = |line: &&String| !line.starts_with(path);
            tree.iter().filter(is_other).cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&tree), others(&before), "{path} {at}: {end:?}");
    }
}

#[test]
fn what_a_person_saves_at_any_step_is_kept_and_the_rest_is_whole() {
    let (_, count) = undone();
    for path in ["edited", "made", "was_link", "gone", "was_dir", "dir/inner"] {
        for at in 0..count {
            undo_while_saving(path, at, None);
        }
    }
    for at in 0..count {
        undo_while_saving("edited", at, Some(InjectedFault::Error(at + 1)));
        undo_while_saving("edited", at, Some(InjectedFault::Death(at + 1)));
    }
}

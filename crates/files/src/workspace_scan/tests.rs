//! Tests with scans of real directories, and random changes compared with a simple model.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use proptest::prelude::*;

use super::{
    ChangeKind::{Added, Modified, Removed},
    *,
};

fn place() -> (tempfile::TempDir, DirHandle) {
    let place = tempfile::tempdir().unwrap();
    let handle = DirHandle::open(&place.path().canonicalize().unwrap()).unwrap();
    (place, handle)
}

fn summary(before: &WorkspaceScan, after: &WorkspaceScan) -> Vec<(String, ChangeKind)> {
    let changes = before.changes_to(after);
    changes.iter().map(|change| (change.path.to_str().unwrap().to_owned(), change.kind)).collect()
}

#[test]
fn every_kind_of_change_is_listed_and_links_are_not_followed() {
    let (place, root) = place();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("a/b")).unwrap();
    for file in ["a/same", "a/longer", "a/b/gone", "mode", "swapped"] {
        fs::write(path(file), "x").unwrap();
    }
    symlink("a", path("link")).unwrap();
    let before = WorkspaceScan::new(&root).unwrap();
    assert_eq!((before.entries(), before.skipped()), (8, &[][..]));
    fs::write(path("a/longer"), "xx").unwrap();
    fs::remove_file(path("a/b/gone")).unwrap();
    fs::set_permissions(path("mode"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(path("swapped")).unwrap();
    fs::create_dir_all(path("swapped/in")).unwrap();
    let after = WorkspaceScan::new(&root).unwrap();
    let expected = [
        ("a/b/gone", Removed),
        ("a/longer", Modified),
        ("mode", Modified),
        ("swapped", Modified),
        ("swapped/in", Added),
    ];
    assert_eq!(summary(&before, &after), expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert!(after.find(Path::new("swapped/in")).unwrap().is_directory());
    assert!(after.find(Path::new("link")).unwrap().children.is_empty());
}

#[test]
fn a_change_that_keeps_size_and_time_of_modification_is_seen() {
    let (place, root) = place();
    let file = place.path().join("file");
    fs::write(&file, "one").unwrap();
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let before = WorkspaceScan::new(&root).unwrap();
    // The clock of the kernel for these times is coarse.
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&file, "two").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    let after = WorkspaceScan::new(&root).unwrap();
    assert_eq!(summary(&before, &after), [("file".to_owned(), ChangeKind::Modified)]);
}

#[test]
fn an_update_reads_what_changed_and_shares_the_rest() {
    let (place, root) = place();
    fs::create_dir_all(place.path().join("a/b")).unwrap();
    fs::create_dir_all(place.path().join("c")).unwrap();
    fs::write(place.path().join("a/b/file"), "one").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(40));
    let scan = WorkspaceScan::new(&root).unwrap();
    fs::write(place.path().join("a/b/file"), "two").unwrap();
    assert!(scan.has_same_entries(&scan.update(&root).unwrap()), "the content of a file does not count");
    fs::write(place.path().join("a/b/new"), "").unwrap();
    let later = scan.update(&root).unwrap();
    assert!(!scan.has_same_entries(&later));
    let find = |scan: &WorkspaceScan, path: &str| Arc::clone(&scan.find(Path::new(path)).unwrap().children);
    assert!(Arc::ptr_eq(&find(&scan, "c"), &find(&later, "c")));
    // Right after a change, another one may get the same time.
    assert!(summary(&scan, &later).contains(&("a/b/new".to_owned(), Added)));
    fs::remove_file(place.path().join("a/b/new")).unwrap();
    assert_eq!(summary(&later, &later.update(&root).unwrap()), [("a/b/new".to_owned(), Removed)]);
}

#[test]
fn what_is_over_a_bound_is_said() {
    let (place, root) = place();
    fs::create_dir(place.path().join("many")).unwrap();
    for number in 0..20 {
        fs::write(place.path().join(format!("many/{number}")), "").unwrap();
    }
    let scan = WorkspaceScan::with_max_entries(&root, 10).unwrap();
    assert_eq!(scan.skipped().len(), 1);
    assert_eq!(scan.skipped()[0].path, Path::new("many"));
    let deep: PathBuf = (0..MAX_DEPTH + 2).map(|_| "d").collect();
    fs::create_dir_all(place.path().join(deep)).unwrap();
    let scan = WorkspaceScan::new(&root).unwrap();
    assert_eq!(scan.skipped().len(), 1, "{:?}", scan.skipped());
}

#[test]
fn a_directory_that_may_not_be_listed_is_listed_and_stays_as_it_is() {
    let (place, root) = place();
    let shut = place.path().join("shut");
    fs::create_dir_all(shut.join("in")).unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let scan = WorkspaceScan::new(&root).unwrap();
    let mode = fs::metadata(&shut).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(scan.find(Path::new("shut/in")).is_some());
    assert_eq!(mode, 0);
}

/// A change by a command to one of a few paths.
#[derive(Debug, Clone)]
enum TreeEdit {
    Write(usize, u8),
    Remove(usize),
    Link(usize, usize),
    Directory(usize),
    Rename(usize, usize),
}

const PATHS: [&str; 7] = ["a", "b", "d/a", "d/b", "d/e/a", "node_modules/x", "d/.envrc"];

fn edit() -> impl Strategy<Value = TreeEdit> {
    let path = 0..PATHS.len();
    prop_oneof![
        (path.clone(), any::<u8>()).prop_map(|(at, byte)| TreeEdit::Write(at, byte)),
        path.clone().prop_map(TreeEdit::Remove),
        (path.clone(), path.clone()).prop_map(|(at, to)| TreeEdit::Link(at, to)),
        path.clone().prop_map(TreeEdit::Directory),
        (path.clone(), path).prop_map(|(from, to)| TreeEdit::Rename(from, to)),
    ]
}

/// Many edits fail because of earlier ones, which is fine.
fn act(top: &Path, edit: &TreeEdit) {
    let path = |at: &usize| top.join(PATHS[*at]);
    let _result = match edit {
        TreeEdit::Write(at, byte) => fs::write(path(at), [*byte, *byte]),
        TreeEdit::Remove(at) => fs::remove_file(path(at)).or_else(|_| fs::remove_dir_all(path(at))),
        TreeEdit::Link(at, to) => symlink(path(to), path(at)),
        TreeEdit::Directory(at) => fs::create_dir(path(at)),
        TreeEdit::Rename(from, to) => fs::rename(path(from), path(to)),
    };
}

/// Returns every path with its type and content, by a simple walk.
fn model(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut queue = vec![top.to_owned()];
    while let Some(directory) = queue.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let stat = entry.path().symlink_metadata().unwrap();
            let held = if stat.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            let link =
                fs::read_link(entry.path()).map_or(Vec::new(), |to| to.into_os_string().into_encoded_bytes());
            if stat.is_dir() {
                queue.push(entry.path());
            }
            let relative = entry.path().strip_prefix(top).unwrap().to_owned();
            found.insert(relative, (stat.permissions().mode(), [held, link].concat()));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_change_goes_unseen(first in prop::collection::vec(edit(), 0..12), second in prop::collection::vec(edit(), 0..12)) {
        let (place, root) = place();
        for directory in ["d/e", "node_modules"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        for edit in &first {
            act(place.path(), edit);
        }
        let (before, model_before) = (WorkspaceScan::new(&root).unwrap(), model(place.path()));
        for edit in &second {
            act(place.path(), edit);
        }
        let (after, model_after) = (WorkspaceScan::new(&root).unwrap(), model(place.path()));
        let updated = before.update(&root).unwrap();
        let entries = |scan: &WorkspaceScan| {
            let mut found = Vec::new();
            scan.root().visit(&mut PathBuf::new(), &mut |path, node| {
                found.push((path.to_owned(), node.stat.kind, node.stat.ino));
                true
            });
            found
        };
        prop_assert_eq!(entries(&updated), entries(&after));
        let seen: BTreeSet<_> = before.changes_to(&after).into_iter().map(|change| change.path).collect();
        let paths: BTreeSet<_> = model_before.keys().chain(model_after.keys()).cloned().collect();
        for path in paths.into_iter().filter(|path| model_before.get(path) != model_after.get(path)) {
            // A change of a generated file may be missed, and so may one within a tick of the clock
            // of the kernel.
            let same_kind = model_before.get(&path).map(|held| held.0) == model_after.get(&path).map(|held| held.0);
            prop_assert!(seen.contains(&path) || same_kind, "{path:?}");
        }
        prop_assert_eq!(model_after.keys().cloned().collect::<BTreeSet<_>>().len(), after.entries());
    }
}

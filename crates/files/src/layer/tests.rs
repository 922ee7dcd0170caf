//! Tests of layers, built by hand as commands leave them: files, whiteouts and attributes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

use super::*;
use crate::fail_points::{FailPoints, InjectedFault};

/// A root with a layer.
struct LayerFixture {
    top: PathBuf,
    notes: PathBuf,
    _keep: tempfile::TempDir,
}

impl LayerFixture {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let top = keep.path().canonicalize().unwrap();
        fs::create_dir(top.join("root")).unwrap();
        Self { notes: top.join("notes"), top: top.join("root"), _keep: keep }
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.top.join(path), text);
    }

    fn layer(&self) -> OverlayLayer {
        self.try_layer().unwrap()
    }

    fn try_layer(&self) -> Result<OverlayLayer, LayerError> {
        let handle = DirHandle::open(&self.top).unwrap();
        OverlayLayer::new(vec![LayerRoot { path: self.top.clone(), handle }], &self.notes, &|_, _| true)
    }

    fn upper(&self, layer: &OverlayLayer) -> PathBuf {
        self.top.join(layer.name()).join(UPPER)
    }

    /// Returns everything below the root except layers: type, mode, time and content.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        all.insert(PathBuf::new(), describe(&self.top));
        snapshot(&self.top, &self.top, &mut all);
        all
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn snapshot(top: &Path, directory: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with(".windlass-layer-") {
            continue;
        }
        all.insert(path.strip_prefix(top).unwrap().to_owned(), describe(&path));
        if path.symlink_metadata().unwrap().is_dir() {
            snapshot(top, &path, all);
        }
    }
}

fn describe(path: &Path) -> String {
    let found = path.symlink_metadata().unwrap();
    let content = if found.is_file() {
        fs::read_to_string(path).unwrap()
    } else if found.is_symlink() {
        path.read_link().unwrap().display().to_string()
    } else {
        String::new()
    };
    format!("{}.{} {:o} {content}", found.mtime(), found.mtime_nsec(), found.mode())
}

/// The same without times.
fn without_times(snapshot: BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    snapshot.into_iter().map(|(path, line)| (path, line.split_once(' ').unwrap().1.to_owned())).collect()
}

/// Does what the kernel does in an upper directory.
fn whiteout(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

fn attribute(path: &Path, name: &str, value: &str) {
    setxattr(path, name, value.as_bytes(), XattrFlags::empty()).unwrap();
}

/// Copies a directory up, as the kernel does before a change in it.
fn copy_up(place: &LayerFixture, layer: &OverlayLayer, path: &str) -> PathBuf {
    let (upper, lower) = (place.upper(layer).join(path), place.top.join(path));
    fs::create_dir_all(&upper).unwrap();
    attribute(&upper, "user.overlay.origin", "");
    let found = lower.metadata().unwrap();
    fs::set_permissions(&upper, found.permissions()).unwrap();
    fs::File::open(&upper).unwrap().set_modified(found.modified().unwrap()).unwrap();
    upper
}

const NOTHING: &dyn Fn(usize, &Path) -> Option<String> = &|_, _| None;

fn kinds(changes: &LayerChanges) -> Vec<(String, &'static str)> {
    let one = |change: &LayerChange| (change.relative.display().to_string(), change.kind.name());
    changes.changes.iter().map(one).collect()
}

/// Returns a root, its tree, and a layer with one change of each kind.
fn layer_with_every_change() -> (LayerFixture, BTreeMap<PathBuf, String>, OverlayLayer) {
    let place = LayerFixture::new();
    for (path, text) in [
        ("kept", "kept"),
        ("edited", "old"),
        ("moded", "same"),
        ("gone", "gone"),
        ("tree/a", "a"),
        ("tree/sub/b", "b"),
        ("emptied/old", "old"),
        ("emptied/same", "same"),
        ("becomes_link", "file"),
        ("becomes_file/x", "x"),
        ("merged/deep/edited", "old"),
        ("merged/other", "other"),
    ] {
        place.write(path, text);
    }
    symlink("kept", place.top.join("link")).unwrap();
    let old = SystemTime::now() - Duration::from_hours(1);
    fs::File::open(place.top.join("merged")).unwrap().set_modified(old).unwrap();
    let before = place.snapshot();
    let layer = place.layer();
    let upper = place.upper(&layer);
    write(&upper.join("edited"), "new");
    attribute(&upper.join("edited"), "user.overlay.origin", "");
    write(&upper.join("moded"), "same");
    fs::set_permissions(upper.join("moded"), fs::Permissions::from_mode(0o755)).unwrap();
    whiteout(&upper.join("gone"));
    whiteout(&upper.join("tree"));
    write(&upper.join("emptied/new"), "new");
    write(&upper.join("emptied/same"), "same");
    attribute(&upper.join("emptied"), "user.overlay.opaque", "y");
    symlink("/etc/passwd", upper.join("becomes_link")).unwrap();
    write(&upper.join("becomes_file"), "now a file");
    write(&upper.join("made/deep/file"), "made");
    fs::set_permissions(upper.join("made/deep"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("made", upper.join("link")).unwrap();
    let deep = copy_up(&place, &layer, "merged/deep");
    write(&deep.join("edited"), "new");
    attribute(&deep.join("edited"), "user.overlay.origin", "");
    fs::set_permissions(&deep, fs::Permissions::from_mode(0o700)).unwrap();
    copy_up(&place, &layer, "merged");
    (place, before, layer)
}

#[test]
fn every_kind_of_change_is_found_with_its_true_path() {
    let (_place, _, layer) = layer_with_every_change();
    let found = layer.changes(NOTHING).unwrap();
    let expected = [
        ("becomes_file", "replaced"),
        ("becomes_file/x", "deleted"),
        ("becomes_link", "replaced"),
        ("edited", "modified"),
        ("emptied", "replaced"),
        ("emptied/new", "created"),
        ("emptied/old", "deleted"),
        ("gone", "deleted"),
        ("link", "modified"),
        ("made", "created"),
        ("made/deep", "created"),
        ("made/deep/file", "created"),
        ("merged/deep/edited", "modified"),
        ("moded", "metadata"),
        ("tree", "deleted"),
        ("tree/a", "deleted"),
        ("tree/sub", "deleted"),
        ("tree/sub/b", "deleted"),
    ];
    let mut listed = kinds(&found);
    listed.retain(|(path, _)| path != "emptied/same");
    assert_eq!(listed, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!((found.conflicts, found.refused), (vec![], vec![]));
}

#[test]
fn what_is_applied_is_what_the_layer_held_and_nothing_of_it_is_left() {
    let (place, before, layer) = layer_with_every_change();
    let found = layer.changes(NOTHING).unwrap();
    let applied = layer.apply(&found, NOTHING, None).unwrap();
    assert_eq!(applied.count, found.changes.len());
    let after = place.snapshot();
    let text = |path: &str| fs::read_to_string(place.top.join(path)).unwrap();
    assert_eq!((text("edited"), text("merged/deep/edited"), text("emptied/new")), three("new"));
    assert_eq!((text("becomes_file"), text("made/deep/file")), ("now a file".into(), "made".into()));
    for gone in ["gone", "tree", "emptied/old"] {
        assert!(!after.contains_key(Path::new(gone)), "{gone}");
    }
    for same in ["kept", "merged/other", "merged"] {
        assert_eq!(after[Path::new(same)], before[Path::new(same)], "{same}");
    }
    let mode = |path: &str| place.top.join(path).metadata().unwrap().mode() & 0o777;
    assert_eq!((mode("moded"), mode("merged/deep"), mode("made/deep")), (0o755, 0o700, 0o555));
    for path in ["edited", "emptied", "merged/deep/edited"] {
        let mut list = [0; 256];
        assert_eq!(rustix::fs::listxattr(place.top.join(path), &mut list[..]), Ok(0), "{path}");
    }
    assert_eq!(left_over(&place), Vec::<PathBuf>::new());
}

fn three(text: &str) -> (String, String, String) {
    (text.to_owned(), text.to_owned(), text.to_owned())
}

/// Directories of layers and journals.
fn left_over(place: &LayerFixture) -> Vec<PathBuf> {
    let of = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory)
            .map_or_else(|_| vec![], |all| all.map(|entry| entry.unwrap().path()).collect())
    };
    let is_layer = |path: &PathBuf| path.to_string_lossy().contains(".windlass-layer");
    of(&place.top).into_iter().filter(is_layer).chain(of(&place.notes)).collect()
}

#[test]
fn a_process_that_dies_at_any_step_leaves_all_or_nothing() {
    let count = {
        let (_place, _, mut layer) = layer_with_every_change();
        let found = layer.changes(NOTHING).unwrap();
        let fail_points = FailPoints::default();
        layer.apply_with_fail_points(&found, NOTHING, None, &fail_points).unwrap();
        layer.clear(&found, true, &fail_points).unwrap();
        fail_points.hits.load(Ordering::SeqCst)
    };
    assert!(count > 30, "{count}");
    let expected = applied_by_itself();
    let (mut whole, mut nothing) = (0, 0);
    for fault in (0..count).flat_map(|at| [InjectedFault::Death(at), InjectedFault::Error(at)]) {
        let (place, before, mut layer) = layer_with_every_change();
        let found = layer.changes(NOTHING).unwrap();
        let fail_points = FailPoints { fault: Some(fault), ..FailPoints::default() };
        let applied = layer.apply_with_fail_points(&found, NOTHING, None, &fail_points);
        let is_applied = applied.is_ok();
        let is_stuck = matches!(applied, Err(LayerApplyError::Stuck { .. }));
        if !is_stuck {
            let _cleared = layer.clear(&found, is_applied, &fail_points);
        }
        drop(layer);
        recover_layers(&place.notes).unwrap();
        assert_eq!(left_over(&place), Vec::<PathBuf>::new(), "{fault:?}");
        if place.snapshot() == before {
            nothing += 1;
        } else {
            assert_eq!(without_times(place.snapshot()), expected, "{fault:?}");
            assert!(is_applied || matches!(fault, InjectedFault::Death(_)), "{fault:?}");
            whole += 1;
        }
    }
    assert!(whole > 0 && nothing > whole, "{whole} applied, {nothing} taken back");
}

/// Returns the root after an undisturbed apply, without times.
fn applied_by_itself() -> BTreeMap<PathBuf, String> {
    let (place, _, layer) = layer_with_every_change();
    let found = layer.changes(NOTHING).unwrap();
    layer.apply(&found, NOTHING, None).unwrap();
    without_times(place.snapshot())
}

fn refused(layer: &OverlayLayer, protected: ProtectedNames) -> Vec<String> {
    let found = layer.changes(&|_, path| protected(path)).unwrap();
    assert_eq!(found.conflicts, vec![]);
    found.refused.iter().map(|refusal| refusal.relative.display().to_string()).collect()
}

type ProtectedNames = fn(&Path) -> Option<String>;

fn dot_vscode(path: &Path) -> Option<String> {
    path.iter().any(|name| name == ".vscode").then(|| "protected".to_owned())
}

#[test]
fn what_someone_else_changed_meanwhile_is_a_conflict_and_stays() {
    let place = LayerFixture::new();
    for path in ["edited", "untouched", "removed", "tree/a", "emptied/old", "kept_by_both"] {
        place.write(path, "old");
    }
    fs::create_dir(place.top.join("merged")).unwrap();
    let layer = place.layer();
    let upper = place.upper(&layer);
    // By the command.
    write(&upper.join("edited"), "command");
    write(&upper.join("untouched"), "command");
    write(&upper.join("removed"), "command");
    attribute(&upper.join("removed"), "user.overlay.origin", "");
    whiteout(&upper.join("tree"));
    write(&upper.join("emptied/new"), "command");
    attribute(&upper.join("emptied"), "user.overlay.opaque", "y");
    write(&upper.join("both_made"), "command");
    write(&upper.join("directory/x"), "command");
    assert_eq!(layer.changes(NOTHING).unwrap().conflicts, vec![]);
    // By a person.
    std::thread::sleep(Duration::from_millis(20));
    place.write("edited", "person");
    fs::remove_file(place.top.join("removed")).unwrap();
    place.write("tree/new", "person");
    place.write("emptied/also", "person");
    place.write("both_made", "person");
    place.write("directory/y", "person");
    let found = layer.changes(NOTHING).unwrap();
    let mut paths: Vec<_> =
        found.conflicts.iter().map(|each| each.path.strip_prefix(&place.top).unwrap().to_owned()).collect();
    paths.sort();
    paths.dedup();
    let expected =
        ["both_made", "directory", "edited", "emptied", "emptied/also", "removed", "tree", "tree/new"];
    assert_eq!(paths, expected.map(PathBuf::from));
    let before = place.snapshot();
    assert!(matches!(layer.apply(&found, NOTHING, None), Err(LayerApplyError::Conflict(_))));
    let mut after = place.snapshot();
    // The directory of the layer is removed, and the root has its time again.
    after.insert(PathBuf::new(), before[Path::new("")].clone());
    assert_eq!(after, before);
}

#[test]
fn what_changed_after_it_was_shown_is_not_applied() {
    let place = LayerFixture::new();
    place.write("file", "old");
    let layer = place.layer();
    let upper = place.upper(&layer);
    write(&upper.join("file"), "new");
    let shown = layer.changes(NOTHING).unwrap();
    write(&upper.join("hooks"), "planted");
    assert!(matches!(layer.apply(&shown, NOTHING, None), Err(LayerApplyError::NotAsShown)));
    assert_eq!(fs::read_to_string(place.top.join("file")).unwrap(), "old");
    assert_eq!(left_over(&place), Vec::<PathBuf>::new());
}

#[test]
fn protected_names_and_devices_are_left_out_wherever_they_are() {
    let place = LayerFixture::new();
    place.write("parent/.vscode/tasks", "old");
    place.write("other/file", "old");
    let layer = place.layer();
    let upper = place.upper(&layer);
    write(&upper.join(".vscode/x"), "planted");
    write(&upper.join("made/.vscode/x"), "planted");
    write(&upper.join("made/good"), "good");
    whiteout(&upper.join("parent"));
    mknod_fifo(&upper.join("made/fifo"));
    symlink("/etc/shadow", upper.join("made/out")).unwrap();
    let mut expected = vec![".vscode", "made/.vscode", "parent"];
    if mknodat(CWD, upper.join("made/null"), FileType::CharacterDevice, Mode::RWXU, makedev(1, 3)).is_ok() {
        expected.insert(2, "made/null");
    } else {
        println!("skipped: this user cannot make devices");
    }
    assert_eq!(refused(&layer, dot_vscode), expected);
    let protected = |_: usize, path: &Path| dot_vscode(path);
    let shown = layer.changes(&protected).unwrap();
    layer.apply(&shown, &protected, None).unwrap();
    let after = place.snapshot();
    let paths: Vec<_> = after.keys().map(|path| path.display().to_string()).collect();
    let expected = [
        "",
        "made",
        "made/fifo",
        "made/good",
        "made/out",
        "other",
        "other/file",
        "parent",
        "parent/.vscode",
        "parent/.vscode/tasks",
    ];
    assert_eq!(paths, expected);
}

fn mknod_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

fn makedev(major: u32, minor: u32) -> u64 {
    rustix::fs::makedev(major, minor)
}

#[test]
fn a_root_that_means_something_to_an_overlay_or_belongs_to_others_gets_no_layer() {
    let reason = |place: &LayerFixture| place.try_layer().unwrap_err().to_string();
    let place = LayerFixture::new();
    place.write("a/b/file", "x");
    attribute(&place.top.join("a/b"), "user.overlay.opaque", "x");
    assert!(reason(&place).contains("a/b` has attributes of an overlay"), "{}", reason(&place));
    let place = LayerFixture::new();
    whiteout(&place.top.join("a/gone"));
    assert!(reason(&place).contains("a/gone` is a device with the number 0:0"), "{}", reason(&place));
    let place = LayerFixture::new();
    place.write("a/file", "x");
    let handle = DirHandle::open(&place.top).unwrap();
    let root = LayerRoot { path: place.top.clone(), handle };
    let strangers = OverlayLayer::new(vec![root], &place.notes, &|_, _| false);
    assert!(strangers.unwrap_err().to_string().contains("a layer can change files of your own only"));
    assert_eq!(left_over(&place), Vec::<PathBuf>::new());
}

#[test]
fn a_persons_work_after_a_crash_is_kept_when_a_layer_is_taken_back() {
    for at in 0.. {
        let place = LayerFixture::new();
        for path in ["edited", "gone", "also_edited"] {
            place.write(path, "before");
        }
        let mut layer = place.layer();
        let upper = place.upper(&layer);
        for path in ["also_edited", "edited", "made/by_command"] {
            write(&upper.join(path), "command");
        }
        whiteout(&upper.join("gone"));
        let shown = layer.changes(NOTHING).unwrap();
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        let died = layer.apply_with_fail_points(&shown, NOTHING, None, &fail_points);
        assert!(died.is_err(), "it never died with all applied and not done");
        drop(layer);
        if place.top.join("gone").exists() {
            continue;
        }
        std::thread::sleep(Duration::from_millis(20));
        place.write("edited", "person");
        place.write("gone", "person");
        place.write("made/by_person", "person");
        let recovered = recover_layers(&place.notes).unwrap();
        let [LayerRecovery::PutBack { left, .. }] = &recovered[..] else { panic!("{recovered:?}") };
        let name = |path: &PathBuf| path.strip_prefix(&place.top).unwrap().display().to_string();
        let mut left: Vec<_> =
            left.iter().map(|(path, before)| (name(path), before.as_ref().map(name))).collect();
        left.sort();
        let saved = |path: &str| (path.to_owned(), Some(format!("{path}.windlass-before")));
        assert_eq!(left, [saved("edited"), saved("gone"), ("made".to_owned(), None)]);
        let text = |path: &str| fs::read_to_string(place.top.join(path)).unwrap();
        for path in ["edited", "gone", "made/by_person"] {
            assert_eq!(text(path), "person");
        }
        for path in ["edited.windlass-before", "gone.windlass-before", "also_edited"] {
            assert_eq!(text(path), "before");
        }
        return;
    }
}

mod concurrent_saves;

//! Tests of restores: all changes or none are made, and never over the work of someone else.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use ring::digest::{SHA256, digest};

use windlass_contract::snapshot::{EntryContent, EntryVersion};

use super::*;

struct RestoreFixture {
    _directory: tempfile::TempDir,
    notes: tempfile::TempDir,
    top: PathBuf,
    contents: HashMap<ContentDigest, Vec<u8>>,
}

impl RestoreFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let notes = tempfile::tempdir().unwrap();
        Self { _directory: directory, notes, top, contents: HashMap::new() }
    }

    #[expect(clippy::unnecessary_wraps, reason = "a change takes two of them, each of which may be absent")]
    fn version(&mut self, content: EntryContent, mode: u32) -> Option<EntryVersion> {
        let own = fs::metadata(&self.top).unwrap();
        Some(EntryVersion { content, mode, owner: (own.uid(), own.gid()), modified: (1_000, 5) })
    }

    fn file(&mut self, text: &str, mode: u32) -> Option<EntryVersion> {
        let id: ContentDigest = digest(&SHA256, text.as_bytes()).as_ref().try_into().unwrap();
        self.contents.insert(id, text.as_bytes().to_vec());
        self.version(EntryContent::File(id), mode)
    }

    fn link(&mut self, target: &str) -> Option<EntryVersion> {
        self.version(EntryContent::Symlink(target.into()), 0o777)
    }

    fn directory(&mut self, mode: u32) -> Option<EntryVersion> {
        self.version(EntryContent::Directory, mode)
    }

    fn change(&self, name: &str, before: Option<EntryVersion>, after: Option<EntryVersion>) -> EntryChange {
        EntryChange { path: self.top.join(name), before, after }
    }

    fn apply(&self, changes: &[EntryChange]) -> Result<RestoreReport, RestoreError> {
        self.apply_with_fail_points(changes, &FailPoints::default())
    }

    fn apply_with_fail_points(
        &self,
        changes: &[EntryChange],
        fail_points: &FailPoints,
    ) -> Result<RestoreReport, RestoreError> {
        let read = |digest: &ContentDigest| {
            self.contents.get(digest).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        restore_with_fail_points(changes, &read, self.notes.path(), fail_points)
    }

    /// Returns all entries, one line each.
    fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut queue = vec![self.top.clone()];
        while let Some(directory) = queue.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let found = entry.path().symlink_metadata().unwrap();
                let name = entry.path().strip_prefix(&self.top).unwrap().display().to_string();
                let mode = found.mode() & 0o7777;
                if found.is_symlink() {
                    lines.push(format!("{name} -> {}", fs::read_link(entry.path()).unwrap().display()));
                } else if found.is_dir() {
                    queue.push(entry.path());
                    lines.push(format!("{name}/ {mode:o}"));
                } else {
                    lines.push(format!("{name} {mode:o} {}", fs::read_to_string(entry.path()).unwrap()));
                }
            }
        }
        lines.sort();
        lines
    }
}

#[test]
fn files_links_and_directories_change_into_each_other_and_back() {
    let mut place = RestoreFixture::new();
    fs::write(place.top.join("a"), "one").unwrap();
    fs::set_permissions(place.top.join("a"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir(place.top.join("d")).unwrap();
    fs::set_permissions(place.top.join("d"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.top.join("d/x"), "x").unwrap();
    fs::set_permissions(place.top.join("d/x"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink("a", place.top.join("l")).unwrap();
    let before = place.tree();
    let (one, x, link, d) =
        (place.file("one", 0o644), place.file("x", 0o644), place.link("a"), place.directory(0o755));
    let (inner, made, l) = (place.file("inner", 0o600), place.directory(0o555), place.file("file", 0o644));
    let changes = [
        place.change("a", one, made),
        place.change("a/inner", None, inner),
        place.change("d", d, None),
        place.change("d/x", x, None),
        place.change("l", link, l),
    ];
    place.apply(&changes).unwrap();
    assert_eq!(place.tree(), ["a/ 555", "a/inner 600 inner", "l 644 file"]);
    assert_eq!(fs::metadata(place.top.join("l")).unwrap().mtime(), 1_000);
    assert!(inspect_changes(&changes).unwrap().iter().all(|standing| *standing == EntryStanding::Done));
    place.apply(&changes).unwrap();
    let back: Vec<_> = changes.iter().map(EntryChange::reversed).collect();
    place.apply(&back).unwrap();
    assert_eq!(place.tree(), before);
}

#[test]
fn what_someone_changed_is_a_conflict_and_nothing_is_done() {
    let mut place = RestoreFixture::new();
    fs::write(place.top.join("a"), "one").unwrap();
    fs::write(place.top.join("b"), "mine").unwrap();
    let before = place.tree();
    let changes = [
        place.file("one", 0o644).map(|one| place.change("a", Some(one), None)).unwrap(),
        place.file("two", 0o644).map(|two| place.change("b", Some(two), None)).unwrap(),
    ];
    assert!(matches!(place.apply(&changes), Err(RestoreError::Conflict { path }) if path.ends_with("b")));
    assert_eq!(place.tree(), before);
    let standings = inspect_changes(&changes).unwrap();
    assert_eq!(standings, [EntryStanding::Ready, EntryStanding::Conflict]);
}

#[test]
fn an_error_in_the_middle_takes_everything_back() {
    let mut place = RestoreFixture::new();
    fs::write(place.top.join("a"), "one").unwrap();
    fs::write(place.top.join("z"), "last").unwrap();
    let before = place.tree();
    let mode = fs::metadata(place.top.join("a")).unwrap().mode() & 0o7777;
    let (one, last, new) = (place.file("one", mode), place.file("last", mode), place.file("new", mode));
    let unknown = place.version(EntryContent::File([7; 32]), mode);
    let changes =
        [place.change("a", one, None), place.change("n", None, new), place.change("z", last, unknown)];
    assert!(matches!(place.apply(&changes), Err(RestoreError::Failed { .. })));
    assert_eq!(place.tree(), before);
}

#[test]
fn a_directory_that_holds_something_else_stays() {
    let mut place = RestoreFixture::new();
    fs::create_dir(place.top.join("d")).unwrap();
    fs::write(place.top.join("d/made"), "1").unwrap();
    fs::write(place.top.join("d/mine"), "2").unwrap();
    let (d, made) = (place.directory(0o755), place.file("1", 0o644));
    let changes = [place.change("d", d, None), place.change("d/made", made, None)];
    assert_eq!(place.apply(&changes).unwrap().left, [place.top.join("d")]);
    assert_eq!(place.tree().len(), 2);
}

#[test]
fn no_link_on_the_way_is_followed() {
    let mut place = RestoreFixture::new();
    fs::create_dir(place.top.join("elsewhere")).unwrap();
    symlink("elsewhere", place.top.join("d")).unwrap();
    let text = place.file("text", 0o644);
    assert!(place.apply(&[place.change("d/a", None, text)]).is_err());
    assert_eq!(place.tree(), ["d -> elsewhere", "elsewhere/ 755"]);
    assert!(!place.top.join("elsewhere/a").exists());
}

#[test]
fn a_mode_that_is_neither_before_nor_after_is_a_conflict() {
    let mut place = RestoreFixture::new();
    let top = place.top.clone();
    let set = |mode| fs::set_permissions(top.join("a"), fs::Permissions::from_mode(mode)).unwrap();
    fs::write(top.join("a"), "one").unwrap();
    let altered = {
        let (before, after) = (place.file("one", 0o777), place.file("one", 0o640));
        [place.change("a", before, after)]
    };
    set(0o600);
    assert_eq!(inspect_changes(&altered).unwrap(), [EntryStanding::Conflict]);
    assert!(matches!(place.apply(&altered), Err(RestoreError::Conflict { .. })));
    set(0o777);
    place.apply(&altered).unwrap();
    assert_eq!(place.tree(), ["a 640 one"]);
    assert_eq!(inspect_changes(&altered).unwrap(), [EntryStanding::Done]);
    // The person's value stays where the change altered nothing.
    set(0o600);
    let written = {
        let (before, after) = (place.file("one", 0o644), place.file("two", 0o644));
        [place.change("a", before, after)]
    };
    place.apply(&written).unwrap();
    assert_eq!(place.tree(), ["a 600 two"]);
    let removed = {
        let before = place.file("two", 0o644);
        [place.change("a", before, None)]
    };
    assert_eq!(inspect_changes(&removed).unwrap(), [EntryStanding::Conflict]);
}

/// `mv d real && ln -s real d`, taken back and done again.
#[test]
fn a_directory_that_became_a_link_comes_back_and_goes_again() {
    let mut place = RestoreFixture::new();
    fs::create_dir(place.top.join("real")).unwrap();
    fs::write(place.top.join("real/f"), "one").unwrap();
    symlink("real", place.top.join("d")).unwrap();
    let start = place.tree();
    let (d, f, link) = (place.directory(0o755), place.file("one", 0o644), place.link("real"));
    let changes = [
        place.change("d", link.clone(), d.clone()),
        place.change("d/f", None, f.clone()),
        place.change("real", d, None),
        place.change("real/f", f.clone(), None),
    ];
    place.apply(&changes).unwrap();
    assert_eq!(place.tree(), ["d/ 755", "d/f 644 one"]);
    let back: Vec<_> = changes.iter().map(EntryChange::reversed).collect();
    place.apply(&back).unwrap();
    assert_eq!(place.tree(), start);
    // A link of someone else is not followed on either side.
    fs::remove_file(place.top.join("d")).unwrap();
    symlink("/", place.top.join("d")).unwrap();
    let standings = inspect_changes(&changes).unwrap();
    assert_eq!(standings[..2], [EntryStanding::Conflict, EntryStanding::Conflict]);
}

mod concurrent_saves;

//! Tests that a snapshot finds every change, reads no more than needed, and never blocks on a file
//! that a command made.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::Read,
    os::unix::fs::{PermissionsExt, symlink},
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use ring::digest::{SHA256, digest};
use windlass_contract::snapshot::{EntryContent, EntryVersion};

use super::*;

/// Keeps contents in memory, and counts the reads.
#[derive(Debug, Default)]
struct MemoryStore(Mutex<(HashMap<ContentDigest, Vec<u8>>, usize)>, Option<StopAfter>);

/// Ends the scan when this many contents are kept.
#[derive(Debug)]
struct StopAfter(usize, Arc<AtomicBool>);

impl MemoryStore {
    fn reads(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl ContentStore for MemoryStore {
    fn keep_content(&self, mut file: &File, max_bytes: u64) -> io::Result<ContentDigest> {
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(max_bytes).read_to_end(&mut bytes)?;
        let id: ContentDigest = digest(&SHA256, &bytes).as_ref().try_into().unwrap();
        let mut kept = self.0.lock().unwrap();
        kept.0.insert(id, bytes);
        kept.1 += 1;
        if let Some(StopAfter(limit, stop)) = &self.1 {
            stop.store(kept.1 >= *limit, Ordering::Relaxed);
        }
        Ok(id)
    }

    fn export_content(&self, _: &ContentDigest, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn load_listing(&self) -> Option<Vec<u8>> {
        None
    }

    fn save_listing(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn remove_unused(&self, _: &HashSet<ContentDigest>) -> io::Result<()> {
        Ok(())
    }
}

struct SnapshotFixture {
    _directory: tempfile::TempDir,
    top: PathBuf,
    root: SnapshotRoot,
    store: MemoryStore,
}

impl SnapshotFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let (handle, limits) = (DirHandle::open(&top).unwrap(), SnapshotLimits::default());
        let root =
            SnapshotRoot { handle, path: top.clone(), left_out: Vec::new(), limits, stop: Arc::default() };
        Self { _directory: directory, top, root, store: MemoryStore::default() }
    }

    fn fill(&self) -> WorkspaceSnapshot {
        WorkspaceSnapshot::fill(&self.root, &self.store).unwrap()
    }

    /// Returns the changes since, as a letter and a path.
    fn since(&self, before: &WorkspaceSnapshot) -> (Vec<String>, Vec<String>) {
        let after = before.update_after_command(&self.root, &self.store).unwrap().by_same_rules;
        let changes = before.changes_to(&after, &self.top);
        let name = |path: &Path| path.strip_prefix(&self.top).unwrap().display().to_string();
        let letter = |change: &windlass_contract::snapshot::EntryChange| match (&change.before, &change.after)
        {
            (None, _) => "A",
            (_, None) => "D",
            _ => "M",
        };
        let kept = changes.kept.iter().map(|change| format!("{} {}", letter(change), name(&change.path)));
        let unkept =
            changes.unkept.iter().map(|entry| format!("{} {}", name(&entry.path), entry.reason.as_str()));
        (kept.collect(), unkept.collect())
    }
}

/// Waits until a later change gets a later change time.
fn age() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn every_kind_of_change_is_found() {
    let place = SnapshotFixture::new();
    for name in ["write", "append", "mode", "gone", "file_to_link", "same", "touched"] {
        fs::write(place.top.join(name), name).unwrap();
    }
    fs::create_dir_all(place.top.join("d/e")).unwrap();
    fs::write(place.top.join("d/e/f"), "deep").unwrap();
    symlink("write", place.top.join("link")).unwrap();
    let before = place.fill();
    fs::write(place.top.join("write"), "WRITE").unwrap();
    fs::write(place.top.join("append"), "append more").unwrap();
    fs::set_permissions(place.top.join("mode"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(place.top.join("gone")).unwrap();
    fs::remove_file(place.top.join("file_to_link")).unwrap();
    symlink("x", place.top.join("file_to_link")).unwrap();
    fs::remove_file(place.top.join("link")).unwrap();
    symlink("same", place.top.join("link")).unwrap();
    fs::rename(place.top.join("d"), place.top.join("moved")).unwrap();
    File::open(place.top.join("touched")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let (kept, unkept) = place.since(&before);
    let expected = [
        "M append",
        "D d",
        "D d/e",
        "D d/e/f",
        "M file_to_link",
        "D gone",
        "M link",
        "M mode",
        "A moved",
        "A moved/e",
        "A moved/e/f",
        "M write",
    ];
    assert_eq!((kept, unkept), (expected.map(str::to_owned).to_vec(), Vec::new()));
}

#[test]
fn a_version_has_what_an_undo_needs() {
    let place = SnapshotFixture::new();
    let before = place.fill();
    fs::write(place.top.join("a"), "text").unwrap();
    fs::set_permissions(place.top.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let after = before.update_after_command(&place.root, &place.store).unwrap().by_same_rules;
    let [change] = &before.changes_to(&after, &place.top).kept[..] else { panic!("one change") };
    let Some(EntryVersion { content: EntryContent::File(id), mode, .. }) = &change.after else {
        panic!("a file: {change:?}")
    };
    assert_eq!((id.as_slice(), *mode), (digest(&SHA256, b"text").as_ref(), 0o640));
}

#[test]
fn a_file_is_read_again_only_if_it_may_have_changed() {
    let place = SnapshotFixture::new();
    fs::create_dir(place.top.join("d")).unwrap();
    for at in 0..50 {
        fs::write(place.top.join(format!("d/{at}")), at.to_string()).unwrap();
    }
    age();
    let before = place.fill();
    assert_eq!(place.store.reads(), 50);
    let again = before.update(&place.root, &place.store).unwrap();
    assert!(before.is_same(&again));
    assert_eq!(place.store.reads(), 50);
    // The same size and the same time of modification.
    let path = place.top.join("d/7");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "X").unwrap();
    File::open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(place.since(&again).0, ["M d/7"]);
    assert_eq!(place.store.reads(), 51);
}

#[test]
fn a_change_within_the_same_step_of_the_clock_is_found() {
    let place = SnapshotFixture::new();
    for round in 0..200 {
        let path = place.top.join("a");
        fs::write(&path, format!("{round:03}")).unwrap();
        let before = place.fill();
        fs::write(&path, format!("{:03}", round + 500)).unwrap();
        assert_eq!(place.since(&before).0, ["M a"], "round {round}");
    }
}

#[test]
fn what_is_ignored_is_left_out_and_stays_so_while_a_command_runs() {
    let place = SnapshotFixture::new();
    fs::create_dir_all(place.top.join(".git/info")).unwrap();
    fs::create_dir_all(place.top.join("node_modules/x")).unwrap();
    fs::create_dir(place.top.join("out")).unwrap();
    fs::write(place.top.join(".gitignore"), "*.o\nout/\n").unwrap();
    for name in ["a.o", "a.c", "out/x", "node_modules/x/y", ".git/HEAD"] {
        fs::write(place.top.join(name), "1").unwrap();
    }
    let before = place.fill();
    assert_eq!(before.entries(), 2, "a.c and .gitignore");
    fs::write(place.top.join(".gitignore"), "*.c\n").unwrap();
    for name in ["a.o", "a.c", "out/x", "node_modules/x/y", ".git/HEAD"] {
        fs::write(place.top.join(name), "2").unwrap();
    }
    assert_eq!(place.since(&before).0, ["M .gitignore", "M a.c"]);
    // The next command uses the new rules.
    let next = before.update(&place.root, &place.store).unwrap();
    assert_eq!(next.entries(), 4, ".gitignore, a.o, out, out/x");
    fs::write(place.top.join("a.c"), "3").unwrap();
    fs::write(place.top.join("a.o"), "3").unwrap();
    assert_eq!(place.since(&next).0, ["M a.o"]);
}

#[test]
fn what_a_command_plants_costs_an_entry_and_never_a_wait() {
    let mut place = SnapshotFixture::new();
    place.root.limits.max_total_bytes = 10;
    place.root.limits.max_file_bytes = 8;
    let before = place.fill();
    let mode = rustix::fs::Mode::RWXU;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, place.top.join("fifo"), fifo, mode, 0).unwrap();
    File::create(place.top.join("endless")).unwrap().set_len(1 << 40).unwrap();
    fs::write(place.top.join("first"), "12345678").unwrap();
    fs::write(place.top.join("second"), "12345678").unwrap();
    let started_ns = Instant::now();
    let (kept, unkept) = place.since(&before);
    assert!(started_ns.elapsed() < Duration::from_secs(2));
    assert_eq!(kept, ["A first"]);
    let expected = ["endless too large", "fifo not a regular file", "second over the limit for all files"];
    assert_eq!(unkept, expected);
}

#[test]
fn too_many_entries_are_an_error_before_anything_is_kept() {
    let mut place = SnapshotFixture::new();
    place.root.limits.max_entries = 20;
    for at in 0..21 {
        fs::write(place.top.join(at.to_string()), "x").unwrap();
    }
    let error = WorkspaceSnapshot::fill(&place.root, &place.store).unwrap_err();
    assert!(matches!(error, SnapshotError::TooMany { limit: 20 }));
    assert_eq!(place.store.reads(), 0);
    fs::remove_file(place.top.join("0")).unwrap();
    let before = place.fill();
    fs::write(place.top.join("0"), "x").unwrap();
    assert!(before.update(&place.root, &place.store).is_err());
}

#[test]
fn a_listing_is_read_as_it_was_written_and_not_at_all_if_it_is_damaged() {
    let place = SnapshotFixture::new();
    fs::create_dir_all(place.top.join("d/e")).unwrap();
    fs::create_dir(place.top.join(".git")).unwrap();
    fs::write(place.top.join("d/.gitignore"), "x\n").unwrap();
    fs::write(place.top.join("d/e/f"), "text").unwrap();
    symlink("d", place.top.join("link")).unwrap();
    age();
    let before = place.fill();
    let bytes = before.to_bytes();
    let read = WorkspaceSnapshot::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    let reads = place.store.reads();
    let again = read.update(&place.root, &place.store).unwrap();
    assert!(before.changes_to(&again, &place.top).is_empty());
    assert_eq!(place.store.reads(), reads, "nothing is read again");
    for cut in 0..bytes.len() {
        assert!(WorkspaceSnapshot::from_bytes(&bytes[..cut]).is_none(), "cut at {cut}");
    }
}

#[test]
fn a_first_scan_that_was_ended_early_goes_on_from_what_it_read() {
    for limit in [1, 7, 30] {
        let mut place = SnapshotFixture::new();
        for directory in ["a", "a/b", "c", "d"] {
            fs::create_dir(place.top.join(directory)).unwrap();
            for at in 0..10 {
                fs::write(place.top.join(directory).join(at.to_string()), format!("{directory} {at}"))
                    .unwrap();
            }
        }
        age();
        place.store.1 = Some(StopAfter(limit, Arc::clone(&place.root.stop)));
        let part = place.fill();
        assert!(!part.is_whole());
        assert_eq!((part.contents().0.len(), place.store.reads()), (limit, limit));
        let part = WorkspaceSnapshot::from_bytes(&part.to_bytes()).unwrap();
        place.store.1 = None;
        place.root.stop.store(false, Ordering::Relaxed);
        let whole = part.update(&place.root, &place.store).unwrap();
        assert!(whole.is_whole());
        assert_eq!((whole.contents().0.len(), place.store.reads()), (40, 40), "nothing is read twice");
    }
}

#[test]
fn a_scan_that_is_ended_while_entries_are_counted_keeps_nothing() {
    let place = SnapshotFixture::new();
    fs::write(place.top.join("a"), "a").unwrap();
    place.root.stop.store(true, Ordering::Relaxed);
    let error = WorkspaceSnapshot::fill(&place.root, &place.store).unwrap_err();
    assert!(matches!(error, SnapshotError::Stopped));
    assert_eq!(place.store.reads(), 0);
}

/// A workspace that is large enough for two threads, with most of it in one directory.
fn large_place() -> SnapshotFixture {
    let place = SnapshotFixture::new();
    for at in 0..600 {
        let directory =
            place.top.join(if at % 20 == 0 { "a".to_owned() } else { format!("most/{}", at % 7) });
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(at.to_string()), "0123456789").unwrap();
    }
    age();
    place
}

#[test]
fn two_threads_find_what_one_finds() {
    let place = large_place();
    let before = place.fill();
    assert!(before.update(&place.root, &place.store).unwrap().is_same(&before));
    for path in ["a/0", "most/1/1", "most/3/3", "most/6/6"] {
        fs::write(place.top.join(path), "changed").unwrap();
    }
    fs::remove_file(place.top.join("most/2/2")).unwrap();
    fs::write(place.top.join("most/5/new"), "new").unwrap();
    let (kept, unkept) = place.since(&before);
    assert_eq!(kept, ["M a/0", "M most/1/1", "D most/2/2", "M most/3/3", "A most/5/new", "M most/6/6"]);
    assert_eq!(unkept, [""; 0]);
    let after = before.update(&place.root, &place.store).unwrap();
    assert_eq!(after.entries(), place.fill().entries());
}

#[test]
fn the_files_over_the_limit_are_the_same_with_two_threads() {
    let mut place = large_place();
    let before = place.fill();
    let (_, bytes) = before.contents();
    place.root.limits.max_total_bytes = bytes + 5;
    for path in ["a/0", "most/6/97"] {
        fs::write(place.top.join(path), "0123456789 and").unwrap();
    }
    let (kept, unkept) = place.since(&before);
    assert_eq!(
        (kept, unkept),
        (vec!["M a/0".to_owned()], vec!["most/6/97 over the limit for all files".to_owned()])
    );
}

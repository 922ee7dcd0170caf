//! Tests of commits, with an error or a crash at each fail point.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use tempfile::TempDir;
use windlass_contract::{
    edit::{Action, Expected},
    files::{FileKind, Sight},
};

use super::{
    recovery::{CommitRecovery, recover},
    *,
};
use crate::fail_points::InjectedFault;

mod crash;

const DELETE: Action = Action::Delete { folders: Vec::new() };

/// A workspace and an archive beside it.
struct TestWorkspace {
    directory: TempDir,
    archive: MemoryArchive,
    resolver: PathResolver,
}

#[derive(Debug)]
struct MemoryArchive {
    notes: PathBuf,
    /// The transactions, with the files they changed.
    logged: Mutex<Vec<(String, Vec<Changed>)>>,
    /// Someone writes to this file, and then writing to the log fails.
    meddled: Option<PathBuf>,
}

impl Archive for MemoryArchive {
    fn keep(&self, contents: &[ContentPair]) -> io::Result<Vec<KeptPair>> {
        Ok(contents.iter().map(|_| KeptPair::default()).collect())
    }

    fn log(&self, edit: &EditRecord<'_>) -> io::Result<()> {
        assert_eq!(edit.files.len(), edit.kept.len());
        if let Some(path) = &self.meddled {
            fs::write(path, "someone's work\n").unwrap();
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.logged.lock().unwrap().push((edit.transaction.to_owned(), edit.files.to_vec()));
        Ok(())
    }

    fn is_logged(&self, log: &Path, transaction: &str) -> io::Result<bool> {
        assert_eq!(log, self.log_path());
        Ok(self.logged.lock().unwrap().iter().any(|(logged, _)| logged == transaction))
    }

    fn log_path(&self) -> PathBuf {
        "/log".into()
    }

    fn see(&self, _sight: &Sight) -> io::Result<()> {
        Ok(())
    }

    fn seen(&self) -> io::Result<Vec<Sight>> {
        Ok(Vec::new())
    }

    fn notes(&self) -> &Path {
        &self.notes
    }
}

type FileTree = BTreeMap<PathBuf, (String, u32)>;

impl TestWorkspace {
    /// Creates the files `kept`, `program` (executable), `gone`, `from` and `to`.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let work = top.join("work");
        fs::create_dir(&work).unwrap();
        for name in ["kept", "program", "gone", "from", "to"] {
            fs::write(work.join(name), format!("old {name}\n")).unwrap();
        }
        fs::set_permissions(work.join("program"), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(work.join("from"), Permissions::from_mode(0o640)).unwrap();
        let archive = MemoryArchive { notes: top.join("notes"), logged: Mutex::default(), meddled: None };
        Self { directory, archive, resolver: PathResolver::new(work, None) }
    }

    fn work(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("work")
    }

    fn commit(&self, changes: Vec<Change>) -> Result<Vec<Changed>, CommitError> {
        self.commit_with(changes, &FailPoints::default())
    }

    fn commit_with(
        &self,
        changes: Vec<Change>,
        fail_points: &FailPoints,
    ) -> Result<Vec<Changed>, CommitError> {
        commit_with_fail_points(&self.resolver, Some(&self.archive), &"call".into(), changes, fail_points)
    }

    /// Returns every entry, directories and drafts included.
    fn tree(&self) -> FileTree {
        let mut tree = FileTree::new();
        let mut folders = vec![self.directory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                let name = path.strip_prefix(self.directory.path()).unwrap().to_owned();
                let text =
                    if metadata.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
                // An empty directory for notes is no trace of anything.
                if name != Path::new("notes") {
                    tree.insert(name, (text, metadata.mode()));
                }
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        tree
    }
}

fn content(text: &str) -> Expected {
    Expected::Content(text.as_bytes().into())
}

fn change(path: &str, expected: Expected, action: Action) -> Change {
    Change { path: path.into(), expected, action }
}

/// One change of each kind.
fn everything() -> Vec<Change> {
    let bytes = b"moved\n".to_vec();
    vec![
        change("program", content("old program\n"), Action::Write(b"new program\n".to_vec())),
        change("a/b/made", Expected::Absent, Action::Write(b"made\n".to_vec())),
        change("a/b/c/too", Expected::Absent, Action::Write(b"made too\n".to_vec())),
        change("gone", content("old gone\n"), DELETE),
        change("from", content("old from\n"), Action::Move { to: "to".into(), bytes }),
    ]
}

#[test]
fn everything_changes_together_and_modes_stay() {
    let workspace = TestWorkspace::new();
    let changed = workspace.commit(everything()).unwrap();
    let tree = workspace.tree();
    let at = |name: &str| {
        tree.get(&Path::new("work").join(name)).map(|(text, mode)| (text.as_str(), mode & 0o777))
    };
    assert_eq!(at("program"), Some(("new program\n", 0o755)));
    assert_eq!(at("a/b/c/too").map(|(text, _)| text), Some("made too\n"));
    assert_eq!((at("gone"), at("from")), (None, None));
    assert_eq!(at("to"), Some(("moved\n", 0o640)));
    assert_eq!(tree.keys().filter(|path| path.to_string_lossy().contains("windlass")).count(), 0);
    assert_eq!(tree.keys().filter(|path| path.starts_with("notes")).count(), 0);
    let logged = workspace.archive.logged.lock().unwrap();
    assert_eq!(logged.iter().map(|(_, changed)| changed).collect::<Vec<_>>(), [&changed]);
}

#[test]
fn an_error_at_any_step_leaves_everything_as_it_was() {
    let fail_points = FailPoints::default();
    TestWorkspace::new().commit_with(everything(), &fail_points).unwrap();
    let count = fail_points.hits.into_inner();
    assert!(count > 30, "{count}");
    let mut made = 0;
    for at in 0..count {
        let workspace = TestWorkspace::new();
        let before = workspace.tree();
        let fail_points = FailPoints { fault: Some(InjectedFault::Error(at)), ..FailPoints::default() };
        match workspace.commit_with(everything(), &fail_points) {
            Err(CommitError::Failed { .. }) => assert_eq!(workspace.tree(), before, "step {at}"),
            // After the commit, only the cleanup can fail, and the next start does that.
            Ok(_) => {
                made += 1;
                recover(&workspace.archive).unwrap();
                assert_eq!(workspace.tree(), after(), "step {at}");
            }
            Err(error) => panic!("step {at}: {error}"),
        }
    }
    assert!(made > 0 && made < count / 2, "{made} of {count}");
}

#[test]
fn death_at_any_step_is_mended_by_the_next_start() {
    let fail_points = FailPoints::default();
    TestWorkspace::new().commit_with(everything(), &fail_points).unwrap();
    let (mut back, mut forth) = (0, 0);
    for at in 0..fail_points.hits.into_inner() {
        let workspace = TestWorkspace::new();
        let before = workspace.tree();
        let fail_points = FailPoints { fault: Some(InjectedFault::Death(at)), ..FailPoints::default() };
        let end = workspace.commit_with(everything(), &fail_points);
        recover(&workspace.archive).unwrap();
        if end.is_ok() {
            forth += 1;
            assert_eq!(workspace.tree(), after(), "step {at}");
        } else {
            back += 1;
            assert_eq!(workspace.tree(), before, "step {at}");
        }
    }
    assert!(back > 20 && forth > 5, "{back} back, {forth} forth");
}

/// The tree after all changes.
fn after() -> FileTree {
    let workspace = TestWorkspace::new();
    workspace.commit(everything()).unwrap();
    workspace.tree()
}

#[test]
fn a_change_that_is_being_made_is_left_alone() {
    let workspace = TestWorkspace::new();
    let fail_points = FailPoints::default();
    let change = LoggedChange { transaction: "x".into(), edit_log: "/log".into(), ..LoggedChange::default() };
    let log = WriteAheadLog::begin(&workspace.archive.notes, &change, &fail_points).unwrap();
    assert!(recover(&workspace.archive).unwrap().is_empty());
    assert_eq!(fs::read_dir(&workspace.archive.notes).unwrap().count(), 1);
    drop(log);
    recover(&workspace.archive).unwrap();
    assert_eq!(fs::read_dir(&workspace.archive.notes).unwrap().count(), 0);
}

#[test]
fn what_is_not_as_expected_is_not_touched() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let write = || Action::Write(b"mine\n".to_vec());
    for stale in [
        change("kept", content("something else\n"), write()),
        change("kept", Expected::Absent, write()),
        change("missing", content("x"), write()),
    ] {
        let fine = change("program", content("old program\n"), write());
        let error = workspace.commit(vec![fine, stale]).unwrap_err();
        assert!(matches!(error, CommitError::Stale { .. }), "{error}");
    }
    assert_eq!(workspace.tree(), before);
}

#[test]
fn whoever_writes_between_the_look_and_the_change_keeps_their_work() {
    for (path, expected, action) in [
        ("kept", content("old kept\n"), Action::Write(b"ours\n".to_vec())),
        ("kept", content("old kept\n"), DELETE),
        ("new", Expected::Absent, Action::Write(b"ours\n".to_vec())),
    ] {
        let workspace = TestWorkspace::new();
        let fail_points = FailPoints::default();
        let mut plan = CommitPlan::default();
        plan.add(&workspace.resolver, change(path, expected, action)).unwrap();
        fs::write(workspace.work().join(path), "theirs, and longer\n").unwrap();
        let between = workspace.tree();
        let transaction = CommitTransaction::new(plan, Some(&workspace.archive), &fail_points, "x".into());
        let error = transaction.run(&"call".into()).unwrap_err();
        assert!(matches!(error, CommitError::Stale { .. }), "{error}");
        assert_eq!(workspace.tree(), between);
    }
}

#[test]
fn one_file_is_changed_once_by_whatever_name() {
    let workspace = TestWorkspace::new();
    symlink("kept", workspace.work().join("link")).unwrap();
    let before = workspace.tree();
    let write = |path| change(path, content("old kept\n"), Action::Write(b"x\n".to_vec()));
    let error = workspace.commit(vec![write("kept"), write("link")]).unwrap_err();
    assert!(matches!(error, CommitError::Twice { .. }), "{error}");
    let onto = Action::Move { to: "program".into(), bytes: Vec::new() };
    let error = workspace
        .commit(vec![
            change("kept", content("old kept\n"), onto),
            change("program", content("old program\n"), DELETE),
        ])
        .unwrap_err();
    assert!(matches!(error, CommitError::Twice { .. }), "{error}");
    assert_eq!(workspace.tree(), before);
}

#[test]
fn a_link_stays_and_what_it_leads_to_changes() {
    let workspace = TestWorkspace::new();
    symlink("kept", workspace.work().join("link")).unwrap();
    workspace.commit(vec![change("link", content("old kept\n"), Action::Write(b"new\n".to_vec()))]).unwrap();
    assert!(workspace.work().join("link").is_symlink());
    assert_eq!(fs::read_to_string(workspace.work().join("kept")).unwrap(), "new\n");
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let workspace = TestWorkspace::new();
    fs::create_dir(workspace.work().join("folder")).unwrap();
    let fifo = workspace.work().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    symlink("loop", workspace.work().join("loop")).unwrap();
    let before = workspace.tree();
    let long = "x/".repeat(3000);
    let refused = |path: &str| {
        let change = change(path, Expected::Absent, Action::Write(Vec::new()));
        match workspace.commit(vec![change]).unwrap_err() {
            CommitError::File(error) => error,
            error => panic!("{path}: {error}"),
        }
    };
    assert!(matches!(refused("folder"), FileError::IsDirectory { .. }));
    assert!(matches!(refused("fifo"), FileError::NotAFile { kind: FileKind::Fifo, .. }));
    assert!(matches!(refused("loop"), FileError::Loop { .. }));
    assert!(matches!(refused("a\0b"), FileError::Nul));
    assert!(matches!(refused(&long), FileError::TooLong { .. }));
    assert!(matches!(refused("."), FileError::IsDirectory { .. }));
    assert_eq!(workspace.tree(), before);
}

#[test]
fn a_file_in_the_way_of_a_directory_changes_nothing() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let write = |path| change(path, Expected::Absent, Action::Write(b"x".to_vec()));
    assert!(workspace.commit(vec![write("kept/inside")]).is_err());
    assert!(workspace.commit(vec![write("new"), write("new/inside")]).is_err());
    assert_eq!(workspace.tree(), before);
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let workspace = TestWorkspace::new();
    fs::set_permissions(workspace.work().join("kept"), Permissions::from_mode(0o444)).unwrap();
    let before = workspace.tree();
    let write = change("kept", content("old kept\n"), Action::Write(b"x".to_vec()));
    match workspace.commit(vec![write]) {
        Err(CommitError::File(FileError::NoPermission { .. })) => assert_eq!(workspace.tree(), before),
        Ok(_) => println!("skipped: root may write everything"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_path_cannot_be_a_file_and_a_directory() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let make = |path| change(path, Expected::Absent, Action::Write(b"x".to_vec()));
    for changes in [vec![make("n"), make("n/m")], vec![make("n/m/o"), make("n/m")]] {
        let error = workspace.commit(changes).unwrap_err();
        assert!(matches!(error, CommitError::Beneath { .. }), "{error}");
    }
    assert_eq!(workspace.tree(), before);
}

#[test]
fn directories_go_with_the_file_they_were_made_for_unless_someone_uses_them() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let make = |path| change(path, Expected::Absent, Action::Write(b"x".to_vec()));
    let take_back = |changed: Vec<Changed>| {
        let back = changed.into_iter().map(|Changed { path, folders, .. }| {
            change(path.to_str().unwrap(), content("x"), Action::Delete { folders })
        });
        workspace.commit(back.collect()).unwrap();
    };
    take_back(workspace.commit(vec![make("a/b/one"), make("a/c/two"), make("a/b/three")]).unwrap());
    assert_eq!(workspace.tree(), before);
    let changed = workspace.commit(vec![make("a/b/one")]).unwrap();
    fs::write(workspace.work().join("a/mine"), "mine").unwrap();
    take_back(changed);
    assert!(workspace.work().join("a/mine").exists() && !workspace.work().join("a/b").exists());
}

#[test]
fn other_names_of_a_file_keep_the_old_content_and_are_counted() {
    let workspace = TestWorkspace::new();
    fs::hard_link(workspace.work().join("kept"), workspace.directory.path().join("elsewhere")).unwrap();
    let write = change("kept", content("old kept\n"), Action::Write(b"new\n".to_vec()));
    let changed = workspace.commit(vec![write]).unwrap();
    assert_eq!(changed[0].other_names, 1);
    assert_eq!(fs::read_to_string(workspace.directory.path().join("elsewhere")).unwrap(), "old kept\n");
}

#[test]
fn extended_attributes_stay() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let workspace = TestWorkspace::new();
    let kept = workspace.work().join("kept");
    if let Err(error) = setxattr(&kept, "user.origin", b"here", XattrFlags::empty()) {
        println!("skipped: no attributes on this file system: {error}");
        return;
    }
    // user::rw-, user:12345:rw-, group::---, mask::rw-, other::---, as the kernel keeps it.
    let list: Vec<u8> = [2_u32.to_le_bytes().to_vec()]
        .into_iter()
        .chain([(1, 6, u32::MAX), (2, 6, 12345), (4, 0, u32::MAX), (16, 6, u32::MAX), (32, 0, u32::MAX)].map(
            |(tag, bits, id): (u16, u16, u32)| {
                [&tag.to_le_bytes()[..], &bits.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
            },
        ))
        .flatten()
        .collect();
    let has_list = setxattr(&kept, "system.posix_acl_access", &list, XattrFlags::empty()).is_ok();
    workspace.commit(vec![change("kept", content("old kept\n"), Action::Write(b"new\n".to_vec()))]).unwrap();
    let mut value = [0; 100];
    let length = getxattr(&kept, "user.origin", &mut value).unwrap();
    assert_eq!(&value[..length], b"here");
    if has_list {
        let length = getxattr(&kept, "system.posix_acl_access", &mut value).unwrap();
        assert_eq!(value[..length], list);
    } else {
        println!("skipped: no access lists on this file system");
    }
}

#[test]
fn a_change_of_very_many_directories_holds_few_of_them_open() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let changes = || -> Vec<_> {
        let path = |at: usize| format!("d{at}/e/f");
        (0..100).map(|at| change(&path(at), Expected::Absent, Action::Write(b"x".to_vec()))).collect()
    };
    let fail_points = FailPoints { fault: Some(InjectedFault::Error(450)), ..FailPoints::default() };
    workspace.commit_with(changes(), &fail_points).unwrap_err();
    assert_eq!(workspace.tree(), before);
    assert_eq!(workspace.commit(changes()).unwrap().len(), 100);
    assert!((0..100).all(|at| workspace.work().join(format!("d{at}/e/f")).is_file()));
}

#[test]
fn a_file_is_put_back_with_its_mode() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let [changed] = &workspace.commit(vec![change("program", content("old program\n"), DELETE)]).unwrap()[..]
    else {
        panic!("one file")
    };
    let version = changed.before.clone().unwrap();
    workspace
        .commit(vec![change("program", Expected::Absent, Action::Restore { before: version, after: None })])
        .unwrap();
    assert_eq!(workspace.tree(), before);
}

/// A file that may exist, and the change to it.
#[derive(Debug, Clone)]
struct FileCase {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

fn file_cases() -> impl Strategy<Value = Vec<FileCase>> {
    let content = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20));
    let fate = (content(), content()).prop_map(|(before, after)| FileCase { before, after });
    proptest::collection::vec(fate, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_change_and_its_undo_are_nothing(cases in file_cases()) {
        let workspace = TestWorkspace::new();
        let mut changes = Vec::new();
        for (at, FileCase { before, after }) in cases.iter().enumerate() {
            let path = format!("file{at}");
            if let Some(bytes) = before {
                fs::write(workspace.work().join(&path), bytes).unwrap();
            }
            let expected = before.as_ref().map_or(Expected::Absent, |bytes| Expected::Content(bytes.clone().into()));
            match (before, after) {
                (_, Some(after)) => changes.push(change(&path, expected, Action::Write(after.clone()))),
                (Some(_), None) => changes.push(change(&path, expected, DELETE)),
                (None, None) => {}
            }
        }
        let held = |of: fn(&FileCase) -> &Option<Vec<u8>>| -> Vec<_> { cases.iter().map(|fate| of(fate).clone()).collect() };
        let found = || -> Vec<_> { (0..cases.len()).map(|at| fs::read(workspace.work().join(format!("file{at}"))).ok()).collect() };
        let changed = workspace.commit(changes).unwrap();
        prop_assert_eq!(found(), held(|fate| &fate.after));
        let back = changed.into_iter().map(|Changed { path, before, after, .. }| Change {
            path,
            expected: after.as_ref().map_or(Expected::Absent, |after| Expected::Content(Arc::clone(&after.bytes))),
            action: before.map_or(DELETE, |before| Action::Restore { before, after }),
        });
        workspace.commit(back.collect()).unwrap();
        prop_assert_eq!(found(), held(|fate| &fate.before));
    }
}

#[test]
fn a_change_that_the_disk_has_no_room_for_is_refused_before_anything_is_written() {
    let workspace = TestWorkspace::new();
    let before = workspace.tree();
    let mut plan = CommitPlan::default();
    for (name, bytes) in [("new", 600), ("other", 500)] {
        let write = Action::Write(vec![b'x'; bytes]);
        plan.add(&workspace.resolver, change(name, Expected::Absent, write)).unwrap();
    }
    let checked = |free| disk_space::check(&plan.files, move |_| Ok(free)).map_err(|error| error.to_string());
    assert_eq!(checked(Some(1100)), Ok(()));
    assert_eq!(checked(None), Ok(()), "a file system that does not count");
    let error = checked(Some(1099)).unwrap_err();
    assert!(error.starts_with("no room on the disk of `"), "{error}");
    assert!(
        error.contains("work/new`: 1100 bytes are needed and 1099 are free; nothing was written."),
        "{error}"
    );
    assert_eq!(workspace.tree(), before);
    // This disk has room for a few bytes.
    disk_space::check(&plan.files, disk_space::free_bytes).unwrap();
}

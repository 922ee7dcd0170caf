//! Limits remove the right files, and nothing of a running session.

use windlass_contract::journal::SessionMeta;

use super::*;
use crate::{DurabilityMode, SessionFile, Which, new_thread_id};

const HOUR: Duration = Duration::from_hours(1);

fn go_on() -> bool {
    true
}

fn set_age(path: &Path, age: Duration) {
    File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

/// Creates a session with 10 bytes of outputs and 10 of edits, all of this age. Its file stays
/// locked until it is dropped.
fn session(home: &Path, age: Duration) -> (SessionFile, String) {
    let id = new_thread_id();
    let meta = SessionMeta {
        id: id.clone(),
        cwd: "/w".into(),
        version: "0".into(),
        instructions: String::new(),
        parent: None,
    };
    let file = SessionFile::create(home, &meta).unwrap().with_durability(DurabilityMode::Never);
    let output = home.join("outputs").join(id.as_str()).join("1.txt");
    let content = home.join("edits").join(id.as_str()).join("contents/a");
    for path in [&output, &content] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "0123456789").unwrap();
    }
    let edits = content.parent().unwrap().parent().unwrap();
    for path in [&output, &content, content.parent().unwrap(), edits, file.path()] {
        set_age(path, age);
    }
    (file, id.to_string())
}

/// Creates three sessions that have ended, the first the newest.
fn sessions(home: &Path) -> [String; 3] {
    [HOUR, HOUR * 2, HOUR * 100].map(|age| session(home, age).1)
}

fn left(home: &Path, kind: StoredKind, ids: &[String]) -> Vec<usize> {
    let units = list_stored(home, kind).unwrap();
    (0..ids.len()).filter(|at| units.iter().any(|unit| unit.session == ids[*at])).collect()
}

fn bytes(limit: u64) -> KeepLimit {
    KeepLimit { max_bytes: Some(limit), max_age: None }
}

fn age(limit: Duration) -> KeepLimit {
    KeepLimit { max_bytes: None, max_age: Some(limit) }
}

#[test]
fn what_is_too_old_goes_with_its_directory() {
    let home = tempfile::tempdir().unwrap();
    let ids = sessions(home.path());
    let limits = RetentionLimits { outputs: age(HOUR * 50), ..RetentionLimits::default() };
    let removed = limits.enforce(home.path(), &go_on).unwrap();
    assert_eq!(removed.iter().map(|unit| &unit.session).collect::<Vec<_>>(), [&ids[2]]);
    assert_eq!(left(home.path(), StoredKind::Outputs, &ids), [0, 1]);
    assert!(!home.path().join("outputs").join(&ids[2]).exists());
    assert_eq!(left(home.path(), StoredKind::Edits, &ids), [0, 1, 2]);
}

#[test]
fn of_what_is_too_much_the_oldest_goes() {
    let home = tempfile::tempdir().unwrap();
    let ids = sessions(home.path());
    let limits = RetentionLimits { outputs: bytes(25), edits: bytes(15), ..RetentionLimits::default() };
    let preview = limits.preview(home.path()).unwrap();
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap(), preview);
    assert_eq!(left(home.path(), StoredKind::Outputs, &ids), [0, 1]);
    assert_eq!(left(home.path(), StoredKind::Edits, &ids), [0]);
    assert_eq!(left(home.path(), StoredKind::Sessions, &ids), [0, 1, 2]);
}

#[test]
fn nothing_of_a_running_session_goes() {
    let home = tempfile::tempdir().unwrap();
    let (running, id) = session(home.path(), HOUR * 100);
    let ids = [id];
    let limits = RetentionLimits { outputs: bytes(0), edits: age(HOUR), sessions: age(HOUR) };
    assert_eq!(limits.preview(home.path()).unwrap(), []);
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap(), []);
    drop(running);
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap().len(), 3);
    for kind in [StoredKind::Outputs, StoredKind::Edits, StoredKind::Sessions] {
        assert_eq!(left(home.path(), kind, &ids), [0; 0]);
    }
}

#[test]
fn a_session_that_is_resumed_keeps_what_is_left_of_it() {
    let home = tempfile::tempdir().unwrap();
    let (ended, id) = session(home.path(), HOUR * 100);
    drop(ended);
    let (_resumed, _) = SessionFile::resume(home.path(), &Which::Id(id.as_str().into())).unwrap();
    let limits = RetentionLimits { outputs: bytes(0), edits: bytes(0), ..RetentionLimits::default() };
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap(), []);
}

#[test]
fn with_a_session_file_goes_what_belongs_to_it() {
    let home = tempfile::tempdir().unwrap();
    let ids = sessions(home.path());
    let limits = RetentionLimits { sessions: age(HOUR * 50), ..RetentionLimits::default() };
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap().len(), 3);
    for kind in [StoredKind::Outputs, StoredKind::Edits, StoredKind::Sessions] {
        assert_eq!(left(home.path(), kind, &ids), [0, 1], "{kind:?}");
    }
}

#[test]
fn edits_outside_of_sessions_and_notes_of_unfinished_changes_stay() {
    let home = tempfile::tempdir().unwrap();
    for name in ["open/note", "outside/contents/a"] {
        let path = home.path().join("edits").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "0123456789").unwrap();
    }
    let limits = RetentionLimits { edits: bytes(0), ..RetentionLimits::default() };
    assert_eq!(limits.enforce(home.path(), &go_on).unwrap(), []);
    assert!(home.path().join("edits/open/note").exists());
}

#[test]
fn a_directory_that_was_being_removed_goes_the_next_time() {
    let home = tempfile::tempdir().unwrap();
    let leftover = home.path().join("edits/.removed-x/contents");
    fs::create_dir_all(&leftover).unwrap();
    let limits = RetentionLimits { edits: bytes(100), ..RetentionLimits::default() };
    limits.enforce(home.path(), &go_on).unwrap();
    assert!(!home.path().join("edits/.removed-x").exists());
}

#[test]
fn two_processes_do_not_enforce_limits_at_the_same_time_nor_one_too_often() {
    let home = tempfile::tempdir().unwrap();
    let ids = sessions(home.path());
    let limits = RetentionLimits { outputs: bytes(0), ..RetentionLimits::default() };
    let lock = File::create(home.path().join(LOCK_NAME)).unwrap();
    assert_eq!(limits.enforce_if_due(home.path(), &go_on).unwrap(), [], "it was just done");
    set_age(&home.path().join(LOCK_NAME), MIN_INTERVAL * 2);
    lock.try_lock().unwrap();
    assert_eq!(limits.enforce_if_due(home.path(), &go_on).unwrap(), [], "another is at it");
    assert!(matches!(limits.enforce(home.path(), &go_on), Err(SessionError::Busy { .. })));
    drop(lock);
    assert_eq!(limits.enforce_if_due(home.path(), &|| false).unwrap(), [], "stopped");
    set_age(&home.path().join(LOCK_NAME), MIN_INTERVAL * 2);
    assert_eq!(limits.enforce_if_due(home.path(), &go_on).unwrap().len(), 3);
    assert_eq!(left(home.path(), StoredKind::Outputs, &ids), [0; 0]);
}

#[test]
fn without_limits_or_a_home_nothing_is_done() {
    let home = tempfile::tempdir().unwrap();
    RetentionLimits::default().enforce_if_due(home.path(), &go_on).unwrap();
    assert!(!home.path().join(LOCK_NAME).exists());
    let limits = RetentionLimits { outputs: bytes(0), ..RetentionLimits::default() };
    limits.enforce_if_due(&home.path().join("absent"), &go_on).unwrap();
}

#[test]
fn usage_is_counted_by_kind_and_by_session() {
    let home = tempfile::tempdir().unwrap();
    let ids = sessions(home.path());
    fs::create_dir_all(home.path().join("cache/packages")).unwrap();
    fs::write(home.path().join("cache/packages/a"), "12345").unwrap();
    let usage = DiskUsage::measure(home.path()).unwrap();
    let of = |name: &str| {
        let kind = usage.kinds.iter().find(|kind| kind.name == name).unwrap();
        (kind.count, kind.bytes)
    };
    assert_eq!((of("outputs"), of("edits"), of("cache"), of("index")), ((3, 30), (3, 30), (1, 5), (0, 0)));
    let file = fs::metadata(crate::find(home.path(), &ids[0].as_str().into()).unwrap().1).unwrap().len();
    assert_eq!(usage.sessions.iter().find(|(id, _)| *id == ids[0]).unwrap().1, file + 20);
    assert_eq!(usage.total_bytes(), of("sessions").1 + 65);
}

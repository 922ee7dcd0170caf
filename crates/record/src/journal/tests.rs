//! Creating, locking and resuming session files, and errors of the disk.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::Arc,
    task::{Context, Waker},
    time::Instant,
};

use tempfile::TempDir;
use windlass_contract::{
    Input, Item, ToolCall,
    item::{Body, Role},
    model::Usage,
};
use windlass_fakes::clean;

use super::*;
use crate::{list, load, new_thread_id};

fn meta(cwd: &str) -> SessionMeta {
    SessionMeta {
        id: new_thread_id(),
        cwd: cwd.into(),
        version: "0".into(),
        instructions: "be brief".into(),
        parent: None,
    }
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn call(id: &str) -> Item {
    Body::Call(ToolCall { id: id.into(), name: "shell".into(), input: Input::Text("ls".into()) }).into()
}

#[test]
fn nobody_else_can_read_a_session() {
    let home = home();
    let file = SessionFile::create(home.path(), &meta("/w")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.path()), 0o600);
    for directory in file.path().ancestors().skip(1).take(4) {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
}

#[test]
fn a_session_in_use_cannot_be_resumed_by_another() {
    let home = home();
    let meta = meta("/w");
    let file = SessionFile::create(home.path(), &meta).unwrap();
    let which = Which::Id(meta.id.clone());
    let error = SessionFile::resume(home.path(), &which).unwrap_err();
    let SessionError::Busy { path, holder: Some(holder) } = &error else { panic!("{error}") };
    assert_eq!((path.as_path(), holder.pid), (file.path(), std::process::id()));
    assert!(error.to_string().contains(&format!("is in use by process {}", holder.pid)), "{error}");
    let named = file.path().with_extension("holder");
    assert!(named.exists());
    drop(file);
    assert!(!named.exists(), "a session that is closed has no holder");
    // As a process leaves it that was killed.
    fs::write(&named, serde_json::to_vec(holder).unwrap()).unwrap();
    SessionFile::resume(home.path(), &which).unwrap();
}

#[test]
fn a_session_is_begun_only_once() {
    let home = home();
    let meta = meta("/w");
    drop(SessionFile::create(home.path(), &meta).unwrap());
    let error = SessionFile::create(home.path(), &meta).unwrap_err();
    assert!(matches!(error, SessionError::Io { action: "create", .. }), "{error}");
}

#[test]
fn resuming_mends_the_file_for_good() {
    let home = home();
    let meta = meta("/w");
    let file = SessionFile::create(home.path(), &meta).unwrap();
    file.append(&Record::Item(clean(&call("a")))).unwrap();
    file.append(&Record::Item(clean(&call("b")))).unwrap();
    let path = file.path().to_owned();
    drop(file);
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"timesta").unwrap();

    let (file, mended) = SessionFile::resume(home.path(), &Which::Id(meta.id)).unwrap();
    assert_eq!(mended.repaired.len(), 3);
    file.append(&Record::Item(clean(&Item::message(Role::User, "go on")))).unwrap();

    let again = load(&path).unwrap();
    assert_eq!(again.repaired, []);
    let bodies = |items: &[Item]| items.iter().map(|item| item.body.clone()).collect::<Vec<_>>();
    assert_eq!(bodies(&again.history[..4]), bodies(&mended.history));
    assert_eq!(again.history.len(), 5);
}

#[test]
fn the_last_session_is_the_newest_here_or_anywhere() {
    let home = home();
    let (old, here, elsewhere) = (meta("/here"), meta("/here"), meta("/elsewhere"));
    for meta in [&old, &here, &elsewhere] {
        SessionFile::create(home.path(), meta).unwrap();
    }
    let id = |which| SessionFile::resume(home.path(), &which).unwrap().1.meta.id;
    assert_eq!(id(Which::LastIn("/here".into())), here.id);
    assert_eq!(id(Which::Last), elsewhere.id);
    assert_eq!(id(Which::Id(old.id.clone())), old.id);
    let ids: Vec<_> = list(home.path()).unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [elsewhere.id, here.id, old.id]);
}

#[test]
fn strange_files_among_the_sessions_are_passed_over() {
    let home = home();
    let meta = meta("/w");
    let file = SessionFile::create(home.path(), &meta).unwrap();
    let day = file.path().parent().unwrap();
    fs::write(day.join("notes.txt"), "hi").unwrap();
    fs::write(day.join(format!("{}.jsonl", new_thread_id())), "").unwrap();
    fs::write(home.path().join("sessions/README"), "hi").unwrap();
    let ids: Vec<_> = list(home.path()).unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [meta.id]);
}

#[test]
fn a_missing_session_is_an_error_that_says_what_is_missing() {
    let home = home();
    let resume = |which| SessionFile::resume(home.path(), &which).unwrap_err();
    assert!(matches!(resume(Which::Last), SessionError::NoneYet { .. }));
    assert!(matches!(resume(Which::LastIn("/w".into())), SessionError::NoneIn { .. }));
    assert!(matches!(resume(Which::Id(new_thread_id())), SessionError::NotFound { .. }));
    assert!(matches!(resume(Which::Id("last".into())), SessionError::BadId { .. }));
    assert_eq!(list(home.path()).unwrap(), []);
}

#[test]
fn after_one_failure_every_append_fails_the_same_way() {
    let home = home();
    let path = home.path().join("file");
    fs::write(&path, "").unwrap();
    // Opened for reading only, so that the first write fails. Then the same session gets a file
    // that works.
    let session =
        SessionFile::with_file(File::open(&path).unwrap(), path.clone(), LineHash::start(), Vec::new())
            .unwrap();
    let item = Item::message(Role::User, "hi");
    let first = session.append(&Record::Item(clean(&item))).unwrap_err();
    session.writer.lock().unwrap().file = OpenOptions::new().append(true).open(&path).unwrap();
    let second = session.append(&Record::Item(clean(&item))).unwrap_err();
    assert_eq!((&first.path, first.kind), (&second.path, second.kind));
    assert_eq!(fs::read(&path).unwrap(), b"");
}

/// Returns a session file that notes the length of the file at every flush.
fn flushed_file(home: &Path, durability: DurabilityMode) -> (SessionFile, Arc<Mutex<Vec<u64>>>) {
    let file = SessionFile::create(home, &meta("/w")).unwrap().with_durability(durability);
    let flushes = Arc::new(Mutex::new(Vec::new()));
    let (noted, path) = (Arc::clone(&flushes), file.path().to_owned());
    file.writer().flusher = BackgroundFlusher::new(Box::new(move || {
        noted.lock().unwrap().push(fs::metadata(&path)?.len());
        Ok(())
    }));
    (file, flushes)
}

fn poll(pending: &mut BoxFuture<'static, Result<(), JournalError>>) -> bool {
    pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_flush_holds_all_that_was_appended_before_it() {
    let home = home();
    let (file, flushes) = flushed_file(home.path(), DurabilityMode::Effects);
    file.append(&Record::Item(clean(&call("a")))).unwrap();
    let bytes = fs::metadata(file.path()).unwrap().len();
    let mut pending = file.flush();
    while !poll(&mut pending) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(*flushes.lock().unwrap(), [bytes]);
}

#[test]
fn the_setting_says_when_records_are_flushed() {
    let home = home();
    for (durability, expected) in
        [(DurabilityMode::Always, 3), (DurabilityMode::Effects, 1), (DurabilityMode::Never, 0)]
    {
        let (file, flushes) = flushed_file(home.path(), durability);
        for id in ["a", "b", "c"] {
            file.append(&Record::Item(clean(&call(id)))).unwrap();
        }
        drop(file);
        assert_eq!(flushes.lock().unwrap().len(), expected, "{durability:?}");
    }
}

#[test]
fn a_file_that_is_never_flushed_is_not_flushed_for_its_first_record_either() {
    let home = home();
    let (file, flushes) = flushed_file(home.path(), DurabilityMode::Effects);
    file.append(&Record::Item(clean(&call("a")))).unwrap();
    drop(file.with_durability(DurabilityMode::Never));
    assert_eq!(*flushes.lock().unwrap(), [0; 0]);
}

#[test]
fn the_end_of_a_turn_is_flushed_without_being_waited_for() {
    let home = home();
    let (file, flushes) = flushed_file(home.path(), DurabilityMode::Effects);
    let done = Event::TurnCompleted { usage: Usage::default(), declined: false, refusals: Vec::new() };
    let began = Instant::now();
    file.append(&Record::Event(clean(&done))).unwrap();
    while flushes.lock().unwrap().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(began.elapsed() < Duration::from_millis(900), "it was not left to the interval");
}

#[test]
fn damaged_records_are_set_aside_and_the_file_goes_on_without_them() {
    let home = home();
    let meta = meta("/w");
    let file = SessionFile::create(home.path(), &meta).unwrap();
    for id in ["a", "b"] {
        file.append(&Record::Item(clean(&call(id)))).unwrap();
    }
    let path = file.path().to_owned();
    drop(file);
    let whole = fs::read_to_string(&path).unwrap();
    let damaged = whole.replacen("\"id\":\"b\"", "\"id\":\"a\"", 1);
    assert_ne!(damaged, whole);

    for (name, extension) in [("first", "jsonl.damaged"), ("second", "jsonl.damaged-2")] {
        fs::write(&path, &damaged).unwrap();
        let read = load(&path).unwrap();
        let told = read.repaired[0].to_string();
        assert_eq!(told, "line 3 is damaged: the conversation ends before it, and 1 record is left out");
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "reading changes nothing");

        let (file, session) = SessionFile::resume(home.path(), &Which::Id(meta.id.clone())).unwrap();
        let aside = path.with_extension(extension);
        let cut = SessionRepair::CutOff { line: 3, records: 1, kept: Some(aside.clone()) };
        assert_eq!(session.repaired[0], cut, "{name}");
        assert_eq!(fs::read_to_string(&aside).unwrap(), damaged.lines().last().unwrap().to_owned() + "\n");
        drop(file);
        assert_eq!(load(&path).unwrap().repaired, []);
        assert_eq!(crate::verify(&path, None).unwrap().broken, None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_as_the_cause() {
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let session = SessionFile::with_file(full, "/dev/full".into(), LineHash::start(), Vec::new()).unwrap();
    let error = session.append(&Record::Item(clean(&call("a")))).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the session file `/dev/full`: no storage space");
}

//! The index over session files, and its behaviour when either is damaged or changed.

mod feedback;
mod requests;

use std::{fs, ops::ControlFlow, path::PathBuf};

use serde_json::json;
use tempfile::TempDir;
use windlass_contract::{
    Effects, Input, Journal, Outcome, ToolCall, Verdict,
    grant::{Held, Mechanism},
    host::Exit,
    id::ThreadId,
    item::Body,
    journal::{Intent, Record, SessionMeta},
    outcome::{Facts, Receipt, Status},
    report::ProcessReport,
};
use windlass_fakes::clean;

use super::*;
use crate::{SessionFile, Which, new_thread_id};

/// A home directory with a session in it.
struct Home {
    directory: TempDir,
    id: ThreadId,
    file: SessionFile,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let id = new_thread_id();
        let file = SessionFile::create(directory.path(), &meta(&id)).unwrap();
        Self { directory, id, file }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self) -> Calls {
        Calls::open(self.path(), Keep::default()).unwrap()
    }

    fn caught_up(&self) -> Calls {
        let mut calls = self.open();
        calls.catch_up().unwrap();
        calls
    }

    fn asks(&self, id: &str, tool: &str, input: &str) {
        let call = ToolCall { id: id.into(), name: tool.into(), input: Input::Json(input.into()) };
        self.file.append(&Record::Item(clean(&Body::Call(call).into()))).unwrap();
    }

    fn ends(&self, id: &str, outcome: &Outcome) {
        let (call, effects) = (id.into(), Effects::unknown());
        let intent = Intent { call, tool: "shell".into(), effects, decision: "policy".into() };
        self.file.append(&Record::Intent(clean(&intent))).unwrap();
        self.file.append(&Record::Outcome { call: &id.into(), outcome: clean(outcome) }).unwrap();
    }

    /// Closes the session and resumes it, as after a crash.
    fn resumed(self) -> Self {
        let Self { directory, id, file } = self;
        drop(file);
        let (file, _session) = SessionFile::resume(directory.path(), &Which::Id(id.clone())).unwrap();
        Self { directory, id, file }
    }
}

fn meta(id: &ThreadId) -> SessionMeta {
    SessionMeta {
        id: id.clone(),
        cwd: "/w".into(),
        version: "0".into(),
        instructions: String::new(),
        parent: None,
    }
}

fn outcome(status: Status, text: &str, milliseconds: u64) -> Outcome {
    let success = status == Status::Success;
    Outcome {
        status,
        receipt: Receipt {
            held: Some(Held::by(Mechanism::Namespaces)),
            decision: "policy".into(),
            duration: Duration::from_millis(milliseconds),
            ..Receipt::default()
        },
        ..Outcome::plain(Verdict { success, ..Verdict::failure("so it is") }, text)
    }
}

fn exited(code: i32) -> Outcome {
    let facts = Box::new(ProcessReport::new(Exit::Code(code)));
    Outcome { facts: Facts::Command(facts), ..outcome(Status::Error, "no", 3) }
}

fn all(calls: &Calls, wanted: &CallFilter) -> Vec<Call> {
    let mut found = Vec::new();
    let take = |call| {
        found.push(call);
        ControlFlow::Continue(())
    };
    calls.for_each_call(wanted, take).unwrap();
    found
}

fn ids(calls: &Calls, wanted: &CallFilter) -> Vec<String> {
    all(calls, wanted).into_iter().map(|call| call.id.to_string()).collect()
}

#[test]
fn a_call_is_on_record_with_all_that_is_asked_about_it() {
    let home = Home::new();
    home.asks("a", "shell", r#"{"command":"ls"}"#);
    home.ends("a", &outcome(Status::Success, "four", 12));
    let calls = home.caught_up();
    let [call] = &all(&calls, &CallFilter::default())[..] else { panic!("one call") };
    assert_eq!(
        (call.tool.as_str(), call.thread.clone(), call.cwd.clone(), call.folder),
        ("shell", home.id.clone(), PathBuf::from("/w"), ThreadFolder::Sessions)
    );
    assert_eq!((call.bytes_in, call.bytes_out, call.duration), (16, 4, Duration::from_millis(12)));
    assert_eq!((call.decision.as_str(), call.held.as_str()), ("policy", "namespaces"));
    assert_eq!(
        (call.status.as_deref(), call.class.as_deref(), call.success),
        (Some("success"), None, Some(true))
    );
    assert_eq!(call.verdict, Some(json!({"success": true, "confidence": 100, "reasons": ["so it is"]})));
    assert_eq!((call.handle.len(), call.input_hash.len()), (10, 32));

    let recorded = calls.read_record(call).unwrap();
    assert_eq!(recorded.call.input, Input::Json(r#"{"command":"ls"}"#.into()));
    assert_eq!(recorded.intent.unwrap()["decision"], "policy");
    assert_eq!(recorded.outcome.unwrap()["content"], json!([{"text": "four"}]));
    let once = std::slice::from_ref(call);
    assert_eq!(calls.find(&call.handle[..6]).unwrap(), once);
    assert_eq!(calls.find("a").unwrap(), once);
    assert_eq!(calls.find("zzzz").unwrap(), []);
}

fn unknown_tool() -> Outcome {
    let receipt = Receipt { unknown_tool: true, ..Receipt::default() };
    Outcome { receipt, ..outcome(Status::NotFound, "no such tool", 1) }
}

#[test]
fn ends_are_told_apart() {
    let home = Home::new();
    let refused = Receipt { refusal: Some("nobody".into()), ..Receipt::default() };
    let allowed = Receipt { decision: "it only reads".into(), ..Receipt::default() };
    let ends = [
        ("127", exited(127)),
        ("2", exited(2)),
        ("timeout", outcome(Status::Timeout, "", 1)),
        ("denied", outcome(Status::PermissionDenied, "", 1)),
        ("unknown", unknown_tool()),
        ("file", Outcome { receipt: allowed, ..outcome(Status::NotFound, "", 1) }),
        ("tool", outcome(Status::Error, "", 1)),
        ("refused", Outcome { receipt: refused, ..outcome(Status::Rejected, "", 1) }),
        ("cut", crate::OutputSubstitute::Unknown.outcome().unwrap().into_inner()),
    ];
    for (id, outcome) in &ends {
        home.asks(id, "shell", "{}");
        home.ends(id, outcome);
    }
    home.asks("running", "shell", "{}");
    let found = all(&home.caught_up(), &CallFilter::default());
    let told: Vec<_> =
        found.iter().rev().map(|call| (call.id.as_str(), call.class.as_deref(), call.success)).collect();
    assert_eq!(
        told,
        [
            ("127", Some("command not found"), Some(false)),
            ("2", Some("exit code 2"), Some(false)),
            ("timeout", Some("timeout"), Some(false)),
            ("denied", Some("denied"), Some(false)),
            ("unknown", Some("unknown tool"), Some(false)),
            ("file", Some("not found"), Some(false)),
            ("tool", Some("tool error"), Some(false)),
            ("refused", Some("refused"), None),
            ("cut", Some("cut short"), None),
            ("running", None, None),
        ]
    );
}

#[test]
fn calls_are_found_by_tool_end_time_and_session() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    home.ends("a", &outcome(Status::Success, "", 1));
    home.asks("b", "read_file", "{}");
    home.ends("b", &outcome(Status::Error, "", 1));
    home.asks("c", "shell", "{}");
    let calls = home.caught_up();
    let with = |wanted: CallFilter| ids(&calls, &wanted);
    assert_eq!(with(CallFilter::default()), ["c", "b", "a"]);
    assert_eq!(with(CallFilter { tool: Some("shell".into()), ..CallFilter::default() }), ["c", "a"]);
    assert_eq!(with(CallFilter { status: Some("error".into()), ..CallFilter::default() }), ["b"]);
    assert_eq!(with(CallFilter { status: Some("running".into()), ..CallFilter::default() }), ["c"]);
    assert_eq!(with(CallFilter { session: Some(home.id.clone()), ..CallFilter::default() }).len(), 3);
    assert_eq!(with(CallFilter { session: Some(new_thread_id()), ..CallFilter::default() }).len(), 0);
    let later = Timestamp::now() + Duration::from_mins(1);
    assert_eq!(with(CallFilter { since: Some(later), ..CallFilter::default() }).len(), 0);
}

#[test]
fn nothing_is_counted_twice_however_many_read() {
    let home = Home::new();
    let (mut one, mut other) = (home.open(), home.open());
    for number in 0..20 {
        let id = format!("call {number}");
        home.asks(&id, "shell", "{}");
        one.catch_up().unwrap();
        home.ends(&id, &outcome(Status::Success, "", 1));
        other.catch_up().unwrap();
    }
    one.catch_up().unwrap();
    let found = all(&one, &CallFilter::default());
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|call| call.success == Some(true)));
    assert_eq!(found, all(&other, &CallFilter::default()));
    let (rebuilt, aside) = Calls::rebuild(home.path(), Keep::default()).unwrap();
    assert_eq!((all(&rebuilt, &CallFilter::default()), aside), (found.clone(), None));
    let mut memory = Calls::in_memory(home.path(), Keep::default()).unwrap();
    memory.catch_up().unwrap();
    assert_eq!(all(&memory, &CallFilter::default()), found);
}

#[test]
fn a_call_that_was_cut_short_gets_its_end_when_the_session_is_resumed() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    home.caught_up();
    let home = home.resumed();
    let found = all(&home.caught_up(), &CallFilter::default());
    assert_eq!(found[0].class.as_deref(), Some("cut short"));
}

#[test]
fn half_a_line_is_read_once_it_is_whole() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let whole = fs::read(home.file.path()).unwrap();
    fs::write(home.file.path(), &whole[..whole.len() - 5]).unwrap();
    assert_eq!(ids(&home.caught_up(), &CallFilter::default()).len(), 0);
    fs::write(home.file.path(), &whole).unwrap();
    assert_eq!(ids(&home.caught_up(), &CallFilter::default()), ["a"]);
}

#[test]
fn a_file_that_was_cut_is_read_anew_and_where_it_ended_stays_known() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let short = fs::read(home.file.path()).unwrap();
    home.asks("b", "shell", "{}");
    let full = home.caught_up().head(home.id.as_str()).unwrap().unwrap();
    assert_eq!(full.lines, 3);

    fs::write(home.file.path(), &short).unwrap();
    let calls = home.caught_up();
    assert_eq!(ids(&calls, &CallFilter::default()), ["a"]);
    assert_eq!(calls.head(home.id.as_str()).unwrap(), Some(full));

    // The file is continued differently and becomes longer than before.
    let home = home.resumed();
    for id in ["c", "d", "e"] {
        home.asks(id, "shell", "{}");
    }
    let calls = home.caught_up();
    assert!(ids(&calls, &CallFilter::default()).contains(&"e".to_owned()));
    assert_eq!(calls.head(home.id.as_str()).unwrap(), Some(full));
    let (rebuilt, _) = Calls::rebuild(home.path(), Keep::default()).unwrap();
    assert_eq!(rebuilt.head(home.id.as_str()).unwrap(), Some(full));
}

#[test]
fn a_damaged_index_is_left_alone_until_it_is_rebuilt_and_then_put_aside() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let path = Calls::index_path(home.path());
    fs::write(
        &path,
        "this is no database, and longer than a header of one would be, which has 100 bytes".repeat(9),
    )
    .unwrap();
    let before = fs::read(&path).unwrap();
    let error = Calls::open(home.path(), Keep::default()).unwrap_err();
    assert!(matches!(error, CallIndexError::Damaged { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let (calls, aside) = Calls::rebuild(home.path(), Keep::default()).unwrap();
    assert_eq!(ids(&calls, &CallFilter::default()), ["a"]);
    assert_eq!(fs::read(aside.unwrap()).unwrap(), before);
}

#[test]
fn an_index_damaged_in_its_middle_is_told_and_rebuilt() {
    let home = Home::new();
    for number in 0..200 {
        home.asks(&format!("call {number}"), "shell", "{}");
    }
    let calls = home.caught_up();
    calls.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(calls);
    let path = Calls::index_path(home.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let error = Calls::open(home.path(), Keep::default()).and_then(|mut calls| calls.catch_up()).unwrap_err();
    assert!(matches!(error, CallIndexError::Damaged { .. }), "{error}");
    let (calls, aside) = Calls::rebuild(home.path(), Keep::default()).unwrap();
    assert_eq!((ids(&calls, &CallFilter::default()).len(), aside.is_some()), (200, true));
}

#[test]
fn an_index_of_a_newer_version_and_of_another_program_are_left_alone() {
    let home = Home::new();
    let calls = home.caught_up();
    calls.db.pragma_update(None, "user_version", 99).unwrap();
    for error in [
        Calls::open(home.path(), Keep::default()).unwrap_err(),
        Calls::rebuild(home.path(), Keep::default()).unwrap_err(),
    ] {
        assert!(matches!(error, CallIndexError::Newer { found: 99, .. }), "{error}");
    }
    calls.db.pragma_update(None, "user_version", 1).unwrap();
    calls.db.pragma_update(None, "application_id", 7).unwrap();
    let error = Calls::open(home.path(), Keep::default()).unwrap_err();
    assert!(matches!(error, CallIndexError::Damaged { .. }), "{error}");
}

#[test]
fn an_index_that_someone_keeps_to_themselves_is_given_up_and_read_later() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let holder = home.open();
    holder.db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let patience = Duration::from_millis(30);
    let tried = Calls::open_with_timeout(home.path(), Keep::default(), patience)
        .and_then(|mut calls| calls.catch_up());
    assert!(matches!(tried, Err(CallIndexError::Locked { .. })), "{tried:?}");
    holder.db.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ids(&home.caught_up(), &CallFilter::default()), ["a"]);
}

#[test]
fn what_cannot_be_a_file_is_told() {
    let home = Home::new();
    fs::create_dir(Calls::index_path(home.path())).unwrap();
    let error = Calls::open(home.path(), Keep::default()).unwrap_err();
    assert!(matches!(error, CallIndexError::Unusable { .. }), "{error}");
}

#[test]
fn nobody_else_can_read_the_index() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let calls = home.caught_up();
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", calls.path.display());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
    }
}

#[test]
fn what_is_too_old_or_too_much_is_forgotten_and_not_read_again() {
    let home = Home::new();
    for number in 0..100 {
        home.asks(&format!("call {number}"), "shell", "{}");
    }
    let mut calls = home.caught_up();
    let old = (Timestamp::now() - Duration::from_hours(2184)).as_millisecond();
    calls.db.execute("UPDATE calls SET time = ?1 WHERE id <= 60", [old]).unwrap();
    calls.catch_up().unwrap();
    assert_eq!(ids(&calls, &CallFilter::default()).len(), 40);
    calls.keep = Keep { megabytes: 0, ..Keep::default() };
    calls.catch_up().unwrap();
    assert_eq!(ids(&calls, &CallFilter::default()).len(), 0);
    let mut calls = home.caught_up();
    calls.db.execute("UPDATE files SET changed = ?1", [old]).unwrap();
    calls.catch_up().unwrap();
    let files: i64 = calls.db.query_row("SELECT count(*) FROM files", [], |row| row.get(0)).unwrap();
    assert_eq!(files, 0);
}

#[test]
fn names_that_no_tool_has_are_one_group() {
    let home = Home::new();
    for name in ["read_flie", "raed_file"] {
        home.asks(name, name, "{}");
        home.ends(name, &unknown_tool());
    }
    let groups = home.caught_up().stats(CallGrouping::Tool, None, Timestamp::now()).unwrap();
    assert_eq!((groups.len(), groups[0].name.as_str(), groups[0].calls), (1, "(no such tool)", 2));
}

#[test]
fn groups_say_how_often_how_long_and_how() {
    let home = Home::new();
    for number in 0..100 {
        let id = format!("call {number}");
        home.asks(&id, "shell", "{}");
        let end = outcome(Status::Success, "12345", number + 1);
        home.ends(&id, &if number < 10 { exited(1) } else { end });
    }
    home.asks("last", "read_file", "{}");
    let calls = home.caught_up();
    let groups = calls.stats(CallGrouping::Tool, None, Timestamp::now()).unwrap();
    let [shell, read] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((shell.name.as_str(), shell.calls, shell.succeeded, shell.failed), ("shell", 100, 90, 10));
    assert!((shell.rate.unwrap() - 0.9).abs() < 1e-3, "{shell:?}");
    assert_eq!(shell.latency, Some([50, 90, 99].map(Duration::from_millis)));
    assert_eq!((shell.trend.len(), shell.bytes_in, shell.bytes_out), (15, 200, 470));
    assert_eq!(shell.classes, [("exit code 1".to_owned(), 10)]);
    assert_eq!((read.rate, read.latency, read.calls), (None, None, 1));
    let errors = calls.stats(CallGrouping::Error, None, Timestamp::now()).unwrap();
    assert_eq!(errors.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["exit code 1"]);
    let sessions = calls.stats(CallGrouping::Session, None, Timestamp::now()).unwrap();
    assert_eq!((sessions[0].name.as_str(), sessions[0].calls), (home.id.as_str(), 101));
    let future = Timestamp::now() + Duration::from_mins(1);
    assert_eq!(calls.stats(CallGrouping::Tool, Some(future), future).unwrap(), []);
}

#[test]
fn an_index_of_the_first_version_is_brought_up_to_date() {
    let home = Home::new();
    home.asks("a", "shell", "{}");
    let path = Calls::index_path(home.path());
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::VERSIONS[0]).unwrap();
    old.pragma_update(None, "application_id", 0x574e_444c).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    assert_eq!(ids(&home.caught_up(), &CallFilter::default()), ["a"]);
}

#[test]
fn what_is_long_ago_counts_less() {
    let home = Home::new();
    for (id, end) in [("old", outcome(Status::Error, "", 1)), ("new", outcome(Status::Success, "", 1))] {
        home.asks(id, "shell", "{}");
        home.ends(id, &end);
    }
    let calls = home.caught_up();
    let now = Timestamp::now();
    let rate = |calls: &Calls| calls.stats(CallGrouping::Tool, None, now).unwrap()[0].rate.unwrap();
    assert!((rate(&calls) - 0.5).abs() < 1e-3);
    let before = calls.tool_reliability(now).unwrap()[0].rate;
    let week = (now - Duration::from_hours(168)).as_millisecond();
    calls.db.execute("UPDATE calls SET time = ?1 WHERE call = 'old'", [week]).unwrap();
    assert!((rate(&calls) - 2.0 / 3.0).abs() < 1e-3);
    let after = calls.tool_reliability(now).unwrap();
    assert_eq!((after[0].tool.as_str(), after[0].calls), ("shell", 2));
    assert!(before < after[0].rate, "{before} {after:?}");
}

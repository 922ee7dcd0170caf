//! Processes are killed while their calls enter the index, several at once. No finished call is
//! lost, and none is counted twice.

#![cfg(test)]

use std::{
    collections::BTreeSet,
    env,
    io::{Read, Write},
    ops::ControlFlow,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use windlass_contract::{
    Input, Journal, Outcome, ToolCall, Verdict,
    item::Body,
    journal::{Record, SessionMeta},
};
use windlass_fakes::clean;
use windlass_record::{
    Call, CallFilter, Calls, IndexedSession, Keep, SessionFile, ThreadFolder, list_in, new_thread_id, verify,
};

/// Set for the processes that are to be killed: the home directory they write below.
const HOME: &str = "WINDLASS_TEST_KILLED_FOLLOWER";

#[test]
fn no_finished_call_is_lost_or_counted_twice_however_often_writers_are_killed() {
    if let Some(home) = env::var_os(HOME) {
        write_for_ever(Path::new(&home));
    }
    let home = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for rounds in [1, 3, 20, 60] {
        // Two at once share the index.
        let mut writers = [start(home.path()), start(home.path())];
        for (_, acknowledgements) in &mut writers {
            acknowledgements.read_exact(&mut vec![0; rounds]).unwrap();
        }
        for (mut writer, mut acknowledgements) in writers {
            writer.kill().unwrap();
            writer.wait().unwrap();
            let mut rest = Vec::new();
            acknowledgements.read_to_end(&mut rest).unwrap();
            acknowledged += rounds + rest.len();
        }
    }
    let mut calls = Calls::open(home.path(), Keep::default()).unwrap();
    calls.catch_up().unwrap();
    let found = ended(&calls);
    assert!(found.len() >= acknowledged, "{} of {acknowledged} finished calls are on record", found.len());
    let names: BTreeSet<_> =
        found.iter().map(|call| (call.thread.to_string(), call.id.to_string())).collect();
    assert_eq!(names.len(), found.len(), "none is there twice");
    let (rebuilt, aside) = Calls::rebuild(home.path(), Keep::default()).unwrap();
    assert_eq!((ended(&rebuilt), aside), (found, None));
    for file in list_in(home.path(), ThreadFolder::Sessions).unwrap() {
        let known = rebuilt.head(file.id.as_str()).unwrap().unwrap();
        let audit = verify(&file.path, Some(known.link)).unwrap();
        assert_eq!((audit.broken, audit.passed, audit.head.lines), (None, true, known.lines));
    }
}

fn ended(calls: &Calls) -> Vec<Call> {
    let mut found = Vec::new();
    let take = |call: Call| {
        found.extend(call.status.is_some().then_some(call));
        ControlFlow::Continue(())
    };
    calls.for_each_call(&CallFilter::default(), take).unwrap();
    found
}

fn start(home: &Path) -> (Child, ChildStderr) {
    let mut writer = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "no_finished_call_is_lost_or_counted_twice_however_often_writers_are_killed",
            "--nocapture",
        ])
        .env(HOME, home)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let acknowledgements = writer.stderr.take().unwrap();
    (writer, acknowledgements)
}

fn write_for_ever(home: &Path) -> ! {
    let id = new_thread_id();
    let meta =
        SessionMeta { id, cwd: "/".into(), version: "0".into(), instructions: String::new(), parent: None };
    let file = SessionFile::create(home, &meta).unwrap();
    // A process that waited too long for the other one is no failure: its calls are indexed later.
    let file = IndexedSession::new(file, home, Keep::default(), Box::new(drop));
    let mut acknowledge = std::io::stderr();
    for round in 0_u64.. {
        let id = format!("call {round}").into();
        let call = ToolCall { id, name: "shell".into(), input: Input::Json("{}".into()) };
        file.append(&Record::Item(clean(&Body::Call(call.clone()).into()))).unwrap();
        file.append(&Record::Outcome { call: &call.id, outcome: clean(&outcome()) }).unwrap();
        acknowledge.write_all(b".").unwrap();
    }
    unreachable!("the rounds never end")
}

fn outcome() -> Outcome {
    Outcome::plain(Verdict::success(), "output ".repeat(500))
}

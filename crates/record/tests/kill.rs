//! A process that is killed while it writes leaves a session that can be loaded and resumed.

#![cfg(test)]

use std::{
    env,
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
};

use windlass_contract::{
    Effects, Input, Item, Journal, Outcome, ToolCall, Verdict,
    item::Body,
    journal::{Intent, Record, SessionMeta},
};
use windlass_fakes::clean;
use windlass_record::{SessionFile, Which, load, new_thread_id};

/// Set for the process that is to be killed: the home directory it writes below.
const HOME: &str = "WINDLASS_TEST_KILLED_WRITER";

#[test]
fn a_session_killed_at_any_moment_loads_and_resumes() {
    if let Some(home) = env::var_os(HOME) {
        write_for_ever(Path::new(&home));
    }
    for rounds in [1, 2, 3, 10, 40, 150] {
        let home = tempfile::tempdir().unwrap();
        kill_after(rounds, home.path());
        let (file, session) = SessionFile::resume(home.path(), &Which::Last).unwrap();
        let (calls, outputs) = ids(&session.history);
        assert_eq!(calls, outputs, "every call has its output, in call order");
        assert!(calls.len() >= rounds, "{} of {rounds} acknowledged calls survived", calls.len());
        let again = load(file.path()).unwrap();
        assert_eq!(again.repaired, []);
        assert_eq!(ids(&again.history), (calls, outputs));
    }
}

/// Runs this test as another process and kills it after so many acknowledged rounds. The process
/// does not wait for that, so the scheduler decides where it is by then.
fn kill_after(rounds: usize, home: &Path) {
    let mut writer = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_session_killed_at_any_moment_loads_and_resumes", "--nocapture"])
        .env(HOME, home)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledgements = writer.stderr.take().unwrap();
    let acknowledged = acknowledgements.read_exact(&mut vec![0; rounds]);
    writer.kill().unwrap();
    writer.wait().unwrap();
    acknowledged.unwrap();
}

fn write_for_ever(home: &Path) -> ! {
    let meta = SessionMeta {
        id: new_thread_id(),
        cwd: "/".into(),
        version: "0".into(),
        instructions: String::new(),
        parent: None,
    };
    let file = SessionFile::create(home, &meta).unwrap();
    let mut acknowledge = std::io::stderr();
    for round in 0_u64.. {
        let call = ToolCall {
            id: format!("call {round}").as_str().into(),
            name: "shell".into(),
            input: Input::Json("{}".into()),
        };
        let intent = Intent {
            call: call.id.clone(),
            tool: call.name.clone(),
            effects: Effects::unknown(),
            decision: String::new(),
        };
        let calls = [call.id.clone()];
        file.append(&Record::Item(clean(&Body::Call(call).into()))).unwrap();
        file.append(&Record::Intent(clean(&intent))).unwrap();
        file.append(&Record::Outcome { call: &calls[0], outcome: clean(&long_outcome()) }).unwrap();
        file.append(&Record::Outputs { calls: &calls }).unwrap();
        acknowledge.write_all(b".").unwrap();
    }
    unreachable!("the rounds never end")
}

/// Long enough for a kill to fall inside its `write`.
fn long_outcome() -> Outcome {
    Outcome::plain(Verdict::success(), "output ".repeat(20_000))
}

fn ids(history: &[Item]) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut outputs) = (Vec::new(), Vec::new());
    for item in history {
        match &item.body {
            Body::Call(call) => calls.push(call.id.to_string()),
            Body::Output { call, .. } => outputs.push(call.to_string()),
            _ => panic!("nothing else was written"),
        }
    }
    (calls, outputs)
}

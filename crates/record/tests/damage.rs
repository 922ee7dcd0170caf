//! Properties: after any cut or damage, a session file loads with one output for every call.

#![cfg(test)]

use std::{collections::BTreeMap, fs, path::Path};

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_contract::{
    CallId, Content, Effects, Input, Item, Journal, Outcome, ToolCall, Verdict,
    id::ThreadId,
    item::{Body, Role},
    journal::{Intent, Record, SessionMeta, TurnContext},
};
use windlass_fakes::clean;
use windlass_record::{DurabilityMode, SessionError, SessionFile, SessionRepair, Which, load, new_thread_id};

proptest! {
    #[test]
    fn a_file_cut_at_any_byte_resumes_with_what_was_recorded(turns in turns(), cut in any::<Index>()) {
        let written = Written::new(&turns);
        let bytes = written.bytes();
        let cut = cut.index(bytes.len() + 1);
        fs::write(&written.path, &bytes[..cut]).unwrap();
        let resumed = SessionFile::resume(written.home.path(), &Which::Id(written.id.clone()));
        if !bytes[..cut].contains(&b'\n') {
            let refused = matches!(resumed, Err(SessionError::NoMeta { .. }));
            prop_assert!(refused);
            return Ok(());
        }
        let (file, session) = resumed.unwrap();
        let (calls, outputs) = pairs(&session.history);
        prop_assert_eq!(calls, outputs.iter().map(|(call, _)| call.clone()).collect::<Vec<_>>());
        prop_assert_eq!(outputs, expected(&bytes[..cut]));
        let harmless =
            |repair: &SessionRepair| matches!(repair, SessionRepair::TornLine { .. } | SessionRepair::MissingOutput { .. });
        prop_assert!(session.repaired.iter().all(harmless));

        let again = load(file.path()).unwrap();
        prop_assert_eq!(again.repaired, []);
        prop_assert_eq!(bodies(&again.history), bodies(&session.history));
    }

    #[test]
    fn a_flipped_bit_is_told_and_nothing_after_it_is_believed(
        turns in turns(),
        at in any::<Index>(),
        bit in 0..8_u32,
    ) {
        let written = Written::new(&turns);
        let whole = written.bytes();
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&written.path, &bytes).unwrap();
        // The lines before the one with the bit are complete.
        let start = whole[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let resumed = SessionFile::resume(written.home.path(), &Which::Id(written.id.clone()));
        if start == 0 {
            let refused = matches!(resumed, Err(SessionError::NoMeta { .. }));
            prop_assert!(refused);
            prop_assert_eq!(fs::read(&written.path).unwrap(), bytes, "what cannot be resumed is not changed");
            return Ok(());
        }
        let (file, session) = resumed.unwrap();
        let told = |repair: &SessionRepair| matches!(repair, SessionRepair::CutOff { .. } | SessionRepair::TornLine { .. });
        prop_assert!(session.repaired.iter().any(told), "{:?}", session.repaired);
        let (calls, outputs) = pairs(&session.history);
        let known = expected(&whole[..start]);
        prop_assert_eq!(&calls, &known.iter().map(|(call, _)| call.clone()).collect::<Vec<_>>());
        for ((call, text), (expected_call, expected_text)) in outputs.iter().zip(&known) {
            let is_same = text == expected_text || text == LOST && expected_text == NOT_STARTED;
            prop_assert!(call == expected_call && is_same, "{call}: {text}");
        }
        prop_assert!(fs::read(file.path()).unwrap().starts_with(&whole[..start]));
        let aside: Vec<u8> = session.repaired.iter().filter_map(|repair| match repair {
            SessionRepair::CutOff { kept, .. } => Some(fs::read(kept.as_ref().unwrap()).unwrap()),
            _ => None,
        }).flatten().collect();
        prop_assert!(aside.is_empty() || aside == bytes[start..], "what was cut off is kept");
        prop_assert_eq!(load(file.path()).unwrap().repaired, []);
    }

    #[test]
    fn a_garbled_file_is_refused_or_loads_with_one_output_for_every_call(
        turns in turns(),
        garbage in vec((any::<Index>(), any::<u8>()), 1..40),
        lost in vec(any::<Index>(), 0..6),
    ) {
        let written = Written::new(&turns);
        let mut bytes = written.bytes();
        for (at, byte) in garbage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for line in lost {
            lines.remove(line.index(lines.len()));
            lines.push(b"\n");
        }
        fs::write(&written.path, lines.concat()).unwrap();
        if let Ok(session) = load(&written.path) {
            let (mut calls, outputs) = pairs(&session.history);
            let mut answered: Vec<_> = outputs.into_iter().map(|(call, _)| call).collect();
            calls.sort();
            answered.sort();
            prop_assert_eq!(calls, answered);
        }
    }
}

/// Turns of answers of calls; a call is the length of its output.
fn turns() -> impl Strategy<Value = Vec<Vec<Vec<usize>>>> {
    vec(vec(vec(0_usize..300, 0..4), 0..4), 0..4)
}

struct Written {
    home: TempDir,
    id: ThreadId,
    path: std::path::PathBuf,
}

impl Written {
    fn new(turns: &[Vec<Vec<usize>>]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let meta = SessionMeta {
            id: new_thread_id(),
            cwd: "/w".into(),
            version: "0".into(),
            instructions: "be brief, für alle".into(),
            parent: None,
        };
        let file = SessionFile::create(home.path(), &meta).unwrap().with_durability(DurabilityMode::Never);
        let mut number = 0;
        for turn in turns {
            let context =
                TurnContext { cwd: "/w".into(), provider: "p".into(), model: "m".into(), policy: json!({}) };
            file.append(&Record::TurnContext(&context)).unwrap();
            file.append(&Record::Item(clean(&Item::message(Role::User, "go")))).unwrap();
            for answer in turn {
                number = write_answer(&file, answer, number);
            }
            file.append(&Record::Item(clean(&Item::message(Role::Assistant, "done")))).unwrap();
        }
        Self { path: file.path().to_owned(), home, id: meta.id }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }
}

/// Writes the calls of one answer. They start in order and end in the opposite order. Returns the
/// next call's number.
fn write_answer(file: &SessionFile, lengths: &[usize], number: usize) -> usize {
    let ids: Vec<CallId> = (0..lengths.len()).map(|at| format!("call {}", number + at).into()).collect();
    for id in &ids {
        let call = ToolCall { id: id.clone(), name: "shell".into(), input: Input::Json("{}".into()) };
        file.append(&Record::Item(clean(&Body::Call(call).into()))).unwrap();
        let intent = Intent {
            call: id.clone(),
            tool: "shell".into(),
            effects: Effects::unknown(),
            decision: String::new(),
        };
        file.append(&Record::Intent(clean(&intent))).unwrap();
    }
    for (id, length) in ids.iter().zip(lengths).rev() {
        let outcome = Outcome::plain(Verdict::success(), format!("{id}: {}", "é".repeat(*length)));
        file.append(&Record::Outcome { call: id, outcome: clean(&outcome) }).unwrap();
    }
    if !ids.is_empty() {
        file.append(&Record::Outputs { calls: &ids }).unwrap();
    }
    number + ids.len()
}

fn bodies(history: &[Item]) -> Vec<&Body> {
    history.iter().map(|item| &item.body).collect()
}

/// The calls, and the outputs with the text of each.
fn pairs(history: &[Item]) -> (Vec<String>, Vec<(String, String)>) {
    let (mut calls, mut outputs) = (Vec::new(), Vec::new());
    for item in history {
        match &item.body {
            Body::Call(call) => calls.push(call.id.to_string()),
            Body::Output { call, content, .. } => outputs.push((call.to_string(), Content::join(content))),
            _ => {}
        }
    }
    (calls, outputs)
}

/// Computes the expected outputs from the complete lines alone: the recorded text, or the note that
/// replaces it.
fn expected(prefix: &[u8]) -> Vec<(String, String)> {
    let (mut order, mut known) = (Vec::new(), BTreeMap::new());
    for line in prefix.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let line: Value = serde_json::from_slice(line).unwrap();
        let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        match line["type"].as_str() {
            Some("item") => order.extend(text("/payload/body/id")),
            Some("intent") => drop(known.insert(text("/payload/call").unwrap(), UNKNOWN.to_owned())),
            Some("outcome") => {
                let content = text("/payload/outcome/content/0/text").unwrap();
                known.insert(text("/payload/call").unwrap(), content);
            }
            _ => {}
        }
    }
    let told = |call: String| {
        let text = known.get(&call).cloned().unwrap_or_else(|| NOT_STARTED.to_owned());
        (call, text)
    };
    order.into_iter().map(told).collect()
}

const UNKNOWN: &str = "The program ended while this call was running, so its outcome is unknown. It may have had \
    effects, in part or in full. It was not run again. Check what it may have changed before repeating it.";
const LOST: &str = "What became of this call was lost from the session file. It may have had effects. It was not run \
    again. Check what it may have changed before repeating it.";
const NOT_STARTED: &str = "The program ended before this call was started, as far as the session file tells. Repeat \
    it if it is still needed.";

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = load(Path::new("/nowhere/session.jsonl")).unwrap_err();
    assert_eq!(error.to_string(), "cannot open `/nowhere/session.jsonl`");
}

//! Tests of the forms in which reports leave the program. The texts are what earlier versions
//! wrote.

use serde_json::json;

use super::*;
use crate::{
    Effects,
    grant::Mechanism,
    host::{Layer, Proof},
    outcome::Facts,
};

/// Returns a report in which every field is set.
fn full<E>(exit: E) -> ProcessReport<E> {
    let denial = Denial {
        layer: Layer::Files,
        what: "/x".into(),
        rule: "no".into(),
        need: Effects::none(),
        proof: Proof::Observed,
        remedy: String::new(),
    };
    ProcessReport {
        duration: Duration::from_millis(12),
        output_bytes: 3,
        whole: Some(Whole::Lost("full".into())),
        killed: vec!["sleep".into()],
        denials: vec![denial],
        waits_for_input: true,
        ..ProcessReport::new(exit)
    }
}

/// Checks that facts are written as this text, and that the text is read as the same facts.
fn assert_recorded(facts: &Facts, text: &str) {
    assert_eq!(serde_json::to_string(facts).unwrap(), text);
    assert_eq!(&serde_json::from_str::<Facts>(text).unwrap(), facts);
}

const DENIALS: &str = r#""denials":[{"layer":"files","what":"/x","rule":"no","need":{},"proof":"observed"}]"#;

#[test]
fn a_command_is_recorded_as_it_always_was() {
    let short = r#"{"kind":"command","exit":{"code":3},"duration_ms":0,"output_bytes":0}"#;
    assert_recorded(&Facts::Command(Box::new(ProcessReport::new(Exit::Code(3)))), short);
    let long = format!(
        r#"{{"kind":"command","exit":"timed_out","duration_ms":12,"output_bytes":3,"whole":{{"lost":"full"}},"killed":["sleep"],{DENIALS},"waits_for_input":true}}"#
    );
    assert_recorded(&Facts::Command(Box::new(full(Exit::TimedOut))), &long);
    let unended = r#"{"kind":"command","duration_ms":0,"output_bytes":0}"#;
    assert!(serde_json::from_str::<Facts>(unended).is_err(), "a command has ended");
}

#[test]
fn what_a_receipt_or_nothing_tells_of_a_command_is_not_recorded_with_it() {
    let held = Some(Held::by(Mechanism::Landlock));
    let report = ProcessReport { held, running: vec!["vi".into()], ..ProcessReport::new(Exit::Code(0)) };
    let short = r#"{"kind":"command","exit":{"code":0},"duration_ms":0,"output_bytes":0}"#;
    assert_eq!(serde_json::to_string(&Facts::Command(Box::new(report))).unwrap(), short);
}

#[test]
fn a_session_is_recorded_as_it_always_was() {
    let session = |report| {
        Facts::Session(Box::new(SessionReport { session: 1000, started: true, chunk: "0a".into(), report }))
    };
    let running = r#"{"kind":"session","session":1000,"started":true,"chunk":"0a","waits_for_input":false,"duration_ms":0,"output_bytes":0}"#;
    assert_recorded(&session(ProcessReport::new(None)), running);
    let report = ProcessReport { held: Some(Held::by(Mechanism::Landlock)), ..full(Some(Exit::KILLED)) };
    let ended = format!(
        r#"{{"kind":"session","session":1000,"started":true,"chunk":"0a","exit":{{"signal":9}},"waits_for_input":true,"duration_ms":12,"output_bytes":3,"whole":{{"lost":"full"}},"killed":["sleep"],{DENIALS},"held":{{"rung":"landlock","network":"none"}}}}"#
    );
    assert_recorded(&session(report), &ended);
    let old = r#"{"kind":"session","session":7,"chunk":"0a","duration_ms":0,"output_bytes":0}"#;
    assert!(serde_json::from_str::<Facts>(old).is_ok(), "older records lack two fields");
}

#[test]
fn reports_of_tools_are_written_without_their_kind() {
    let written = |report: ToolReport| serde_json::to_string(&report).unwrap();
    let matches = vec![
        SearchMatch::File { path: "/a".into() },
        SearchMatch::Count { count: 2, path: "/a".into() },
        SearchMatch::Line { line: 7, path: "/a".into(), text: "x".into() },
    ];
    let search = SearchReport { denied: 1, files: 2, matches, more: true };
    assert_eq!(
        written(ToolReport::Search(search)),
        r#"{"denied":1,"files":2,"matches":[{"path":"/a"},{"count":2,"path":"/a"},{"line":7,"path":"/a","text":"x"}],"more":true}"#
    );
    let streams = StreamReport { return_code: 3, stderr: "e".into(), stdout: "o".into() };
    assert_eq!(written(ToolReport::Streams(streams)), r#"{"return_code":3,"stderr":"e","stdout":"o"}"#);
    let tests = TestReport { runner: "go".into(), passed: 1, ..TestReport::default() };
    assert_eq!(
        written(ToolReport::Tests(Box::new(tests))),
        r#"{"runner":"go","passed":1,"failed":0,"skipped":0}"#
    );
    assert_eq!(written(json!([1, null]).into()), "[1,null]");
    let read: ToolReport = serde_json::from_str(r#"{"a":1}"#).unwrap();
    assert_eq!(read, ToolReport::Json(json!({"a": 1})));
}

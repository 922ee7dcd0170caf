//! Rebuilding a session, record by record.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass_contract::{
    Content, Effects, Event, Input, Outcome, ToolCall, Verdict,
    compaction::{CompactionMethod, CompactionReason, FileInUse},
    event::Plan,
    host::Exit,
    item::Role,
    journal::{Intent, Record},
    meta::Format,
    model::Usage,
    outcome::{Facts, Receipt, View},
    report::ProcessReport,
};
use windlass_fakes::clean;

use super::*;
use crate::{LineHash, session_line};

mod rewind;

/// A session file in memory, and the hash of its last line.
struct Script(Vec<u8>, LineHash);

impl Script {
    fn new() -> Self {
        let meta = SessionMeta {
            id: "t".into(),
            cwd: "/w".into(),
            version: "0".into(),
            instructions: "be\nbrief".into(),
            parent: None,
        };
        Self(Vec::new(), LineHash::start()).with(&Record::SessionMeta(&meta))
    }

    fn with(mut self, record: &Record<'_>) -> Self {
        let mut line = Vec::new();
        self.1 = session_line::write(record, Timestamp::UNIX_EPOCH, self.1, &mut line).unwrap();
        self.0.extend(line);
        self
    }

    fn user(self, text: &str) -> Self {
        self.with(&Record::Item(clean(&Item::message(Role::User, text))))
    }

    fn turn(self, model: &str) -> Self {
        self.with(&Record::TurnContext(&context(model)))
    }

    fn call(self, id: &str) -> Self {
        self.with(&Record::Item(clean(&call(id))))
    }

    fn intent(self, id: &str) -> Self {
        let intent = Intent {
            call: id.into(),
            tool: "shell".into(),
            effects: Effects::unknown(),
            decision: "allowed".into(),
        };
        self.with(&Record::Intent(clean(&intent)))
    }

    fn outcome(self, id: &str, text: &str) -> Self {
        self.with(&Record::Outcome { call: &id.into(), outcome: clean(&outcome(text)) })
    }

    fn outputs(self, ids: &[&str]) -> Self {
        let calls: Vec<CallId> = ids.iter().map(|id| (*id).into()).collect();
        self.with(&Record::Outputs { calls: &calls })
    }

    fn raw(mut self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Returns the file as a version without a chain wrote it.
    fn bare(&self) -> Self {
        let text = String::from_utf8(self.0.clone()).unwrap();
        let lines = text.lines().map(|line| {
            let Some((before, after)) = line.split_once("\"prev\":\"") else { return format!("{line}\n") };
            let rest = &after[66..];
            format!("{before}{}}}\n", rest.split_once(",\"sum\":").unwrap().0)
        });
        Self(lines.collect::<String>().into_bytes(), self.1)
    }

    /// Returns the file as a version without checksums wrote it, with `change` applied to each
    /// line.
    fn unsealed(&self, change: impl Fn(usize, String) -> String) -> Self {
        let text = String::from_utf8(self.0.clone()).unwrap();
        let mut script = Self(Vec::new(), LineHash::start());
        let mut lines = Vec::new();
        for line in text.lines() {
            let (before, after) = line.split_once("\"prev\":\"").unwrap();
            let rest = after[64..].split_once(",\"sum\":").unwrap().0;
            let line = format!("{before}\"prev\":\"{}{rest}}}\n", script.1);
            script.1 = LineHash::new(line.as_bytes());
            lines.push(line);
        }
        script.0 =
            lines.into_iter().enumerate().flat_map(|(at, line)| change(at + 1, line).into_bytes()).collect();
        script
    }

    fn load(&self) -> LoadedSession {
        replay(Path::new("file"), self.0.as_slice()).unwrap().session
    }

    fn load_before(&self, turn: usize) -> LoadedSession {
        replay_before(Path::new("file"), self.0.as_slice(), Some(turn)).unwrap().session
    }
}

fn outcome(text: &str) -> Outcome {
    Outcome {
        data: Some(json!({"rows": [1, 2]}).into()),
        receipt: Receipt { duration: Duration::from_millis(3), ..Receipt::default() },
        ..Outcome::plain(Verdict::success(), text)
    }
}

fn call(id: &str) -> Item {
    Body::Call(ToolCall { id: id.into(), name: "shell".into(), input: Input::Json("{}".into()) }).into()
}

fn context(model: &str) -> TurnContext {
    TurnContext {
        cwd: "/w".into(),
        provider: "p".into(),
        model: model.into(),
        policy: json!({"sandbox_mode": "read-only"}),
    }
}

fn output(id: &str, text: &str) -> Body {
    Body::Output {
        call: id.into(),
        input: InputKind::Json,
        content: vec![Content::Text(text.into())],
        failed: false,
    }
}

fn noted(id: &str, substitute: OutputSubstitute) -> Body {
    let content = vec![Content::Text(substitute.outcome().unwrap().text())];
    Body::Output { call: id.into(), input: InputKind::Json, content, failed: true }
}

fn missing(id: &str, substitute: OutputSubstitute) -> SessionRepair {
    SessionRepair::MissingOutput { call: id.into(), substitute }
}

fn bodies(session: &LoadedSession) -> Vec<Body> {
    session.history.iter().map(|item| item.body.clone()).collect()
}

#[test]
fn a_whole_session_loads_as_it_was() {
    let done = Event::TurnCompleted { usage: Usage::default(), declined: false, refusals: Vec::new() };
    let session = Script::new()
        .turn("one")
        .user("hi")
        .call("a")
        .call("b")
        .intent("a")
        .intent("b")
        .outcome("b", "B")
        .outcome("a", "A")
        .outputs(&["a", "b"])
        .with(&Record::Event(clean(&done)))
        .turn("two")
        .load();
    let user = Item::message(Role::User, "hi").body;
    assert_eq!(bodies(&session), [user, call("a").body, call("b").body, output("a", "A"), output("b", "B")]);
    assert_eq!(session.context, Some(context("two")));
    assert_eq!(session.meta.instructions, "be\nbrief");
    assert_eq!(session.repaired, []);
}

#[test]
fn an_output_comes_back_in_the_form_the_model_was_told() {
    let facts = Box::new(ProcessReport {
        duration: Duration::from_micros(1_234_567),
        output_bytes: 2,
        ..ProcessReport::new(Exit::Code(3))
    });
    let outcome = Outcome {
        view: View { format: Format::Structured, total_lines: Some(9), ..View::default() },
        facts: Facts::Command(facts),
        ..outcome("ok")
    };
    let record = Record::Outcome { call: &"a".into(), outcome: clean(&outcome) };
    let session = Script::new().call("a").with(&record).outputs(&["a"]).load();
    let content = outcome.for_model();
    assert_eq!(
        bodies(&session)[1],
        Body::Output { call: "a".into(), input: InputKind::Json, content, failed: false }
    );
}

#[test]
fn data_nested_as_deep_as_json_goes_does_not_cost_the_result() {
    let data = serde_json::from_str(&format!("{}{}", "[".repeat(127), "]".repeat(127))).unwrap();
    let outcome = Outcome { data: Some(data), ..outcome("A") };
    let record = Record::Outcome { call: &"a".into(), outcome: clean(&outcome) };
    let session = Script::new().call("a").with(&record).outputs(&["a"]).load();
    assert_eq!(bodies(&session)[1], output("a", "A"));
}

#[test]
fn calls_cut_off_by_the_end_of_the_program_get_their_outputs_in_call_order() {
    let session = Script::new().call("new").call("running").call("ended").intent("ended").intent("running");
    let session = session.outcome("ended", "real").load();
    assert_eq!(
        bodies(&session)[3..],
        [
            noted("new", OutputSubstitute::NotStarted),
            noted("running", OutputSubstitute::Unknown),
            output("ended", "real")
        ]
    );
    assert_eq!(
        session.repaired,
        [
            missing("new", OutputSubstitute::NotStarted),
            missing("running", OutputSubstitute::Unknown),
            missing("ended", OutputSubstitute::Recorded)
        ]
    );
}

#[test]
fn only_what_the_file_lacks_is_left_to_be_written() {
    let script = Script::new().call("a").intent("a").outcome("a", "A").outputs(&["a"]).call("b");
    let replayed = replay(Path::new("file"), script.0.as_slice()).unwrap();
    assert_eq!(replayed.substituted, [("b".into(), OutputSubstitute::NotStarted)]);
}

#[test]
fn a_torn_last_line_is_left_out_and_does_not_count_as_damage() {
    let whole = Script::new().call("a").0.len() as u64;
    let script = Script::new().call("a").raw(r#"{"timestamp":"x","type":"intent","payl"#);
    let replayed = replay(Path::new("file"), script.0.as_slice()).unwrap();
    assert_eq!(replayed.end.bytes, whole);
    assert_eq!(
        replayed.session.repaired,
        [SessionRepair::TornLine { line: 3 }, missing("a", OutputSubstitute::NotStarted)]
    );
}

#[test]
fn a_last_line_that_only_lacks_its_end_is_torn_too() {
    let mut script = Script::new().user("hi");
    script.0.pop();
    assert_eq!(script.load().repaired, [SessionRepair::TornLine { line: 2 }]);
}

#[test]
fn without_a_chain_a_broken_line_in_the_middle_is_skipped_and_reported() {
    let session = Script::new().user("one").raw("\0\0\0\n").raw("{}\n").user("two").bare().load();
    assert_eq!(session.history.len(), 2);
    let lines: Vec<_> = session.repaired.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "line 3 is left out: the line makes no sense, expected value at column 1",
            "line 4 is left out: the line makes no sense, missing field `type` at column 2",
        ]
    );
}

#[test]
fn where_lines_are_missing_a_call_is_not_said_to_be_unstarted() {
    for session in [Script::new().call("a").raw("garbage\n"), Script::new().call("a").raw("garbage\n").bare()]
    {
        assert_eq!(bodies(&session.load())[1..], [noted("a", OutputSubstitute::Lost)]);
    }
}

#[test]
fn a_record_of_a_newer_version_is_skipped_and_reported() {
    let session = Script::new()
        .raw("{\"timestamp\":\"\",\"type\":\"dream\",\"payload\":[]}\n")
        .user("hi")
        .bare()
        .load();
    assert_eq!(session.history.len(), 1);
    let problem = "`dream` is no type of record this version knows".to_owned();
    assert_eq!(session.repaired, [SessionRepair::SkippedLine { line: 2, problem }]);
}

#[test]
fn an_output_whose_outcome_is_gone_stays_in_its_place() {
    let session = Script::new().call("a").outputs(&["a"]).user("next").load();
    assert_eq!(bodies(&session)[1], noted("a", OutputSubstitute::Lost));
    assert_eq!(session.repaired, [missing("a", OutputSubstitute::Lost)]);
}

#[test]
fn outputs_without_calls_are_dropped() {
    let stray: Item = output("ghost", "boo").into();
    let session = Script::new().outcome("x", "X").outputs(&["x"]).with(&Record::Item(clean(&stray))).load();
    assert_eq!(session.history.len(), 0);
    assert_eq!(
        session.repaired,
        [
            SessionRepair::StrayOutput { call: "x".into() },
            SessionRepair::StrayOutput { call: "ghost".into() }
        ]
    );
}

#[test]
fn a_lost_list_of_outputs_is_made_up_before_the_next_turn() {
    let session =
        Script::new().call("a").intent("a").outcome("a", "A").raw("{\n").turn("two").user("next").bare();
    let session = session.load();
    assert_eq!(bodies(&session)[1..], [output("a", "A"), Item::message(Role::User, "next").body]);
}

#[test]
fn an_id_that_comes_back_is_another_call() {
    let script = Script::new().call("0").outcome("0", "first").outputs(&["0"]);
    let session = script.call("0").outcome("0", "second").outputs(&["0"]).load();
    assert_eq!(bodies(&session)[1], output("0", "first"));
    assert_eq!(bodies(&session)[3], output("0", "second"));
    assert_eq!(session.repaired, []);
}

#[test]
fn two_calls_with_one_id_have_two_outputs() {
    let session =
        Script::new().call("0").call("0").outcome("0", "A").outcome("0", "B").outputs(&["0", "0"]).load();
    assert_eq!(bodies(&session)[2..], [output("0", "A"), output("0", "B")]);
}

#[test]
fn a_damaged_line_ends_the_session_before_it() {
    let script = Script::new().call("a").call("b").outcome("a", "A").outcome("b", "B").outputs(&["a", "b"]);
    let text = String::from_utf8(script.0).unwrap();
    // The outputs would change places.
    let damaged = text.replacen("\"call\":\"a\"", "\"call\":\"b\"", 1);
    let session = Script(damaged.into_bytes(), LineHash::start()).load();
    let lost = |id| noted(id, OutputSubstitute::Lost);
    assert_eq!(bodies(&session), [call("a").body, call("b").body, lost("a"), lost("b")]);
    assert_eq!(session.repaired[0], SessionRepair::CutOff { line: 4, records: 3, kept: None });
}

#[test]
fn where_lines_have_no_checksum_the_next_line_shows_the_damage() {
    let script = Script::new().user("one").user("two").user("three");
    let cut = |line: usize, records: usize| vec![SessionRepair::CutOff { line, records, kept: None }];
    let whole = script.unsealed(|_, line| line).load();
    assert_eq!((whole.history.len(), whole.repaired), (3, Vec::new()));
    let changed = script.unsealed(|_, line| line.replace("two", "TWO")).load();
    assert_eq!((changed.history.len(), changed.repaired), (1, cut(3, 2)));
    let removed = script.unsealed(|at, line| if at == 3 { String::new() } else { line }).load();
    assert_eq!((removed.history.len(), removed.repaired), (0, cut(2, 2)), "either neighbour may be wrong");
    let garbled = script.unsealed(|at, line| if at == 3 { "x\n".to_owned() } else { line }).load();
    assert_eq!((garbled.history.len(), garbled.repaired), (1, cut(3, 2)));
}

#[test]
fn a_removed_line_ends_the_session_where_it_was() {
    let whole = String::from_utf8(Script::new().user("one").user("two").user("three").0).unwrap();
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let session = Script([lines[0], lines[1], lines[3]].concat().into_bytes(), LineHash::start()).load();
    assert_eq!(session.repaired, [SessionRepair::CutOff { line: 3, records: 1, kept: None }]);
    assert_eq!(session.history.len(), 1);
}

#[test]
fn a_file_that_does_not_begin_with_a_session_is_an_error_that_says_so() {
    let problem = |text: &str| replay(Path::new("f.jsonl"), text.as_bytes()).err().unwrap().to_string();
    let whole = String::from_utf8(Script::new().user("hi").0).unwrap();
    let (first, second) = whole.split_once('\n').unwrap();
    let bare = String::from_utf8(Script::new().user("hi").bare().0).unwrap();
    for (text, expected) in [
        ("", "the file is empty"),
        (first, "it was cut short"),
        (second, "it was changed, or lines next to it were removed, added or moved"),
        (bare.split_once('\n').unwrap().1, "its type is not `session_meta`"),
        (&whole.replacen("brief", "Brief", 1), "its checksum does not match"),
        ("<html>\n", "the line makes no sense, expected value at column 1"),
    ] {
        let message = format!(
            "`f.jsonl`, line 1: not the beginning of a session ({expected}); the file cannot be resumed"
        );
        assert_eq!(problem(text), message);
    }
}

fn compacted(history: Vec<Item>, notes: WorkNotes) -> CompactedHistory {
    CompactedHistory {
        reason: CompactionReason::Window,
        method: CompactionMethod::Summary,
        tokens_before: 900,
        tokens_after: 100,
        history,
        opening_items: 0,
        notes,
        tools: vec!["found".into()],
    }
}

fn texts<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<String> {
    let text = |item: &Item| match &item.body {
        Body::Message { content, .. } | Body::Output { content, .. } => Content::join(content),
        other => format!("{other:?}"),
    };
    items.map(text).collect()
}

#[test]
fn a_compaction_replaces_what_came_before_it_and_the_transcript_keeps_it() {
    let one = compacted(vec![Item::message(Role::User, "summary one")], WorkNotes::default());
    let two = compacted(vec![Item::message(Role::User, "summary two")], WorkNotes::default());
    let session = Script::new()
        .user("first")
        .with(&Record::Compacted(clean(&one)))
        .user("second")
        .with(&Record::Compacted(clean(&two)))
        .user("third")
        .load();
    assert_eq!(texts(session.history.iter()), ["summary two", "third"]);
    assert_eq!(texts(session.transcript()), ["first", "second", "third"]);
    assert_eq!(session.opening_items, 0);
    assert_eq!(session.turns, []);
    assert_eq!(session.found_tools, [windlass_contract::ToolName::from("found")]);
    assert_eq!(session.repaired, []);
}

#[test]
fn a_turn_before_a_compaction_has_no_place_in_the_history_any_more() {
    let one = compacted(vec![Item::message(Role::User, "summary")], WorkNotes::default());
    let session = Script::new()
        .user("<environment_context>")
        .turn("m")
        .user("first")
        .with(&Record::Compacted(clean(&one)))
        .turn("m")
        .user("second")
        .load();
    let places: Vec<_> = session.turns.iter().map(|turn| turn.items_before).collect();
    assert_eq!(places, [None, Some(1)]);
    let before = Script::new().user("<environment_context>").turn("m").user("first").load();
    assert_eq!((before.opening_items, before.turns[0].items_before), (1, Some(1)));
}

#[test]
fn the_plan_and_the_files_in_use_are_known_after_a_compaction() {
    let effects = Effects::write("/w/new.rs");
    let intent = |id: &str| Intent {
        call: id.into(),
        tool: "write_file".into(),
        effects: effects.clone(),
        decision: "allowed".into(),
    };
    let mut notes = WorkNotes::default();
    notes.file_read("/w/old.rs".as_ref());
    let plan = Plan { explanation: None, plan: vec![] };
    let session = Script::new()
        .with(&Record::Compacted(clean(&compacted(Vec::new(), notes))))
        .call("a")
        .with(&Record::Intent(clean(&intent("a"))))
        .outcome("a", "written")
        .outputs(&["a"])
        .with(&Record::Event(clean(&Event::PlanUpdated(plan.clone()))))
        .load();
    let file = |path: &str, changed| FileInUse { path: path.into(), changed };
    assert_eq!(session.notes.files, [file("/w/old.rs", false), file("/w/new.rs", true)]);
    assert_eq!(session.notes.plan, Some(plan));
    assert_eq!(session.digests["a"].summary, "success: written");
}

#[test]
fn a_call_in_a_compacted_history_has_its_output_and_no_other_is_expected() {
    let output = Body::Output {
        call: "a".into(),
        input: InputKind::Json,
        content: vec![Content::Text("short".into())],
        failed: false,
    };
    let history = vec![call("a"), Item::from(output)];
    let script = Script::new().call("a").intent("a").outcome("a", "long").outputs(&["a"]);
    let session = script.with(&Record::Compacted(clean(&compacted(history, WorkNotes::default())))).load();
    assert_eq!(texts(session.history.iter().skip(1)), ["short"]);
    assert_eq!(session.digests["a"].summary, "success: long");
    assert_eq!(session.repaired, []);
}

#[test]
fn a_compaction_that_makes_no_sense_leaves_the_conversation_as_it_was() {
    let line = |line: &str| line.replace("\"history\":[", "\"history\":[7,");
    let script = Script::new().user("first");
    let broken = compacted(vec![Item::message(Role::User, "summary")], WorkNotes::default());
    let mut text = Vec::new();
    session_line::write(&Record::Compacted(clean(&broken)), Timestamp::UNIX_EPOCH, script.1, &mut text)
        .unwrap();
    let text = line(&String::from_utf8(text).unwrap());
    // Without its checksum, the line counts as one of an earlier version.
    let text = format!("{}}}\n", text.split(",\"sum\"").next().unwrap());
    let session = script.raw(&text).load();
    assert_eq!(texts(session.history.iter()), ["first"]);
    assert!(
        matches!(session.repaired[..], [SessionRepair::SkippedLine { line: 3, .. }]),
        "{:?}",
        session.repaired
    );
}

//! Tests of the shapes clients parse.

use windlass::{CommandLine, EditKind, Exit, Input, PlanStep, ProcessReport, Receipt, Refusal, Verdict};
use windlass_fakes::clean;

use super::*;

fn show(events: &[Event]) -> Vec<Value> {
    let jsonl = JsonlWriter::new(false, Stop::default(), Arc::new(AllowHints::for_tests()));
    let mut state = JsonlState::default();
    events.iter().flat_map(|event| jsonl.lines(&mut state, event)).collect()
}

fn call(name: &str, input: &str) -> Clean<ToolCall> {
    clean(ToolCall { id: name.into(), name: name.into(), input: Input::Json(input.into()) })
}

fn outcome(status: Status, facts: Facts, success: bool, refusal: Option<&str>) -> Box<Clean<Outcome>> {
    Box::new(clean(Outcome {
        status,
        facts,
        receipt: Receipt { refusal: refusal.map(str::to_owned), ..Receipt::default() },
        ..Outcome::plain(Verdict { success, ..Verdict::success() }, "a\n")
    }))
}

#[test]
fn a_call_that_changes_files_is_a_file_change() {
    let patch = call("apply_patch", "x");
    let file = |path: &str, kind| FileEdit { path: path.into(), kind, move_path: None };
    let files = vec![
        file("a", EditKind::Add),
        FileEdit { move_path: Some("c".into()), ..file("b", EditKind::Update) },
    ];
    let (effects, id) = (clean(Effects::write("a")), patch.id.clone());
    let done = outcome(Status::Success, Facts::None, true, None);
    let usage = Usage::default();
    let lines = show(&[
        Event::CallStarted { call: patch.clone(), effects: effects.clone() },
        Event::EditStarted { id: id.clone(), files: files.clone() },
        Event::EditEnded { id, files, success: true, changed: Vec::new() },
        Event::CallEnded { call: patch, effects, outcome: done },
        Event::TurnDiff { diff: "diff".into() },
        Event::TurnCompleted { usage, declined: false, refusals: Vec::new() },
    ]);
    let changes = json!([{"path": "a", "kind": "add"}, {"path": "c", "kind": "update"}]);
    let item = json!({"id": "item_0", "type": "file_change", "changes": changes, "status": "in_progress"});
    assert_eq!(lines[0], json!({"type": "item.started", "item": item}));
    assert_eq!(lines[1]["item"]["status"], "completed");
    assert_eq!(lines[1]["item"]["changes"], changes);
    assert_eq!((lines.len(), &lines[2]["diff"]), (3, &json!("diff")));
}

#[test]
fn a_patch_that_did_not_fit_says_why() {
    let patch = call("apply_patch", "x");
    let effects = clean(Effects::write("a"));
    let failed = outcome(Status::Error, Facts::None, false, None);
    let lines = show(&[
        Event::CallStarted { call: patch.clone(), effects: effects.clone() },
        Event::CallEnded { call: patch, effects, outcome: failed },
    ]);
    assert_eq!(lines.len(), 1);
    let item = &lines[0]["item"];
    assert_eq!((&item["type"], &item["status"]), (&json!("mcp_tool_call"), &json!("failed")));
    assert_eq!(item["error"]["message"], "a\n");
}

#[test]
fn a_turn_with_a_command_looks_as_clients_expect() {
    let effects = clean(Effects::command(CommandLine {
        argv: ["bash", "-c", "ls x"].map(str::to_owned).to_vec(),
        cwd: None,
    }));
    let facts =
        Facts::Command(Box::new(ProcessReport { output_bytes: 2, ..ProcessReport::new(Exit::Code(2)) }));
    let lines = show(&[
        Event::ThreadStarted { thread: "t1".into() },
        Event::TurnStarted,
        Event::CallStarted { call: call("shell", "{}"), effects: effects.clone() },
        Event::CallEnded {
            call: call("shell", "{}"),
            effects,
            outcome: outcome(Status::Success, facts, false, None),
        },
        Event::Message { text: "done".into() },
        Event::TurnCompleted {
            usage: Usage { input_tokens: 3, ..Usage::default() },
            declined: false,
            refusals: Vec::new(),
        },
    ]);
    let outcome = json!({"status": "success", "verdict": {"success": false, "confidence": 100}, "receipt": {"duration_ms": 0}});
    assert_eq!(
        lines,
        [
            json!({"type": "thread.started", "thread_id": "t1"}),
            json!({"type": "turn.started"}),
            json!({"type": "item.started", "item": {
                "id": "item_0", "type": "command_execution", "command": "bash -c 'ls x'", "aggregated_output": "",
                "exit_code": null, "status": "in_progress", "tool": "shell"
            }}),
            json!({"type": "item.completed", "item": {
                "id": "item_0", "type": "command_execution", "command": "bash -c 'ls x'", "aggregated_output": "a\n",
                "exit_code": 2, "status": "failed", "tool": "shell", "outcome": outcome
            }}),
            json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "done"}}),
            json!({"type": "turn.completed", "refusals": [], "usage": {
                "input_tokens": 3, "cached_input_tokens": 0, "cache_write_input_tokens": 0, "output_tokens": 0,
                "reasoning_output_tokens": 0
            }}),
        ]
    );
}

#[test]
fn a_refused_command_is_declined_and_listed_at_the_end() {
    let effects = clean(Effects::command(CommandLine { argv: vec!["rm".into()], cwd: None }));
    let refused = outcome(Status::Rejected, Facts::None, false, Some("no"));
    let refusal =
        Refusal { call: "shell".into(), tool: "shell".into(), reason: "no".into(), made_up_for: false };
    let lines = show(&[
        Event::CallEnded { call: call("shell", "{}"), effects, outcome: refused },
        Event::TurnFailed {
            message: "x".into(),
            reason: "looping".into(),
            usage: Usage::default(),
            refusals: vec![refusal],
        },
    ]);
    assert_eq!(lines[0]["item"]["status"], "declined");
    assert_eq!(lines[1]["error"]["message"], "x");
    let hint = "to allow it: `-a on-request`, or run it where it can ask, at a terminal or in a session (it did not, because there is no terminal)";
    assert_eq!(
        lines[1]["refusals"],
        json!([{"call": "shell", "tool": "shell", "reason": "no", "made_up_for": false, "hint": hint}])
    );
}

#[test]
fn a_plan_is_one_item_from_first_word_to_last() {
    let plan = |status| {
        Event::PlanUpdated(Plan { explanation: None, plan: vec![PlanStep { step: "look".into(), status }] })
    };
    let lines = show(&[
        plan(PlanStatus::Pending),
        Event::CallEnded {
            call: call("update_plan", "{}"),
            effects: clean(Effects::none()),
            outcome: outcome(Status::Success, Facts::None, true, None),
        },
        plan(PlanStatus::Completed),
        Event::TurnCompleted { usage: Usage::default(), declined: false, refusals: Vec::new() },
    ]);
    let shown: Vec<_> =
        lines[..3].iter().map(|line| (&line["type"], &line["item"]["id"], &line["item"]["items"])).collect();
    let step = |completed| json!([{"text": "look", "completed": completed}]);
    assert_eq!(
        shown,
        [
            (&json!("item.started"), &json!("item_0"), &step(false)),
            (&json!("item.updated"), &json!("item_0"), &step(true)),
            (&json!("item.completed"), &json!("item_0"), &step(true)),
        ]
    );
}

#[test]
fn any_other_tool_takes_the_shape_of_a_remote_one() {
    let ok = outcome(Status::Success, Facts::None, true, None);
    let lines = show(&[Event::CallEnded {
        call: call("add", r#"{"a":1}"#),
        effects: clean(Effects::none()),
        outcome: ok,
    }]);
    let item = &lines[0]["item"];
    assert_eq!((&item["type"], &item["arguments"]), (&json!("mcp_tool_call"), &json!({"a": 1})));
    assert_eq!(
        item["result"],
        json!({"content": [{"type": "text", "text": "a\n"}], "structured_content": null})
    );
}

#[test]
fn names_come_first_and_nothing_is_lost() {
    let line = line(
        "item.completed",
        json!({"item": item("item_0", "error", json!({"message": "a", "code": [{"b": 1}]}))}),
    );
    let text = ordered(&line);
    assert!(
        text.starts_with(r#"{"type":"item.completed","item":{"id":"item_0","type":"error","code""#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), line);
}

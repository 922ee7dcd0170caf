//! Compactions within turns, against a scripted model.

use windlass_contract::{Content, Input, ToolCall, call::InputKind, event::PlanStep, item::Body};

use super::*;

pub(super) fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

pub(super) fn assistant(text: &str) -> Item {
    Item::message(Role::Assistant, text)
}

pub(super) fn call(id: &str) -> Item {
    let input = Input::Json("{}".into());
    Body::Call(ToolCall { id: id.into(), name: "shell".into(), input }).into()
}

pub(super) fn output(call: &str, text: &str) -> Item {
    let content = vec![Content::Text(text.into())];
    Body::Output { call: call.into(), input: InputKind::Json, content, failed: false }.into()
}

#[test]
fn the_notes_say_what_is_planned_and_how_the_files_are() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a.rs"), "12345").unwrap();
    let mut notes = WorkNotes::default();
    notes.file_read(&place.path().join("gone.rs"));
    notes.file_changed(&place.path().join("a.rs"));
    let steps = [("read", PlanStatus::Completed), ("write", PlanStatus::InProgress)];
    let plan = steps.map(|(step, status)| PlanStep { step: step.into(), status });
    notes.plan = Some(windlass_contract::event::Plan { explanation: None, plan: plan.into() });
    let text = notes_text(&notes);
    assert!(text.contains("- [x] read\n- [>] write\n"), "{text}");
    assert!(text.contains("a.rs (changed, now 5 bytes)\n"), "{text}");
    assert!(text.contains("gone.rs (read, does not exist now)\n"), "{text}");
    assert_eq!(notes_text(&WorkNotes::default()), "");
}

#[test]
fn the_parts_of_a_compacted_history_leave_room_for_work() {
    for (ceiling, fixed) in [(6800, 4000), (170_000, 5000), (100, 4000)] {
        let CompactionBudget { free, user, tail, summary, .. } = CompactionBudget::new(ceiling, fixed);
        assert!(user + tail + summary <= free * 3 / 5, "{ceiling}");
    }
}

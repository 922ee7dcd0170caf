//! Verdicts on results of real calls, and each dimension alone.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// Results of real calls, each with the verdict it deserves.
const RECORDED: &str = include_str!("recorded.jsonl");

#[derive(Deserialize)]
struct RecordedCall {
    what: String,
    criteria: Criteria,
    status: Status,
    content: Vec<Content>,
    data: Option<ToolReport>,
    facts: Facts,
    insight: Option<Insight>,
    receipt: Receipt,
    cut: bool,
    verdict: Verdict,
}

impl RecordedCall {
    fn judged(&self) -> Verdict {
        judge(&CallEvidence {
            status: self.status,
            criteria: &self.criteria,
            facts: &self.facts,
            insight: self.insight.as_ref(),
            content: &self.content,
            data: self.data.as_ref(),
            receipt: &self.receipt,
            cut: self.cut,
        })
    }
}

#[test]
fn recorded_results_get_the_verdicts_they_deserve() {
    let lines: Vec<_> = RECORDED.lines().collect();
    assert!(lines.len() >= 60, "{} results", lines.len());
    for line in lines {
        let recorded: RecordedCall = serde_json::from_str(line).unwrap();
        assert_eq!(recorded.judged(), recorded.verdict, "{}", recorded.what);
    }
}

#[test]
fn the_points_add_up_to_a_hundred() {
    assert_eq!(WEIGHTS.total(), 100);
}

fn ended_well(criteria: &Value, content: &Value, data: Option<Value>) -> RecordedCall {
    let mut recorded = json!({
        "what": "", "criteria": criteria, "status": "success", "content": content, "facts": {"kind": "none"},
        "receipt": {"duration_ms": 0}, "cut": false, "verdict": {"success": true}
    });
    recorded["data"] = data.into();
    serde_json::from_value(recorded).unwrap()
}

#[test]
fn nothing_where_something_was_promised_costs_the_success() {
    let lacking = ended_well(&json!({"gives": "image"}), &json!([]), None).judged();
    assert_eq!((lacking.success, lacking.confidence, lacking.marks.total()), (false, 40, 60));
    assert_eq!(lacking.reasons, ["it gave nothing back", "what it gave back is not an image"]);
    let empty = ended_well(&json!({"gives": "text"}), &json!([{"text": " "}]), None).judged();
    assert_eq!((empty.success, empty.confidence), (true, 80));
    let data = |data| ended_well(&json!({"gives": "data"}), &json!([]), data).judged().marks.total();
    assert_eq!((data(Some(json!({}))), data(Some(json!("text"))), data(None)), (100, 80, 60));
}

#[test]
fn what_takes_longer_than_usual_is_less_sure() {
    let mut slow =
        ended_well(&json!({"gives": "anything", "usual": {"secs": 1, "nanos": 0}}), &json!([]), None);
    slow.receipt.duration = std::time::Duration::from_millis(2500);
    let verdict = slow.judged();
    assert_eq!((verdict.success, verdict.confidence), (true, 95));
    assert_eq!(verdict.reasons, ["it took 2.5 s, usually it takes less than 1.0 s"]);
}

#[test]
fn tests_that_must_pass_decide_alone() {
    let tests = |passed: u64, failed: u64| {
        let mut ran = ended_well(&json!({"musts": ["pass_tests"]}), &json!([]), None);
        ran.insight = serde_json::from_value(json!({
            "summary": "", "kind": "command", "class": "ok",
            "tests": {"runner": "cargo", "passed": passed, "failed": failed, "skipped": 0}
        }))
        .unwrap();
        ran.judged()
    };
    assert!(tests(3, 0).success);
    let failed = tests(19, 1);
    assert_eq!((failed.success, failed.confidence, failed.marks.criteria), (false, 100, false));
    assert!(failed.reasons.contains(&"1 of 20 tests failed".to_owned()), "{:?}", failed.reasons);
    assert_eq!(tests(0, 0).reasons, ["no test was run"]);
    let unknown = ended_well(&json!({"musts": ["pass_tests"]}), &json!([]), None).judged();
    assert_eq!((unknown.success, unknown.reasons), (false, vec!["no test was run".to_owned()]));
}

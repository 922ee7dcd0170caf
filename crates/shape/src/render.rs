//! An outcome for people and programs: text, JSON, Markdown. What the model gets is in the outcome already.

use serde_json::{Value, json};
use windlass_contract::{Exit, Facts, Marks, Outcome, ToolName, Verdict};

use crate::WEIGHTS;

/// The content alone, as a person at a terminal wants it.
pub fn text(outcome: &Outcome) -> String {
    outcome.text()
}

/// Everything, as data: status, data, error, time, metadata.
pub fn json(tool: &ToolName, outcome: &Outcome) -> Value {
    let failed = !outcome.verdict.success;
    json!({
        "tool": tool,
        "status": outcome.status,
        "success": outcome.verdict.success,
        "content": outcome.content,
        "data": outcome.data,
        "error": failed.then(|| outcome.verdict.reasons.join("; ")),
        "duration_ms": u64::try_from(outcome.receipt.duration.as_millis()).unwrap_or(u64::MAX),
        "facts": outcome.facts,
        "insight": outcome.insight,
        "verdict": outcome.verdict,
        "receipt": outcome.receipt,
    })
}

/// Everything, for a report or an issue.
pub fn markdown(tool: &ToolName, outcome: &Outcome) -> String {
    let success = if outcome.verdict.success { "yes".to_owned() } else { outcome.verdict.reasons.join("; ") };
    let mut rows = vec![("Success", success)];
    let printed = match &outcome.facts {
        Facts::None => None,
        Facts::Command(command) => Some(command.output_bytes),
        Facts::Session(session) => Some(session.output_bytes),
    };
    rows.extend(outcome.facts.exit().map(|how| ("Exit", exit(how))));
    let told = outcome.insight.iter().filter(|insight| insight.is_telling());
    rows.extend(told.map(|insight| ("Summary", insight.summary.clone())));
    rows.extend(printed.map(|bytes| ("Output", format!("{bytes} bytes"))));
    rows.push(("Time", format!("{} ms", outcome.receipt.duration.as_millis())));
    if let Some(held) = &outcome.receipt.held {
        rows.push(("Held by", held.rung.name().to_owned()));
    }
    let rows = rows.iter().map(|(name, value)| format!("- **{name}**: {value}\n")).collect::<String>();
    let text = outcome.text();
    let fence = fence_for(&text);
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("## `{tool}`: {}\n\n{rows}\n{fence}\n{text}{newline}{fence}\n", outcome.status.name())
}

/// How a call was judged: points by dimension, then reasons and suggestions.
pub fn verdict(verdict: &Verdict) -> String {
    let Verdict { success, confidence, marks, reasons, suggestions } = verdict;
    let word = if *success { "success" } else { "failure" };
    let mut lines = vec![format!("verdict: {word}, {confidence} % sure")];
    if *marks != Marks::default() {
        let rows = [
            ("status", marks.status, WEIGHTS.status),
            ("data", marks.data, WEIGHTS.data),
            ("format", marks.format, WEIGHTS.format),
            ("time", marks.time, WEIGHTS.time),
            ("quality", marks.quality, WEIGHTS.quality),
        ];
        lines.extend(rows.map(|(name, got, most)| format!("  {name:<9} {got:>2} of {most}")));
        let criteria = if marks.criteria { "met" } else { "not met" };
        lines.push(format!("  {:<10}{criteria}", "criteria"));
    }
    lines.extend(reasons.iter().map(|reason| format!("reason: {reason}")));
    lines.extend(suggestions.iter().map(|suggestion| format!("suggestion: {suggestion}")));
    lines.join("\n") + "\n"
}

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "time was up".to_owned(),
        Exit::Cancelled => "cancelled".to_owned(),
    }
}

/// A fence longer than any run of backticks in the text, so that the text cannot end it.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Criteria, Format, Output, Receipt};

    use super::*;
    use crate::Shaper;

    #[test]
    fn markdown_cannot_be_broken_out_of() {
        let output = Output::from("```\nrm -rf /\n```");
        let outcome =
            Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
        let page = markdown(&"t".into(), &outcome);
        assert_eq!(
            page,
            "## `t`: success\n\n- **Success**: yes\n- **Time**: 0 ms\n\n````\n```\nrm -rf /\n```\n````\n"
        );
    }

    #[test]
    fn json_has_status_data_error_time_and_metadata() {
        let output = Output { data: Some(json!([1])), ..Output::from("hi") };
        let outcome =
            Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
        assert_eq!(
            json(&"t".into(), &outcome),
            json!({
                "tool": "t", "status": "success", "success": true, "content": [{"text": "hi"}], "data": [1],
                "error": null, "duration_ms": 0, "facts": {"kind": "none"}, "insight": null,
                "verdict": {
                    "success": true, "confidence": 100,
                    "marks": {"status": 40, "data": 20, "format": 20, "time": 10, "quality": 10, "criteria": true}
                },
                "receipt": {"duration_ms": 0}
            })
        );
    }
}

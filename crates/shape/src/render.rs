//! Renders an outcome for people and programs: text, JSON, Markdown. The outcome already holds the
//! model's view.

use serde_json::{Value, json};
use windlass_contract::{
    Outcome, ToolName, Verdict,
    host::Exit,
    insight::{Detail, Insight},
    outcome::{Facts, Status},
    verdict::Marks,
};

use crate::WEIGHTS;

/// A call and its outcome, ready to be rendered.
#[derive(Debug, Clone, Copy)]
pub struct CallReport<'a> {
    /// Name of the tool.
    pub tool: &'a ToolName,
    /// The arguments of the call, even if they were invalid.
    pub parameters: &'a Value,
    /// The outcome of the call.
    pub outcome: &'a Outcome,
    /// An additional remark, such as the state of a session.
    pub note: Option<&'a str>,
}

impl CallReport<'_> {
    /// Returns only the content, for a person at a terminal.
    pub fn text(&self) -> String {
        let text = self.outcome.text();
        match self.note {
            None => text,
            Some(note) if text.is_empty() || text.ends_with('\n') => format!("{text}[{note}]\n"),
            Some(note) => format!("{text}\n[{note}]\n"),
        }
    }

    /// Returns everything as data: status, data, error, parameters, time, metadata.
    pub fn json(&self) -> Value {
        let Self { tool, parameters, outcome, note } = self;
        let mut result = json!({
            "tool": tool,
            "parameters": parameters,
            "status": outcome.status,
            "success": outcome.verdict.success,
            "content": outcome.content,
            "data": data(outcome),
            "error": error(outcome),
            "duration_ms": u64::try_from(outcome.receipt.duration.as_millis()).unwrap_or(u64::MAX),
            "facts": outcome.facts,
            "insight": outcome.insight,
            "verdict": outcome.verdict,
            "receipt": outcome.receipt,
        });
        if let Some(note) = note {
            result["note"] = json!(note);
        }
        result
    }

    /// Returns everything as Markdown, for a report or an issue.
    pub fn markdown(&self) -> String {
        let Self { tool, outcome, note, .. } = self;
        let success = if outcome.verdict.success { "yes" } else { "no" };
        let mut rows = vec![("Success", success.to_owned())];
        rows.extend(error(outcome).map(|error| ("Error", first_line(&error))));
        let printed = outcome.facts.output_bytes();
        rows.extend(outcome.facts.exit().map(|how| ("Exit", exit(how))));
        let told = outcome.insight.iter().filter(|insight| insight.is_telling());
        rows.extend(told.map(|insight| ("Summary", insight.summary.clone())));
        rows.extend(printed.map(|bytes| ("Output", format!("{bytes} bytes"))));
        rows.extend(note.map(|note| ("Note", note.to_owned())));
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
}

/// Returns the result as data: the tool's own data, the insight of its command, or its text.
fn data(outcome: &Outcome) -> Value {
    if let Some(report) = &outcome.data {
        return json!(report);
    }
    if let Some(tests) = outcome.insight.as_ref().and_then(Insight::tests) {
        let mut data = json!(tests);
        data["total"] = json!(tests.passed.saturating_add(tests.failed).saturating_add(tests.skipped));
        return data;
    }
    let output = outcome.text();
    match &outcome.facts {
        Facts::Command(command) => json!({"output": output, "return_code": command.exit.code()}),
        Facts::Session(session) => json!({
            "output": output,
            "session_id": session.session,
            "running": session.report.exit.is_none(),
            "return_code": session.report.exit.map(Exit::code),
        }),
        Facts::None | Facts::Remote(_) if outcome.status == Status::Success && !output.is_empty() => {
            json!(output)
        }
        Facts::None | Facts::Remote(_) => Value::Null,
    }
}

/// Returns the reason for a failed verdict: the tool's own text if no command ran, else the reasons
/// of the verdict with the first error.
fn error(outcome: &Outcome) -> Option<String> {
    if outcome.verdict.success {
        return None;
    }
    let reasons = || outcome.verdict.reasons.join("; ");
    let text = outcome.text();
    if outcome.facts.exit().is_none() && outcome.status != Status::Success && !text.trim().is_empty() {
        return Some(text.trim_end().to_owned());
    }
    let first = outcome.insight.as_ref().and_then(|insight| match &insight.detail {
        Detail::Command(command) => command.first_error.clone(),
        _ => None,
    });
    Some(first.map_or_else(reasons, |first| format!("{}: {first}", reasons())))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Renders a verdict: points by dimension, then reasons and suggestions.
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

/// Returns a code fence longer than any run of backticks in the text, so that the text cannot close
/// it.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use windlass_contract::{
        Output, ToolError, meta::Format, outcome::Receipt, report::ProcessReport, tool::ErrorKind,
        verdict::Criteria,
    };

    use super::*;
    use crate::{Failure, Shaper};

    #[test]
    fn markdown_cannot_be_broken_out_of() {
        let output = Output::from("```\nrm -rf /\n```");
        let outcome =
            Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
        let page = report(&outcome).markdown();
        assert_eq!(
            page,
            "## `t`: success\n\n- **Success**: yes\n- **Time**: 0 ms\n\n````\n```\nrm -rf /\n```\n````\n"
        );
    }

    #[test]
    fn json_has_status_data_error_parameters_time_and_metadata() {
        let output = Output { data: Some(json!([1]).into()), ..Output::from("hi") };
        let outcome = shaped(Ok(output));
        assert_eq!(
            report(&outcome).json(),
            json!({
                "tool": "t", "parameters": {"a": 1}, "status": "success", "success": true,
                "content": [{"text": "hi"}], "data": [1],
                "error": null, "duration_ms": 0, "facts": {"kind": "none"}, "insight": null,
                "verdict": {
                    "success": true, "confidence": 100,
                    "marks": {"status": 40, "data": 20, "format": 20, "time": 10, "quality": 10, "criteria": true}
                },
                "receipt": {"duration_ms": 0}
            })
        );
        let plain = shaped(Ok(Output::from("hi")));
        assert_eq!(report(&plain).json()["data"], "hi");
    }

    #[test]
    fn an_error_is_told_in_the_words_of_the_tool_and_with_its_status() {
        for (kind, status) in [
            (ErrorKind::NotFound, "not_found"),
            (ErrorKind::NoPermission, "permission_denied"),
            (ErrorKind::TimedOut, "timeout"),
            (ErrorKind::Failed, "error"),
        ] {
            let outcome = shaped(Err(Failure::Tool(ToolError::new(kind, "`a.txt`: no\nlook again"))));
            let json = report(&outcome).json();
            assert_eq!(json["status"], status);
            assert_eq!(json["error"], "`a.txt`: no\nlook again", "{status}");
            assert_eq!(json["data"], Value::Null, "{status}");
            assert_eq!(json["verdict"]["reasons"], json!(["`a.txt`: no"]), "{status}");
            let page = report(&outcome).markdown();
            assert!(page.contains("- **Success**: no\n- **Error**: `a.txt`: no\n"), "{page}");
        }
    }

    #[test]
    fn a_command_is_data_with_its_output_and_code() {
        let facts =
            |exit| Facts::Command(Box::new(ProcessReport { output_bytes: 3, ..ProcessReport::new(exit) }));
        let run = |exit| shaped(Ok(Output { facts: facts(exit), ..Output::from("no\n") }));
        let failed = report(&run(Exit::Code(3))).json();
        assert_eq!(failed["data"], json!({"output": "no\n", "return_code": 3}));
        assert_eq!(
            (&failed["status"], &failed["error"]),
            (&json!("error"), &json!("the command ended with exit code 3"))
        );
        let missing = report(&run(Exit::Code(127))).json();
        assert_eq!(missing["status"], "not_found", "{missing}");
    }

    fn shaped(result: Result<Output, Failure>) -> Outcome {
        Shaper::default().shape(Format::Plain, &Criteria::default(), result, Receipt::default()).into_inner()
    }

    fn report(outcome: &Outcome) -> CallReport<'_> {
        static TOOL: LazyLock<(ToolName, Value)> = LazyLock::new(|| ("t".into(), json!({"a": 1})));
        CallReport { tool: &TOOL.0, parameters: &TOOL.1, outcome, note: None }
    }
}

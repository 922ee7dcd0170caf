//! From what a tool gave back to an outcome.

use std::time::Duration;

use windlass_contract::{
    CommandFacts, Content, ErrorKind, Exit, Facts, Format, Outcome, Output, Receipt, Status, ToolError,
};

use crate::{Budget, judge::judge};

/// Shapes results; the same for every tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shaper {
    /// How much of an output the model is given.
    pub budget: Budget,
}

/// Why there is no output.
#[derive(Debug)]
pub enum Failure {
    /// There is no such tool.
    NotFound(String),
    /// The tool failed, or its input made no sense.
    Tool(ToolError),
    /// Nobody said yes.
    Refused(String),
    /// The call was stopped before it was done.
    Aborted(String),
}

impl Shaper {
    /// Makes an outcome: cuts, writes in the tool's format, judges.
    pub fn shape(&self, format: Format, result: Result<Output, Failure>, mut receipt: Receipt) -> Outcome {
        match result {
            Ok(output) => self.output(format, output, receipt),
            Err(failure) => {
                let (status, text) = match failure {
                    Failure::NotFound(text) => (Status::NotFound, text),
                    Failure::Aborted(why) => (Status::Rejected, aborted(format, &why, receipt.duration)),
                    Failure::Refused(reason) => {
                        receipt.refusal = Some(reason.clone());
                        (Status::Rejected, reason)
                    }
                    Failure::Tool(error) => match error.kind {
                        ErrorKind::BadInput | ErrorKind::Failed => (Status::Error, error.message),
                        ErrorKind::Cancelled => {
                            (Status::Rejected, aborted(format, &error.message, receipt.duration))
                        }
                        ErrorKind::Denied(denial) => {
                            receipt.denials.push(*denial);
                            (Status::PermissionDenied, error.message)
                        }
                    },
                };
                let content = vec![Content::Text(self.fit(text))];
                let verdict = judge(status, &Facts::None);
                Outcome { status, content, data: None, facts: Facts::None, verdict, receipt }
            }
        }
    }

    fn output(&self, format: Format, output: Output, receipt: Receipt) -> Outcome {
        let Output { content, data, facts } = output;
        let status = match &facts {
            Facts::Command(CommandFacts { exit: Exit::TimedOut, .. }) => Status::Timeout,
            Facts::Command(CommandFacts { exit: Exit::Cancelled, .. }) => Status::Rejected,
            _ => Status::Success,
        };
        let content = match (&facts, format) {
            (Facts::Command(command), Format::Structured) => {
                vec![self.structured(command, &Content::join(&content))]
            }
            (Facts::Command(command), Format::Freeform) => {
                vec![self.freeform(command, &Content::join(&content))]
            }
            _ => content.into_iter().map(|part| self.part(part)).collect(),
        };
        let verdict = judge(status, &facts);
        Outcome { status, content, data, facts, verdict, receipt }
    }

    fn part(&self, part: Content) -> Content {
        match part {
            Content::Text(text) => Content::Text(self.fit(text)),
            image @ Content::Image(_) => image,
        }
    }

    fn fit(&self, text: String) -> String {
        self.budget.cut(&text).unwrap_or(text)
    }

    /// One JSON object with the output and how it ended.
    fn structured(&self, command: &CommandFacts, output: &str) -> Content {
        let output = match self.budget.cut(output) {
            Some(cut) => format!("Total output lines: {}\n\n{cut}", output.lines().count()),
            None => output.to_owned(),
        };
        // Written by hand so that the keys come in the order models of this family are used to.
        let output = serde_json::Value::from(output);
        let (code, seconds) = (command.exit.code(), f64::from(tenths(command.duration)));
        let metadata = format!(r#"{{"exit_code":{code},"duration_seconds":{seconds:?}}}"#);
        Content::Text(format!(r#"{{"output":{output},"metadata":{metadata}}}"#))
    }

    /// A few header lines, then the output.
    fn freeform(&self, command: &CommandFacts, output: &str) -> Content {
        let mut lines = vec![
            format!("Exit code: {}", command.exit.code()),
            format!("Wall time: {} seconds", tenths(command.duration)),
        ];
        let cut = self.budget.cut(output);
        let shown = cut.as_deref().unwrap_or(output);
        let total = output.lines().count();
        if shown.lines().count() != total {
            lines.push(format!("Total output lines: {total}"));
        }
        lines.push("Output:".to_owned());
        lines.push(shown.to_owned());
        Content::Text(lines.join("\n"))
    }
}

/// What the model is told of a call that was stopped, in words it knows.
fn aborted(format: Format, why: &str, after: Duration) -> String {
    let seconds = after.as_secs_f32().max(0.1);
    match format {
        Format::Structured | Format::Freeform => format!("Wall time: {seconds:.1} seconds\n{why}"),
        Format::Plain => format!("{why} after {seconds:.1}s"),
    }
}

/// A time rounded to tenths of a second.
fn tenths(time: Duration) -> Tenths {
    Tenths(u32::try_from(time.as_millis().saturating_add(50) / 100).unwrap_or(u32::MAX))
}

/// A number of tenths of a second.
#[derive(Clone, Copy)]
struct Tenths(u32);

impl From<Tenths> for f64 {
    fn from(tenths: Tenths) -> Self {
        Self::from(tenths.0) / 10.0
    }
}

impl std::fmt::Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", f64::from(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(exit: Exit, millis: u64) -> Facts {
        Facts::Command(CommandFacts { exit, duration: Duration::from_millis(millis), output_bytes: 3 })
    }

    fn shape(format: Format, facts: Facts, text: &str) -> Outcome {
        let output = Output { content: vec![Content::Text(text.into())], data: None, facts };
        Shaper { budget: Budget::Bytes(8) }.shape(format, Ok(output), Receipt::default())
    }

    #[test]
    fn the_structured_form_is_what_models_know() {
        let outcome = shape(Format::Structured, command(Exit::Code(0), 12), "a\"b\n");
        assert_eq!(
            outcome.text(),
            r#"{"output":"a\"b\n","metadata":{"exit_code":0,"duration_seconds":0.0}}"#
        );
        assert!(outcome.verdict.success);
    }

    #[test]
    fn the_freeform_form_counts_lines_only_when_some_are_gone() {
        let outcome = shape(Format::Freeform, command(Exit::Code(3), 1049), "ok\n");
        assert_eq!(outcome.text(), "Exit code: 3\nWall time: 1 seconds\nOutput:\nok\n");
        assert_eq!(outcome.verdict.reasons, ["the command ended with exit code 3"]);
        let outcome = shape(Format::Freeform, command(Exit::Code(0), 80), "1\n2\n3\n4\n5\n6\n");
        assert_eq!(
            outcome.text(),
            "Exit code: 0\nWall time: 0.1 seconds\nTotal output lines: 6\nOutput:\n1\n2\n…4 chars truncated…5\n6\n"
        );
    }

    #[test]
    fn a_time_out_is_its_own_status_with_exit_code_124() {
        let outcome = shape(Format::Structured, command(Exit::TimedOut, 2000), "x");
        assert_eq!((outcome.status, outcome.verdict.success), (Status::Timeout, false));
        assert!(outcome.text().contains(r#""exit_code":124"#));
    }

    #[test]
    fn a_stopped_call_says_so_in_the_form_of_its_tool() {
        let text = |format| {
            let receipt = Receipt { duration: Duration::from_millis(1234), ..Receipt::default() };
            Shaper::default().shape(format, Err(Failure::Aborted("aborted by user".into())), receipt).text()
        };
        assert_eq!(text(Format::Freeform), "Wall time: 1.2 seconds\naborted by user");
        assert_eq!(text(Format::Plain), "aborted by user after 1.2s");
    }
}

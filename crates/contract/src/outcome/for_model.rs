//! Results in the formats that models of this family were trained on.

use std::time::Duration;

use super::{Facts, Outcome};
use crate::{
    Content,
    host::Exit,
    meta::Format,
    report::{ProcessReport, SessionReport},
};

impl Outcome {
    /// Returns the content for the model.
    pub fn for_model(&self) -> Vec<Content> {
        match (&self.facts, self.view.format) {
            // There is no exit code for a header; the content of the tool says what happened.
            (Facts::Command(command), _) if matches!(command.exit, Exit::Signal(_) | Exit::Cancelled) => {
                self.told()
            }
            (Facts::Command(command), Format::Structured) => vec![self.structured(command)],
            (Facts::Command(command), Format::Freeform) => vec![self.freeform(command)],
            (Facts::Session(session), Format::Session) => vec![self.session(session)],
            (Facts::None | Facts::Command(_) | Facts::Session(_) | Facts::Remote(_), _) => self.told(),
        }
    }

    /// Formats the output, exit code and duration as one JSON object.
    fn structured(&self, command: &ProcessReport) -> Content {
        let text = self.told_text();
        let output = match self.view.total_lines {
            Some(lines) => format!("Total output lines: {lines}\n\n{text}"),
            None => text,
        };
        // Written by hand so that the keys come in the order models are used to.
        let output = serde_json::Value::from(output);
        let (code, seconds) = (command.exit.code(), tenths(command.duration));
        let metadata = format!(r#"{{"exit_code":{code},"duration_seconds":{seconds:?}}}"#);
        Content::Text(format!(r#"{{"output":{output},"metadata":{metadata}}}"#))
    }

    /// Formats a few header lines, then the output.
    fn freeform(&self, command: &ProcessReport) -> Content {
        let (code, seconds, text) = (command.exit.code(), tenths(command.duration), self.told_text());
        let shown = u64::try_from(self.text().lines().count()).unwrap_or(u64::MAX);
        let total = self.view.total_lines.filter(|total| *total != shown);
        let total = total.map(|lines| format!("Total output lines: {lines}\n")).unwrap_or_default();
        Content::Text(format!("Exit code: {code}\nWall time: {seconds} seconds\n{total}Output:\n{text}"))
    }

    /// Formats header lines with the state of the session, then this piece of its output.
    fn session(&self, session: &SessionReport) -> Content {
        const BYTES_PER_TOKEN: u64 = 4;
        let SessionReport { session, chunk, report, .. } = session;
        let state = match report.exit {
            Some(exit) => format!("Process exited with code {}", exit.code()),
            None => format!("Process running with session ID {session}"),
        };
        let waits = if report.waits_for_input { "The program is waiting for input\n" } else { "" };
        let lines = self.view.total_lines.map(|lines| format!("Total output lines: {lines}\n\n"));
        Content::Text(format!(
            "Chunk ID: {chunk}\nWall time: {:.4} seconds\n{state}\n{waits}Original token count: {}\nOutput:\n{}{}",
            report.duration.as_secs_f64(),
            report.output_bytes.div_ceil(BYTES_PER_TOKEN),
            lines.unwrap_or_default(),
            self.told_text(),
        ))
    }

    /// Returns the content, a note on repaired arguments, and the verdict if the model should read
    /// it.
    fn told(&self) -> Vec<Content> {
        let mut told = self.content.clone();
        if !self.receipt.repairs.is_empty() {
            let repairs = self.receipt.repairs.join("; ");
            let note = format!("Note: the arguments were repaired before the call ran: {repairs}\n");
            told.push(Content::Text(note));
        }
        told.extend(self.receipt.hook_notes.iter().map(|note| Content::Text(format!("Note of a {note}\n"))));
        if self.view.verdict {
            match told.last_mut() {
                Some(Content::Text(text)) if text.ends_with('\n') => text.push_str(&self.verdict.line()),
                _ => told.push(Content::Text(self.verdict.line())),
            }
        }
        told
    }

    fn told_text(&self) -> String {
        Content::join(&self.told())
    }
}

/// Returns seconds, rounded to one decimal.
fn tenths(time: Duration) -> f64 {
    let tenths = u32::try_from(time.as_millis().saturating_add(50) / 100).unwrap_or(u32::MAX);
    f64::from(tenths) / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Outcome, Verdict,
        outcome::{Receipt, View},
    };

    fn told(format: Format, exit: Exit, millis: u64, text: &str, total_lines: Option<u64>) -> String {
        let duration = Duration::from_millis(millis);
        let command = ProcessReport { duration, output_bytes: 3, ..ProcessReport::new(exit) };
        shown(format, Facts::Command(Box::new(command)), text, total_lines)
    }

    fn shown(format: Format, facts: Facts, text: &str, total_lines: Option<u64>) -> String {
        let outcome = Outcome {
            view: View { format, total_lines, verdict: false },
            facts,
            ..Outcome::plain(Verdict::success(), text)
        };
        Content::join(&outcome.for_model())
    }

    #[test]
    fn the_structured_form_is_what_models_know() {
        assert_eq!(
            told(Format::Structured, Exit::Code(0), 12, "a\"b\n", None),
            r#"{"output":"a\"b\n","metadata":{"exit_code":0,"duration_seconds":0.0}}"#
        );
        assert_eq!(
            told(Format::Structured, Exit::TimedOut, 2000, "x", Some(9)),
            r#"{"output":"Total output lines: 9\n\nx","metadata":{"exit_code":124,"duration_seconds":2.0}}"#
        );
    }

    #[test]
    fn the_freeform_form_counts_lines_only_when_some_are_gone() {
        assert_eq!(
            told(Format::Freeform, Exit::Code(3), 1049, "ok\n", None),
            "Exit code: 3\nWall time: 1 seconds\nOutput:\nok\n"
        );
        assert_eq!(
            told(Format::Freeform, Exit::Code(0), 80, "1\n…\n6\n", Some(6)),
            "Exit code: 0\nWall time: 0.1 seconds\nTotal output lines: 6\nOutput:\n1\n…\n6\n"
        );
        assert_eq!(
            told(Format::Freeform, Exit::Code(0), 0, "a…b", Some(1)),
            "Exit code: 0\nWall time: 0 seconds\nOutput:\na…b"
        );
    }

    #[test]
    fn what_was_repaired_is_told_after_the_content_whatever_the_form() {
        let outcome = |facts, format| Outcome {
            view: View { format, total_lines: None, verdict: false },
            facts,
            receipt: Receipt { repairs: vec!["`arguments.a`: null left out".into()], ..Receipt::default() },
            ..Outcome::plain(Verdict::success(), "ok")
        };
        let note = "Note: the arguments were repaired before the call ran: `arguments.a`: null left out\n";
        let plain = outcome(Facts::None, Format::Plain);
        assert_eq!(plain.for_model(), [Content::Text("ok".into()), Content::Text(note.into())]);
        let command = Box::new(ProcessReport { output_bytes: 2, ..ProcessReport::new(Exit::Code(0)) });
        let freeform = Content::join(&outcome(Facts::Command(command), Format::Freeform).for_model());
        assert!(freeform.ends_with(&format!("Output:\nok\n{note}")), "{freeform}");
    }

    #[test]
    fn a_session_says_how_it_is_before_what_it_printed() {
        let session = |exit, waits_for_input| {
            let duration = Duration::from_millis(1234);
            let report =
                ProcessReport { waits_for_input, duration, output_bytes: 9, ..ProcessReport::new(exit) };
            let chunk = "3fa9c1".into();
            Facts::Session(Box::new(SessionReport { session: 4711, started: true, chunk, report }))
        };
        assert_eq!(
            shown(Format::Session, session(Some(Exit::Code(3)), false), "ok\n", None),
            "Chunk ID: 3fa9c1\nWall time: 1.2340 seconds\nProcess exited with code 3\nOriginal token count: 3\n\
             Output:\nok\n"
        );
        assert_eq!(
            shown(Format::Session, session(None, true), "1\n…\n6\n", Some(6)),
            "Chunk ID: 3fa9c1\nWall time: 1.2340 seconds\nProcess running with session ID 4711\n\
             The program is waiting for input\nOriginal token count: 3\nOutput:\nTotal output lines: 6\n\n1\n…\n6\n"
        );
    }
}

//! Derives an insight from a result: the exit class, the first error, compiler diagnostics and test
//! reports. The input is facts and text that is already redacted, so an insight cannot leak a
//! secret.

mod class;
mod diagnostics;
mod file;
mod first_error;
mod language;
mod outline;
mod place;
mod report;
mod summary;

use windlass_contract::{
    Content,
    insight::{CommandInsight, Detail, ExitClass, Insight, Severity, TestReport},
    wording,
};

pub(crate) use class::{NOT_FOUND, class_of, unstarted};
pub use file::{File, Text};
pub use report::{junit, rerun};

/// Maximum number of bytes of a line that are parsed, unless the line is JSON.
const MAX_LINE_BYTES: usize = 1000;

/// Maximum length of a line quoted from an output.
const MAX_LINE_CHARS: usize = 300;

/// Builds the insight of a command from its exit class, its output, and the test report that a
/// runner may have written to files.
pub(crate) fn command(class: ExitClass, text: &str, written: Option<TestReport>) -> Insight {
    let failed = class != ExitClass::Ok;
    let tests = report::merge_written(written, text);
    let mut diagnostics = diagnostics::collect(text, failed);
    if tests.is_some() {
        // A failing test prints its location, which the report already has.
        diagnostics.first.retain(|diagnostic| diagnostic.tool != "python" && diagnostic.tool != "other");
        let count =
            |severity| diagnostics.first.iter().filter(|each| each.severity == severity).count() as u64;
        (diagnostics.errors, diagnostics.warnings) = (
            count(Severity::Error).min(diagnostics.errors),
            count(Severity::Warning).min(diagnostics.warnings),
        );
    }
    let diagnosed = summary::first_error(&diagnostics, tests.as_ref());
    let first_error = failed.then(|| diagnosed.or_else(|| first_error::find(text))).flatten();
    let detail = CommandInsight { class, first_error, diagnostics, tests };
    Insight { summary: summary::line(&detail), detail: Detail::Command(detail) }
}

/// Parses a test report from a runner's output and from the report it wrote to files. For tools
/// that need the report before the result is shaped. The shaper parses it again from redacted text.
pub fn tests_in(text: &str, written: Option<TestReport>) -> Option<TestReport> {
    report::merge_written(written, text)
}

/// Replaces the last text of a test result by a short report for the model. Keeps the text as well
/// if it may explain a failure that the report does not.
pub(crate) fn reported(insight: &Insight, mut content: Vec<Content>) -> Vec<Content> {
    let Detail::Command(CommandInsight { class, diagnostics, tests: Some(tests), .. }) = &insight.detail
    else {
        return content;
    };
    let report_suffices = *class == ExitClass::Ok
        || (*class == ExitClass::Failed && tests.failed > 0 && diagnostics.errors == 0);
    let report = Content::Text(summary::report(tests));
    match content.pop() {
        Some(output) if !report_suffices => content.extend([report, output]),
        Some(_) | None => content.push(report),
    }
    content
}

/// Returns the first [`MAX_LINE_BYTES`] bytes of a line.
fn head(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE_BYTES)]
}

/// Trims a line and cuts it to [`MAX_LINE_CHARS`] characters.
pub(crate) fn shortened(line: &str) -> String {
    wording::shortened(line.trim(), MAX_LINE_CHARS)
}

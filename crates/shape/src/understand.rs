//! What a result means: how a command ended, what went wrong first, what compilers and tests said. Derived from facts and
//! from text that is clean already, so that nothing gets out here that does not get out there.

mod class;
mod complaint;
mod diagnostics;
mod file;
mod language;
mod outline;
mod place;
mod report;
mod summary;

use windlass_contract::{
    Content,
    insight::{CommandInsight, Detail, ExitClass, Insight, Severity, TestReport},
};

use crate::cut::floor_boundary;

pub(crate) use class::{NOT_FOUND, class_of, unstarted};
pub use file::{File, Text};
pub use report::{junit, rerun};

/// How much of a line is looked at, unless it is JSON.
const LINE_BYTES: usize = 1000;

/// How long a line taken from an output may be.
const LINE_CHARS: usize = 300;

/// What came of a command that ended like this and printed that, and perhaps wrote into files what became of tests.
pub(crate) fn command(class: ExitClass, text: &str, written: Option<TestReport>) -> Insight {
    let failed = class != ExitClass::Ok;
    let tests = report::with(written, text);
    let mut diagnostics = diagnostics::of(text, failed);
    if tests.is_some() {
        // A test that fails prints where it was: that is in the report already.
        diagnostics.first.retain(|diagnostic| diagnostic.tool != "python" && diagnostic.tool != "other");
        let count =
            |severity| diagnostics.first.iter().filter(|each| each.severity == severity).count() as u64;
        (diagnostics.errors, diagnostics.warnings) = (
            count(Severity::Error).min(diagnostics.errors),
            count(Severity::Warning).min(diagnostics.warnings),
        );
    }
    let told = summary::first_error(&diagnostics, tests.as_ref());
    let first_error = failed.then(|| told.or_else(|| complaint::first(text))).flatten();
    let detail = CommandInsight { class, first_error, diagnostics, tests };
    Insight { summary: summary::line(&detail), detail: Detail::Command(detail) }
}

/// What became of tests, by what their runner printed and what it wrote into files. For tools that must know before the result
/// is shaped; what goes out is read again when it is clean.
pub fn tests_in(text: &str, written: Option<TestReport>) -> Option<TestReport> {
    report::with(written, text)
}

/// A result of tests as a model is told it: the last text is replaced by a report, unless it may hold what went wrong.
pub(crate) fn reported(insight: &Insight, mut content: Vec<Content>) -> Vec<Content> {
    let Detail::Command(CommandInsight { class, diagnostics, tests: Some(tests), .. }) = &insight.detail
    else {
        return content;
    };
    let told = *class == ExitClass::Ok
        || (*class == ExitClass::Failed && tests.failed > 0 && diagnostics.errors == 0);
    let report = Content::Text(summary::report(tests));
    match content.pop() {
        Some(output) if !told => content.extend([report, output]),
        Some(_) | None => content.push(report),
    }
    content
}

/// As much of a line as is looked at.
fn head(line: &str) -> &str {
    &line[..floor_boundary(line, line.len().min(LINE_BYTES))]
}

/// The beginning of a line, without what surrounds it.
pub(crate) fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

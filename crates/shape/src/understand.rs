//! What a result means: how a command ended, and what went wrong first. Derived from facts and from text that is clean
//! already, so that nothing gets out here that does not get out there.

mod class;
mod complaint;

use windlass_contract::{CommandInsight, Detail, Diagnostics, ExitClass, Insight};

pub(crate) use class::{class_of, unstarted};

/// How long a line taken from an output may be.
const LINE_CHARS: usize = 300;

/// What came of a command that ended like this and printed that.
pub(crate) fn command(class: ExitClass, text: &str) -> Insight {
    let first_error = (class != ExitClass::Ok).then(|| complaint::first(text)).flatten();
    let detail = CommandInsight { class, first_error, diagnostics: Diagnostics::default(), tests: None };
    Insight { summary: summary(&detail), detail: Detail::Command(detail) }
}

/// One line about a command.
fn summary(command: &CommandInsight) -> String {
    let how = command.class.name().replace('_', " ");
    match &command.first_error {
        Some(error) => format!("{how}: {error}"),
        None => how,
    }
}

/// The beginning of a line, without what surrounds it.
fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

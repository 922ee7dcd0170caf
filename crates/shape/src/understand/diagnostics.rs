//! What compilers and linters said, found in what they printed. One pass over the lines; each reader knows one form.

mod eslint;
mod located;
mod python;
mod rustc;

use serde::Deserialize;
use windlass_contract::insight::{Diagnostic, Diagnostics, Severity};

/// How many are given with their text.
const TOLD: usize = 50;

/// Knows one form of diagnostics.
trait Reader {
    /// Whether the line belongs to this form. What it tells goes into `found`.
    fn read(&mut self, line: &str, found: &mut Found) -> bool;
}

/// All diagnostics of an output. `sure` says whether something is known to have gone wrong: then anything that names a
/// place in a file is taken for a complaint.
pub(super) fn of(text: &str, sure: bool) -> Diagnostics {
    let mut found = Found::default();
    let mut readers: [Box<dyn Reader>; 4] = [
        Box::new(python::Python::default()),
        Box::new(eslint::Eslint::default()),
        Box::new(located::Located { sure }),
        Box::new(rustc::Rustc::default()),
    ];
    let mut read = |line: &str| {
        for reader in &mut readers {
            if reader.read(line, &mut found) {
                break;
            }
        }
    };
    for line in text.lines() {
        match wrapped(line) {
            Some(Wrapped { output }) => read(output.trim_end()),
            None => read(line),
        }
    }
    found.finish()
}

/// A line of a compiler that `go test -json` has wrapped.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wrapped {
    output: String,
}

fn wrapped(line: &str) -> Option<Wrapped> {
    line.starts_with(r#"{"ImportPath":"#).then(|| serde_json::from_str(line).ok()).flatten()
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    more_errors: u64,
    more_warnings: u64,
}

impl Found {
    /// One more. Builds tell some twice: for a library and for its tests.
    fn push(&mut self, diagnostic: Diagnostic) {
        let (list, more) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, &mut self.more_errors),
            Severity::Warning => (&mut self.warnings, &mut self.more_warnings),
        };
        if list.contains(&diagnostic) {
            return;
        }
        if list.len() < TOLD { list.push(diagnostic) } else { *more += 1 }
    }

    /// Takes the last error back: what follows is what came of it.
    fn retract_error(&mut self) {
        self.errors.pop();
    }

    fn finish(self) -> Diagnostics {
        let count = |list: &[Diagnostic], more: u64| list.len() as u64 + more;
        let errors = count(&self.errors, self.more_errors);
        let warnings = count(&self.warnings, self.more_warnings);
        let first = self.errors.into_iter().chain(self.warnings).take(TOLD).collect();
        Diagnostics { errors, warnings, first }
    }
}

/// The severity a text begins with, and what follows the word.
fn severity(text: &str) -> Option<(Severity, &str)> {
    for (word, severity) in [
        ("error", Severity::Error),
        ("fatal error", Severity::Error),
        ("Error", Severity::Error),
        ("warning", Severity::Warning),
        ("Warning", Severity::Warning),
    ] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((severity, rest));
        }
    }
    None
}

//! Parses the diagnostics of compilers and linters from their output. It makes one pass over the
//! lines; each reader knows one format.

mod eslint;
mod located;
mod python;
mod rustc;

use serde::Deserialize;
use windlass_contract::insight::{Diagnostic, Diagnostics, Severity};

/// Maximum number of diagnostics kept with their text.
const MAX_DIAGNOSTICS: usize = 50;

/// Parses one format of diagnostics. Implemented by the readers of this module and called once per
/// line by [`collect`].
trait DiagnosticReader {
    /// Returns true if the line belongs to this format. Adds the diagnostics it completes to
    /// `found`.
    fn read(&mut self, line: &str, found: &mut DiagnosticCollector) -> bool;
}

/// Collects all diagnostics of an output. If the command `failed`, any line that names a place in a
/// file counts as an error.
pub(super) fn collect(text: &str, failed: bool) -> Diagnostics {
    let mut found = DiagnosticCollector::default();
    let mut readers: [Box<dyn DiagnosticReader>; 4] = [
        Box::new(python::TracebackReader::default()),
        Box::new(eslint::EslintReader::default()),
        Box::new(located::LocatedLineReader { failed }),
        Box::new(rustc::RustcReader::default()),
    ];
    let mut read = |line: &str| {
        for reader in &mut readers {
            if reader.read(line, &mut found) {
                break;
            }
        }
    };
    for line in text.lines() {
        match go_build_output(line) {
            Some(GoBuildOutput { output }) => read(output.trim_end()),
            None => read(line),
        }
    }
    found.finish()
}

/// A compiler line wrapped by `go test -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoBuildOutput {
    output: String,
}

fn go_build_output(line: &str) -> Option<GoBuildOutput> {
    line.starts_with(r#"{"ImportPath":"#).then(|| serde_json::from_str(line).ok()).flatten()
}

/// Collects diagnostics, without duplicates and up to a maximum.
#[derive(Default)]
struct DiagnosticCollector {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    more_errors: u64,
    more_warnings: u64,
}

impl DiagnosticCollector {
    /// Adds a diagnostic. Duplicates are dropped: cargo reports some twice, for a library and for
    /// its tests.
    fn push(&mut self, diagnostic: Diagnostic) {
        let (list, more) = match diagnostic.severity {
            Severity::Error => (&mut self.errors, &mut self.more_errors),
            Severity::Warning => (&mut self.warnings, &mut self.more_warnings),
        };
        if list.contains(&diagnostic) {
            return;
        }
        if list.len() < MAX_DIAGNOSTICS { list.push(diagnostic) } else { *more += 1 }
    }

    /// Removes the last error, because the next one is the exception that it caused.
    fn retract_error(&mut self) {
        self.errors.pop();
    }

    fn finish(self) -> Diagnostics {
        let count = |list: &[Diagnostic], more: u64| list.len() as u64 + more;
        let errors = count(&self.errors, self.more_errors);
        let warnings = count(&self.warnings, self.more_warnings);
        let first = self.errors.into_iter().chain(self.warnings).take(MAX_DIAGNOSTICS).collect();
        Diagnostics { errors, warnings, first }
    }
}

/// Parses the severity that a text begins with. Returns it with the rest of the text.
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

//! Parses rustc and clippy diagnostics that cargo prints, as text and as JSON. Ruff's long format
//! is the same.

use serde::Deserialize;
use windlass_contract::insight::{Diagnostic, Place, Severity};

use super::{DiagnosticCollector, DiagnosticReader, severity};
use crate::understand::{head, place, shortened};

/// Parses a heading and the arrow below it.
#[derive(Default)]
pub(super) struct RustcReader {
    heading: Option<Diagnostic>,
}

impl DiagnosticReader for RustcReader {
    fn read(&mut self, line: &str, found: &mut DiagnosticCollector) -> bool {
        if line.starts_with(r#"{"reason":"compiler-message""#) {
            if let Some(diagnostic) = found_in_json(line) {
                found.push(diagnostic);
            }
            return true;
        }
        let line = head(line);
        let Some(place) = line.trim_start().strip_prefix("--> ") else {
            self.heading = heading(line);
            return self.heading.is_some();
        };
        // A second arrow belongs to the diagnostic of the first one.
        if let (Some(heading), Some(place)) = (self.heading.take(), place::alone(place)) {
            found.push(Diagnostic { place, ..heading });
        }
        true
    }
}

/// Parses `error[E0308]: message`, `warning: message`, or ruff's `F401 [*] message`.
fn heading(line: &str) -> Option<Diagnostic> {
    let made = |tool: &str, severity, code: Option<&str>, message: &str| Diagnostic {
        tool: tool.to_owned(),
        severity,
        place: Place::default(),
        code: code.map(str::to_owned),
        message: shortened(message),
    };
    if let Some((severity, rest)) = severity(line) {
        let (code, message) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            Some((code, message)) => (Some(code), message),
            None => (None, rest.strip_prefix(": ")?),
        };
        return Some(made("rustc", severity, code, message));
    }
    let (code, message) = line.split_once(' ')?;
    let named =
        code.starts_with(|c: char| c.is_ascii_uppercase()) && code.ends_with(|c: char| c.is_ascii_digit());
    named.then(|| made("ruff", Severity::Error, Some(code), message.trim_start_matches("[*] ")))
}

/// A line of `--message-format=json`.
#[derive(Deserialize)]
struct CargoMessage {
    message: RustcMessage,
}

#[derive(Deserialize)]
struct RustcMessage {
    level: String,
    message: String,
    code: Option<RustcCode>,
    spans: Vec<RustcSpan>,
}

#[derive(Deserialize)]
struct RustcCode {
    code: String,
}

#[derive(Deserialize)]
struct RustcSpan {
    file_name: String,
    line_start: u32,
    column_start: u32,
    is_primary: bool,
}

fn found_in_json(line: &str) -> Option<Diagnostic> {
    let CargoMessage { message } = serde_json::from_str(line).ok()?;
    let (severity, _) = severity(&message.level)?;
    let span = message.spans.iter().find(|span| span.is_primary)?;
    Some(Diagnostic {
        tool: "rustc".to_owned(),
        severity,
        place: place::at(&span.file_name, span.line_start, Some(span.column_start)),
        code: message.code.map(|code| code.code),
        message: shortened(&message.message),
    })
}

//! Parses ESLint: the default format, with a file name above its problems, and JSON.

use serde::Deserialize;
use windlass_contract::insight::{Diagnostic, Severity};

use super::{DiagnosticCollector, DiagnosticReader, severity};
use crate::understand::{head, place, shortened};

/// Parses a file name and the rows below it.
#[derive(Default)]
pub(super) struct EslintReader {
    file: Option<String>,
}

impl DiagnosticReader for EslintReader {
    fn read(&mut self, line: &str, found: &mut DiagnosticCollector) -> bool {
        if line.starts_with(r#"[{"filePath":"#) {
            found_in_json(line, found);
            return true;
        }
        let line = head(line);
        if !line.starts_with("  ") {
            // ESLint prints absolute paths.
            let from_root = line.starts_with('/') || line.get(1..3) == Some(":\\");
            self.file = (from_root && place::is_file(line)).then(|| line.to_owned());
            return false;
        }
        let row = self.file.as_deref().and_then(|file| row(file, line.trim_start()));
        row.map(|diagnostic| found.push(diagnostic)).is_some()
    }
}

/// `1:5  warning  'a' is never used  no-unused-vars`
fn row(file: &str, text: &str) -> Option<Diagnostic> {
    let (line, rest) = place::number(text)?;
    let (column, rest) = place::number(rest.strip_prefix(':')?)?;
    let (severity, rest) = severity(rest.trim_start())?;
    let rest = rest.strip_prefix("  ")?.trim();
    let (message, code) = match rest.rsplit_once("  ") {
        Some((message, code)) => (message.trim_end(), Some(code.to_owned())),
        None => (rest, None),
    };
    let place = place::at(file, line, Some(column));
    Some(Diagnostic { tool: "eslint".to_owned(), severity, place, code, message: shortened(message) })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EslintFile {
    file_path: String,
    messages: Vec<EslintMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EslintMessage {
    rule_id: Option<String>,
    severity: u8,
    message: String,
    #[serde(default)]
    line: u32,
    column: Option<u32>,
}

fn found_in_json(line: &str, found: &mut DiagnosticCollector) {
    let files: Vec<EslintFile> = serde_json::from_str(line).unwrap_or_default();
    for EslintFile { file_path, messages } in files {
        for EslintMessage { rule_id, severity, message, line, column } in messages {
            found.push(Diagnostic {
                tool: "eslint".to_owned(),
                severity: if severity > 1 { Severity::Error } else { Severity::Warning },
                place: place::at(&file_path, line, column),
                code: rule_id,
                message: shortened(&message),
            });
        }
    }
}

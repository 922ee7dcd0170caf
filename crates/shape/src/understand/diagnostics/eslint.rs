//! ESLint: its usual form, where a file's name stands above its problems, and JSON.

use serde::Deserialize;
use windlass_contract::insight::{Diagnostic, Severity};

use super::{Found, Reader, severity};
use crate::understand::{head, place, shortened};

/// Reads a file's name and the rows below it.
#[derive(Default)]
pub(super) struct Eslint {
    file: Option<String>,
}

impl Reader for Eslint {
    fn read(&mut self, line: &str, found: &mut Found) -> bool {
        if line.starts_with(r#"[{"filePath":"#) {
            found_in_json(line, found);
            return true;
        }
        let line = head(line);
        if !line.starts_with("  ") {
            // It names files from the root on.
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
struct File {
    file_path: String,
    messages: Vec<Problem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    rule_id: Option<String>,
    severity: u8,
    message: String,
    #[serde(default)]
    line: u32,
    column: Option<u32>,
}

fn found_in_json(line: &str, found: &mut Found) {
    let files: Vec<File> = serde_json::from_str(line).unwrap_or_default();
    for File { file_path, messages } in files {
        for Problem { rule_id, severity, message, line, column } in messages {
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

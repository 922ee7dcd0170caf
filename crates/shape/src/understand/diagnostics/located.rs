//! Parses lines that begin with a place: gcc, clang, go, tsc, javac, mypy, flake8, ruff, rustc's
//! short format, and tools that print alike.

use windlass_contract::insight::{Diagnostic, Place, Severity};

use super::{DiagnosticCollector, DiagnosticReader, severity};
use crate::understand::{head, place, shortened};

/// Parses `file:line:column: message` and its variants.
pub(super) struct LocatedLineReader {
    /// True if the command failed. Then a line needs no word such as `error`.
    pub(super) failed: bool,
}

impl DiagnosticReader for LocatedLineReader {
    fn read(&mut self, line: &str, found: &mut DiagnosticCollector) -> bool {
        let line = head(line);
        let line = line.strip_prefix("vet: ").or_else(|| line.strip_prefix("[ERROR] ")).unwrap_or(line);
        let diagnostic = parenthesised(line).or_else(|| self.colons(line));
        diagnostic.map(|diagnostic| found.push(diagnostic)).is_some()
    }
}

impl LocatedLineReader {
    /// Parses `file:line:column: error: message`. The word may be missing if the column is present.
    fn colons(&self, line: &str) -> Option<Diagnostic> {
        place::colon(line)?;
        if let Some(pretty) = dashed(line) {
            return Some(pretty);
        }
        let (place, rest) = place::leading(line)?;
        let rest = rest.strip_prefix(' ')?;
        if let Some((severity, rest)) = severity(rest) {
            let (code, message) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
                Some((code, message)) => (Some(code), message),
                None => trailing_code(rest.strip_prefix(':')?.trim()),
            };
            return Some(diagnostic(place, severity, code, message));
        }
        place.column?;
        if let (Some(code), message) = trailing_code(rest)
            && let Some((level, rule)) = code.split_once('/')
            && let Some((severity, "")) = severity(level)
        {
            return Some(Diagnostic {
                tool: "eslint".to_owned(),
                ..diagnostic(place, severity, Some(rule), message)
            });
        }
        if let Some((code, message)) = rest.split_once(' ').filter(|(code, _)| is_code(code)) {
            let severity = if code.starts_with('W') { Severity::Warning } else { Severity::Error };
            return Some(diagnostic(place, severity, Some(code), message.trim_start_matches("[*] ")));
        }
        let is_error = self.failed || place::extension(&place) == "go";
        let comment = rest.starts_with("note:") || rest.starts_with("help:");
        (is_error && !comment && !rest.is_empty()).then(|| diagnostic(place, Severity::Error, None, rest))
    }
}

/// Parses `file(line,column): error CODE: message` and Maven's `file:[line,column] message`.
fn parenthesised(line: &str) -> Option<Diagnostic> {
    let (file, rest) = line.split_once(['(', '['])?;
    let maven = file.strip_suffix(':');
    let file = maven.unwrap_or(file);
    let (number, rest) = place::number(rest)?;
    let (column, rest) = place::number(rest.strip_prefix(',')?)?;
    let place = place::is_file(file).then(|| place::at(file, number, Some(column)))?;
    if maven.is_some() {
        return Some(diagnostic(place, Severity::Error, None, rest.strip_prefix("] ")?));
    }
    coded(place, rest.strip_prefix("): ")?)
}

/// Parses `file:line:column - error CODE: message`.
fn dashed(line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.split_once(" - ")?;
    coded(place::alone(place)?, rest)
}

/// Parses `error CODE: message`.
fn coded(place: Place, text: &str) -> Option<Diagnostic> {
    let (severity, rest) = severity(text)?;
    let (code, message) = rest.strip_prefix(' ')?.split_once(": ")?;
    is_code(code).then(|| diagnostic(place, severity, Some(code), message))
}

/// Splits off a code in brackets at the end, such as `[-Wunused]`.
fn trailing_code(text: &str) -> (Option<&str>, &str) {
    let found = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    match found.filter(|(_, code)| !code.is_empty() && !code.contains(' ')) {
        Some((message, code)) => (Some(code), message.trim_end()),
        None => (None, text),
    }
}

/// Returns true if a word names a rule, such as `TS2322`, `E501` or `CS1002`.
fn is_code(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = word.len() - letters;
    (1..=8).contains(&letters)
        && (1..=6).contains(&digits)
        && word[letters..].bytes().all(|byte| byte.is_ascii_digit())
}

fn diagnostic(place: Place, severity: Severity, code: Option<&str>, message: &str) -> Diagnostic {
    let tool = match place::extension(&place) {
        "rs" => "rustc",
        "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "m" | "mm" => "gcc",
        "go" => "go",
        "py" | "pyi" => "python",
        "ts" | "tsx" | "mts" | "cts" => "tsc",
        "java" => "javac",
        _ => "other",
    };
    let code = code.map(str::to_owned);
    Diagnostic { tool: tool.to_owned(), severity, place, code, message: shortened(message) }
}

//! Parses Python tracebacks: the last frame outside libraries, and the exception.

use windlass_contract::insight::{Diagnostic, Place, Severity};

use super::{DiagnosticCollector, DiagnosticReader};
use crate::understand::{head, place, shortened};

/// Path fragments of files that do not belong to the project.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "<"];

/// Parses tracebacks.
#[derive(Default)]
pub(super) struct TracebackReader {
    traceback: Option<PythonTraceback>,
    /// True if the next traceback was caused by the previous one.
    chained: bool,
}

struct PythonTraceback {
    /// Indentation of its heading.
    indent: usize,
    /// The last frame, and the last frame in the project.
    last: Option<Place>,
    in_project: Option<Place>,
}

impl DiagnosticReader for TracebackReader {
    fn read(&mut self, line: &str, found: &mut DiagnosticCollector) -> bool {
        let line = head(line);
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("Traceback (most recent call last):") {
            self.traceback = Some(PythonTraceback { indent, last: None, in_project: None });
            return true;
        }
        if text.starts_with("The above exception was the direct cause")
            || text.starts_with("During handling of the above exception")
        {
            self.chained = true;
            return true;
        }
        if let Some(frame) = frame(text) {
            // A syntax error prints a frame without a heading.
            let traceback = self.traceback.get_or_insert(PythonTraceback {
                indent: indent.saturating_sub(2),
                last: None,
                in_project: None,
            });
            if !LIBRARIES.iter().any(|part| frame.file.as_deref().is_some_and(|file| file.contains(part))) {
                traceback.in_project = Some(frame.clone());
            }
            traceback.last = Some(frame);
            return true;
        }
        let Some(traceback) = &self.traceback else { return false };
        if text.is_empty() || indent > traceback.indent {
            return true;
        }
        let Some(PythonTraceback { last, in_project, .. }) = self.traceback.take() else { return false };
        if std::mem::take(&mut self.chained) {
            found.retract_error();
        }
        let (code, message) = raised(text);
        let place = in_project.or(last).unwrap_or_default();
        let tool = "python".to_owned();
        found.push(Diagnostic { tool, severity: Severity::Error, place, code, message });
        true
    }
}

/// Parses `File "a.py", line 3, in f`.
fn frame(text: &str) -> Option<Place> {
    let (file, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = place::number(rest)?;
    Some(place::at(file, line, None))
}

/// Parses `NameError: message`. Drops the module path of the exception.
fn raised(text: &str) -> (Option<String>, String) {
    let (name, message) = text.split_once(": ").unwrap_or((text, ""));
    let name = name.rsplit('.').next().unwrap_or(name);
    if name.contains(' ') {
        return (None, shortened(text));
    }
    (Some(name.to_owned()), shortened(message))
}

//! Python's tracebacks: the last frame that is not in a library, and what was raised.

use windlass_contract::insight::{Diagnostic, Place, Severity};

use super::{Found, Reader};
use crate::understand::{head, place, shortened};

/// Parts of paths that are not of the project.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "<"];

/// Reads tracebacks.
#[derive(Default)]
pub(super) struct Python {
    traceback: Option<Traceback>,
    /// Whether the next traceback is what came of the last one.
    chained: bool,
}

struct Traceback {
    /// How far its heading is indented.
    indent: usize,
    /// The last frame, and the last one of the project.
    last: Option<Place>,
    own: Option<Place>,
}

impl Reader for Python {
    fn read(&mut self, line: &str, found: &mut Found) -> bool {
        let line = head(line);
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("Traceback (most recent call last):") {
            self.traceback = Some(Traceback { indent, last: None, own: None });
            return true;
        }
        if text.starts_with("The above exception was the direct cause")
            || text.starts_with("During handling of the above exception")
        {
            self.chained = true;
            return true;
        }
        if let Some(frame) = frame(text) {
            // Of a syntax error there is only the frame.
            let traceback = self.traceback.get_or_insert(Traceback {
                indent: indent.saturating_sub(2),
                last: None,
                own: None,
            });
            if !LIBRARIES.iter().any(|part| frame.file.as_deref().is_some_and(|file| file.contains(part))) {
                traceback.own = Some(frame.clone());
            }
            traceback.last = Some(frame);
            return true;
        }
        let Some(traceback) = &self.traceback else { return false };
        if text.is_empty() || indent > traceback.indent {
            return true;
        }
        let Some(Traceback { last, own, .. }) = self.traceback.take() else { return false };
        if std::mem::take(&mut self.chained) {
            found.retract_error();
        }
        let (code, message) = raised(text);
        let place = own.or(last).unwrap_or_default();
        let tool = "python".to_owned();
        found.push(Diagnostic { tool, severity: Severity::Error, place, code, message });
        true
    }
}

/// `File "a.py", line 3, in f`
fn frame(text: &str) -> Option<Place> {
    let (file, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = place::number(rest)?;
    Some(place::at(file, line, None))
}

/// `NameError: message`, without the modules the error is from.
fn raised(text: &str) -> (Option<String>, String) {
    let (name, message) = text.split_once(": ").unwrap_or((text, ""));
    let name = name.rsplit('.').next().unwrap_or(name);
    if name.contains(' ') {
        return (None, shortened(text));
    }
    (Some(name.to_owned()), shortened(message))
}

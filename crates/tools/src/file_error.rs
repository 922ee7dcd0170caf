//! What a model is told when the machine's files do not do what it wants.

use windlass_contract::{ErrorKind, FileError, ToolError};

/// A failure behind words the models know.
pub(crate) fn failed(words: &str, error: FileError) -> ToolError {
    match error {
        FileError::Cancelled => ToolError::cancelled(),
        FileError::Denied(ref denial) => {
            let (kind, message) = (ErrorKind::Denied(denial.clone()), format!("{words}: {error}"));
            ToolError { kind, message, source: Some(Box::new(error)) }
        }
        other => ToolError::failed(format!("{words}: {other}")).with_source(other),
    }
}

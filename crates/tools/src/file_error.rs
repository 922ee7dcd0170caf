//! Words file errors for the model.

use std::io;

use windlass_contract::{ToolError, files::FileError, tool::ErrorKind};

/// Returns a failure that begins with words the models know.
pub(crate) fn failed(words: &str, error: FileError) -> ToolError {
    with_message(format!("{words}: {error}"), error)
}

/// Returns a failure with its kind and this message.
pub(crate) fn with_message(message: String, error: FileError) -> ToolError {
    match error {
        FileError::Cancelled => ToolError::cancelled(),
        error => ToolError::new(kind(&error), message).with_source(error),
    }
}

fn kind(error: &FileError) -> ErrorKind {
    match error {
        FileError::Denied(denial) => ErrorKind::Denied(denial.clone()),
        FileError::NotFound { .. } | FileError::Gone { .. } => ErrorKind::NotFound,
        FileError::NoPermission { .. } => ErrorKind::NoPermission,
        FileError::Io { source, .. } => system_kind(source),
        FileError::Cancelled => ErrorKind::Cancelled,
        FileError::IsDirectory { .. }
        | FileError::NotADirectory { .. }
        | FileError::NotAFile { .. }
        | FileError::NotGranted { .. }
        | FileError::Nul
        | FileError::TooLong { .. }
        | FileError::Loop { .. }
        | FileError::Pattern(_) => ErrorKind::Failed,
    }
}

/// Returns the kind of a system error.
pub(crate) fn system_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::NoPermission,
        io::ErrorKind::TimedOut => ErrorKind::TimedOut,
        _ => ErrorKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_decides_the_kind() {
        let path = || "a".into();
        let system = |kind: io::ErrorKind| FileError::Io { path: path(), source: kind.into() };
        for (error, kind) in [
            (FileError::NotFound { path: path() }, ErrorKind::NotFound),
            (FileError::NoPermission { path: path() }, ErrorKind::NoPermission),
            (system(io::ErrorKind::PermissionDenied), ErrorKind::NoPermission),
            (system(io::ErrorKind::TimedOut), ErrorKind::TimedOut),
            (system(io::ErrorKind::StorageFull), ErrorKind::Failed),
            (FileError::IsDirectory { path: path() }, ErrorKind::Failed),
            (FileError::Cancelled, ErrorKind::Cancelled),
        ] {
            let told = error.to_string();
            let failed = failed("failed to read file", error);
            assert_eq!(failed.kind, kind, "{told}");
            assert!(
                failed.kind == ErrorKind::Cancelled
                    || failed.message == format!("failed to read file: {told}")
            );
        }
    }
}

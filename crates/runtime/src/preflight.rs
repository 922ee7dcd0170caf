//! Checks for errors that are known before a question is asked or a command is run.

use windlass_contract::{Effects, ToolError};

/// Checks the effects of a call.
pub(crate) fn check(effects: &Effects) -> Result<(), ToolError> {
    if let Some(command) = &effects.command {
        if command.argv.first().is_none_or(String::is_empty) {
            return Err(ToolError::bad_input("the command is empty; give at least a program to run"));
        }
        if command.argv.iter().any(|word| word.contains('\0')) {
            return Err(ToolError::bad_input(
                "the command contains a NUL byte, which no program can be given",
            ));
        }
    }
    let paths = effects.reads.iter().chain(&effects.writes);
    if paths.into_iter().any(|path| path.as_os_str().as_encoded_bytes().contains(&0)) {
        return Err(ToolError::bad_input("a path contains a NUL byte, which no file name can have"));
    }
    Ok(())
}

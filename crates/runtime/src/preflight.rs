//! What can be known to go wrong before anyone is asked or anything is run.

use windlass_contract::{Effects, ToolCall, ToolError};

/// The largest input a call may have. No tool needs more, and everything after this copies it.
const MAX_INPUT_BYTES: usize = 16 * 1024 * 1024;

/// Looks before leaping.
pub(crate) fn check(call: &ToolCall, effects: &Effects) -> Result<(), ToolError> {
    let bytes = call.input.as_str().len();
    if bytes > MAX_INPUT_BYTES {
        let text = format!(
            "the input has {bytes} bytes, more than the {MAX_INPUT_BYTES} a call may have; split the work"
        );
        return Err(ToolError::bad_input(text));
    }
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

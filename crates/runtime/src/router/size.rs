//! What is too much of an input to look at: told before anything is made of it.

use windlass_contract::{Input, ToolError};

/// More than any model writes into one call, and as much as is checked in a second or so.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// As deep as JSON is read.
const DEEPEST: usize = 128;

/// Refuses an input that would take long to look at.
pub(super) fn check(input: &Input) -> Result<(), ToolError> {
    let text = input.as_str();
    if text.len() > MOST_BYTES {
        return Err(ToolError::bad_input(format!(
            "the arguments are {} bytes long, and at most {MOST_BYTES} are read; nothing was run: send less at once",
            text.len()
        )));
    }
    if !matches!(input, Input::Text(_)) && is_too_deep(text) {
        return Err(ToolError::bad_input(format!(
            "the arguments are nested deeper than {DEEPEST} levels; nothing was run: send them flat"
        )));
    }
    Ok(())
}

/// Whether brackets outside of strings are open too deep at once.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: String) -> Option<String> {
        check(&Input::Json(text)).err().map(|error| error.message)
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_told_and_what_only_looks_so_is_not() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(complaint(nested(DEEPEST)), None);
        assert!(complaint(nested(DEEPEST + 1)).is_some_and(|told| told.contains("deeper than 128")));
        assert_eq!(complaint(format!("{{\"a\":\"{}\\\"[\"}}", "[{".repeat(500))), None);
        assert_eq!(complaint("[],".repeat(500)), None);
        assert!(complaint("x".repeat(MOST_BYTES + 1)).is_some_and(|told| told.contains("4194305 bytes")));
        assert!(check(&Input::Text("[".repeat(500))).is_ok(), "a patch is no JSON");
    }
}

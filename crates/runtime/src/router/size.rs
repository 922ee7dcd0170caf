//! Refuses inputs that are too large or too deep, before they are parsed.

use windlass_contract::{Input, ToolError, call::MAX_INPUT_BYTES};

/// Maximum depth of nested JSON.
const MAX_DEPTH: usize = 128;

/// Refuses an input that would take long to check.
pub(super) fn check(input: &Input) -> Result<(), ToolError> {
    let text = input.as_str();
    if text.len() > MAX_INPUT_BYTES {
        return Err(ToolError::bad_input(format!(
            "the arguments are {} bytes long, and at most {MAX_INPUT_BYTES} are read; nothing was run: send less at once",
            text.len()
        )));
    }
    if !matches!(input, Input::Text(_)) && is_too_deep(text) {
        return Err(ToolError::bad_input(format!(
            "the arguments are nested deeper than {MAX_DEPTH} levels; nothing was run: send them flat"
        )));
    }
    Ok(())
}

/// Returns true if brackets outside of strings are nested too deep.
fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > MAX_DEPTH {
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
        assert_eq!(complaint(nested(MAX_DEPTH)), None);
        assert!(complaint(nested(MAX_DEPTH + 1)).is_some_and(|told| told.contains("deeper than 128")));
        assert_eq!(complaint(format!("{{\"a\":\"{}\\\"[\"}}", "[{".repeat(500))), None);
        assert_eq!(complaint("[],".repeat(500)), None);
        assert!(
            complaint("x".repeat(MAX_INPUT_BYTES + 1)).is_some_and(|told| told.contains("4194305 bytes"))
        );
        assert!(check(&Input::Text("[".repeat(500))).is_ok(), "a patch is no JSON");
    }
}

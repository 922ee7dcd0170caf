//! Output on stdout.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use windlass::host::stdout_was_closed;

use crate::{exit::ProgramExit, problem::CliProblem, screen::visible, streamed_text::StreamedText, wrap};

/// Writes a result. A reader that closes early, as with `| head`, is not an error.
pub(crate) fn print(text: &str) -> Result<ProgramExit, CliProblem> {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { escape_obeyed(text) } else { Cow::Borrowed(text) };
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Escapes the characters that JSON may contain and a terminal would obey. Other text has none: it
/// was made visible before. The value of the JSON stays the same.
pub(crate) fn escape_obeyed(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Writes text for a person: on a terminal, lines are wrapped between words.
pub(crate) fn print_text(text: &str) -> Result<ProgramExit, CliProblem> {
    match wrap::stdout_columns() {
        Some(columns) => print(&wrap::wrap_text(text, columns)),
        None => print(text),
    }
}

/// Writes an answer: unchanged for programs, and without control sequences on a terminal.
pub(crate) fn print_answer(answer: &str) -> Result<ProgramExit, CliProblem> {
    if io::stdout().is_terminal() {
        return print(&answer.lines().map(|line| format!("{}\n", visible(line))).collect::<String>());
    }
    let newline = if answer.ends_with('\n') || answer.is_empty() { "" } else { "\n" };
    print(&format!("{answer}{newline}"))
}

/// Writes an answer in prose, which a terminal gets wrapped at words.
pub(crate) fn print_prose(answer: &str) -> Result<ProgramExit, CliProblem> {
    let Some(columns) = wrap::stdout_columns() else { return print_answer(answer) };
    let mut text = StreamedText::default();
    let mut lines = text.push(answer.trim_end(), columns);
    lines.push(text.partial().to_owned());
    print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// Turns the result of writing into an exit code or a problem.
pub(crate) fn written(result: io::Result<()>) -> Result<ProgramExit, CliProblem> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliProblem::failed(format!("cannot write to stdout: {error}")))
        }
        Ok(()) | Err(_) => Ok(ProgramExit::Done),
    }
}

/// Fails early if the result could not be printed.
pub(crate) fn check() -> Result<(), CliProblem> {
    if stdout_was_closed() {
        return Err(CliProblem::failed(
            "stdout is closed, so nothing was done; use `>/dev/null` to discard the output",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_means_the_same() {
        let json = serde_json::json!({"text": "a\u{9b}31m\u{202e}b\u{2066} é 文"});
        let escaped = escape_obeyed(&json.to_string()).into_owned();
        assert!(escaped.contains(r"a\u009b31m\u202eb\u2066 é 文"), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), json);
    }
}

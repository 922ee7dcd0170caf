//! Output on stdout.

use std::io::{self, IsTerminal, Write};

use windlass::host::stdout_was_closed;

use crate::{exit::ProgramExit, problem::CliProblem, screen::visible, streamed_text::StreamedText, wrap};

/// Writes a result. A reader that closes early, as with `| head`, is not an error.
pub(crate) fn print(text: &str) -> Result<ProgramExit, CliProblem> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
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

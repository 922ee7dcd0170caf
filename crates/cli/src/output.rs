//! What goes to stdout.

use std::io::{self, IsTerminal, Write};

use windlass::host::stdout_was_closed;

use crate::{exit::Exit, problem::Problem, screen::visible};

/// Writes a result. A reader that has seen enough, as with `| head`, is no problem.
pub(crate) fn print(text: &str) -> Result<Exit, Problem> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes an answer: as it is for programs, and on a terminal so that it cannot give the terminal orders.
pub(crate) fn print_answer(answer: &str) -> Result<Exit, Problem> {
    if io::stdout().is_terminal() {
        return print(&answer.lines().map(|line| format!("{}\n", visible(line))).collect::<String>());
    }
    let newline = if answer.ends_with('\n') || answer.is_empty() { "" } else { "\n" };
    print(&format!("{answer}{newline}"))
}

/// What came of writing.
pub(crate) fn written(result: io::Result<()>) -> Result<Exit, Problem> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Problem::failed(format!("cannot write to stdout: {error}")))
        }
        Ok(()) | Err(_) => Ok(Exit::Done),
    }
}

/// Refuses to do anything whose result could not be told.
pub(crate) fn check() -> Result<(), Problem> {
    if stdout_was_closed() {
        return Err(Problem::failed(
            "stdout is closed, so nothing was done; use `>/dev/null` to drop the output",
        ));
    }
    Ok(())
}

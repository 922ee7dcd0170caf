//! A yes-or-no question. An interrupt is a no.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{QueueSelector, tcflush},
};
use tokio::sync::oneshot;
use windlass::Stop;

use crate::{problem::CliProblem, wrap::wrap_for_stderr};

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfirmAnswer {
    Yes,
    No,
    /// They pressed Ctrl-C instead.
    Interrupted,
}

/// Returns true if a person at a terminal can be asked.
pub(crate) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns the reason that no question about a call can be asked, if there is one.
pub(crate) fn obstacle_to_asking(no_input: bool) -> Option<&'static str> {
    let is_ci = std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    match (no_input, is_ci, is_attended()) {
        (true, ..) => Some("of `--no-input`"),
        (false, true, _) => Some("`CI` is set"),
        (false, false, false) => Some("there is no terminal"),
        (false, false, true) => None,
    }
}

/// Discards typed keys: they are not an answer to the next question.
pub(crate) fn forget_typed() -> Result<(), CliProblem> {
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(|error| cannot_ask(&error.into()))
}

/// Returns true if the person at the terminal agrees. Without a terminal, the error shows
/// `otherwise`.
pub(crate) fn agrees(question: &str, otherwise: &str) -> Result<bool, CliProblem> {
    if !is_attended() {
        return Err(CliProblem::usage(format!("there is no terminal to ask on; {otherwise}")));
    }
    let mut line = String::new();
    io::stderr()
        .lock()
        .write_all(wrap_for_stderr(question).as_bytes())
        .and_then(|()| io::stdin().read_line(&mut line))
        .map_err(|error| CliProblem::failed(format!("cannot ask: {error}")))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks at the terminal. Signals must be watched for.
pub(crate) async fn confirm(question: &str, stop: &Stop) -> Result<ConfirmAnswer, CliProblem> {
    io::stderr()
        .lock()
        .write_all(wrap_for_stderr(question).as_bytes())
        .map_err(|error| cannot_ask(&error))?;
    let (answer, given) = oneshot::channel();
    let cancelled = stop.clone();
    // A thread, because a blocking read cannot be cancelled.
    thread::spawn(move || await_line(&cancelled).then(|| answer.send(read_line())));
    tokio::select! {
        biased;
        _reason = stop.stopped() => {
            // After the echo of the keys.
            io::stderr().lock().write_all(b"\n").map_err(|error| cannot_ask(&error))?;
            Ok(ConfirmAnswer::Interrupted)
        }
        given = given => {
            let line = given.map_err(|_| CliProblem::failed("cannot ask: nothing was read"))?;
            let line = line.map_err(|error| cannot_ask(&error))?;
            let is_yes = matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
            Ok(if is_yes { ConfirmAnswer::Yes } else { ConfirmAnswer::No })
        }
    }
}

/// Waits until a line was typed. Returns false if the question was cancelled: an interactive
/// session that asked it reads on, and must not lose keys to it.
pub(crate) fn await_line(stop: &Stop) -> bool {
    let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let stdin = io::stdin();
    while stop.reason().is_none() {
        // If it cannot be watched, the read reports the error.
        if poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&pause)) != Ok(0) {
            return stop.reason().is_none();
        }
    }
    false
}

/// Reads a line. Input in another encoding than UTF-8 is accepted, as far as it matters.
pub(crate) fn read_line() -> io::Result<String> {
    let mut line = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn cannot_ask(error: &io::Error) -> CliProblem {
    CliProblem::failed(format!("cannot ask: {error}"))
}

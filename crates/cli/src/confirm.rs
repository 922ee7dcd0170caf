//! A question to which the answer is yes or no. An interrupt is a no.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    thread,
};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;
use windlass::Stop;

use crate::problem::Problem;

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    Yes,
    No,
    /// They pressed Ctrl-C instead.
    Interrupted,
}

/// Whether someone is there to be asked.
pub(crate) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Forgets what was typed so far: it is no answer to a question that comes now.
pub(crate) fn forget_typed() -> Result<(), Problem> {
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(|error| cannot_ask(&error.into()))
}

/// Asks at the terminal. Signals must be watched for.
pub(crate) async fn confirm(question: &str, stop: &Stop) -> Result<Confirmation, Problem> {
    io::stderr().lock().write_all(question.as_bytes()).map_err(|error| cannot_ask(&error))?;
    let (answer, given) = oneshot::channel();
    // A thread, because nothing else can be left while it waits for a person. It ends with the process.
    thread::spawn(move || answer.send(read_line()));
    tokio::select! {
        biased;
        _reason = stop.stopped() => {
            // After what the terminal shows of the keys.
            io::stderr().lock().write_all(b"\n").map_err(|error| cannot_ask(&error))?;
            Ok(Confirmation::Interrupted)
        }
        given = given => {
            let line = given.map_err(|_| Problem::failed("cannot ask: nothing was read"))?;
            let line = line.map_err(|error| cannot_ask(&error))?;
            let is_yes = matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
            Ok(if is_yes { Confirmation::Yes } else { Confirmation::No })
        }
    }
}

/// Whoever types in another encoding is understood all the same, as far as it matters.
fn read_line() -> io::Result<String> {
    let mut line = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn cannot_ask(error: &io::Error) -> Problem {
    Problem::failed(format!("cannot ask: {error}"))
}

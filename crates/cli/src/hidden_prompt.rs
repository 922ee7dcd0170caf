//! A question at the terminal whose answer is not shown.

use std::{
    io::{self, Read, Write},
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::{runtime::Runtime, sync::oneshot};
use windlass::{Stop, host::Window};

use crate::{interrupts, problem::CliProblem};

/// Maximum length of an answer.
const MAX_BYTES: usize = 64 * 1024;

const INTERRUPT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;
const KILL_LINE: u8 = 0x15;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// Asks on stderr and reads from the terminal on stdin. Returns `None` if the person pressed
/// Ctrl-C, or Ctrl-D on an empty line, or if a signal asked the process to end. The terminal is
/// restored in any case.
pub(crate) fn ask(question: &str) -> Result<Option<String>, CliProblem> {
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::default())?;
    let runtime = crate::runtime()?;
    let answer = ask_until(question, &stop, &runtime);
    // The thread that reads may still wait.
    runtime.shutdown_background();
    answer.map_err(|error| CliProblem::failed(format!("cannot ask: {error}")))
}

fn ask_until(question: &str, stop: &Stop, runtime: &Runtime) -> io::Result<Option<String>> {
    let hidden = HiddenInput::start()?;
    io::stderr().write_all(question.as_bytes())?;
    let (answer, given) = oneshot::channel();
    // A thread, because a blocking read cannot be cancelled. It ends with the process.
    thread::spawn(move || answer.send(read_line(&mut io::stdin().lock())));
    let answer = runtime.block_on(async {
        tokio::select! {
            given = given => given.unwrap_or(Ok(None)),
            _reason = stop.stopped() => Ok(None),
        }
    });
    drop(hidden);
    io::stderr().write_all(b"\n")?;
    answer
}

/// Switches off echo, and signals by keys: a process that such a signal ends would leave the
/// terminal without echo.
struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        // Keys typed before the question are dropped: they were shown.
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

fn read_line(input: &mut impl Read) -> io::Result<Option<String>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match input.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match byte[0] {
            INTERRUPT => return Ok(None),
            END_OF_INPUT if line.is_empty() => return Ok(None),
            b'\r' | b'\n' | END_OF_INPUT => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            KILL_LINE => line.clear(),
            key if BACKSPACE.contains(&key) => drop(line.pop()),
            key if line.len() < MAX_BYTES => line.push(key),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line_and_interrupts_give_none() {
        let read = |keys: &str| read_line(&mut keys.as_bytes()).unwrap();
        assert_eq!(read("sk-1\r").as_deref(), Some("sk-1"));
        assert_eq!(read("x\u{15}sk-3\u{7f}2\n").as_deref(), Some("sk-2"));
        assert_eq!(read("sk-1\u{4}").as_deref(), Some("sk-1"));
        assert_eq!((read("sk-1\u{3}"), read("\u{4}"), read("sk")), (None, None, None));
    }
}

//! A program in a pseudo-terminal, read back through an emulator.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Maximum time until a text appears.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// The request for the position of the cursor, which a terminal answers.
const POSITION_REQUEST: &[u8] = b"\x1b[6n";

/// The sequence that hides the cursor, once in each picture that a session draws.
const PICTURE: &[u8] = b"\x1b[?25l";

/// A program in a terminal. It is killed when it is dropped.
pub(crate) struct TerminalRecorder {
    master: File,
    shown: Arc<Mutex<ShownOutput>>,
    child: Option<Child>,
}

/// What the program has written so far.
struct ShownOutput {
    parser: vt100::Parser,
    /// The times at which pictures were drawn.
    pictures: Vec<Instant>,
}

impl TerminalRecorder {
    /// Starts a program in a terminal of so many rows and columns.
    pub(crate) fn start(program: &Command, (rows, columns): (u16, u16)) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&master, Vec::new())?;
        let terminal = File::options().read(true).write(true).open(&*name.to_string_lossy())?;
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args());
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("COLORFGBG", "15;0").env_remove("NO_COLOR");
        if let Some(directory) = program.get_current_dir() {
            command.current_dir(directory);
        }
        command.stdin(Stdio::from(terminal.try_clone()?)).stdout(Stdio::from(terminal.try_clone()?));
        let child = command.stderr(Stdio::from(terminal)).spawn()?;
        let parser = vt100::Parser::new(rows, columns, 0);
        let shown = Arc::new(Mutex::new(ShownOutput { parser, pictures: Vec::new() }));
        let (source, kept) = (master.try_clone()?, Arc::clone(&shown));
        thread::spawn(move || interpret(source, &kept));
        Ok(Self { master: File::from(master), shown, child: Some(child) })
    }

    pub(crate) fn type_in(&mut self, keys: &str) -> io::Result<()> {
        self.master.write_all(keys.as_bytes())
    }

    /// Waits until the screen shows a text.
    pub(crate) fn wait_for(&self, text: &str) -> io::Result<()> {
        let deadline = Instant::now() + MAX_WAIT;
        while !self.screen().contents().contains(text) {
            if Instant::now() > deadline {
                let screen = self.screen().contents();
                return Err(io::Error::other(format!("no `{text}` on the screen:\n{screen}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns what the terminal shows now.
    pub(crate) fn screen(&self) -> vt100::Screen {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).parser.screen().clone()
    }

    /// Returns the most pictures in any second.
    pub(crate) fn most_pictures(&self) -> usize {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let times = &shown.pictures;
        let within = |start: &Instant| {
            times.iter().filter(|time| *time >= start && **time < *start + Duration::from_secs(1)).count()
        };
        times.iter().map(within).max().unwrap_or(0)
    }

    /// Takes the process, which the caller then waits for.
    pub(crate) fn take_child(&mut self) -> Option<Child> {
        self.child.take()
    }
}

impl Drop for TerminalRecorder {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}

/// Interprets what the program writes, and answers where the cursor is.
fn interpret(source: OwnedFd, shown: &Mutex<ShownOutput>) {
    let mut terminal = File::from(source);
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.parser.process(&bytes[..count]);
        let drawn = bytes[..count].windows(PICTURE.len()).filter(|part| *part == PICTURE).count();
        shown.pictures.extend((0..drawn).map(|_| Instant::now()));
        if bytes[..count].windows(POSITION_REQUEST.len()).any(|part| part == POSITION_REQUEST) {
            let (row, column) = shown.parser.screen().cursor_position();
            // The program that asked may have ended.
            let _gone = write!(terminal, "\x1b[{};{}R", row + 1, column + 1);
        }
    }
}

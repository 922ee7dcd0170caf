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

/// A program in a terminal. It is killed when it is dropped.
pub(super) struct Recorder {
    master: File,
    parser: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Recorder {
    /// Starts a program in a terminal of so many rows and columns.
    pub(super) fn start(program: &Command, (rows, columns): (u16, u16)) -> io::Result<Self> {
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
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (source, shown) = (master.try_clone()?, Arc::clone(&parser));
        thread::spawn(move || interpret(source, &shown));
        Ok(Self { master: File::from(master), parser, child })
    }

    pub(super) fn type_in(&mut self, keys: &str) -> io::Result<()> {
        self.master.write_all(keys.as_bytes())
    }

    /// Waits until the screen shows a text.
    pub(super) fn wait_for(&self, text: &str) -> io::Result<()> {
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
    pub(super) fn screen(&self) -> vt100::Screen {
        self.parser.lock().unwrap_or_else(PoisonError::into_inner).screen().clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Interprets what the program writes, and answers where the cursor is.
fn interpret(source: OwnedFd, parser: &Mutex<vt100::Parser>) {
    let mut terminal = File::from(source);
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let mut parser = parser.lock().unwrap_or_else(PoisonError::into_inner);
        parser.process(&bytes[..count]);
        if bytes[..count].windows(POSITION_REQUEST.len()).any(|part| part == POSITION_REQUEST) {
            let (row, column) = parser.screen().cursor_position();
            // The program that asked may have ended.
            let _gone = write!(terminal, "\x1b[{};{}R", row + 1, column + 1);
        }
    }
}

//! A terminal with the program in it, read back as a person sees it.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize},
};

use super::FOREVER;

/// The request for the position of the cursor, which a terminal answers.
const POSITION_REQUEST: &[u8] = b"\x1b[6n";

/// A pseudo-terminal whose output is interpreted. The program is killed when it is dropped.
pub(crate) struct Emulator {
    master: Arc<OwnedFd>,
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
    child: Child,
}

impl Emulator {
    /// Starts a program in a terminal of this size, as its controlling terminal.
    pub(crate) fn start(program: &Command, (rows, columns): (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        set_size(&master, rows, columns);
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color");
        command.current_dir(program.get_current_dir().unwrap());
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let master = Arc::new(master);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let (read, shown) = (Arc::clone(&master), Arc::clone(&parser));
        thread::spawn(move || interpret(&read, &shown));
        Self { master, slave, parser, child }
    }

    pub(crate) fn type_in(&self, keys: &str) {
        File::from(self.master.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    /// Reads nothing of what the program writes for a while, as a terminal that hangs.
    pub(crate) fn while_hanging(&self, work: impl FnOnce()) {
        let _held = self.parser.lock().unwrap();
        work();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(rows, columns);
        set_size(&self.master, rows, columns);
    }

    /// The visible lines, without blanks at their ends.
    pub(crate) fn screen(&self) -> String {
        let parser = self.parser.lock().unwrap();
        let (_, columns) = parser.screen().size();
        parser.screen().rows(0, columns).map(|row| format!("{}\n", row.trim_end())).collect()
    }

    /// All lines that the terminal keeps, from the beginning of its scrollback.
    pub(crate) fn scrollback(&self) -> Vec<String> {
        let mut parser = self.parser.lock().unwrap();
        let screen = parser.screen_mut();
        let (rows, columns) = screen.size();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut lines = Vec::new();
        for first in (0..above).step_by(rows.into()) {
            screen.set_scrollback(above - first);
            let shown = usize::from(rows).min(above - first);
            lines.extend(screen.rows(0, columns).take(shown).map(|row| row.trim_end().to_owned()));
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, columns).map(|row| row.trim_end().to_owned()));
        lines
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        self.until_screen(text, |screen| screen.contains(text))
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub(crate) fn until_screen(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + FOREVER / 2;
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no `{what}` on the screen:\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the terminal echoes and collects lines, as a shell left it.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes: Termios = tcgetattr(&self.slave).unwrap();
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Whether modes beyond the kernel's are off: the cursor is visible, a paste is not marked, and
    /// the alternate screen is not in use.
    pub(crate) fn is_plain(&self) -> bool {
        let parser = self.parser.lock().unwrap();
        let screen = parser.screen();
        !screen.hide_cursor() && !screen.bracketed_paste() && !screen.alternate_screen()
    }

    pub(crate) fn signal(&self, name: &str) {
        super::signal(&self.child, name);
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + FOREVER / 2;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                // What was written last may not be interpreted yet.
                thread::sleep(Duration::from_millis(100));
                return status.code();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the program hangs:\n{}", self.screen());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn set_size(master: impl AsFd, rows: u16, columns: u16) {
    tcsetwinsize(master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

/// Interprets what the program writes, and answers where the cursor is.
fn interpret(master: &OwnedFd, parser: &Mutex<vt100::Parser>) {
    let mut terminal = File::from(master.try_clone().unwrap());
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let mut parser = parser.lock().unwrap();
        parser.process(&bytes[..count]);
        if bytes[..count].windows(POSITION_REQUEST.len()).any(|part| part == POSITION_REQUEST) {
            let (row, column) = parser.screen().cursor_position();
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            terminal.write_all(answer.as_bytes()).unwrap();
        }
    }
}

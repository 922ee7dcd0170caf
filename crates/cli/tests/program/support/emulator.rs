//! A terminal with the program in it, read back as a person sees it.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{
        Action, LocalModes, OptionalActions, Termios, Winsize, tcflow, tcgetattr, tcsetattr, tcsetwinsize,
    },
};

use super::FOREVER;

/// The request for the position of the cursor, which a terminal answers.
const POSITION_REQUEST: &[u8] = b"\x1b[6n";

/// The request for the colour of the background, and the answer of a terminal whose is white.
const BACKGROUND_REQUEST: &[u8] = b"\x1b]11;?";
const LIGHT_BACKGROUND: &[u8] = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\";

/// The smallest size that the interpreter takes. The terminal itself may be smaller.
const MIN_SIZE: (u16, u16) = (5, 20);

/// A pseudo-terminal whose output is interpreted. The program is killed when it is dropped.
pub(crate) struct Emulator {
    /// Nothing if it was closed.
    master: Option<OwnedFd>,
    slave: File,
    parser: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    is_closing: Arc<AtomicBool>,
    child: Child,
    /// The settings of the line discipline at the start.
    before: String,
}

impl Emulator {
    /// Starts a program in a terminal of this size, as its controlling terminal.
    pub(crate) fn start(program: &Command, (rows, columns): (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        set_size(&master, rows, columns);
        let before = format!("{:?}", tcgetattr(&slave).unwrap());
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm-256color");
        }
        command.current_dir(program.get_current_dir().unwrap());
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let parser =
            Arc::new(Mutex::new(vt100::Parser::new(rows.max(MIN_SIZE.0), columns.max(MIN_SIZE.1), 1000)));
        let is_closing = Arc::new(AtomicBool::new(false));
        let read = File::from(master.try_clone().unwrap());
        let written = Arc::new(Mutex::new(Vec::new()));
        let (shown, closing, kept) = (Arc::clone(&parser), Arc::clone(&is_closing), Arc::clone(&written));
        let reader = Some(thread::spawn(move || interpret(read, &shown, &closing, &kept)));
        Self { master: Some(master), slave, parser, written, reader, is_closing, child, before }
    }

    /// Closes the terminal, as when its window is closed.
    pub(crate) fn close(&mut self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        self.master = None;
    }

    /// Everything that the program wrote, before it was interpreted.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// The processor time that the program has used, in ticks of the kernel.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    }

    /// Whether the settings of the line discipline are those of the start, every one of them.
    pub(crate) fn is_as_before(&self) -> bool {
        format!("{:?}", tcgetattr(&self.slave).unwrap()) == self.before
    }

    fn master(&self) -> &OwnedFd {
        self.master.as_ref().unwrap()
    }

    pub(crate) fn type_in(&self, keys: &str) {
        File::from(self.master().try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    /// Reads nothing of what the program writes for a while, as a terminal that hangs.
    pub(crate) fn while_hanging(&self, work: impl FnOnce()) {
        let _held = self.parser.lock().unwrap();
        work();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(rows.max(MIN_SIZE.0), columns.max(MIN_SIZE.1));
        set_size(self.master(), rows, columns);
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

    /// The foreground colour of the first place where the screen shows a text.
    pub(crate) fn colour_of(&self, text: &str) -> Option<vt100::Color> {
        let parser = self.parser.lock().unwrap();
        let (_, columns) = parser.screen().size();
        let mut rows = parser.screen().rows(0, columns).enumerate();
        let (row, column) = rows.find_map(|(row, shown)| {
            let at = shown.find(text)?;
            Some((row, shown[..at].chars().count()))
        })?;
        let place = |number: usize| u16::try_from(number).unwrap();
        Some(parser.screen().cell(place(row), place(column))?.fgcolor())
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
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        match self.await_end() {
            Some(status) => {
                // What was written last may not be interpreted yet.
                thread::sleep(Duration::from_millis(100));
                status.code()
            }
            None => panic!("the program hangs:\n{}", self.screen()),
        }
    }

    /// Sends a signal while nothing reads what the program writes. Returns the exit code.
    #[track_caller]
    pub(crate) fn end_while_hanging(&mut self, signal: &str) -> Option<i32> {
        let parser = Arc::clone(&self.parser);
        let _held = parser.lock().unwrap();
        self.signal(signal);
        self.await_end().expect("the program hangs with its terminal").code()
    }

    /// Stops the output of the terminal, as Ctrl-S does at a shell.
    pub(crate) fn stop_output(&self) {
        tcflow(&self.slave, Action::OOff).unwrap();
    }

    /// Changes the modes as a shell does while the program is stopped.
    pub(crate) fn cook(&self) {
        let mut modes = tcgetattr(&self.slave).unwrap();
        modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(&self.slave, OptionalActions::Now, &modes).unwrap();
    }

    fn await_end(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + FOREVER / 2;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
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
fn interpret(
    mut terminal: File,
    parser: &Mutex<vt100::Parser>,
    is_closing: &AtomicBool,
    written: &Mutex<Vec<u8>>,
) {
    let mut bytes = [0; 4096];
    let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !is_closing.load(Ordering::SeqCst) {
        if poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&pause)) == Ok(0) {
            continue;
        }
        let Ok(count @ 1..) = terminal.read(&mut bytes) else { return };
        let mut parser = parser.lock().unwrap();
        parser.process(&bytes[..count]);
        written.lock().unwrap().extend_from_slice(&bytes[..count]);
        let asks = |request: &[u8]| bytes[..count].windows(request.len()).any(|part| part == request);
        if asks(BACKGROUND_REQUEST) {
            terminal.write_all(LIGHT_BACKGROUND).unwrap();
        }
        if asks(POSITION_REQUEST) {
            let (row, column) = parser.screen().cursor_position();
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            terminal.write_all(answer.as_bytes()).unwrap();
        }
    }
}

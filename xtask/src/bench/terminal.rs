//! What an interactive session costs, in a pseudo-terminal that answers as an emulator does.

use std::{
    ffi::CStr,
    fs::{self, File},
    io::{Read, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::process::{self, Cost};

/// A flood, then output at a pace that is faster than a screen.
const SCRIPT: &str = r#"{"turns": [
{"calls": [{"name": "shell_command", "arguments": {"command": "seq 1 100000"}}]},
{"calls": [{"name": "shell_command", "arguments": {"command": "for i in $(seq 400); do echo $i; sleep 0.004; done"}}]},
{"text": "It is done."}]}"#;

const FULL_ACCESS: [&str; 4] = ["-s", "danger-full-access", "-a", "never"];

/// Time during which an idle session is watched.
const IDLE_TIME: Duration = Duration::from_secs(3);

/// Far more than a session needs.
const MAX_TIME: Duration = Duration::from_mins(1);

/// The sequence that hides the cursor, once in each picture.
const PICTURE: &[u8] = b"\x1b[?25l";
const POSITION_REQUEST: &[u8] = b"\x1b[6n";

/// The costs of the same turn in a session and without one.
pub(super) struct TerminalCosts {
    pub(super) session: Cost,
    pub(super) exec: Cost,
    /// Processor time of the session while it was idle.
    pub(super) idle_cpu: Duration,
    /// The most pictures in any second.
    pub(super) pictures: usize,
}

/// Measures a session.
pub(super) fn measure(binary: &Path) -> Result<TerminalCosts, Vec<String>> {
    let directory = Directory::create().map_err(|error| vec![format!("cannot make a directory: {error}")])?;
    let script = directory.0.join("script.json").to_string_lossy().into_owned();
    let home = directory.0.join("home").to_string_lossy().into_owned();
    let arguments = [&["exec", "--script", &script], &FULL_ACCESS[..], &["go"]].concat();
    let exec = process::run_with(binary, &arguments, &[("WINDLASS_HOME", &home)], &directory.0)?;
    let failed = |error: std::io::Error| vec![format!("cannot use a pseudo-terminal: {error}")];
    let terminal = Terminal::open().map_err(failed)?;
    let began = Instant::now();
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(binary).args(["chat", "--script", &script]).args(FULL_ACCESS);
    command.current_dir(&directory.0).env("WINDLASS_HOME", &home).env("TERM", "xterm-256color");
    let stream = || Ok::<_, std::io::Error>(Stdio::from(terminal.slave.try_clone()?));
    command.stdin(stream().map_err(failed)?).stdout(stream().map_err(failed)?);
    let child = command.stderr(stream().map_err(failed)?).spawn().map_err(failed)?;
    terminal.until("network off")?;
    terminal.write("go\r").map_err(failed)?;
    terminal.until("It is done.")?;
    thread::sleep(Duration::from_secs(1));
    let before = cpu_ticks(child.id());
    thread::sleep(IDLE_TIME);
    let idle_cpu = Duration::from_millis(10 * cpu_ticks(child.id()).saturating_sub(before));
    terminal.write("\x04").map_err(failed)?;
    let session =
        process::end(child.id(), began).map_err(|status| vec![format!("chat ended with {status:#x}")])?;
    Ok(TerminalCosts { session, exec, idle_cpu, pictures: terminal.most_pictures() })
}

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn create() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("windlass-bench-terminal-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let directory = Self(path);
        fs::write(directory.0.join("script.json"), SCRIPT)?;
        Ok(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// User and system time of a process, in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// A pseudo-terminal and everything that was written to it.
struct Terminal {
    master: File,
    slave: File,
    written: Arc<Mutex<Written>>,
}

#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    pictures: Vec<Instant>,
}

impl Terminal {
    fn open() -> std::io::Result<Self> {
        let master = File::options().read(true).write(true).open("/dev/ptmx")?;
        let mut name = [0; 64];
        let size = libc::winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let fd = master.as_raw_fd();
        // SAFETY: the descriptor is open for the whole call, the buffer has the length that is
        // given, and the size is a live value of the type that the request reads.
        let is_ready = unsafe {
            libc::unlockpt(fd) == 0
                && libc::ptsname_r(fd, name.as_mut_ptr(), name.len()) == 0
                && libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) == 0
        };
        if !is_ready {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the call above has ended the name with a zero byte within the buffer.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let slave = File::options().read(true).write(true).open(name)?;
        let written = Arc::<Mutex<Written>>::default();
        let (read, kept) = (master.try_clone()?, Arc::clone(&written));
        thread::spawn(move || interpret(read, &kept));
        Ok(Self { master, slave, written })
    }

    fn write(&self, keys: &str) -> std::io::Result<()> {
        (&self.master).write_all(keys.as_bytes())
    }

    /// Waits for a text.
    fn until(&self, text: &str) -> Result<(), Vec<String>> {
        let deadline = Instant::now() + MAX_TIME;
        while Instant::now() < deadline {
            let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            // The screen is drawn in parts, so a text is looked for word by word.
            let text_is_there = text.split(' ').all(|word| contains(&written.bytes, word.as_bytes()));
            drop(written);
            if text_is_there {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(vec![format!("the session never showed `{text}`")])
    }

    fn most_pictures(&self) -> usize {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let times = &written.pictures;
        let within = |start: &Instant| {
            times.iter().filter(|time| *time >= start && **time < *start + Duration::from_secs(1)).count()
        };
        times.iter().map(within).max().unwrap_or(0)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Keeps what is written, and answers where the cursor is.
fn interpret(mut terminal: File, written: &Mutex<Written>) {
    let mut bytes = vec![0; 65536];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        let part = &bytes[..count];
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let pictures = part.windows(PICTURE.len()).filter(|window| *window == PICTURE).count();
        written.pictures.extend((0..pictures).map(|_| Instant::now()));
        written.bytes.extend_from_slice(part);
        drop(written);
        if contains(part, POSITION_REQUEST) && terminal.write_all(b"\x1b[1;1R").is_err() {
            return;
        }
    }
}

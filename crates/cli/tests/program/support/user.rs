//! A user at a shell: a home, a directory to work in, and the program.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Server, Wire};

/// Far more than anything here needs: whoever gets here hangs.
pub(crate) const FOREVER: Duration = Duration::from_mins(1);

/// The option without which no command runs.
pub(crate) const FULL_ACCESS: [&str; 2] = ["--sandbox", "danger-full-access"];

/// Everything one user has. Gone when dropped.
pub(crate) struct User {
    root: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["home", "work"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        Self { root }
    }

    /// The home directory of the program.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Where the program is started.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work").canonicalize().unwrap()
    }

    /// Writes a file into the working directory, and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.work().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// What is in a file of the working directory; nothing, if it is not there.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// A script of model turns; the path to give to `--script`.
    pub(crate) fn script(&self, turns: &Value) -> String {
        self.file("script.json", json!({"turns": turns}).to_string())
    }

    pub(crate) fn configure(&self, toml: &str) {
        fs::write(self.home().join("config.toml"), toml).unwrap();
    }

    /// Makes a server the user's model. One try more each, so that failures come soon.
    pub(crate) fn use_server(&self, server: &Server, wire: Wire) {
        self.configure(&format!(
            "model_provider = \"test\"\nmodel = \"m\"\n[model_providers.test]\nbase_url = \"{}\"\nwire_api = \"{}\"\n\
             request_max_retries = 1\nstream_max_retries = 1\n",
            server.url(),
            wire.name(),
        ));
    }

    /// The program, not yet started.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_windlass"));
        command.args(args);
        command
    }

    /// The program as a line for a shell at a terminal, not yet started. Both outputs come out of
    /// the terminal.
    pub(crate) fn program_on_a_terminal(&self, line: &str) -> Command {
        self.shell_on_a_terminal(&format!("$windlass {line}"))
    }

    /// A line for a shell at a terminal, in which `$windlass` is the program, not yet started.
    pub(crate) fn shell_on_a_terminal(&self, line: &str) -> Command {
        let mut command = self.command("script");
        command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
        command.env("windlass", env!("CARGO_BIN_EXE_windlass"));
        command
    }

    /// A line for a shell, in which `$windlass` is the program, not yet started.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", line]).env("windlass", env!("CARGO_BIN_EXE_windlass"));
        command
    }

    /// A program that inherits nothing of the test's environment, nor which signals are ignored
    /// there: tests may run in the background, or under `nohup`.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,QUIT", "--", program]);
        command.current_dir(self.work()).stdin(Stdio::null()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("SHELL", "/bin/sh");
        command.env("HOME", self.root.path()).env("WINDLASS_HOME", self.home());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        Running::start(self.program(args)).end()
    }

    /// Runs the program with something on its stdin.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ended {
        let mut command = self.program(args);
        command.stdin(Stdio::piped());
        Running::start(command).feed(input).end()
    }

    /// Starts the program.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(self.program(args))
    }

    /// A named pipe in the working directory.
    pub(crate) fn named_pipe(&self, name: &str) -> Pipe {
        let path = self.work().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Pipe(path)
    }

    /// The session files, oldest first.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let mut level = vec![self.home().join("sessions")];
        for _ in 0..4 {
            level = level.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().map(path).collect();
        }
        // A killed process leaves its name behind.
        level.retain(|path| path.extension().is_none_or(|extension| extension != "holder"));
        level.sort();
        level
    }

    /// The records of the one session there is.
    pub(crate) fn records(&self) -> Vec<Value> {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        lines(&fs::read_to_string(&sessions[0]).unwrap())
    }
}

fn path(entry: std::io::Result<fs::DirEntry>) -> PathBuf {
    entry.unwrap().path()
}

/// JSON lines.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// The program while it runs. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    is_on_a_terminal: bool,
}

/// Longer than the time in which a question takes no input.
const READING_TIME: Duration = Duration::from_millis(600);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let is_on_a_terminal = command.get_args().any(|word| word == "script");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr, is_on_a_terminal }
    }

    /// Writes something to its stdin, which must be a pipe, and closes it.
    pub(crate) fn feed(mut self, input: &[u8]) -> Self {
        self.read();
        // A program that does not want it may be gone already.
        let _gone = self.child.stdin.take().unwrap().write_all(input);
        self
    }

    /// Writes something to its stdin, which must be a pipe and stays open.
    pub(crate) fn type_in(&mut self, keys: &str) {
        self.read();
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Reads what is on a terminal before typing, as a person does.
    fn read(&self) {
        if self.is_on_a_terminal {
            thread::sleep(READING_TIME);
        }
    }

    /// Waits for a line on stderr that holds this text.
    pub(crate) fn until_stderr(&mut self, text: &str) -> String {
        self.stderr.until(text)
    }

    /// Waits for a line on stdout that holds this text.
    pub(crate) fn until_stdout(&mut self, text: &str) -> String {
        self.stdout.until(text)
    }

    /// The next line on stdout, if there is one.
    pub(crate) fn next_stdout(&mut self) -> Option<String> {
        self.stdout.next()
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        let status = self.child.wait().unwrap();
        Ended { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// How the program ended and all it said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The code it ended with; what it said is shown if it is another.
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Its last line on stderr.
    pub(crate) fn last_word(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }

    /// Its events, under `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        lines(&self.stdout)
    }
}

/// What comes out of a pipe, read by a thread so that the program never waits for the test.
struct Lines {
    coming: Receiver<String>,
    seen: String,
}

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let (send, coming) = mpsc::channel();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { coming, seen: String::new() }
    }

    fn next(&mut self) -> Option<String> {
        match self.coming.recv_timeout(FOREVER) {
            Ok(line) => {
                self.seen.push_str(&line);
                Some(line)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program hangs after: {}", self.seen),
        }
    }

    fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.next().unwrap_or_else(|| panic!("no `{text}` in: {}", self.seen));
            if line.contains(text) {
                return line;
            }
        }
    }

    fn rest(&mut self) -> String {
        while self.next().is_some() {}
        std::mem::take(&mut self.seen)
    }
}

/// Sends a signal, by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// A named pipe, to hear from a command how far it is.
pub(crate) struct Pipe(PathBuf);

impl Pipe {
    /// Waits for someone to write something and close it.
    pub(crate) fn hear(&self) -> String {
        self.listen().wait()
    }

    /// Begins to read. Whoever opens the pipe for writing waits for that.
    pub(crate) fn listen(&self) -> Heard {
        let (send, heard) = mpsc::channel();
        let path = self.0.clone();
        thread::spawn(move || send.send(fs::read_to_string(path).unwrap()));
        Heard(heard)
    }

    /// Writes something for whoever reads.
    pub(crate) fn say(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }
}

/// What is being heard.
pub(crate) struct Heard(Receiver<String>);

impl Heard {
    /// Waits until nobody has the pipe open for writing any more.
    pub(crate) fn wait(self) -> String {
        self.0.recv_timeout(FOREVER).expect("someone closes the pipe")
    }
}

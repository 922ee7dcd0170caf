//! The machine as a tool may use it: hosts, sandboxes, commands, sessions.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, Effects, Grant,
    files::{Files, NoFiles},
    grant::{Confinement, Held},
    report::ProcessReport,
};

/// A machine confined to one [`Grant`]. Implemented by `host` (and by fakes in tests), used by
/// tools through [`Cx`](crate::Cx). An implementation must never do more than the grant it was made
/// from.
pub trait Host: Send + Sync {
    /// Runs a command to its end, its time limit, or cancellation. Afterwards the whole process
    /// tree is gone. The default is for hosts that start no processes.
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        let (_, _, error) = (cancel, output, not_granted(command));
        Box::pin(async { Err(error) })
    }

    /// Like [`run`](Self::run), but also keeps the output of each stream. Simultaneous writes to
    /// both streams may change their order. A host that cannot separate them leaves
    /// [`FinishedCommand::apart`] empty.
    fn run_apart<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        self.run(command, cancel, output)
    }

    /// Returns the files that the grant allows. The default has none.
    fn files(&self) -> &dyn Files {
        &NoFiles
    }

    /// Starts a command that may outlive this call. The default is for hosts without sessions.
    fn open<'a>(
        &'a self,
        command: &'a Command,
        input: Keyboard,
        output: Listener,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, HostError>> {
        let (_, _, error) = (input, output, not_granted(command));
        Box::pin(async { Err(error) })
    }

    /// Keeps the output of a tool in full if it is longer than a model is shown, as the outputs of
    /// commands are kept. The default keeps nothing.
    fn keep_output(&self, output: Vec<u8>) -> BoxFuture<'_, Option<Whole>> {
        drop(output);
        Box::pin(async { None })
    }

    /// Returns the confinement that is actually enforced.
    fn held(&self) -> Held;

    /// Returns the changes of its commands that cannot be undone, as far as they are known before
    /// the start, one line each.
    fn undo_limits(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Turns a grant into a host. Implemented by `host`, called by the orchestrator. The confinement is
/// never weaker than requested.
pub trait Sandbox: Send + Sync {
    /// Returns a host confined to this grant, or the reason that the grant cannot be enforced.
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError>;

    /// Returns an absolute path without links, so that two names of one file are one path. A part
    /// that does not exist yet stays as it is. Used to order calls, never to allow one.
    fn real_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// Ends every open session and returns a short description of each. Called when nothing more
    /// will be started.
    fn close(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

/// A command that runs across several calls. Made by [`Host::open`], shared by the session tools.
/// It is confined to the grant it was opened with. Dropping the last handle kills it and all its
/// descendants.
pub trait Session: Send + Sync {
    /// Writes some of these bytes to its input, and returns how many. Waits while the program
    /// accepts none.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<usize>>;

    /// Returns the output since the last call. If it is longer than `shown_bytes`, the host stores
    /// all of it, if it stores outputs at all.
    fn take(&self, shown_bytes: usize) -> BoxFuture<'_, Printed>;

    /// Waits until more than `beyond` bytes were printed in total, or the command has ended.
    /// Returns the total.
    fn progress(&self, beyond: u64) -> BoxFuture<'_, u64>;

    /// Returns true if it is known to wait for input, and `false` if that cannot be known.
    fn waits_for_input(&self) -> BoxFuture<'_, bool>;

    /// Returns the names of the programs that run in it, in the order of their start. Empty if that
    /// cannot be known.
    fn running(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    /// Returns its report once it has ended. All of its output can be taken then.
    fn ended(&self) -> Option<ProcessReport>;

    /// Kills it and everything it started, and waits until that is done.
    fn end(&self) -> BoxFuture<'_, ()>;

    /// Returns the confinement that is enforced on it.
    fn held(&self) -> Held;
}

/// Returns the error of a host that starts no processes.
fn not_granted(command: &Command) -> HostError {
    HostError::NotGranted { program: command.argv.first().cloned().unwrap_or_default() }
}

/// Receives the output of a command as it arrives, in order. Must not block.
pub type OutputListener<'a> = &'a (dyn Fn(&[u8]) + Send + Sync);

/// Receives the output of a session as it arrives. Must not block.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Standard input of a session's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyboard {
    /// None: the input is at its end, and there is no terminal.
    Absent,
    /// A terminal, which also receives the output. The host chooses its size.
    Terminal,
}

/// A piece of a session's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The bytes, at most the grant's limit. If there were more, the first and the last part.
    pub bytes: Vec<u8>,
    /// Offset in `bytes` at which the first part ends, and the number of bytes missing there.
    pub gap: Option<(usize, u64)>,
    /// Location of the full output, if it is long.
    pub whole: Option<Whole>,
}

impl Printed {
    /// Returns the number of bytes printed, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.gap.map_or(0, |(_, missing)| missing)
    }
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; not a shell line.
    pub argv: Vec<String>,
    /// Working directory, relative to the grant's.
    pub cwd: Option<PathBuf>,
    /// Variables set on top of the host's own environment for children.
    pub env: BTreeMap<String, String>,
    /// Wall time limit; the grant's default if absent.
    pub time_limit: Option<Duration>,
}

/// Output of a program by stream. Each is at most the grant's limit, as is the combined output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApartOutput {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// A command that has ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCommand {
    /// Facts about the process.
    pub report: ProcessReport,
    /// Standard output and error in the order they were written, at most the grant's limit. If
    /// longer, the first and the last part.
    pub output: Vec<u8>,
    /// Offset in `output` at which the first part ends, and the number of bytes missing there.
    pub gap: Option<(usize, u64)>,
    /// The same by stream, if that was requested.
    pub apart: Option<ApartOutput>,
}

/// Storage of an output that is longer than the model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// It is in a file.
    File {
        /// The file.
        path: PathBuf,
        /// Number of bytes of the output in the file.
        bytes: u64,
        /// True if that is all of it.
        complete: bool,
    },
    /// It could not be stored, for this reason.
    Lost(String),
}

impl Whole {
    /// Describes the location of a stored output for a model: the number that is its file name, or
    /// its path.
    pub fn place(path: &Path) -> String {
        let number =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        match number {
            Some(id) => format!("read_output id {id}, or {}", path.display()),
            None => path.display().to_string(),
        }
    }
}

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by a signal. Exceeding a limit counts as signal 9.
    Signal(i32),
    /// It was killed because it exceeded its time limit.
    TimedOut,
    /// It was killed because the call was cancelled.
    Cancelled,
}

impl Exit {
    /// Killed, as for exceeding a limit. `SIGKILL` has this number on every system.
    pub const KILLED: Self = Self::Signal(9);

    /// Returns the exit code that a shell would report; 124 for a time-out, 130 for a cancellation.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::Cancelled => 130,
        }
    }
}

/// Reason that the host did not do what a tool requested.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The grant does not allow any program.
    #[error("may not start `{program}`: the call declared that it starts nothing")]
    NotGranted {
        /// The program.
        program: String,
    },
    /// The command names no program.
    #[error("the command is empty")]
    EmptyCommand,
    /// An argument, variable or path holds a NUL byte.
    #[error("the command contains a NUL byte")]
    Nul,
    /// The working directory cannot be used.
    #[error("cannot use `{path}` as the working directory")]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// All commands together have used up their wall time.
    #[error("the commands of this session have used up the {} seconds they may take together", limit.as_secs())]
    TimeUsedUp {
        /// The limit.
        limit: Duration,
    },
    /// All commands together have used up their processor time.
    #[error("the commands of this session have used up the {} seconds of processor time they may take together", limit.as_secs())]
    CpuUsedUp {
        /// The limit.
        limit: Duration,
    },
    /// No mechanism of this machine can enforce the requested confinement, so nothing ran.
    #[error("cannot confine `{program}`: {reason}; `windlass doctor` says what this machine can do")]
    NotHeld {
        /// The program.
        program: String,
        /// Missing capability.
        reason: String,
    },
    /// A program outside the sandbox could have followed what a sandboxed command writes.
    #[error("`{program}` was not started: {reason}; wait for it to end, or end it, and try again")]
    NotApart {
        /// The program.
        program: String,
        /// Description of the command that still runs.
        reason: String,
    },
    /// The sandbox could not be set up, so nothing ran.
    #[error("cannot confine `{program}`: {step} failed; `windlass doctor` says what this machine can do")]
    Confine {
        /// The program.
        program: String,
        /// Step that failed.
        step: String,
        /// The system's error.
        source: io::Error,
    },
    /// The state of the running program could not be determined.
    #[error("lost track of `{program}`")]
    Wait {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Reason that a grant cannot be enforced here.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This machine or this build cannot do it.
    #[error("commands cannot be confined here: {reason}; `windlass doctor` says what is missing")]
    Unsupported {
        /// Confinement that the grant requires.
        asked: Box<Confinement>,
        /// Missing capability.
        reason: String,
    },
    /// The writable directories cannot be used.
    #[error("the workspace cannot be used: {reason}")]
    Workspace {
        /// Confinement that the grant requires.
        asked: Box<Confinement>,
        /// The reason.
        reason: String,
    },
}

/// Something that the sandbox blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// Layer that blocked it.
    pub layer: Layer,
    /// Blocked object: a path, a host, a system call, a resource.
    pub what: String,
    /// Rule that blocked it.
    pub rule: String,
    /// Effects that a person may be asked to grant for another attempt. Empty if that would be too
    /// much.
    pub need: Effects,
    /// Evidence for the denial.
    pub proof: Proof,
    /// Options by which a person could allow it in advance; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Denial {
    /// Returns one line for the reader of a failed result: the rule, what it blocked, and how to
    /// allow it. Returns `None` for denials of other layers than files and network.
    pub fn advice(&self) -> Option<String> {
        let Self { layer, what, rule, remedy, proof, .. } = self;
        let stopped = match (layer, proof) {
            (Layer::Network, Proof::Verified) => format!("sandbox: {rule}: its output names `{what}`"),
            (Layer::Files | Layer::Network, _) => format!("sandbox: {rule}: {what}"),
            _ => return None,
        };
        Some(if remedy.is_empty() { stopped } else { format!("{stopped}; to allow it: {remedy}") })
    }
}

/// Layer that blocked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The sandbox could not be set up, so nothing ran.
    Setup,
    /// Access to a path.
    Files,
    /// Access to the network.
    Network,
    /// A system call.
    SystemCall,
    /// A limit on resources.
    Limit,
}

/// Evidence for a denial. Output text alone is never enough to ask for more access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Observed by the layer that denied it.
    Observed,
    /// Named by the program, and confirmed by the sandbox rules and the file system.
    Verified,
    /// Guessed from the output of the program. Only in older records.
    Suspected,
}

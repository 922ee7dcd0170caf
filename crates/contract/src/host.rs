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

/// A machine held to one [`Grant`]. Implemented by `host` (and by fakes in tests), used by tools through
/// [`Cx`](crate::Cx). An implementation must never do more than the grant it was made from.
pub trait Host: Send + Sync {
    /// Runs a command to its end, its time limit, or cancellation; the whole process tree is gone afterwards.
    /// A host that starts no processes need not say so.
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        let (_, _, error) = (cancel, output, not_granted(command));
        Box::pin(async { Err(error) })
    }

    /// The same, and what was written to each stream is kept for itself too. What was written to both at once may change its
    /// order. A host that cannot tell them apart leaves [`FinishedCommand::apart`] empty.
    fn run_apart<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        self.run(command, cancel, output)
    }

    /// The files the grant lets a call use: none, unless an implementation has some.
    fn files(&self) -> &dyn Files {
        &NoFiles
    }

    /// Starts a command that may go on when this call has ended. A host that has no sessions need not say so.
    fn open<'a>(
        &'a self,
        command: &'a Command,
        input: Keyboard,
        output: Listener,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, HostError>> {
        let (_, _, error) = (input, output, not_granted(command));
        Box::pin(async { Err(error) })
    }

    /// What is really enforced.
    fn held(&self) -> Held;

    /// The changes of its commands that cannot be undone, as far as that is known before they run, one line each.
    fn undo_limits(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Turns a grant into a host. Implemented by `host`, called by the orchestrator; never weaker than asked.
pub trait Sandbox: Send + Sync {
    /// A host held to this grant, or the reason why it cannot be enforced.
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError>;

    /// Ends every session that is still open, and says what each was, in a few words. Called by whoever will start
    /// nothing more.
    fn close(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

/// A command that goes on from call to call. Made by [`Host::open`], used by the tools that share it. It is held to the
/// grant it was opened with. Dropping the last handle kills it, with all it started.
pub trait Session: Send + Sync {
    /// Types some of these bytes, and says how many. Waits as long as the program takes none.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<usize>>;

    /// What it has printed since this was last asked. If that is more than will be shown, all of it is kept, where the
    /// host keeps outputs at all.
    fn take(&self, shown_bytes: usize) -> BoxFuture<'_, Printed>;

    /// Waits until it has printed more than so many bytes in all, or has ended; says how many it has printed.
    fn progress(&self, beyond: u64) -> BoxFuture<'_, u64>;

    /// Whether it is known to wait for someone to type. `false` also where that cannot be known.
    fn waits_for_input(&self) -> BoxFuture<'_, bool>;

    /// The programs that run in it, by name, in the order they were started. None where that cannot be known.
    fn running(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    /// How it ended, once it has: then all it printed can be taken.
    fn ended(&self) -> Option<ProcessReport>;

    /// Ends it and everything it started, and waits until that is done.
    fn end(&self) -> BoxFuture<'_, ()>;

    /// What holds it.
    fn held(&self) -> Held;
}

/// The error of a host that starts no processes.
fn not_granted(command: &Command) -> HostError {
    HostError::NotGranted { program: command.argv.first().cloned().unwrap_or_default() }
}

/// Sees the bytes a command prints as they come, in order. Must not block.
pub type OutputListener<'a> = &'a (dyn Fn(&[u8]) + Send + Sync);

/// Sees what a session prints as it comes. Must not block.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Where a session's program reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyboard {
    /// Nowhere: its input is at its end, and it has no terminal.
    Absent,
    /// A terminal, which also takes what it prints. Its size is the host's business.
    Terminal,
}

/// A part of what a session printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The bytes, at most the grant's limit: if there were more, the first and the last.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the first part ends and how many are missing there.
    pub gap: Option<(usize, u64)>,
    /// Where all of a long part is.
    pub whole: Option<Whole>,
}

impl Printed {
    /// How much was printed, kept or not.
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
    /// Wall time; the grant's default where absent.
    pub time_limit: Option<Duration>,
}

/// What a program wrote to each of its streams; each at most the grant's limit, as for all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApartOutput {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// A command that has ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCommand {
    /// How it went.
    pub report: ProcessReport,
    /// Standard output and error in the order they were written, at most the grant's limit: if longer, the first and
    /// the last part.
    pub output: Vec<u8>,
    /// Where in `output` the first part ends and how many bytes are missing there.
    pub gap: Option<(usize, u64)>,
    /// The same by stream, if that was wanted.
    pub apart: Option<ApartOutput>,
}

/// What became of an output that is longer than a model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// It is in a file.
    File {
        /// The file.
        path: PathBuf,
        /// How much of the output is in it.
        bytes: u64,
        /// Whether that is all.
        complete: bool,
    },
    /// It could not be kept, for this reason.
    Lost(String),
}

impl Whole {
    /// Where an output is kept, as a model may ask for it: by the number that is its name, or by its path.
    pub fn place(path: &Path) -> String {
        let number =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        match number {
            Some(id) => format!("read_output id {id}, or {}", path.display()),
            None => path.display().to_string(),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal; one that was killed for exceeding a limit, by 9.
    Signal(i32),
    /// We killed it when its time was up.
    TimedOut,
    /// We killed it because the call was cancelled.
    Cancelled,
}

impl Exit {
    /// Killed, as for a limit. The signal has this number everywhere.
    pub const KILLED: Self = Self::Signal(9);

    /// The code a shell would report; 124 for a time-out.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::Cancelled => 130,
        }
    }
}

/// Why the host could not do what a tool asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The grant covers no program at all.
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
        /// What the system said.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("cannot start `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// All commands together have taken the time they may.
    #[error("the commands of this session have used up the {} seconds they may take together", limit.as_secs())]
    TimeUsedUp {
        /// That time.
        limit: Duration,
    },
    /// All commands together have taken the time of the processors they may.
    #[error("the commands of this session have used up the {} seconds of processor time they may take together", limit.as_secs())]
    CpuUsedUp {
        /// That time.
        limit: Duration,
    },
    /// No walls of this machine can do what was asked for, so nothing ran.
    #[error("cannot confine `{program}`: {reason}; `windlass doctor` says what this machine can do")]
    NotHeld {
        /// The program.
        program: String,
        /// What cannot be done.
        reason: String,
    },
    /// A program outside of the sandbox could have obeyed what a sandboxed command writes.
    #[error("`{program}` was not started: {reason}; wait for it to end, or end it, and try again")]
    NotApart {
        /// The program.
        program: String,
        /// What runs.
        reason: String,
    },
    /// The walls could not be put up, so nothing ran.
    #[error("cannot confine `{program}`: {step} failed; `windlass doctor` says what this machine can do")]
    Confine {
        /// The program.
        program: String,
        /// What could not be done.
        step: String,
        /// What the system said.
        source: io::Error,
    },
    /// The running program could not be followed.
    #[error("lost track of `{program}`")]
    Wait {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a grant cannot be enforced here.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// This machine or this build has no way to do it.
    #[error("commands cannot be confined here: {reason}; `windlass doctor` says what is missing")]
    Unsupported {
        /// What the grant asks for.
        asked: Box<Confinement>,
        /// What is missing.
        reason: String,
    },
    /// The directories that may be written cannot be used.
    #[error("the workspace cannot be used: {reason}")]
    Workspace {
        /// What the grant asks for.
        asked: Box<Confinement>,
        /// Why not.
        reason: String,
    },
}

/// Something the sandbox stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// Who stopped it.
    pub layer: Layer,
    /// What was stopped: a path, a host, a system call, a resource.
    pub what: String,
    /// The rule that stopped it.
    pub rule: String,
    /// What a person may be asked to grant for another attempt; nothing if that would be too much.
    pub need: Effects,
    /// How sure we are.
    pub proof: Proof,
    /// The options by which a person could allow it from the start; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Denial {
    /// Returns one line for the reader of a failed result: the rule, what it stopped, and how to allow it. `None` for limits,
    /// which say what they are themselves.
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

/// Who stopped something.
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

/// How a denial is known. Text alone is never enough to ask for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Seen by the layer that denied it.
    Observed,
    /// Named by the program; the rules of the sandbox and the file system confirm it.
    Verified,
    /// Guessed from what the program printed. Only in older records.
    Suspected,
}

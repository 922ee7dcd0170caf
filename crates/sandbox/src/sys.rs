//! System calls: starting a child, killing its group, reaping it. All `unsafe` of the project is in
//! this file and those below it.
//!
//! On Linux there is always a first process between us and the command: PID 1 of its PID namespace
//! ([`init`]) or, without namespaces, a [`subreaper`]. It is forked by a [`zygote`] and stays; the
//! command shares its memory until `execve`, as with [`vfork`]. The code that runs between fork and
//! exec is in [`child`]. `docs/internals/sandbox.md` lists all system calls of a start in order.
#![expect(unsafe_code, reason = "this is the file the lint sends such code to")]

use std::{
    ffi::c_int,
    io::{self, PipeReader},
    mem,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
    time::Duration,
};
#[cfg(target_os = "linux")]
use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::OnceLock,
};

#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use windlass_contract::host::Exit;

#[cfg(target_os = "linux")]
mod arena;
mod child;
#[cfg(target_os = "linux")]
pub(crate) mod connect_broker;
mod fd_table;
mod inherited_fd;
#[cfg(target_os = "linux")]
mod init;
pub mod job_signals;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
pub(crate) mod namespaces;
#[cfg(not(target_os = "linux"))]
mod other_unix;
mod pid;
#[cfg(target_os = "linux")]
pub(crate) mod proc_files;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(target_os = "linux")]
mod remount_watch;
#[cfg(target_os = "linux")]
pub(crate) mod restrictions;
#[cfg(target_os = "linux")]
pub(crate) mod shared_namespaces;
mod start_error;
mod stdout_check;
#[cfg(target_os = "linux")]
mod subreaper;
pub mod terminal;
#[cfg(target_os = "linux")]
pub(crate) mod usage;
#[cfg(target_os = "linux")]
mod vfork;
#[cfg(target_os = "linux")]
mod zygote;

#[cfg(target_os = "linux")]
use crate::cgroup::CommandCgroup;
use child::{ExecPlan, exec_plan, exec_program};
pub use fd_table::grow_descriptor_table;
pub use inherited_fd::inherited_descriptor;
pub use job_signals::is_ignored;
#[cfg(not(target_os = "linux"))]
pub use other_unix::Zygotes;
#[cfg(not(target_os = "linux"))]
pub(crate) use other_unix::start;
pub use pid::ChildPid;
#[cfg(target_os = "linux")]
use pid::exit_from_status;
pub use start_error::StartError;
use start_error::StartFailure;
pub use stdout_check::stdout_was_closed;
#[cfg(target_os = "linux")]
pub(crate) use subreaper::start;
#[cfg(target_os = "linux")]
pub use zygote::Zygotes;

/// A child that was started and not yet reaped, so that its PID cannot have passed to another
/// process.
#[derive(Debug)]
pub struct StartedChild {
    /// The PID, which is also that of its process group.
    pub pid: ChildPid,
    /// The signal to its group that ends it and everything it started.
    kill_signal: c_int,
    /// Readable once the child has ended.
    #[cfg(target_os = "linux")]
    pidfd: OwnedFd,
    /// The first process writes its [`ExitReport`] here.
    #[cfg(target_os = "linux")]
    exit_pipe: Option<PipeReader>,
    #[cfg(target_os = "linux")]
    exit_report: OnceLock<ExitReport>,
    /// The cgroup of the child and its descendants, if it has one.
    #[cfg(target_os = "linux")]
    cgroup: Option<CommandCgroup>,
}

impl StartedChild {
    /// Kills the child, if it still runs, and everything it left behind: at once, or as soon as its
    /// first process has received the signal.
    pub fn kill(&self) {
        self.pid.kill_group(self.kill_signal);
        #[cfg(target_os = "linux")]
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// Returns the same child with the cgroup that is removed with it.
    #[cfg(target_os = "linux")]
    pub(crate) fn within(mut self, cgroup: Option<CommandCgroup>) -> Self {
        self.cgroup = cgroup;
        self
    }

    /// Returns what the first process has reported so far, and the limits of the cgroup that were
    /// met.
    #[cfg(target_os = "linux")]
    pub fn exit_report(&self) -> ExitReport {
        let mut report = self.exit_report.get().cloned().unwrap_or_default();
        let met = self.cgroup.as_ref().map(CommandCgroup::met).unwrap_or_default();
        report.over = report.over.or(met.memory.then_some("memory"));
        report.held_back = met.processes.then_some("processes");
        report
    }

    /// Returns an empty report: without a first process there is none.
    #[cfg(not(target_os = "linux"))]
    pub fn exit_report(&self) -> ExitReport {
        ExitReport::default()
    }

    /// Reads the report of the first process. To be called when that has ended or reported: else
    /// this blocks.
    #[cfg(target_os = "linux")]
    pub fn read_exit_report(&self) -> &ExitReport {
        self.exit_report
            .get_or_init(|| self.exit_pipe.as_ref().map(namespaces::read_exit_report).unwrap_or_default())
    }

    /// Does nothing: without a first process there is no report.
    #[cfg(not(target_os = "linux"))]
    pub fn read_exit_report(&self) {}

    /// Waits until the child and all its descendants have ended, without reaping it. Once the first
    /// process has reported that, its own end is not waited for: it only takes down its mounts.
    #[cfg(target_os = "linux")]
    pub async fn ended(&self) -> io::Result<()> {
        if let Some(pipe) = self.exit_pipe.as_ref().filter(|_| self.exit_report.get().is_none()) {
            readable(pipe.as_fd()).await?;
            self.read_exit_report();
        }
        if self.exit_report.get().is_some_and(|report| report.all_gone) {
            Ok(())
        } else {
            readable(self.pidfd.as_fd()).await
        }
    }

    /// Waits until the child has ended, without reaping it.
    #[cfg(not(target_os = "linux"))]
    pub async fn ended(&self) -> io::Result<()> {
        let pid = self.pid;
        tokio::task::spawn_blocking(move || pid.wait()).await?
    }
}

/// The report of a first process about the command, written when it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitReport {
    /// The exit of the command, if it was reported.
    pub exit: Option<Exit>,
    /// The limit for which the command was killed.
    pub over: Option<&'static str>,
    /// The limit that refused the command more of something without ending it.
    pub held_back: Option<&'static str>,
    /// The first address that a connection was refused to.
    pub refused: Option<String>,
    /// The first address outside of the session's own network that something was to go to; a name
    /// server's only if there was no other.
    pub offline: Option<SocketAddr>,
    /// The CPU time of the command and its descendants.
    pub cpu: Option<Duration>,
    /// The names of the processes that had to be killed.
    pub killed: Vec<String>,
    /// All processes had ended by then.
    pub all_gone: bool,
}

/// Returns whether a file of the kernel, such as `/proc/self/mountinfo`, has changed since it was
/// last read.
#[cfg(target_os = "linux")]
pub(crate) fn has_news(file: BorrowedFd<'_>) -> bool {
    let mut event = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut event, 1, 0) != 0 }
}

/// Waits until a descriptor is readable or at its end.
#[cfg(target_os = "linux")]
async fn readable(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor stays open while the registration lives, since that borrows it, and a
    // borrowed descriptor always gives the same number.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered?.readable().await.map(drop)
}

/// The three standard descriptors of a child.
#[derive(Debug)]
pub struct ChildStdio {
    /// Descriptor 0.
    pub input: OwnedFd,
    /// Descriptor 1.
    pub output: OwnedFd,
    /// Descriptor 2.
    pub error: OwnedFd,
}

impl ChildStdio {
    /// Duplicates the descriptors, for another try.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self { input: input.try_clone()?, output: output.try_clone()?, error: error.try_clone()? })
    }

    /// Moves the descriptors above 2, so that `dup2` in the child overwrites none of them.
    fn above_standard(self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self {
            input: above_standard(input)?,
            output: above_standard(output)?,
            error: above_standard(error)?,
        })
    }
}

/// Makes a pipe whose writing end is above 2.
fn report_pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, above_standard(writer.into())?))
}

/// Moves a descriptor above 2: the child is about to replace the three standard ones.
fn above_standard(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    // `try_clone` uses F_DUPFD_CLOEXEC with a minimum of 3.
    if descriptor.as_raw_fd() > 2 { Ok(descriptor) } else { descriptor.try_clone() }
}

/// Blocks all signals for this thread while `act` runs, so that no handler runs in a child that
/// shares our memory.
fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros is a valid `sigset_t` to be filled; the pointers are to locals that live
    // across the calls.
    let before = unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = act();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::{collections::BTreeMap, fs::File, io::Read, os::fd::FromRawFd, path::Path};

    use windlass_contract::host::Command;

    use super::*;
    use crate::program::Program;

    #[test]
    fn only_the_three_standard_descriptors_are_passed_on() {
        // SAFETY: takes and gives a number. The copy is ours, and unlike anything Rust opens it
        // survives `exec`.
        let leaky = unsafe { OwnedFd::from_raw_fd(libc::dup(2)) };
        let argv = ["ls", "/proc/self/fd"].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let program = Program::new(&command, &BTreeMap::new(), Path::new("/")).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let stdio = ChildStdio { input: null(), output: writer.into(), error: null() };
        let started = start(&program, stdio, None, &mut Zygotes::default()).unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        started.pid.reap(0).unwrap();
        assert_eq!(started.read_exit_report().exit, Some(Exit::Code(0)));
        // 3 is the directory `ls` lists.
        assert_eq!(seen, "0\n1\n2\n3\n", "although {leaky:?} is open");
    }
}

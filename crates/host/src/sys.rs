//! System calls: starting a child, killing its group, collecting its end. All `unsafe` of the project is in this file
//! and those below it.
//!
//! On Linux there is always a first process between us and the command: the init of its process namespace, or where it
//! has none, a warden. It is a copy of a [`starter`] and stays; the command borrows its memory until it calls `exec`, as
//! with `vfork`. What runs between the two is in [`child`].
#![expect(unsafe_code, reason = "this is the file the lint sends such code to")]

use std::{
    ffi::c_int,
    io::{self, PipeReader},
    mem,
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
use windlass_contract::Exit;

#[cfg(target_os = "linux")]
mod arena;
#[cfg(not(target_os = "linux"))]
mod bare;
mod child;
mod closed;
#[cfg(target_os = "linux")]
pub(crate) mod commons;
#[cfg(target_os = "linux")]
pub(crate) mod confined;
#[cfg(target_os = "linux")]
mod connect_broker;
#[cfg(target_os = "linux")]
mod covers;
mod failure;
mod given;
pub(crate) mod halt;
#[cfg(target_os = "linux")]
pub(crate) mod hold;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
mod pid;
#[cfg(target_os = "linux")]
mod proc_files;
mod room;
#[cfg(target_os = "linux")]
mod split;
#[cfg(target_os = "linux")]
mod starter;
pub(crate) mod terminal;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
pub(crate) mod turns;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod warden;

#[cfg(target_os = "linux")]
use crate::cgroup::Leaf;
#[cfg(not(target_os = "linux"))]
pub(crate) use bare::{Starters, start};
use child::{Plan, become_program, plan};
pub use closed::stdout_was_closed;
use failure::Failure;
pub(crate) use failure::StartError;
pub use given::given_descriptor;
pub use halt::is_ignored;
pub(crate) use pid::Pid;
#[cfg(target_os = "linux")]
use pid::exit;
pub use room::make_room_for_descriptors;
#[cfg(target_os = "linux")]
pub(crate) use starter::Starters;
#[cfg(target_os = "linux")]
pub(crate) use warden::start;

/// A child that was started and not yet collected, so that its number cannot have passed to another process.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// What has it and everything it started die.
    kill_signal: c_int,
    /// Readable once the child has ended.
    #[cfg(target_os = "linux")]
    ended: OwnedFd,
    /// Where the first process leaves word of how it went.
    #[cfg(target_os = "linux")]
    last_words: Option<PipeReader>,
    #[cfg(target_os = "linux")]
    heard: OnceLock<LastWords>,
    /// What limits it and everyone below it together, where anything does.
    #[cfg(target_os = "linux")]
    leaf: Option<Leaf>,
}

impl Started {
    /// Kills the child, if it still runs, and everything it left behind: at once, or as soon as who looks after it has
    /// done so.
    pub(crate) fn kill(&self) {
        self.pid.kill_group(self.kill_signal);
        #[cfg(target_os = "linux")]
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
    }

    /// The same child, in a cgroup that goes with it.
    #[cfg(target_os = "linux")]
    pub(crate) fn within(mut self, leaf: Option<Leaf>) -> Self {
        self.leaf = leaf;
        self
    }

    /// What the first process has said, as far as it was heard, and which limits were met.
    #[cfg(target_os = "linux")]
    pub(crate) fn words(&self) -> LastWords {
        let mut words = self.heard.get().cloned().unwrap_or_default();
        let met = self.leaf.as_ref().map(Leaf::met).unwrap_or_default();
        words.over = words.over.or(met.memory.then_some("memory"));
        words.held_back = met.processes.then_some("processes");
        words
    }

    /// Nobody here says anything.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn words(&self) -> LastWords {
        LastWords::default()
    }

    /// Hears what the first process has said. To be called when it has ended or spoken: it would be waited for.
    #[cfg(target_os = "linux")]
    pub(crate) fn hear_out(&self) -> &LastWords {
        self.heard.get_or_init(|| self.last_words.as_ref().map(confined::last_words).unwrap_or_default())
    }

    /// Nobody here says anything.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn hear_out(&self) {}

    /// Waits until the child and everyone below it has ended, without collecting it. When its first process has said
    /// so, it is not waited for: it only takes down its walls.
    #[cfg(target_os = "linux")]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        if let Some(words) = self.last_words.as_ref().filter(|_| self.heard.get().is_none()) {
            readable(words.as_fd()).await?;
            self.hear_out();
        }
        if self.heard.get().is_some_and(|words| words.all_gone) {
            Ok(())
        } else {
            readable(self.ended.as_fd()).await
        }
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        let pid = self.pid;
        tokio::task::spawn_blocking(move || pid.wait()).await?
    }
}

/// What an init or a warden said when it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LastWords {
    pub(crate) exit: Option<Exit>,
    /// The limit for which it was ended.
    pub(crate) over: Option<&'static str>,
    /// The limit by which it was kept from having more, and went on.
    pub(crate) held_back: Option<&'static str>,
    pub(crate) refused: Option<String>,
    /// How much time of the processors the command and everyone below it took.
    pub(crate) cpu: Option<Duration>,
    pub(crate) killed: Vec<String>,
    /// Everyone had ended by then.
    pub(crate) all_gone: bool,
}

/// Whether something has changed since a file of the kernel's that tells of changes was last looked at.
#[cfg(target_os = "linux")]
pub(crate) fn has_news(file: BorrowedFd<'_>) -> bool {
    let mut state = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut state, 1, 0) != 0 }
}

/// Waits until something can be read, or never will be.
#[cfg(target_os = "linux")]
async fn readable(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor stays open while the registration lives, since that borrows it, and a borrowed descriptor
    // always gives the same number.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered?.readable().await.map(drop)
}

/// The three standard descriptors of a child.
#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

impl Stdio {
    /// The same descriptors once more, for another try.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self { input: input.try_clone()?, output: output.try_clone()?, error: error.try_clone()? })
    }

    /// Moves them out of the way of the numbers they are to get.
    fn above_standard(self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self {
            input: above_standard(input)?,
            output: above_standard(output)?,
            error: above_standard(error)?,
        })
    }
}

/// A pipe whose writing end stays out of the way of the standard descriptors.
fn report_pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, above_standard(writer.into())?))
}

/// Moves a descriptor out of the way of the three standard ones, which the child is about to replace.
fn above_standard(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    // `try_clone` never gives one of the three.
    if descriptor.as_raw_fd() > 2 { Ok(descriptor) } else { descriptor.try_clone() }
}

/// Holds back all signals for this thread while `act` runs, so that no handler runs in a child that shares our memory.
fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros is a valid `sigset_t` to be filled; the pointers are to locals that live across the calls.
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
mod tests {
    use std::{collections::BTreeMap, fs::File, io::Read, os::fd::FromRawFd, path::Path};

    use windlass_contract::Command;

    use super::*;
    use crate::program::Program;

    #[test]
    fn only_the_three_standard_descriptors_are_passed_on() {
        // SAFETY: takes and gives a number. The copy is ours, and unlike anything Rust opens it survives `exec`.
        let leaky = unsafe { OwnedFd::from_raw_fd(libc::dup(2)) };
        let argv = ["ls", "/proc/self/fd"].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let program = Program::new(&command, &BTreeMap::new(), Path::new("/")).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let stdio = Stdio { input: null(), output: writer.into(), error: null() };
        let started = start(&program, stdio, None, &mut Starters::default()).unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        started.pid.collect(0).unwrap();
        assert_eq!(started.hear_out().exit, Some(Exit::Code(0)));
        // 3 is the directory `ls` lists.
        assert_eq!(seen, "0\n1\n2\n3\n", "although {leaky:?} is open");
    }
}

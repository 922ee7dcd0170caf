//! System calls: starting a child, killing its group, collecting its end. All `unsafe` of the project is in this file
//! and those below it.
//!
//! On Linux the child borrows this process's memory until it calls `exec`, as with `vfork`. A `fork` copies page
//! tables instead, and that grows with the process that forks: 0.2 ms more than `posix_spawn` for a small one, 4 ms
//! more at 200 MB. What runs in the child is in [`child`].
#![expect(unsafe_code, reason = "this is the file the lint sends such code to")]

use std::{
    ffi::c_int,
    io::{self, PipeReader, Read},
    mem,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    ptr,
};
#[cfg(target_os = "linux")]
use std::{
    ffi::c_void,
    os::fd::{AsFd, FromRawFd},
};

#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use windlass_contract::Exit;

use crate::program::Program;

mod child;
#[cfg(target_os = "linux")]
pub(crate) mod confined;
mod failure;
#[cfg(target_os = "linux")]
pub(crate) mod hold;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod keyhole;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
mod pid;

#[cfg(target_os = "linux")]
use crate::blueprint::Step;
use child::{Plan, become_program, plan};
use failure::Failure;
pub(crate) use failure::StartError;
#[cfg(target_os = "linux")]
use hold::Hold;
pub(crate) use pid::Pid;
#[cfg(target_os = "linux")]
use pid::exit;

/// A child that was started and not yet collected, so that its number cannot have passed to another process.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// Readable once the child has ended.
    #[cfg(target_os = "linux")]
    ended: OwnedFd,
    /// Where the first process of a sandbox leaves word of how it went.
    #[cfg(target_os = "linux")]
    last_words: Option<PipeReader>,
}

impl Started {
    /// What the first process of a sandbox said. To be asked for when it has ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn last_words(&mut self) -> LastWords {
        self.last_words.as_mut().map(confined::last_words).unwrap_or_default()
    }

    /// Nobody here leaves word.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn last_words(&mut self) -> LastWords {
        LastWords::default()
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(target_os = "linux")]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        // SAFETY: the descriptor stays open and ours while the registration lives, since that borrows it from `self`,
        // and a borrowed descriptor always gives the same number.
        let ended = unsafe { AsyncFd::register_with_interest(self.ended.as_fd(), Interest::READABLE) };
        ended?.readable().await.map(drop)
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        let pid = self.pid;
        tokio::task::spawn_blocking(move || pid.wait()).await?
    }
}

/// What init said when it ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LastWords {
    pub(crate) exit: Option<Exit>,
    pub(crate) over: Option<&'static str>,
    pub(crate) refused: Option<String>,
    pub(crate) killed: Vec<String>,
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

/// Starts a program in a session of its own, with the given descriptors and no others. On Linux the child is killed
/// when the calling thread ends.
pub(crate) fn start(
    program: &Program,
    stdio: Stdio,
    #[cfg(target_os = "linux")] hold: Option<Hold<'_>>,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = report_pipe()?;
    let pointers = program.pointers();
    let plan = Plan {
        #[cfg(target_os = "linux")]
        hold,
        ..plan(program, &pointers, &stdio, report.as_raw_fd())
    };
    let started = without_signals(|| split(&plan))?;
    drop((stdio, report));
    hear(
        started,
        &mut reports,
        #[cfg(target_os = "linux")]
        &[],
    )
}

/// A pipe whose writing end stays out of the way of the standard descriptors.
fn report_pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, above_standard(writer.into())?))
}

/// Waits until the child has become its program, or says why it has not.
fn hear(
    started: Started,
    reports: &mut PipeReader,
    #[cfg(target_os = "linux")] steps: &[Step],
) -> Result<Started, StartError> {
    let mut message = [0; 8];
    match reports.read_exact(&mut message) {
        // The last writing end was closed by a successful `exec`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(started),
        Err(error) => {
            started.pid.kill_group();
            started.pid.collect(0)?;
            Err(error.into())
        }
        Ok(()) => {
            started.pid.kill_group();
            started.pid.collect(0)?;
            let failure = Failure::read(message);
            #[cfg(target_os = "linux")]
            return Err(failure.explain(steps));
            #[cfg(not(target_os = "linux"))]
            Err(failure.explain())
        }
    }
}

/// Makes the child. It shares our memory and we stand still until it calls `exec` or ends.
#[cfg(target_os = "linux")]
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    extern "C" fn main(plan: *mut c_void) -> c_int {
        // SAFETY: `plan` is the one passed to `clone` below, which outlives this child's use of it because the
        // parent's thread is suspended until then.
        unsafe { become_program(&*plan.cast::<Plan<'_>>(), &mut -1) }
    }
    // 64 KiB. The child's deepest frame is a few hundred bytes, and no handler can run on top of it. Of u128, for
    // the alignment stacks need.
    const STACK_LENGTH: usize = 4096;
    let mut stack = Vec::<u128>::with_capacity(STACK_LENGTH);
    let mut ended: RawFd = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the stack pointer is one past the end of an aligned allocation of STACK_LENGTH, and stacks grow down;
    // `stack` and `plan` live until `clone` returns, which CLONE_VFORK delays until the child no longer uses our
    // memory; the child's function never returns; with CLONE_PIDFD the one variadic argument is where the kernel
    // writes a descriptor, and `ended` has that type.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_LENGTH).cast();
        libc::clone(main, top, flags, ptr::from_ref(plan).cast_mut().cast(), &raw mut ended)
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if ended < 0 {
        Pid(pid).kill_group();
        Pid(pid).collect(0)?;
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this needs Linux 5.2 or later"));
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    let ended = unsafe { OwnedFd::from_raw_fd(ended) };
    Ok(Started { pid: Pid(pid), ended, last_words: None })
}

/// Makes the child, with a copy of our memory.
#[cfg(not(target_os = "linux"))]
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    // SAFETY: the child calls nothing but `become_program`, which is safe after `fork` in a process with threads
    // because it only makes calls that are safe in signal handlers.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `plan` points to.
        0 => unsafe { become_program(plan, &mut -1) },
        pid => Ok(Started { pid: Pid(pid) }),
    }
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
    use std::{collections::BTreeMap, fs::File, path::Path};

    use windlass_contract::Command;

    use super::*;

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
        let started = start(&program, stdio, None).unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(started.pid.collect(0).unwrap(), Some(Exit::Code(0)));
        // 3 is the directory `ls` lists.
        assert_eq!(seen, "0\n1\n2\n3\n", "although {leaky:?} is open");
    }
}

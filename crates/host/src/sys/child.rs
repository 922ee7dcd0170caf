//! What runs in a child between its making and its program: no allocation, no locks, no panics.

use std::{
    ffi::{c_char, c_int},
    mem,
    os::fd::{AsRawFd, RawFd},
    ptr,
};

#[cfg(target_os = "linux")]
use super::hold::{self, Hold};
use super::{Stdio, failure::Failure};

/// Signals are numbered from 1 to this.
#[cfg(target_os = "linux")]
const LAST_SIGNAL: c_int = 64;
#[cfg(not(target_os = "linux"))]
const LAST_SIGNAL: c_int = 31;

/// A program in the form in which it is executed: C strings, and lists of them that end in a null pointer. Valid until
/// [`start`](super::start) has heard from the child.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// What its shell would become, and the program itself: the first that can be started.
    pub(super) calls: [Call; 2],
    pub(super) env: *const *const c_char,
    pub(super) cwd: *const c_char,
}

/// Where a program may be, which may be nowhere, and what it is given.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) candidates: *const *const c_char,
    pub(super) argv: *const *const c_char,
}

/// Everything the child needs, prepared beforehand.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) words: Words,
    pub(super) input: RawFd,
    pub(super) output: RawFd,
    pub(super) error: RawFd,
    pub(super) report: RawFd,
    /// Whose death ends the child; 0 where the kernel sees to it.
    pub(super) parent: libc::pid_t,
    pub(super) open_files: c_int,
    #[cfg(target_os = "linux")]
    pub(super) hold: Option<Hold<'a>>,
    #[cfg(not(target_os = "linux"))]
    pub(super) hold: std::marker::PhantomData<&'a ()>,
}

pub(super) fn plan<'a>(words: Words, stdio: &Stdio, report: RawFd) -> Plan<'a> {
    Plan {
        words,
        input: stdio.input.as_raw_fd(),
        output: stdio.output.as_raw_fd(),
        error: stdio.error.as_raw_fd(),
        report,
        parent: std::process::id().cast_signed(),
        open_files: open_file_limit(),
        #[cfg(target_os = "linux")]
        hold: None,
        #[cfg(not(target_os = "linux"))]
        hold: std::marker::PhantomData,
    }
}

/// Turns the child into the program, or says why not.
///
/// # Safety
///
/// To be called in a fresh child only, with all signals blocked. The pointers of `plan` must be what their names say:
/// C strings, and lists of them that end in a null pointer.
pub(super) unsafe fn become_program(plan: &Plan<'_>, listener: &mut RawFd) -> Failure {
    // SAFETY: passed on from the caller.
    unsafe {
        let Err(failure) = prepare(plan).and_then(|()| hold(plan, listener)).and_then(|()| execute(plan));
        failure
    }
}

/// # Safety
///
/// As for [`become_program`].
unsafe fn prepare(plan: &Plan<'_>) -> Result<(), Failure> {
    let check = |result: c_int| if result < 0 { Err(Failure::last(Failure::PROGRAM)) } else { Ok(()) };
    // SAFETY: only numbers are passed, except for `cwd`, which is a C string by the caller's word.
    unsafe {
        check(libc::setsid())?;
        die_with_parent(plan.parent);
        // A starter has seen to it once.
        #[cfg(not(target_os = "linux"))]
        default_actions();
        unblock_signals();
        check(libc::dup2(plan.input, 0))?;
        check(libc::dup2(plan.output, 1))?;
        check(libc::dup2(plan.error, 2))?;
        // A terminal that belongs to no session yet becomes this one's: then Ctrl-C reaches what runs on it, and
        // nothing else. Any other input, such as a terminal a person sits at, refuses, and that is fine.
        libc::ioctl(0, libc::TIOCSCTTY as _, 0);
        close_others_on_exec(plan.open_files);
        if libc::chdir(plan.words.cwd) < 0 { Err(Failure::last(Failure::DIRECTORY)) } else { Ok(()) }
    }
}

/// Confines the child, if it is to be. From here on it can do nothing but become its program.
#[cfg(target_os = "linux")]
fn hold(plan: &Plan<'_>, listener: &mut RawFd) -> Result<(), Failure> {
    if let Some(hold) = &plan.hold {
        *listener = hold::apply(hold).map_err(Failure::hold)?;
    }
    super::turns::usual();
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn hold(_plan: &Plan<'_>, _listener: &mut RawFd) -> Result<(), Failure> {
    Ok(())
}

/// # Safety
///
/// As for [`become_program`].
unsafe fn execute(plan: &Plan<'_>) -> Result<std::convert::Infallible, Failure> {
    let Words { calls: [first, second], env, .. } = plan.words;
    // SAFETY: passed on from the caller.
    unsafe { call(first, env, Stop::AtWhatIsThere).or_else(|_| call(second, env, Stop::AtTheEnd)) }
}

/// When to look for no other program of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// When there is one, though it cannot be started.
    AtWhatIsThere,
    AtTheEnd,
}

/// Tries each candidate, by the rules of `execvp`: a missing one is passed over, one without permission too, but is
/// what we complain about in the end.
///
/// # Safety
///
/// As for [`become_program`].
unsafe fn call(
    call: Call,
    env: *const *const c_char,
    stop: Stop,
) -> Result<std::convert::Infallible, Failure> {
    let mut failure = Failure::program(libc::ENOENT);
    let Call { candidates: mut candidate, argv } = call;
    // SAFETY: `candidates`, `argv` and `env` are lists of C strings that end in a null pointer, by the caller's word;
    // `candidate` moves on only from an element that is not that end.
    unsafe {
        while !(*candidate).is_null() {
            libc::execve(*candidate, argv, env);
            let this = Failure::last(Failure::PROGRAM);
            match this.errno {
                // Its interpreter is missing, say: a shell does not look any further.
                _ if stop == Stop::AtWhatIsThere && libc::access(*candidate, libc::X_OK) == 0 => {
                    return Err(this);
                }
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => failure = this,
                _ => return Err(this),
            }
            candidate = candidate.add(1);
        }
    }
    Err(failure)
}

/// Has the kernel kill the child when the thread that made it is gone, and ends it at once if it already is.
#[cfg(target_os = "linux")]
fn die_with_parent(parent: libc::pid_t) {
    // SAFETY: both calls take and give numbers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if parent != 0 && libc::getppid() != parent {
            libc::_exit(127);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_parent: libc::pid_t) {}

/// Undoes what this process does with signals: handlers would run in shared memory, and `exec` keeps ignored signals,
/// such as SIGPIPE, which Rust ignores.
pub(super) fn default_actions() {
    // SAFETY: all zeros is a valid `sigaction`, whose handler is then SIG_DFL; it lives across the calls. Signals that
    // cannot be set fail without effect.
    unsafe {
        let action: libc::sigaction = mem::zeroed();
        for signal in 1..=LAST_SIGNAL {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Lets signals through that were held back: `exec` keeps that, too.
fn unblock_signals() {
    // SAFETY: `sigemptyset` makes a valid set of a local that lives across the calls.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Rust opens everything so that `exec` closes it, but a C library in the same process may not.
fn close_others_on_exec(open_files: c_int) {
    // SAFETY: `close_range` takes numbers only; marking descriptors in the child's own table changes nothing here.
    #[cfg(target_os = "linux")]
    if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return;
    }
    for descriptor in 3..open_files {
        // SAFETY: only numbers; a descriptor that is not open fails without effect.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// One more than the highest descriptor this process can have.
fn open_file_limit() -> c_int {
    // SAFETY: takes and gives a number.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(limit).unwrap_or(c_int::MAX)
}

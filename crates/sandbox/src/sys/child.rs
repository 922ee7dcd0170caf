//! The code between fork and exec: no allocation, no locks, no panics.

use std::{
    convert::Infallible,
    ffi::{c_char, c_int},
    mem,
    os::fd::{AsRawFd, RawFd},
    ptr,
};

#[cfg(target_os = "linux")]
use super::restrictions::{self, ChildRestrictions};
use super::{ChildStdio, start_error::StartFailure};

/// Signals are numbered from 1 to this.
#[cfg(target_os = "linux")]
const LAST_SIGNAL: c_int = 64;
#[cfg(not(target_os = "linux"))]
const LAST_SIGNAL: c_int = 31;

/// A program as `execve` takes it: C strings, and arrays of them that end in a null pointer. Valid
/// until the child has reported.
#[derive(Clone, Copy)]
pub(super) struct ExecProgram {
    /// The program of a simple shell line, and the shell itself: the first that can be executed is.
    pub(super) attempts: [ExecAttempt; 2],
    pub(super) env: *const *const c_char,
    pub(super) cwd: *const c_char,
}

/// The paths that a program may have, possibly none, and its arguments.
#[derive(Clone, Copy)]
pub(super) struct ExecAttempt {
    pub(super) candidates: *const *const c_char,
    pub(super) argv: *const *const c_char,
}

/// Everything the child needs, prepared before the fork.
#[derive(Clone, Copy)]
pub(super) struct ExecPlan<'a> {
    pub(super) program: ExecProgram,
    pub(super) input: RawFd,
    pub(super) output: RawFd,
    pub(super) error: RawFd,
    pub(super) report: RawFd,
    /// The parent whose death ends the child; 0 where PID 1 of the namespace or a subreaper does
    /// that.
    pub(super) parent: libc::pid_t,
    pub(super) open_files: c_int,
    #[cfg(target_os = "linux")]
    pub(super) restrictions: Option<ChildRestrictions<'a>>,
    #[cfg(not(target_os = "linux"))]
    pub(super) restrictions: std::marker::PhantomData<&'a ()>,
}

/// Makes a plan without restrictions.
pub(super) fn exec_plan<'a>(program: ExecProgram, stdio: &ChildStdio, report: RawFd) -> ExecPlan<'a> {
    ExecPlan {
        program,
        input: stdio.input.as_raw_fd(),
        output: stdio.output.as_raw_fd(),
        error: stdio.error.as_raw_fd(),
        report,
        parent: std::process::id().cast_signed(),
        open_files: open_file_limit(),
        #[cfg(target_os = "linux")]
        restrictions: None,
        #[cfg(not(target_os = "linux"))]
        restrictions: std::marker::PhantomData,
    }
}

/// Turns the child into the program; returns only on failure. `listener` becomes the descriptor of
/// seccomp notifications, if there is one.
///
/// # Safety
///
/// To be called in a fresh child only, with all signals blocked. The pointers of `plan` must be C
/// strings, and arrays of them that end in a null pointer.
pub(super) unsafe fn exec_program(plan: &ExecPlan<'_>, listener: &mut RawFd) -> StartFailure {
    // SAFETY: passed on from the caller.
    unsafe {
        let Err(failure) = prepare(plan).and_then(|()| restrict(plan, listener)).and_then(|()| execute(plan));
        failure
    }
}

/// # Safety
///
/// As for [`exec_program`].
unsafe fn prepare(plan: &ExecPlan<'_>) -> Result<(), StartFailure> {
    let check =
        |result: c_int| if result < 0 { Err(StartFailure::last(StartFailure::PROGRAM)) } else { Ok(()) };
    // SAFETY: only numbers are passed, except for `cwd`, which is a C string as the caller
    // promises.
    unsafe {
        check(libc::setsid())?;
        die_with_parent(plan.parent);
        // A zygote has done so once.
        #[cfg(not(target_os = "linux"))]
        default_actions();
        unblock_signals();
        check(libc::dup2(plan.input, 0))?;
        check(libc::dup2(plan.output, 1))?;
        check(libc::dup2(plan.error, 2))?;
        // A terminal that belongs to no session yet becomes this one's: then Ctrl-C reaches what
        // runs on it, and nothing else. Any other input, such as the user's own terminal, refuses,
        // and that is fine.
        libc::ioctl(0, libc::TIOCSCTTY as _, 0);
        close_others_on_exec(plan.open_files);
        if libc::chdir(plan.program.cwd) < 0 {
            Err(StartFailure::last(StartFailure::DIRECTORY))
        } else {
            Ok(())
        }
    }
}

/// Confines the child, if it is to be. From here on it can do nothing but execute its program.
#[cfg(target_os = "linux")]
fn restrict(plan: &ExecPlan<'_>, listener: &mut RawFd) -> Result<(), StartFailure> {
    if let Some(restrictions) = &plan.restrictions {
        *listener = restrictions::apply(restrictions).map_err(StartFailure::restriction)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn restrict(_plan: &ExecPlan<'_>, _listener: &mut RawFd) -> Result<(), StartFailure> {
    Ok(())
}

/// # Safety
///
/// As for [`exec_program`].
unsafe fn execute(plan: &ExecPlan<'_>) -> Result<Infallible, StartFailure> {
    let ExecProgram { attempts: [bypass, program], env, .. } = plan.program;
    // SAFETY: passed on from the caller.
    unsafe {
        try_candidates(bypass, env, StopAt::FirstExecutable)
            .or_else(|_| try_candidates(program, env, StopAt::LastCandidate))
    }
}

/// When to give up looking for a program in the directories of `PATH`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopAt {
    /// At the first file with execute permission, even if `execve` refuses it.
    FirstExecutable,
    LastCandidate,
}

/// Tries each candidate, by the rules of `execvp`: a missing one is passed over, one without
/// permission too, but its error is returned in the end.
///
/// # Safety
///
/// As for [`exec_program`].
unsafe fn try_candidates(
    attempt: ExecAttempt,
    env: *const *const c_char,
    stop: StopAt,
) -> Result<Infallible, StartFailure> {
    let mut failure = StartFailure::program(libc::ENOENT);
    let ExecAttempt { candidates: mut candidate, argv } = attempt;
    // SAFETY: `candidates`, `argv` and `env` are arrays of C strings that end in a null pointer, as
    // the caller promises; `candidate` moves on only from an element that is not that end.
    unsafe {
        while !(*candidate).is_null() {
            libc::execve(*candidate, argv, env);
            let this = StartFailure::last(StartFailure::PROGRAM);
            match this.errno {
                // A script whose interpreter is missing, say: a shell does not look any further.
                _ if stop == StopAt::FirstExecutable && libc::access(*candidate, libc::X_OK) == 0 => {
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

/// Has the kernel kill the child when the thread that forked it ends, and ends the child at once if
/// it already has.
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

/// Resets all signals to SIG_DFL: handlers would run in shared memory, and `exec` keeps ignored
/// signals, such as SIGPIPE, which Rust ignores.
pub(super) fn default_actions() {
    // SAFETY: all zeros is a valid `sigaction`, whose handler is then SIG_DFL; it lives across the
    // calls. Signals that cannot be set fail without effect.
    unsafe {
        let action: libc::sigaction = mem::zeroed();
        for signal in 1..=LAST_SIGNAL {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Unblocks all signals: `exec` keeps the signal mask, too.
fn unblock_signals() {
    // SAFETY: `sigemptyset` makes a valid set of a local that lives across the calls.
    unsafe {
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Sets FD_CLOEXEC on all descriptors above 2. Rust opens them with it, but a C library in the same
/// process may not.
fn close_others_on_exec(open_files: c_int) {
    // SAFETY: `close_range` takes numbers only; marking descriptors in the child's own table
    // changes nothing here.
    #[cfg(target_os = "linux")]
    if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return;
    }
    for descriptor in 3..open_files {
        // SAFETY: only numbers; a descriptor that is not open fails without effect.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Returns one more than the highest descriptor this process can have.
fn open_file_limit() -> c_int {
    // SAFETY: takes and gives a number.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(limit).unwrap_or(c_int::MAX)
}

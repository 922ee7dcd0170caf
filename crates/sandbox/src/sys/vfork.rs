//! Starting the command from its first process, sharing memory until `execve`, as `vfork` does.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
};

use super::{ChildPid, ExecPlan, StartFailure, exec_program, landlock::last_errno};

/// A command that has been executed, and the listener of its seccomp filter; -1 without one.
pub(super) struct VforkedChild {
    pub(super) pid: libc::pid_t,
    pub(super) listener: RawFd,
}

/// Starts the command with `CLONE_VM | CLONE_VFORK | CLONE_FILES`. This process stands still until
/// the command was executed. The shared descriptor table is how the listener of its seccomp filter
/// gets here.
///
/// # Safety
///
/// As for [`exec_program`]. `stack` is the top of a stack that is otherwise unused.
pub(super) unsafe fn vfork_exec(
    plan: &ExecPlan<'_>,
    stack: *mut c_void,
) -> Result<VforkedChild, StartFailure> {
    struct VforkArguments<'a> {
        plan: &'a ExecPlan<'a>,
        listener: RawFd,
        failure: Option<StartFailure>,
    }
    extern "C" fn main(passed: *mut c_void) -> c_int {
        // SAFETY: the pointer is the one passed to `clone` below, whose caller stands still until
        // we no longer use it.
        unsafe {
            let VforkArguments { plan, listener, failure } = &mut *passed.cast::<VforkArguments<'_>>();
            *failure = Some(exec_program(plan, listener));
            libc::_exit(127)
        }
    }
    let mut passed = VforkArguments { plan, listener: -1, failure: None };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the caller promises an unused stack; `passed` and what it points to live until
    // `clone` returns, which CLONE_VFORK delays until the child no longer uses our memory.
    let pid = unsafe { libc::clone(main, stack, flags, (&raw mut passed).cast()) };
    match passed.failure {
        _ if pid < 0 => Err(StartFailure::program(last_errno())),
        Some(failure) => {
            // It has ended; if it cannot be reaped here, its adoptive parent reaps it.
            drop(ChildPid(pid).reap(0));
            Err(failure)
        }
        None => Ok(VforkedChild { pid, listener: passed.listener }),
    }
}

/// Duplicates three descriptors to 0, 1 and 2.
pub(super) fn dup_standard(given: [RawFd; 3]) -> Result<(), StartFailure> {
    for (from, to) in given.into_iter().zip(0..) {
        // SAFETY: numbers only.
        if unsafe { libc::dup2(from, to) } < 0 {
            return Err(StartFailure::program(last_errno()));
        }
    }
    Ok(())
}

/// Closes all descriptors but the standard ones and these. A kernel without `close_range` is fine:
/// what Rust opened closes on `exec`.
pub(super) fn close_all_but<const KEPT: usize>(mut kept: [RawFd; KEPT]) {
    kept.sort_unstable();
    let mut first = 3_u32;
    for descriptor in kept.into_iter().filter_map(|descriptor| u32::try_from(descriptor).ok()) {
        close_range(first, descriptor.wrapping_sub(1));
        first = first.max(descriptor + 1);
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    if first <= last {
        // SAFETY: numbers only; the caller has listed every descriptor that is still used.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

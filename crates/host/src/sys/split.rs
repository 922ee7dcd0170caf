//! Making the process that becomes the command: with the memory of the one that makes it, until then.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
};

use super::{Failure, Pid, Plan, become_program, landlock::last_errno};

/// A program that was started, and the listener of its filter, if it has one.
pub(super) struct Borrower {
    pub(super) pid: libc::pid_t,
    pub(super) listener: RawFd,
}

/// Makes a process that borrows our memory and our descriptors until it has become its program: that is how the
/// listener of its filter comes to us. We stand still until then.
///
/// # Safety
///
/// As for [`become_program`]. `stack` is the top of one that nobody else uses.
pub(super) unsafe fn borrow(plan: &Plan<'_>, stack: *mut c_void) -> Result<Borrower, Failure> {
    struct Passed<'a> {
        plan: &'a Plan<'a>,
        listener: RawFd,
        failure: Option<Failure>,
    }
    extern "C" fn main(passed: *mut c_void) -> c_int {
        // SAFETY: it is what was passed to `clone` below, which stands still until we no longer use it.
        unsafe {
            let Passed { plan, listener, failure } = &mut *passed.cast::<Passed<'_>>();
            *failure = Some(become_program(plan, listener));
            libc::_exit(127)
        }
    }
    let mut passed = Passed { plan, listener: -1, failure: None };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is the caller's word; `passed` and what it points to live until `clone` returns, which CLONE_VFORK delays until the child no longer uses our memory.
    let pid = unsafe { libc::clone(main, stack, flags, (&raw mut passed).cast()) };
    match passed.failure {
        _ if pid < 0 => Err(Failure::program(last_errno())),
        Some(failure) => {
            // It has ended; if it cannot be collected, whoever adopts it does.
            drop(Pid(pid).collect(0));
            Err(failure)
        }
        None => Ok(Borrower { pid, listener: passed.listener }),
    }
}

/// Puts three descriptors where the standard ones belong.
pub(super) fn place_standard(given: [RawFd; 3]) -> Result<(), Failure> {
    for (from, to) in given.into_iter().zip(0..) {
        // SAFETY: numbers only.
        if unsafe { libc::dup2(from, to) } < 0 {
            return Err(Failure::program(last_errno()));
        }
    }
    Ok(())
}

/// Closes everything but the standard descriptors and these. Nothing to close is fine, and so is a kernel without the
/// call: what Rust opened closes on `exec`.
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
        // SAFETY: numbers only; nothing above the standard three is used but what the caller leaves out.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

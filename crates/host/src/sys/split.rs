//! Making processes: with a copy of our memory for one that stays, with our memory itself for one that soon becomes its
//! program.

use std::{
    ffi::{c_int, c_long, c_void},
    io,
    os::fd::{FromRawFd, OwnedFd, RawFd},
    sync::OnceLock,
};

use super::{Failure, Pid, Plan, Started, become_program, landlock::last_errno};

/// 64 KiB, of u128 for the alignment stacks need. The deepest frame of a child is a few hundred bytes, and no handler
/// can run on top of it.
const STACK_LENGTH: usize = 4096;

/// A stack for a child that borrows our memory.
pub(super) struct Stack(Vec<u128>);

impl Stack {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(STACK_LENGTH))
    }

    /// Where it begins: stacks grow down.
    pub(super) fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the allocation.
        unsafe { self.0.as_ptr().add(STACK_LENGTH).cast_mut().cast() }
    }
}

/// Makes a process with a copy of our memory, in new namespaces where `flags` has them; nothing is returned in the copy.
/// Copying the tables of a small program takes some 0.1 ms. `kill_signal` is what has it and everything below it die.
///
/// # Safety
///
/// All signals are blocked. The copy only makes system calls, and ends: nothing else is safe in a copy of a program with
/// threads.
pub(super) unsafe fn copy(flags: c_int, kill_signal: c_int) -> io::Result<Option<Started>> {
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut ended: RawFd = -1;
    // SAFETY: without CLONE_VM and with no stack this is a `fork`; the one pointer is to where the kernel writes a
    // descriptor. The rest is the caller's word.
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut ended, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => {
            let pid = Pid(libc::pid_t::try_from(pid).map_err(io::Error::other)?);
            if ended < 0 {
                pid.kill_group(libc::SIGKILL);
                pid.collect(0)?;
                return Err(io::Error::new(io::ErrorKind::Unsupported, "this needs Linux 5.2 or later"));
            }
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
            let ended = unsafe { OwnedFd::from_raw_fd(ended) };
            Ok(Some(Started { pid, kill_signal, ended, last_words: None, heard: OnceLock::new() }))
        }
    }
}

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
/// As for [`become_program`].
pub(super) unsafe fn borrow(plan: &Plan<'_>, stack: &Stack) -> Result<Borrower, Failure> {
    extern "C" fn main(passed: *mut c_void) -> c_int {
        // SAFETY: it is the pair passed to `clone` below, which stands still until we no longer use it.
        unsafe {
            let (plan, listener) = &mut *passed.cast::<(&Plan<'_>, RawFd)>();
            become_program(plan, listener)
        }
    }
    let mut passed = (plan, -1);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is an aligned allocation that nobody else uses; `passed` and what it points to live until
    // `clone` returns, which CLONE_VFORK delays until the child no longer uses our memory.
    let pid = unsafe { libc::clone(main, stack.top(), flags, (&raw mut passed).cast()) };
    if pid < 0 { Err(Failure::program(last_errno())) } else { Ok(Borrower { pid, listener: passed.1 }) }
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

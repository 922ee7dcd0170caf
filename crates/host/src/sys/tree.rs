//! Everyone below a process, found by the parents that `/proc` tells.
//!
//! Allocates nothing and takes no locks: a warden uses it, too.

use std::{ffi::c_int, thread, time::Duration};

use super::init::{each_process, number_in, parent_in, state};

/// How soon those are looked for again who were forked while their parents were stopped.
const ROUND: Duration = Duration::from_millis(1);

/// After so many rounds it is left at that: who is stuck in the kernel stops when it comes out.
const STOP_ROUNDS: u32 = 100;

/// No tree of processes is deeper than this; a chain of parents that seems to be was read while it changed.
const DEPTH_LIMIT: usize = 4096;

/// The processes below one, which is not among them.
#[derive(Clone, Copy)]
pub(super) struct Tree(u32);

impl Tree {
    /// Below this process.
    pub(super) fn ours() -> Self {
        Self(std::process::id())
    }

    /// Below a child of ours that is not collected.
    pub(super) fn below(child: libc::pid_t) -> Self {
        Self(child.cast_unsigned())
    }

    /// Visits everyone who has not ended.
    pub(super) fn each(self, mut visit: impl FnMut(u32)) {
        each_process(|pid| {
            if self.holds(pid) {
                visit(pid);
            }
        });
    }

    /// Sends a signal to everyone.
    pub(super) fn signal(self, signal: c_int) {
        self.each(|pid| self.send(pid, signal));
    }

    /// Returns when nobody runs any more: until then one who waits to read would still take what comes. One round is
    /// not enough, also because whoever forks while it is being stopped leaves a child to the next.
    pub(super) fn stop(self) {
        for _ in 0..STOP_ROUNDS {
            let mut all_stopped = true;
            self.each(|pid| {
                if !matches!(state(pid), b'T' | b't') {
                    all_stopped = false;
                    self.send(pid, libc::SIGSTOP);
                }
            });
            if all_stopped {
                return;
            }
            thread::sleep(ROUND);
        }
    }

    /// Whether the parents of a process lead to the one above.
    fn holds(self, pid: u32) -> bool {
        let mut above = pid;
        for _ in 0..DEPTH_LIMIT {
            above = u32::try_from(number_in(above, b"/stat", parent_in)).unwrap_or(0);
            if above <= 1 {
                return false;
            }
            if above == self.0 {
                return true;
            }
        }
        false
    }

    /// Sends a signal to one of them, and to nobody who got its number since it was seen.
    fn send(self, pid: u32, signal: c_int) {
        // SAFETY: numbers and a null pointer; the descriptor is closed where it was opened.
        unsafe {
            let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            if let Ok(process @ 0..) = c_int::try_from(process) {
                if self.holds(pid) {
                    libc::syscall(libc::SYS_pidfd_send_signal, process, signal, std::ptr::null::<u8>(), 0);
                }
                libc::close(process);
            }
        }
    }
}

//! The descendants of a process, found by the parent PIDs in `/proc`.
//!
//! Allocates nothing and takes no locks: a subreaper uses it, too.

use std::{ffi::c_int, thread, time::Duration};

use super::init::{each_process, number_in, parent_in, state};

/// The pause before the next round, for processes that were forked while their parents were
/// stopped.
const ROUND: Duration = Duration::from_millis(1);

/// A process that is stuck in the kernel stops when it leaves the kernel, and is not waited for
/// longer than this.
const MAX_STOP_ROUNDS: u32 = 100;

/// No process tree is deeper than this; a longer chain of parents was read while it changed.
const MAX_DEPTH: usize = 4096;

/// The descendants of the process with this PID.
#[derive(Clone, Copy)]
pub(super) struct ProcessTree(u32);

impl ProcessTree {
    /// The descendants of this process.
    pub(super) fn of_self() -> Self {
        Self(std::process::id())
    }

    /// The descendants of a child that is not reaped.
    pub(super) fn of_child(child: libc::pid_t) -> Self {
        Self(child.cast_unsigned())
    }

    /// Visits every descendant that has not ended.
    pub(super) fn each(self, mut visit: impl FnMut(u32)) {
        each_process(|pid| {
            if self.contains(pid) {
                visit(pid);
            }
        });
    }

    /// Sends a signal to all descendants.
    pub(super) fn signal(self, signal: c_int) {
        self.each(|pid| self.send(pid, signal));
    }

    /// Stops all descendants and waits until they have stopped: until then one that waits in `read`
    /// would still take input. Works in rounds, because a process that forks while it is being
    /// stopped leaves a running child.
    pub(super) fn stop(self) {
        for _ in 0..MAX_STOP_ROUNDS {
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

    /// Returns whether a process is a descendant.
    fn contains(self, pid: u32) -> bool {
        let mut ancestor = pid;
        for _ in 0..MAX_DEPTH {
            ancestor = u32::try_from(number_in(ancestor, b"/stat", parent_in)).unwrap_or(0);
            if ancestor <= 1 {
                return false;
            }
            if ancestor == self.0 {
                return true;
            }
        }
        false
    }

    /// Sends a signal by pidfd, so that a process that got the same PID since does not receive it.
    fn send(self, pid: u32, signal: c_int) {
        // SAFETY: numbers and a null pointer; the descriptor is closed where it was opened.
        unsafe {
            let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            if let Ok(process @ 0..) = c_int::try_from(process) {
                if self.contains(pid) {
                    libc::syscall(libc::SYS_pidfd_send_signal, process, signal, std::ptr::null::<u8>(), 0);
                }
                libc::close(process);
            }
        }
    }
}

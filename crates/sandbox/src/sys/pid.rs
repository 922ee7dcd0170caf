//! A child by its PID: signals, reaping.

#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::{ffi::c_int, io};

use windlass_contract::host::Exit;

#[cfg(target_os = "linux")]
use super::process_tree::ProcessTree;

/// The PID of a child. Valid until the child is reaped.
#[derive(Debug, Clone, Copy)]
pub struct ChildPid(pub(super) libc::pid_t);

impl ChildPid {
    /// Returns the number.
    pub fn number(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// Sends a signal to the child's process group. A group that is already gone is fine.
    pub(super) fn kill_group(self, signal: c_int) {
        // A stopped process handles no other signal before SIGCONT.
        // SAFETY: takes numbers only. The group has the child's number, and that cannot have passed
        // to others while the child is not reaped.
        unsafe {
            libc::killpg(self.0, signal);
            libc::killpg(self.0, libc::SIGCONT);
        }
    }

    /// Kills the child alone.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not reaped.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// Sends SIGCONT to the child.
    #[cfg(target_os = "linux")]
    pub(super) fn wake(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not reaped.
        unsafe { libc::kill(self.0, libc::SIGCONT) };
    }

    /// Opens a pidfd, which is readable when the process has ended.
    #[cfg(target_os = "linux")]
    pub(super) fn pidfd(self) -> io::Result<OwnedFd> {
        // SAFETY: takes numbers, and gives a new descriptor, which has no other owner.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, self.0, 0);
            match RawFd::try_from(descriptor) {
                Ok(descriptor @ 0..) => Ok(OwnedFd::from_raw_fd(descriptor)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Sends SIGTERM to the child. A first process passes it on to all its descendants.
    pub fn terminate(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not reaped.
        unsafe {
            libc::kill(self.0, libc::SIGTERM);
            libc::kill(self.0, libc::SIGCONT);
        }
    }

    /// Stops all descendants of a first process, which itself keeps running.
    #[cfg(target_os = "linux")]
    pub fn stop_all(self) {
        ProcessTree::of_child(self.0).stop();
    }

    /// Returns all descendants of a first process.
    #[cfg(target_os = "linux")]
    pub fn descendants(self) -> Vec<u32> {
        let mut all = Vec::new();
        ProcessTree::of_child(self.0).each(|pid| all.push(pid));
        all
    }

    /// Continues all processes that [`stop_all`](Self::stop_all) stopped.
    #[cfg(target_os = "linux")]
    pub fn continue_all(self) {
        ProcessTree::of_child(self.0).signal(libc::SIGCONT);
    }

    /// Stops the command's process group.
    #[cfg(not(target_os = "linux"))]
    pub fn stop_all(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not reaped.
        unsafe { libc::killpg(self.0, libc::SIGSTOP) };
    }

    /// Continues all processes that [`stop_all`](Self::stop_all) stopped.
    #[cfg(not(target_os = "linux"))]
    pub fn continue_all(self) {
        // SAFETY: as above.
        unsafe { libc::killpg(self.0, libc::SIGCONT) };
    }

    /// Reaps the child if it has ended, and returns its exit status.
    pub fn try_reap(self) -> io::Result<Option<Exit>> {
        self.reap(libc::WNOHANG)
    }

    /// Waits until the child has ended, without reaping it.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn wait(self) -> io::Result<()> {
        loop {
            // SAFETY: all zeros is a valid `siginfo_t` to be filled, and it lives across the call.
            let result = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let id = self.0.cast_unsigned();
                libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT)
            };
            match (result, io::Error::last_os_error()) {
                (0, _) => return Ok(()),
                (_, error) if error.kind() == io::ErrorKind::Interrupted => {}
                (_, error) => return Err(error),
            }
        }
    }

    /// Reaps the child by `waitpid` with these flags.
    pub fn reap(self, flags: c_int) -> io::Result<Option<Exit>> {
        loop {
            let mut status = 0;
            // SAFETY: `status` lives across the call.
            let pid = unsafe { libc::waitpid(self.0, &raw mut status, flags) };
            if pid > 0 {
                return Ok(Some(exit_from_status(status)));
            }
            if pid == 0 {
                return Ok(None);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

/// Converts a `waitpid` status.
pub(super) fn exit_from_status(status: c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

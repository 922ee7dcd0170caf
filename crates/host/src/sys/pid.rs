//! A child by its number: killing it, collecting it.

#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::{ffi::c_int, io};

use windlass_contract::Exit;

#[cfg(target_os = "linux")]
use super::tree::Tree;

/// A child of ours. Only meaningful until it is collected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pid(pub(super) libc::pid_t);

impl Pid {
    /// Sends a signal to every process of the child's group. A group that is already gone is fine.
    pub(super) fn kill_group(self, signal: c_int) {
        // Who was stopped hears no other signal before this one.
        // SAFETY: takes numbers only. The group has the child's number, and that cannot have passed to others while
        // the child is not collected.
        unsafe {
            libc::killpg(self.0, signal);
            libc::killpg(self.0, libc::SIGCONT);
        }
    }

    /// Kills the child alone.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not collected.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// Has the child go on, if it was stopped.
    #[cfg(target_os = "linux")]
    pub(super) fn wake(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not collected.
        unsafe { libc::kill(self.0, libc::SIGCONT) };
    }

    /// A descriptor that is readable when the process has ended.
    #[cfg(target_os = "linux")]
    pub(super) fn descriptor(self) -> io::Result<OwnedFd> {
        // SAFETY: takes numbers, and gives a descriptor that nobody else knows of.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, self.0, 0);
            match RawFd::try_from(descriptor) {
                Ok(descriptor @ 0..) => Ok(OwnedFd::from_raw_fd(descriptor)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Asks the child to end. The first process of a sandbox passes it on to everyone.
    pub(crate) fn ask_to_end(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not collected.
        unsafe {
            libc::kill(self.0, libc::SIGTERM);
            libc::kill(self.0, libc::SIGCONT);
        }
    }

    /// Stops everyone below the first process of a command, which itself goes on looking after them.
    #[cfg(target_os = "linux")]
    pub(crate) fn stop_all(self) {
        Tree::below(self.0).stop();
    }

    /// Everyone below the first process of a command.
    #[cfg(target_os = "linux")]
    pub(crate) fn all(self) -> Vec<u32> {
        let mut all = Vec::new();
        Tree::below(self.0).each(|pid| all.push(pid));
        all
    }

    /// Has everyone go on who was stopped.
    #[cfg(target_os = "linux")]
    pub(crate) fn continue_all(self) {
        Tree::below(self.0).signal(libc::SIGCONT);
    }

    /// Stops the command and its group.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn stop_all(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not collected.
        unsafe { libc::killpg(self.0, libc::SIGSTOP) };
    }

    /// Has everyone go on who was stopped.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn continue_all(self) {
        // SAFETY: as above.
        unsafe { libc::killpg(self.0, libc::SIGCONT) };
    }

    /// How the child ended, if it has. Gives its number back to the system.
    pub(crate) fn try_collect(self) -> io::Result<Option<Exit>> {
        self.collect(libc::WNOHANG)
    }

    /// Waits until the child has ended, without collecting it.
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

    pub(crate) fn collect(self, flags: c_int) -> io::Result<Option<Exit>> {
        loop {
            let mut status = 0;
            // SAFETY: `status` lives across the call.
            let pid = unsafe { libc::waitpid(self.0, &raw mut status, flags) };
            if pid > 0 {
                return Ok(Some(exit(status)));
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

pub(super) fn exit(status: c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

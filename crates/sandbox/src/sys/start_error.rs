//! The reasons why a child did not execute its program, and the message in which it reports them.

use std::{ffi::c_int, io, os::fd::RawFd};

#[cfg(target_os = "linux")]
use super::restrictions::RestrictionStep;
#[cfg(target_os = "linux")]
use crate::namespace_plan::MountStep;

/// The reason why a child did not execute its program.
#[derive(Debug)]
pub enum StartError {
    /// `chdir` to the working directory failed.
    Directory(io::Error),
    /// This step of confining it failed.
    Confine(String, io::Error),
    /// This machine cannot confine it as required, for this reason.
    Impossible(String),
    /// Anything else.
    Program(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Program(error)
    }
}

/// A failed step in the child, as it is reported to the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StartFailure {
    kind: u8,
    detail: u16,
    pub(super) errno: c_int,
}

impl StartFailure {
    pub(super) const PROGRAM: u8 = 0;
    pub(super) const DIRECTORY: u8 = 1;
    const RESTRICTION: u8 = 2;
    const MOUNT: u8 = 3;
    const USER_NAMESPACE: u8 = 4;
    const LOOPBACK: u8 = 5;

    pub(super) fn program(errno: c_int) -> Self {
        Self { kind: Self::PROGRAM, detail: 0, errno }
    }

    pub(super) fn last(kind: u8) -> Self {
        Self { kind, detail: 0, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
    }

    /// The report of a command that was executed.
    #[cfg(target_os = "linux")]
    pub(super) const NONE: [u8; 8] = [0; 8];

    pub(super) fn write(self) -> [u8; 8] {
        let mut message = [self.kind; 8];
        message[2..4].copy_from_slice(&self.detail.to_ne_bytes());
        message[4..].copy_from_slice(&self.errno.to_ne_bytes());
        message
    }

    pub(super) fn read(message: [u8; 8]) -> Self {
        let [kind, _, low, high, errno @ ..] = message;
        Self { kind, detail: u16::from_ne_bytes([low, high]), errno: c_int::from_ne_bytes(errno) }
    }

    /// Reports the failure and ends the child.
    pub(super) fn send(self, report: RawFd) -> ! {
        let message = self.write();
        // SAFETY: the message is a local that lives across the call.
        unsafe {
            libc::write(report, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }

    pub(super) fn explain(self, #[cfg(target_os = "linux")] steps: &[MountStep]) -> StartError {
        let error = io::Error::from_raw_os_error(self.errno);
        #[cfg(target_os = "linux")]
        if let Some(step) = self.step(steps) {
            let failed = steps.get(usize::from(self.detail)).filter(|_| self.kind == Self::MOUNT);
            // Trying again does not help: the kernel or the file system has no overlay for us.
            if matches!(failed, Some(MountStep::Overlay { .. })) {
                return StartError::Impossible(format!("{step} is not possible here: {error}"));
            }
            return StartError::Confine(step, error);
        }
        if self.kind == Self::DIRECTORY { StartError::Directory(error) } else { StartError::Program(error) }
    }
}

#[cfg(target_os = "linux")]
impl StartFailure {
    pub(super) fn restriction((step, errno): (RestrictionStep, c_int)) -> Self {
        Self { kind: Self::RESTRICTION, detail: step as u16, errno }
    }

    pub(super) fn mount(step: usize, errno: c_int) -> Self {
        Self { kind: Self::MOUNT, detail: u16::try_from(step).unwrap_or(u16::MAX), errno }
    }

    pub(super) fn user_namespace(errno: c_int) -> Self {
        Self { kind: Self::USER_NAMESPACE, detail: 0, errno }
    }

    pub(super) fn loopback(errno: c_int) -> Self {
        Self { kind: Self::LOOPBACK, detail: 0, errno }
    }

    /// Describes the failed step, if it belongs to confining.
    fn step(self, steps: &[MountStep]) -> Option<String> {
        match self.kind {
            Self::RESTRICTION => Some(RestrictionStep::describe(self.detail).to_owned()),
            Self::MOUNT => Some(
                steps
                    .get(usize::from(self.detail))
                    .map_or_else(|| "mounting".to_owned(), MountStep::describe),
            ),
            Self::USER_NAMESPACE => Some("writing the uid map of a user namespace".to_owned()),
            Self::LOOPBACK => Some("bringing the loopback interface up".to_owned()),
            _ => None,
        }
    }
}

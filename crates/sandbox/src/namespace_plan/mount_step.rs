//! One step in building the mount namespace of a command. [`sys`](crate::sys) carries them out.

use std::{
    ffi::{CStr, CString},
    os::{fd::RawFd, unix::ffi::OsStrExt},
    path::Path,
};

use crate::sandbox_paths::PlanError;

/// Maximum number of mount trees that are carried over into a new mount namespace.
pub(crate) const MAX_HELD_TREES: usize = 60;

/// Empty file and directory that replace unreadable ones.
pub(crate) const HIDDEN_FILE: &CStr = c"/dev/.hidden-file";
pub(crate) const HIDDEN_DIRECTORY: &CStr = c"/dev/.hidden-directory";

/// The directory of what is put in the place of settings that may not be read.
pub(super) const STAND_INS: &str = "/dev/.stand-ins";

/// One step in building the mount namespace of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountStep<S = CString> {
    /// Clones a mount tree (`open_tree`) as it is now.
    CloneTree { path: S, slot: usize },
    /// Clones the mount tree at a path, if that is the open directory.
    CloneRoot { directory: RawFd, path: S, slot: usize },
    /// Makes every mount read-only.
    AllReadOnly,
    /// Attaches a cloned tree at a path (`move_mount`).
    Attach { slot: usize, path: S },
    /// Mounts a new tmpfs.
    Tmpfs { path: S, options: S },
    /// Mounts a devpts with terminals of the command's own.
    Devpts { path: S },
    /// Mounts a procfs that shows only the command's own processes.
    Proc { path: S },
    /// Makes a directory if there is none.
    Directory { path: S, mode: u32 },
    /// Makes an empty file.
    File { path: S, mode: u32 },
    /// Makes a readable file with a text.
    TextFile { path: S, text: S },
    /// Makes a symbolic link.
    Link { path: S, target: S },
    /// Mounts a symbolic link on a file, so that the file leads where the link does.
    MountLink { path: S, link: S },
    /// Makes a path a mount point, so that it cannot be renamed or removed.
    Pin { path: S },
    /// Makes a path a read-only mount point.
    BindReadOnly { path: S },
    /// Replaces a path by something unreadable.
    Hide { path: S, with: S },
    /// Replaces a file by other settings.
    StandIn { path: S, with: S },
    /// Makes one mount read-only.
    SetReadOnly { path: S },
    /// Mounts an overlay.
    Overlay { path: S, options: S },
    /// Detaches a mount tree.
    Detach { path: S },
}

impl MountStep {
    /// Returns the same step with its strings stored elsewhere.
    pub(crate) fn moved<'a, E>(
        &self,
        put: impl Fn(&CString) -> Result<&'a CStr, E>,
    ) -> Result<MountStep<&'a CStr>, E> {
        Ok(match self {
            Self::CloneTree { path, slot } => MountStep::CloneTree { path: put(path)?, slot: *slot },
            Self::CloneRoot { directory, path, slot } => {
                MountStep::CloneRoot { directory: *directory, path: put(path)?, slot: *slot }
            }
            Self::AllReadOnly => MountStep::AllReadOnly,
            Self::Attach { slot, path } => MountStep::Attach { slot: *slot, path: put(path)? },
            Self::Tmpfs { path, options } => MountStep::Tmpfs { path: put(path)?, options: put(options)? },
            Self::Devpts { path } => MountStep::Devpts { path: put(path)? },
            Self::Proc { path } => MountStep::Proc { path: put(path)? },
            Self::Directory { path, mode } => MountStep::Directory { path: put(path)?, mode: *mode },
            Self::File { path, mode } => MountStep::File { path: put(path)?, mode: *mode },
            Self::TextFile { path, text } => MountStep::TextFile { path: put(path)?, text: put(text)? },
            Self::Link { path, target } => MountStep::Link { path: put(path)?, target: put(target)? },
            Self::MountLink { path, link } => MountStep::MountLink { path: put(path)?, link: put(link)? },
            Self::Pin { path } => MountStep::Pin { path: put(path)? },
            Self::BindReadOnly { path } => MountStep::BindReadOnly { path: put(path)? },
            Self::Hide { path, with } => MountStep::Hide { path: put(path)?, with: put(with)? },
            Self::StandIn { path, with } => MountStep::StandIn { path: put(path)?, with: put(with)? },
            Self::SetReadOnly { path } => MountStep::SetReadOnly { path: put(path)? },
            Self::Overlay { path, options } => {
                MountStep::Overlay { path: put(path)?, options: put(options)? }
            }
            Self::Detach { path } => MountStep::Detach { path: put(path)? },
        })
    }

    /// Describes the step for an error message.
    pub(crate) fn describe(&self) -> String {
        let (what, path) = match self {
            Self::AllReadOnly => return "making all mounts read-only".to_owned(),
            Self::CloneTree { path, .. } | Self::CloneRoot { path, .. } => ("carrying over", path),
            Self::Attach { path, .. } => ("placing", path),
            Self::Tmpfs { path, .. } => ("mounting memory at", path),
            Self::Devpts { path } => ("mounting terminals at", path),
            Self::Proc { path } => ("mounting processes at", path),
            Self::Directory { path, .. }
            | Self::File { path, .. }
            | Self::TextFile { path, .. }
            | Self::Link { path, .. } => ("making", path),
            Self::MountLink { path, .. } => ("mounting a link on", path),
            Self::Pin { path } => ("pinning", path),
            Self::BindReadOnly { path } => ("protecting", path),
            Self::Hide { path, .. } | Self::StandIn { path, .. } => ("hiding", path),
            Self::SetReadOnly { path } => ("sealing", path),
            Self::Overlay { path, .. } => ("mounting an overlay on", path),
            Self::Detach { path } => ("taking away", path),
        };
        format!("{what} `{}`", path.to_string_lossy())
    }
}

/// Returns a path as the system calls take it.
pub(super) fn c(path: impl AsRef<Path>) -> Result<CString, PlanError> {
    let path = path.as_ref();
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| PlanError(format!("`{}` contains a NUL byte", path.display())))
}

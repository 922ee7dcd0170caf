//! The `/tmp`, `/var/tmp` and `/dev` that a command has of its own.

use std::path::{Component, Path, PathBuf};

use windlass_contract::grant::Quota;

use super::{
    mount_planner::MountPlanner,
    mount_step::{HIDDEN_DIRECTORY, HIDDEN_FILE, MountStep, STAND_INS, c},
};
use crate::{
    sandbox_paths::{PlanError, SandboxPaths},
    secrets::StandIn,
};

/// Devices every program may use.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The second directory for temporary files, kept across restarts of the system. Confined commands
/// have their own.
pub(super) const VAR_TMP: &str = "/var/tmp";

/// Directories of which confined commands have their own.
pub(super) const PRIVATE: [&str; 2] = ["/tmp", VAR_TMP];

/// Returns whether there is a `/var/tmp`, and it is no link to another directory.
pub(super) fn has_var_tmp() -> bool {
    Path::new(VAR_TMP).symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Returns which directory that commands have their own of a path lies in.
pub(super) fn private_top(path: &Path) -> Option<&'static Path> {
    PRIVATE.iter().map(Path::new).find(|private| path.starts_with(private))
}

/// Returns what of the system's temporary directories stays to be seen in the command's own: the
/// directories of `/var/tmp` that hold the workspace, another root or the home directory, and the
/// entries of both that hold what the user has named.
pub(super) fn kept_in_private(trees: &[PathBuf], paths: SandboxPaths<'_>) -> Vec<PathBuf> {
    let needed = trees.iter().map(PathBuf::as_path).chain([paths.cwd]).chain(paths.home);
    let needed = needed.filter(|path| path.starts_with(VAR_TMP));
    let mut kept: Vec<_> = needed
        .chain(paths.named.iter().map(PathBuf::as_path))
        .filter_map(|path| {
            let top = private_top(path).filter(|top| *top != Path::new(VAR_TMP) || has_var_tmp())?;
            let Component::Normal(name) = path.strip_prefix(top).ok()?.components().next()? else {
                return None;
            };
            Some(top.join(name))
        })
        // A link could lead to what is hidden at its own place.
        .filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir() || found.is_file()))
        .collect();
    kept.sort();
    kept.dedup();
    kept
}

/// Mount options for file systems in memory.
#[derive(Debug)]
pub(super) struct TmpfsOptions {
    /// Mode and size: what lies there counts as memory, and where disk is limited, as disk.
    pub(super) options: String,
    /// Tells whether `/tmp` is one of them. Where disk is limited it is: nothing else limits what
    /// lies there.
    pub(super) at_tmp: bool,
}

impl TmpfsOptions {
    pub(super) fn new(quota: &Quota, paths: SandboxPaths<'_>) -> Self {
        let limits = [quota.disk_bytes, quota.memory_limit()];
        let size = limits.into_iter().flatten().min();
        let size = size.map_or_else(String::new, |bytes| format!(",size={bytes}"));
        let at_tmp = paths.temporary.is_none() || quota.disk_bytes.is_some();
        Self { options: format!("mode=1777{size}"), at_tmp }
    }
}

impl MountPlanner {
    /// A `/dev` with what every program may use, and nothing else.
    pub(super) fn devices(&mut self, tmpfs: &TmpfsOptions) -> Result<(), PlanError> {
        self.tmpfs("/dev", "mode=755")?;
        for device in DEVICES {
            self.steps.push(MountStep::File { path: c(Path::new("/dev").join(device))?, mode: 0o666 });
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            self.steps.push(MountStep::Link { path: c(Path::new("/dev").join(name))?, target: c(target)? });
        }
        for name in ["/dev/pts", "/dev/shm"] {
            self.steps.push(MountStep::Directory { path: c(name)?, mode: 0o755 });
        }
        self.steps.push(MountStep::File { path: HIDDEN_FILE.to_owned(), mode: 0 });
        self.steps.push(MountStep::Directory { path: HIDDEN_DIRECTORY.to_owned(), mode: 0 });
        self.steps.push(MountStep::Directory { path: c(STAND_INS)?, mode: 0o755 });
        for stand_in in StandIn::all() {
            let path = c(Path::new(STAND_INS).join(stand_in.name()))?;
            self.steps.push(MountStep::TextFile { path, text: c(stand_in.text())? });
        }
        self.steps.push(MountStep::Devpts { path: c("/dev/pts")? });
        self.tmpfs("/dev/shm", &tmpfs.options)
    }
}

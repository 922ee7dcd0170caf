//! The ignore files of one directory. Their metadata shows whether they must be read again.

use std::{
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, OnceLock},
};

use crate::{
    DirHandle, EntryStat,
    ignore_rules::DirectoryRules,
    workspace_scan::{is_unchanged, listing},
};

/// The names of ignore files, in a fixed order.
const NAMES: [&str; 4] = [".ignore", ".gitignore", ".git", ".git/info/exclude"];

/// The ignore files of a directory that has some, or that is the top of a repository.
#[derive(Debug, Default)]
pub(super) struct RuleFiles {
    pub(super) stats: [Option<EntryStat>; NAMES.len()],
    parsed: OnceLock<Arc<DirectoryRules>>,
}

impl RuleFiles {
    /// Reads the metadata of the ignore files of a directory; `None` if it has none.
    pub(super) fn read(directory: &OwnedFd) -> Option<Self> {
        let stat = |name: &str| EntryStat::read(directory, OsStr::new(name)).ok();
        let repository = stat(NAMES[2]);
        let exclude = repository.and_then(|_| stat(NAMES[3]));
        let stats = [stat(NAMES[0]), stat(NAMES[1]), repository, exclude];
        stats.iter().any(Option::is_some).then(|| Self { stats, parsed: OnceLock::new() })
    }

    /// Returns true if these are the same files with the same content. Only the existence of `.git`
    /// is compared.
    pub(super) fn is_same(&self, now: &Self, started_ns: i64) -> bool {
        let pairs = self.stats.iter().zip(&now.stats).enumerate();
        pairs.into_iter().all(|(at, pair)| match pair {
            (None, None) => true,
            (Some(before), Some(now)) => at == 2 || is_unchanged(before, now, started_ns),
            (Some(_), None) | (None, Some(_)) => false,
        })
    }

    /// Returns the rules, which are parsed on first use.
    pub(super) fn rules(
        &self,
        path: &Path,
        directory: &OwnedFd,
        above: &Arc<DirectoryRules>,
    ) -> Arc<DirectoryRules> {
        let read = || {
            let handle = listing::reopen(std::os::fd::AsFd::as_fd(directory)).map(DirHandle::from);
            Arc::new(DirectoryRules::read_in(path, handle.ok().as_ref(), Some(Arc::clone(above))))
        };
        Arc::clone(self.parsed.get_or_init(read))
    }
}

/// Reads the metadata of the ignore files of a directory above the workspace.
pub(super) fn read_above(path: &Path) -> io::Result<(OwnedFd, Option<RuleFiles>)> {
    let handle = DirHandle::open(path)?;
    let directory = listing::reopen(std::os::fd::AsFd::as_fd(&handle))?;
    let found = RuleFiles::read(&directory);
    Ok((directory, found))
}

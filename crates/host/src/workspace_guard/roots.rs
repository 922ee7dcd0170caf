//! Writable roots, opened once: later commands use the descriptors, even if a path leads elsewhere
//! by then.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use windlass_files::{DirHandle, EntryKind};
use windlass_sandbox::links;

use super::running_note::NotedRoot;

/// The largest `.git` file, `gitdir` or `commondir` that is read.
const MAX_POINTER_BYTES: u64 = 16 * 1024;

/// A directory that commands may write, by the descriptor it was opened with.
#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    /// Its path without links, as it was when it was opened.
    pub(crate) path: PathBuf,
    pub(crate) handle: DirHandle,
}

/// The reason why a directory cannot be a writable root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RootError {
    #[error("`{}` cannot be a writable root: {reason}", path.display())]
    Open { path: PathBuf, reason: String },
    #[error("`/` cannot be a writable root; that is `danger-full-access`")]
    Everything,
    #[error(
        "`{}` cannot be a writable root: the link `{}` on the way lies where commands may write",
        path.display(),
        link.display()
    )]
    ThroughLink { path: PathBuf, link: PathBuf },
    #[error("`{}` is another directory than when the session began; start a new session", path.display())]
    Replaced { path: PathBuf },
}

impl WorkspaceRoot {
    /// Returns what a note of a command says of this directory.
    pub(super) fn noted(&self) -> std::io::Result<NotedRoot> {
        let found = self.handle.stat()?;
        Ok(NotedRoot { path: self.path.clone(), dev: found.dev, ino: found.ino })
    }

    /// Opens a directory by its path. Links on the way are followed, unless one lies in another
    /// writable directory: a command may have made it.
    pub(crate) fn open(path: &Path, writable: &[PathBuf]) -> Result<Self, RootError> {
        let failed =
            |error: std::io::Error| RootError::Open { path: path.to_owned(), reason: error.to_string() };
        let way = links::follow(path).ok_or_else(|| RootError::Open {
            path: path.to_owned(),
            reason: "links in a circle".to_owned(),
        })?;
        let is_suspect = |link: &&(PathBuf, PathBuf)| writable.iter().any(|root| link.0.starts_with(root));
        if let Some((link, _)) = way.links.iter().find(is_suspect) {
            return Err(RootError::ThroughLink { path: path.to_owned(), link: link.clone() });
        }
        if way.end.parent().is_none() {
            return Err(RootError::Everything);
        }
        let handle = DirHandle::open(&way.end).map_err(failed)?;
        Ok(Self { path: way.end, handle })
    }

    /// Checks that the path still leads to the directory that was opened.
    pub(crate) fn verify(&self) -> Result<(), RootError> {
        let replaced = || RootError::Replaced { path: self.path.clone() };
        let now =
            DirHandle::open(&self.path).and_then(|handle| handle.stat()).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => replaced(),
                    _ => RootError::Open { path: self.path.clone(), reason: error.to_string() },
                }
            })?;
        let is_same = self.handle.stat().is_ok_and(|held| held.is_same_file(&now));
        if is_same { Ok(()) } else { Err(replaced()) }
    }

    /// Opens the git directory that a linked worktree shares with others, if this root is such a
    /// worktree. Both ends must agree: `.git` names `COMMON/worktrees/NAME`, and the file `gitdir`
    /// there names this `.git`. A command that can write here can point anywhere, but cannot make
    /// the other end point back.
    pub(crate) fn shared_git_directories(&self) -> Vec<Self> {
        let Some((own, common)) = self.linked_worktree() else { return Vec::new() };
        let opened = |path: &Path| Self::open(path, std::slice::from_ref(&self.path)).ok();
        if !self.path.starts_with(&common) {
            return opened(&common).into_iter().collect();
        }
        // All of the repository would be writable, with its other worktrees: only what git needs.
        let parts = ["objects", "refs", "logs"].map(|name| common.join(name));
        parts.iter().chain([&own]).filter_map(|path| opened(path)).collect()
    }

    /// Returns the git directory of this worktree and the one it shares, both without links.
    fn linked_worktree(&self) -> Option<(PathBuf, PathBuf)> {
        let pointer =
            |handle: &DirHandle, name: &str| handle.read_file(OsStr::new(name), MAX_POINTER_BYTES).ok();
        let own = self.follow_outside(&self.path.join(gitfile_target(&pointer(&self.handle, ".git")?)?))?;
        let common = own.parent().filter(|above| above.ends_with("worktrees"))?.parent()?.to_owned();
        let handle = DirHandle::open(&own).ok()?;
        let back = own.join(as_path(strip_newline(&pointer(&handle, "gitdir")?))?);
        let points_back = links::follow(&back).is_some_and(|way| way.end == self.path.join(".git"));
        let shares = pointer(&handle, "commondir")?;
        let is_repository = |handle: DirHandle| {
            let is =
                |name: &str, kind| handle.stat_entry(OsStr::new(name)).is_ok_and(|found| found.kind == kind);
            is("HEAD", EntryKind::File)
                && is("objects", EntryKind::Directory)
                && is("refs", EntryKind::Directory)
        };
        let is_whole =
            strip_newline(&shares) == b"../.." && DirHandle::open(&common).is_ok_and(is_repository);
        (points_back && is_whole && !own.starts_with(&self.path)).then_some((own, common))
    }

    /// Follows a path that passes no link below this root.
    fn follow_outside(&self, path: &Path) -> Option<PathBuf> {
        let way = links::follow(path)?;
        way.links.iter().all(|(link, _)| !link.starts_with(&self.path)).then_some(way.end)
    }
}

/// Returns the path in a `.git` file if it is written exactly as git writes it. Git may read
/// anything else differently.
pub(crate) fn gitfile_target(content: &[u8]) -> Option<PathBuf> {
    let target = strip_newline(content.strip_prefix(b"gitdir: ")?);
    let is_plain = |byte: &u8| !byte.is_ascii_control();
    let trimmed = target.trim_ascii();
    (trimmed == target && !target.is_empty() && target.iter().all(is_plain)).then(|| as_path(target))?
}

fn strip_newline(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

fn as_path(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_itself_writes_is_read_as_a_git_file() {
        let target = |content: &[u8]| gitfile_target(content);
        assert_eq!(target(b"gitdir: ../.git/modules/a\n"), Some("../.git/modules/a".into()));
        assert_eq!(target(b"gitdir: /a b/c"), Some("/a b/c".into()));
        for other in [
            &b"gitdir: ../.git/ev \n"[..],
            b"gitdir:  ../x\n",
            b"gitdir:../x\n",
            b"gitdir: ../x\n\n",
            b"gitdir: ../x\r\n",
            b"gitdir: ../\xff\n",
            b"gitdir: \n",
            b" gitdir: x\n",
            b"",
        ] {
            assert_eq!(target(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}

//! A snapshot of all entries of a workspace that are not ignored, with the digests of their
//! contents. With two of them, the changes of a command can be undone.
//!
//! A content is read if its file is new or its metadata changed, by handle, regular files only, up
//! to a limit. An entry that cannot be kept (a FIFO, a large file, an unreadable directory) is
//! recorded with a reason, and never waited for. `.git` is left out, since git keeps its own
//! history, and so are ignored files and directories with generated files.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use windlass_contract::snapshot::{ContentDigest, ContentStore, UnkeptReason};

use crate::{DirHandle, EntryKind, EntryStat};

mod differences;
mod listing_format;
mod rule_files;
mod scanner;
mod two_threads;

pub use differences::SnapshotChanges;
use rule_files::RuleFiles;
use scanner::SnapshotScanner;

/// Limits of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Maximum number of entries. No snapshot is taken of a workspace with more.
    pub max_entries: usize,
    /// Maximum size of a file that is kept.
    pub max_file_bytes: u64,
    /// Maximum size of all kept files together.
    pub max_total_bytes: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self { max_entries: 200_000, max_file_bytes: 10 * MIB, max_total_bytes: 2048 * MIB }
    }
}

/// The directory of a snapshot, and its parts that are left out.
#[derive(Debug)]
pub struct SnapshotRoot {
    /// The directory, open.
    pub handle: DirHandle,
    /// Its path, absolute and without links.
    pub path: PathBuf,
    /// Directories that are left out, by absolute paths without links.
    pub left_out: Vec<PathBuf>,
    /// The bounds.
    pub limits: SnapshotLimits,
    /// Set by another thread to end a scan early.
    pub stop: Arc<AtomicBool>,
}

/// All entries of a workspace at one point in time.
#[derive(Debug, Clone)]
pub struct WorkspaceSnapshot {
    root: SnapshotNode,
    /// The ignore files of the directories above, from `/` down.
    above: Vec<Option<Arc<RuleFiles>>>,
    entries: usize,
    /// The start of the scan, in nanoseconds since 1970.
    started_ns: i64,
    /// True if the scan was not ended early.
    is_whole: bool,
}

/// An entry and, for a directory, its kept entries, sorted by name.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotNode {
    name: OsString,
    stat: EntryStat,
    content: NodeContent,
    /// The entries of a directory. Two snapshots share those of directories in which nothing
    /// changed.
    children: Arc<Vec<SnapshotNode>>,
    /// The ignore files of a directory, if it has any.
    rules: Option<Arc<RuleFiles>>,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NodeContent {
    Directory,
    File(ContentDigest),
    Symlink(OsString),
    Unkept(UnkeptReason),
}

/// Entries that are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnkeptSummary {
    /// Number of entries.
    pub count: usize,
    /// The first few, by their paths below the root.
    pub first: Vec<(PathBuf, UnkeptReason)>,
}

/// The reason why no snapshot is taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There are too many entries.
    #[error("more than {limit} files and directories")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The directory cannot be read.
    #[error("cannot read the directory")]
    Unreadable(#[from] io::Error),
    /// The first scan was ended before the entries were counted.
    #[error("the session ended before it was read")]
    Stopped,
}

/// The state of a workspace after a command.
#[derive(Debug)]
pub struct AfterCommand {
    /// The state by the ignore files as they were before the command. Compared with the snapshot
    /// before, it shows the changes of the command: an entry that only became ignored, or stopped
    /// being ignored, is neither removed nor new.
    pub by_same_rules: WorkspaceSnapshot,
    /// The state by the ignore files as they are now.
    pub now: WorkspaceSnapshot,
}

impl WorkspaceSnapshot {
    /// Reads the whole workspace. No content is kept if there are too many entries. A snapshot that
    /// was ended early holds what was read until then; an update continues from there.
    pub fn fill(root: &SnapshotRoot, store: &dyn ContentStore) -> Result<Self, SnapshotError> {
        // Count first: the contents of a home directory must not be copied in vain.
        if !SnapshotScanner::new(root, None, None).scan()?.snapshot.is_whole {
            return Err(SnapshotError::Stopped);
        }
        Ok(SnapshotScanner::new(root, None, Some(store)).scan()?.snapshot)
    }

    /// Reads the changed entries again, by the ignore files as they are now.
    pub fn update(&self, root: &SnapshotRoot, store: &dyn ContentStore) -> Result<Self, SnapshotError> {
        Ok(SnapshotScanner::new(root, Some(self), Some(store)).scan()?.snapshot)
    }

    /// Reads the entries again that changed while a command ran. It takes one scan, unless an
    /// ignore file changed.
    pub fn update_after_command(
        &self,
        root: &SnapshotRoot,
        store: &dyn ContentStore,
    ) -> Result<AfterCommand, SnapshotError> {
        let found = SnapshotScanner::new(root, Some(self), Some(store)).scan()?;
        if !found.has_other_rules {
            return Ok(AfterCommand { by_same_rules: found.snapshot.clone(), now: found.snapshot });
        }
        let scanner = SnapshotScanner::new(root, Some(self), Some(store)).with_same_rules();
        let by_same_rules = scanner.scan()?.snapshot;
        let now = by_same_rules.update(root, store)?;
        Ok(AfterCommand { by_same_rules, now })
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns true if the workspace was read completely.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns true if a later snapshot shares all entries with this one.
    pub fn is_same(&self, later: &Self) -> bool {
        Arc::ptr_eq(&self.root.children, &later.root.children)
    }

    /// Lists the differences to a later snapshot.
    pub fn changes_to(&self, later: &Self, root: &Path) -> SnapshotChanges {
        differences::between(&self.root, &later.root, root)
    }

    /// Counts the entries that are not kept, and names the first few.
    pub fn unkept(&self, max_names: usize) -> UnkeptSummary {
        let mut summary = UnkeptSummary::default();
        self.root.visit(&mut PathBuf::new(), &mut |path, node| {
            if let NodeContent::Unkept(reason) = node.content {
                summary.count += 1;
                if summary.first.len() < max_names {
                    summary.first.push((path.to_owned(), reason));
                }
            }
        });
        summary
    }

    /// Returns the digests of all contents, and their total size.
    pub fn contents(&self) -> (std::collections::HashSet<ContentDigest>, u64) {
        let (mut digests, mut bytes) = (std::collections::HashSet::new(), 0);
        self.root.visit(&mut PathBuf::new(), &mut |_, node| {
            if let NodeContent::File(digest) = node.content {
                digests.insert(digest);
                bytes += node.stat.size;
            }
        });
        (digests, bytes)
    }

    /// Serializes the snapshot, for a later process.
    pub fn to_bytes(&self) -> Vec<u8> {
        listing_format::encode(self)
    }

    /// Parses the result of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        listing_format::decode(bytes)
    }
}

impl SnapshotNode {
    fn child(&self, name: &OsStr) -> Option<&Self> {
        let at = self.children.binary_search_by(|child| child.name.as_os_str().cmp(name)).ok()?;
        self.children.get(at)
    }

    fn is_directory(&self) -> bool {
        self.stat.kind == EntryKind::Directory
    }

    fn visit<'a>(&'a self, path: &mut PathBuf, visit: &mut impl FnMut(&Path, &'a Self)) {
        for child in self.children.iter() {
            path.push(&child.name);
            visit(path, child);
            child.visit(path, visit);
            path.pop();
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;

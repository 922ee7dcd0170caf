//! Every entry below a directory, read by handle: two scans tell what changed between them.
//!
//! Each directory is opened beneath the one above it without following a link, and every entry is stat-ed. In
//! directories that hold what programs generate ([`NAMES_ONLY`]) files are known by name and inode alone.
//! One thread takes about 0.8 ms for 1,000 entries, 11 ms for 10,000 and 130 ms for 100,000.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use crate::{DirHandle, EntryKind, EntryStat};

mod changes;
mod listing;

pub use changes::{Change, ChangeKind};
use listing::Listing;

/// How many entries are read before the rest is skipped: about 1.5 seconds' worth.
const MAX_ENTRIES: usize = 1_000_000;

/// How deep directories are read: each level keeps a descriptor open.
const MAX_DEPTH: usize = 128;

/// Directories whose files are not stat-ed: build output, packages, git objects.
const NAMES_ONLY: [&str; 5] = ["node_modules", "target", "objects", ".venv", "__pycache__"];

/// All entries below a directory at one time.
#[derive(Debug)]
pub struct WorkspaceScan {
    root: ScanNode,
    entries: usize,
    skipped: Vec<SkippedDirectory>,
}

/// An entry and, for a directory, everything in it, sorted by name.
#[derive(Debug)]
pub struct ScanNode {
    /// The name in the directory above; empty for the root.
    pub name: OsString,
    /// Its metadata.
    pub stat: EntryStat,
    /// The entries of a directory.
    pub children: Vec<ScanNode>,
}

/// A directory that was not read although a command may write there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedDirectory {
    /// Its path below the root.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

impl WorkspaceScan {
    /// Scans everything below an open directory.
    pub fn new(root: &DirHandle) -> io::Result<Self> {
        Self::with_max_entries(root, MAX_ENTRIES)
    }

    /// Scans at most so many entries.
    pub fn with_max_entries(root: &DirHandle, max_entries: usize) -> io::Result<Self> {
        let stat = root.stat()?;
        let mut scanner = Scanner { max_entries, entries: 0, skipped: Vec::new(), path: PathBuf::new() };
        let children = scanner.read_children(&listing::reopen(root.as_fd())?, &stat, Depth::default());
        let Scanner { entries, skipped, .. } = scanner;
        let root = ScanNode { name: OsString::new(), stat, children };
        Ok(Self { root, entries, skipped })
    }

    /// The directory that was scanned.
    pub fn root(&self) -> &ScanNode {
        &self.root
    }

    /// The number of entries below the root.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The directories that were not read.
    pub fn skipped(&self) -> &[SkippedDirectory] {
        &self.skipped
    }

    /// Finds an entry by its path below the root.
    pub fn find(&self, path: &Path) -> Option<&ScanNode> {
        path.iter().try_fold(&self.root, |node, name| node.child(name))
    }

    /// Tells whether every directory still has the entries it had. What changed inside a file does not show.
    pub fn has_same_entries(&self, root: &DirHandle) -> bool {
        let same = |path: &Path, stat: &EntryStat| {
            let name = if path.as_os_str().is_empty() { OsStr::new("") } else { path.as_os_str() };
            EntryStat::read(root, name).is_ok_and(|now| {
                let entries = |stat: &EntryStat| (stat.dev, stat.ino, stat.mtime_ns, stat.ctime_ns);
                entries(&now) == entries(stat)
            })
        };
        let mut is_same = same(Path::new(""), &self.root.stat);
        self.root.visit(&mut PathBuf::new(), &mut |path, node| {
            is_same = is_same && (!node.is_directory() || same(path, &node.stat));
            is_same
        });
        is_same
    }

    /// Lists what differs in a later scan, in the order of paths: each entry that is new, changed or gone.
    pub fn changes_to<'a>(&'a self, later: &'a Self) -> Vec<Change<'a>> {
        changes::between(&self.root, &later.root)
    }
}

impl ScanNode {
    /// Finds an entry of this directory.
    pub fn child(&self, name: &OsStr) -> Option<&ScanNode> {
        let at = self.children.binary_search_by(|child| child.name.as_os_str().cmp(name)).ok()?;
        self.children.get(at)
    }

    /// Visits every entry below this one with its path below the root, directories before what is in them. Where
    /// `visit` says no, a directory is not entered.
    pub fn visit<'a>(&'a self, path: &mut PathBuf, visit: &mut impl FnMut(&Path, &'a ScanNode) -> bool) {
        for child in &self.children {
            path.push(&child.name);
            if visit(path, child) && child.stat.kind == EntryKind::Directory {
                child.visit(path, visit);
            }
            path.pop();
        }
    }
}

/// The place of a directory in the tree.
#[derive(Debug, Clone, Copy, Default)]
struct Depth {
    levels: usize,
    names_only: bool,
}

struct Scanner {
    max_entries: usize,
    entries: usize,
    skipped: Vec<SkippedDirectory>,
    path: PathBuf,
}

impl Scanner {
    fn skip(&mut self, reason: String) -> Vec<ScanNode> {
        self.skipped.push(SkippedDirectory { path: self.path.clone(), reason });
        Vec::new()
    }

    fn read_children(&mut self, directory: &OwnedFd, stat: &EntryStat, depth: Depth) -> Vec<ScanNode> {
        if depth.levels == MAX_DEPTH {
            return self.skip(format!("deeper than {MAX_DEPTH} directories"));
        }
        if is_kernel_interface(directory) {
            return Vec::new();
        }
        let remaining = self.max_entries.saturating_sub(self.entries);
        let listing = match Listing::read(directory, stat.dev, depth.names_only, remaining) {
            Ok(listing) => listing,
            Err(error) => return self.skip(error.to_string()),
        };
        self.entries += listing.nodes.len();
        if !listing.is_complete {
            self.skip(format!("more than {} entries", self.max_entries));
        }
        let mut children = listing.nodes;
        for child in children.iter_mut().filter(|child| child.stat.kind == EntryKind::Directory) {
            self.path.push(&child.name);
            let names_only = depth.names_only || NAMES_ONLY.iter().any(|name| child.name == *name);
            let below = Depth { levels: depth.levels + 1, names_only };
            child.children = match listing::open_directory(directory, &child.name, &child.stat) {
                Ok(Some(opened)) => self.read_children(&opened, &child.stat, below),
                Ok(None) => Vec::new(),
                Err(error) => self.skip(error.to_string()),
            };
            self.path.pop();
        }
        children
    }
}

/// Tells whether the directory is on a file system in which no file can be made.
#[cfg(target_os = "linux")]
fn is_kernel_interface(directory: &OwnedFd) -> bool {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    const SYSFS_MAGIC: i64 = 0x6265_6572;
    const DEVPTS_SUPER_MAGIC: i64 = 0x1cd1;
    const CGROUP_SUPER_MAGIC: i64 = 0x27_e0eb;
    const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;
    const MAGICS: [i64; 5] =
        [PROC_SUPER_MAGIC, SYSFS_MAGIC, DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC];
    rustix::fs::fstatfs(directory).is_ok_and(|found| MAGICS.contains(&found.f_type))
}

#[cfg(not(target_os = "linux"))]
fn is_kernel_interface(_directory: &OwnedFd) -> bool {
    false
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;

//! Scans every entry below a directory by handle; two scans show what changed between them.
//!
//! Each directory is opened beneath the one above it without following a link, and `statx` is
//! called for every entry. In directories with generated files ([`GENERATED_DIRECTORIES`]), only
//! the name and inode of a file are read. One thread takes about 0.8 ms for 1,000 entries, 11 ms
//! for 10,000 and 130 ms for 100,000.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::{DirHandle, EntryKind, EntryStat};

mod changes;
pub(crate) mod listing;

pub use changes::{Change, ChangeKind};
use listing::DirectoryListing;

/// Maximum number of entries before the rest is skipped: about 1.5 seconds of reading.
const MAX_ENTRIES: usize = 1_000_000;

/// Maximum depth of directories: each level keeps a descriptor open.
const MAX_DEPTH: usize = 128;

/// Directories that hold generated files: build output and packages. `statx` is not called for
/// their files.
pub(crate) const GENERATED_DIRECTORIES: [&str; 4] = ["node_modules", "target", ".venv", "__pycache__"];

/// All entries below a directory at one point in time.
#[derive(Debug)]
pub struct WorkspaceScan {
    root: ScanNode,
    entries: usize,
    skipped: Vec<SkippedDirectory>,
    /// The start of the scan, in nanoseconds since 1970.
    started_ns: i64,
}

/// An entry and, for a directory, everything in it, sorted by name.
#[derive(Debug, Clone)]
pub struct ScanNode {
    /// The name in the directory above; empty for the root.
    pub name: OsString,
    /// Its metadata.
    pub stat: EntryStat,
    /// The entries of a directory. Two scans share those of directories that have not changed.
    pub children: Arc<Vec<ScanNode>>,
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

    /// Scans at most `max_entries` entries.
    pub fn with_max_entries(root: &DirHandle, max_entries: usize) -> io::Result<Self> {
        let stat = root.stat()?;
        let mut scanner = WorkspaceScanner::new(max_entries);
        let children = scanner.read_children(&listing::reopen(root.as_fd())?, &stat, ScanDepth::default());
        let WorkspaceScanner { entries, skipped, started_ns, .. } = scanner;
        let root = ScanNode { name: OsString::new(), stat, children };
        Ok(Self { root, entries, skipped, started_ns })
    }

    /// Returns the directory that was scanned.
    pub fn root(&self) -> &ScanNode {
        &self.root
    }

    /// Returns the number of entries below the root.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the directories that were not read.
    pub fn skipped(&self) -> &[SkippedDirectory] {
        &self.skipped
    }

    /// Finds an entry by its path below the root.
    pub fn find(&self, path: &Path) -> Option<&ScanNode> {
        path.iter().try_fold(&self.root, |node, name| node.child(name))
    }

    /// Scans the directories again that may have changed: those whose change time differs, or was
    /// so recent that a later change could have the same time. The list of entries is exact; a
    /// change inside a file may be missed.
    pub fn update(&self, root: &DirHandle) -> io::Result<Self> {
        if !listing::has_trusted_ctime(root) || !self.skipped.is_empty() {
            return Self::new(root);
        }
        let stat = root.stat()?;
        let mut scanner = WorkspaceScanner::new(MAX_ENTRIES.saturating_sub(self.entries));
        let children =
            scanner.update_children((root, self.started_ns), Some(&self.root), &stat, ScanDepth::default());
        if !scanner.skipped.is_empty() {
            // A full scan has more ways to open a directory, and reports better why it cannot.
            return Self::new(root);
        }
        let root = ScanNode { name: OsString::new(), stat, children };
        Ok(Self { entries: root.count(), root, skipped: Vec::new(), started_ns: scanner.started_ns })
    }

    /// Returns the scan without some entries and everything below them.
    #[must_use]
    pub fn without(&self, is_left_out: &mut impl FnMut(&Path, &ScanNode) -> bool) -> Self {
        let root = self.root.without(&mut PathBuf::new(), is_left_out);
        Self { entries: root.count(), root, skipped: self.skipped.clone(), started_ns: self.started_ns }
    }

    /// Returns true if a later scan found the same entries everywhere.
    pub fn has_same_entries(&self, later: &Self) -> bool {
        Arc::ptr_eq(&self.root.children, &later.root.children)
    }

    /// Returns true if the change times in a directory are reliable.
    pub fn has_trusted_ctime(root: &DirHandle) -> bool {
        listing::has_trusted_ctime(root)
    }

    /// Lists the differences to a later scan, sorted by path: each entry that was added, modified
    /// or removed.
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

    /// Counts the entries below this one.
    fn count(&self) -> usize {
        self.children.iter().map(|child| 1 + child.count()).sum()
    }

    fn without(&self, path: &mut PathBuf, is_left_out: &mut impl FnMut(&Path, &Self) -> bool) -> Self {
        let mut children = Vec::new();
        for child in self.children.iter() {
            path.push(&child.name);
            if !is_left_out(path, child) {
                children.push(child.without(path, is_left_out));
            }
            path.pop();
        }
        Self { name: self.name.clone(), stat: self.stat, children: Arc::new(children) }
    }

    /// Visits every entry below this one with its path below the root, directories before their
    /// entries. A directory is not entered if `visit` returns false.
    pub fn visit<'a>(&'a self, path: &mut PathBuf, visit: &mut impl FnMut(&Path, &'a ScanNode) -> bool) {
        for child in self.children.iter() {
            path.push(&child.name);
            if visit(path, child) && child.stat.kind == EntryKind::Directory {
                child.visit(path, visit);
            }
            path.pop();
        }
    }
}

/// The position of a directory in the tree.
#[derive(Debug, Clone, Copy, Default)]
struct ScanDepth {
    levels: usize,
    names_only: bool,
}

impl ScanDepth {
    fn child(self, name: &OsStr) -> Self {
        let is_objects = name == "objects";
        let is_generated = GENERATED_DIRECTORIES.iter().any(|generated| name == *generated);
        Self { levels: self.levels + 1, names_only: self.names_only || is_objects || is_generated }
    }
}

struct WorkspaceScanner {
    max_entries: usize,
    entries: usize,
    skipped: Vec<SkippedDirectory>,
    path: PathBuf,
    started_ns: i64,
}

impl WorkspaceScanner {
    fn new(max_entries: usize) -> Self {
        let started_ns = clock_ns();
        let (skipped, path) = (Vec::new(), PathBuf::new());
        Self { max_entries, entries: 0, skipped, path, started_ns }
    }

    fn skip(&mut self, reason: String) -> Arc<Vec<ScanNode>> {
        self.skipped.push(SkippedDirectory { path: self.path.clone(), reason });
        Arc::default()
    }

    fn read_children(
        &mut self,
        directory: &OwnedFd,
        stat: &EntryStat,
        depth: ScanDepth,
    ) -> Arc<Vec<ScanNode>> {
        let mut children = match self.list(directory, stat, depth) {
            Ok(children) => children,
            Err(reason) => return self.skip(reason),
        };
        for child in children.iter_mut().filter(|child| child.is_directory()) {
            self.path.push(&child.name);
            child.children = self.open_and_read(directory, child, depth.child(&child.name));
            self.path.pop();
        }
        Arc::new(children)
    }

    /// Lists one directory. The error is the reason why it is skipped.
    fn list(
        &mut self,
        directory: &OwnedFd,
        stat: &EntryStat,
        depth: ScanDepth,
    ) -> Result<Vec<ScanNode>, String> {
        if depth.levels == MAX_DEPTH {
            return Err(format!("deeper than {MAX_DEPTH} directories"));
        }
        if is_kernel_interface(directory) {
            return Ok(Vec::new());
        }
        let remaining = self.max_entries.saturating_sub(self.entries);
        let listing = DirectoryListing::read(directory, stat.dev, depth.names_only, remaining);
        let listing = listing.map_err(|error| error.to_string())?;
        self.entries += listing.nodes.len();
        if !listing.is_complete {
            self.skip(format!("more than {MAX_ENTRIES} entries in all"));
        }
        Ok(listing.nodes)
    }

    fn open_and_read(&mut self, above: &OwnedFd, child: &ScanNode, depth: ScanDepth) -> Arc<Vec<ScanNode>> {
        match listing::open_directory(above, &child.name, &child.stat) {
            Ok(Some(opened)) => self.read_children(&opened, &child.stat, depth),
            Ok(None) => Arc::default(),
            Err(error) => self.skip(error.to_string()),
        }
    }

    /// Reads a directory again if it may have changed, and updates the directories in it.
    fn update_children(
        &mut self,
        (root, started_ns): (&DirHandle, i64),
        before: Option<&ScanNode>,
        stat: &EntryStat,
        depth: ScanDepth,
    ) -> Arc<Vec<ScanNode>> {
        match before {
            Some(before) if is_unchanged(&before.stat, stat, started_ns) => {
                self.update_below((root, started_ns), &before.children, depth)
            }
            _ => match root.open_dir(&self.path).and_then(|directory| listing::reopen(directory.as_fd())) {
                Ok(directory) => self.read_changed((root, started_ns), &directory, (before, stat), depth),
                Err(error) => self.skip(error.to_string()),
            },
        }
    }

    /// Updates the directories in one that has not changed itself.
    fn update_below(
        &mut self,
        (root, started_ns): (&DirHandle, i64),
        before: &Arc<Vec<ScanNode>>,
        depth: ScanDepth,
    ) -> Arc<Vec<ScanNode>> {
        let mut changed = Vec::new();
        for (at, child) in before.iter().enumerate().filter(|(_, child)| child.is_directory()) {
            self.path.push(&child.name);
            // By its path below the root: a directory above it that was replaced would have been
            // read again.
            match EntryStat::read(root, self.path.as_os_str()) {
                Ok(now) => {
                    let below = depth.child(&child.name);
                    let children = self.update_children((root, started_ns), Some(child), &now, below);
                    if now != child.stat || !Arc::ptr_eq(&children, &child.children) {
                        changed.push((at, ScanNode { name: child.name.clone(), stat: now, children }));
                    }
                }
                Err(error) => drop(self.skip(error.to_string())),
            }
            self.path.pop();
        }
        if changed.is_empty() {
            return Arc::clone(before);
        }
        let mut children = Vec::clone(before);
        for (at, node) in changed {
            children[at] = node;
        }
        Arc::new(children)
    }

    /// Reads the entries of a directory, and updates those that are directories.
    fn read_changed(
        &mut self,
        (root, started_ns): (&DirHandle, i64),
        directory: &OwnedFd,
        (before, stat): (Option<&ScanNode>, &EntryStat),
        depth: ScanDepth,
    ) -> Arc<Vec<ScanNode>> {
        let mut children = match self.list(directory, stat, depth) {
            Ok(children) => children,
            Err(reason) => return self.skip(reason),
        };
        for child in children.iter_mut().filter(|child| child.is_directory()) {
            self.path.push(&child.name);
            let below = depth.child(&child.name);
            let old = before.and_then(|before| before.child(&child.name));
            let old = old.filter(|old| old.is_directory() && old.stat.is_same_file(&child.stat));
            child.children = match old {
                Some(old) => self.update_children((root, started_ns), Some(old), &child.stat, below),
                None => self.open_and_read(directory, child, below),
            };
            self.path.pop();
        }
        Arc::new(children)
    }
}

/// Reads the clock, in nanoseconds since 1970.
pub(crate) fn clock_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns true if a directory has the same entries as before. Its change time is set with each
/// entry that is added or removed, but by the coarse clock of the kernel: a recent time proves
/// nothing.
pub(crate) fn is_unchanged(before: &EntryStat, now: &EntryStat, started_ns: i64) -> bool {
    const CLOCK_STEP_NS: i64 = 20_000_000;
    const COARSE_CLOCK_STEP_NS: i64 = 2_100_000_000;
    let is_coarse = before.ctime_ns % 1_000_000_000 == 0;
    let step = if is_coarse { COARSE_CLOCK_STEP_NS } else { CLOCK_STEP_NS };
    before.is_same_file(now)
        && (before.mtime_ns, before.ctime_ns) == (now.mtime_ns, now.ctime_ns)
        && before.ctime_ns.saturating_add(step) < started_ns
}

/// Returns true if the directory is on a pseudo file system in which no file can be made.
#[cfg(target_os = "linux")]
pub(crate) fn is_kernel_interface(directory: &OwnedFd) -> bool {
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
pub(crate) fn is_kernel_interface(_directory: &OwnedFd) -> bool {
    false
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;

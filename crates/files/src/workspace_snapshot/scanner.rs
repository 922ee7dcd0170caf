//! Takes a snapshot, and reuses the unchanged entries of an earlier one.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use windlass_contract::snapshot::{ContentDigest, ContentStore, UnkeptReason};

use super::{
    NodeContent, RuleFiles, SnapshotError, SnapshotNode, SnapshotRoot, WorkspaceSnapshot,
    rule_files::read_above, two_threads::MIN_SPLIT_ENTRIES,
};
use crate::{
    EntryKind, EntryStat,
    handle::open_read_at,
    ignore_rules::{DirectoryRules, IgnoreMatch},
    layer,
    workspace_scan::{
        GENERATED_DIRECTORIES, clock_ns, is_kernel_interface, is_unchanged,
        listing::{self, DirectoryListing},
    },
};

/// Maximum depth of directories: each level keeps a descriptor open.
const MAX_DEPTH: usize = 128;

/// The directory and file in which git keeps a repository.
const GIT: &str = ".git";

/// Walks a workspace.
#[derive(Clone)]
pub(super) struct SnapshotScanner<'a> {
    pub(super) root: &'a SnapshotRoot,
    previous: Option<&'a WorkspaceSnapshot>,
    /// `None`: entries are only counted.
    store: Option<&'a dyn ContentStore>,
    keeps_rules: bool,
    has_trusted_ctime: bool,
    started_ns: i64,
    /// The absolute path of the directory that is being read.
    path: PathBuf,
    depth: usize,
    pub(super) counted: ScanCounts,
    pub(super) has_other_rules: bool,
    /// The number of entries, if a second thread is worth it and not started yet.
    pub(super) split_entries: Option<usize>,
}

/// The entries that were found, and the bytes of those that are kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScanCounts {
    pub(super) entries: usize,
    pub(super) bytes: u64,
}

/// The result of a scan.
pub(super) struct ScannedWorkspace {
    pub(super) snapshot: WorkspaceSnapshot,
    /// True if an ignore file changed since the earlier snapshot.
    pub(super) has_other_rules: bool,
}

/// The ignore rules of a directory and of those above it.
#[derive(Clone)]
pub(super) struct InheritedRules {
    rules: Arc<DirectoryRules>,
    /// True if they changed: the matches of the earlier snapshot are not valid.
    changed: bool,
}

/// The entries of a directory, and its own ignore files.
type ScannedDirectory = (Arc<Vec<SnapshotNode>>, Option<Arc<RuleFiles>>);

impl<'a> SnapshotScanner<'a> {
    pub(super) fn new(
        root: &'a SnapshotRoot,
        previous: Option<&'a WorkspaceSnapshot>,
        store: Option<&'a dyn ContentStore>,
    ) -> Self {
        Self {
            root,
            previous,
            store,
            keeps_rules: false,
            has_trusted_ctime: listing::has_trusted_ctime(&root.handle),
            started_ns: clock_ns(),
            path: root.path.clone(),
            depth: 0,
            counted: ScanCounts::default(),
            has_other_rules: false,
            split_entries: previous.map(WorkspaceSnapshot::entries).filter(|all| *all >= MIN_SPLIT_ENTRIES),
        }
    }

    /// Uses the ignore files of the earlier snapshot.
    pub(super) fn with_same_rules(self) -> Self {
        Self { keeps_rules: true, ..self }
    }

    pub(super) fn scan(mut self) -> Result<ScannedWorkspace, SnapshotError> {
        let (above, rules) = self.rules_above();
        let stat = self.root.handle.stat()?;
        let directory = listing::reopen(self.root.handle.as_fd())?;
        let before = self.previous.map(|previous| &previous.root);
        let (children, rules) = self.directory(&directory, &stat, before, &rules)?;
        let (name, stat) = (OsString::new(), self.stat_of_read(stat));
        let root = SnapshotNode { name, stat, content: NodeContent::Directory, children, rules };
        let snapshot = WorkspaceSnapshot {
            root,
            above,
            entries: self.counted.entries,
            started_ns: self.started_ns,
            is_whole: !self.is_stopped(),
        };
        Ok(ScannedWorkspace { snapshot, has_other_rules: self.has_other_rules })
    }

    /// Reads the ignore files of the directories above the workspace.
    fn rules_above(&mut self) -> (Vec<Option<Arc<RuleFiles>>>, InheritedRules) {
        let known = self.previous.map(|previous| &previous.above);
        let mut rules = InheritedRules { rules: Arc::default(), changed: false };
        let mut above = Vec::new();
        let mut paths: Vec<_> = self.root.path.ancestors().skip(1).collect();
        paths.reverse();
        for (at, path) in paths.into_iter().enumerate() {
            let before = known.and_then(|known| known.get(at)).and_then(Option::as_ref);
            let Ok((directory, found)) = read_above(path) else {
                above.push(None);
                continue;
            };
            let files = if self.keeps_rules {
                if let Some(before) = before {
                    rules.rules = before.rules(path, &directory, &rules.rules);
                }
                before.cloned()
            } else {
                self.settle_rules(before, found, &mut rules, (path, &directory))
            };
            above.push(files);
        }
        (above, rules)
    }

    /// Decides which ignore files apply in a directory, and adds them to those above it.
    fn settle_rules(
        &mut self,
        before: Option<&Arc<RuleFiles>>,
        found: Option<RuleFiles>,
        rules: &mut InheritedRules,
        (path, directory): (&Path, &OwnedFd),
    ) -> Option<Arc<RuleFiles>> {
        let started_ns = self.previous.map_or(i64::MIN, |previous| previous.started_ns);
        let is_same = match (before, &found) {
            (None, None) => true,
            (Some(before), Some(found)) => before.is_same(found, started_ns),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let files = match before {
            Some(before) if is_same && !rules.changed => Some(Arc::clone(before)),
            _ => found.map(Arc::new),
        };
        rules.changed |= !is_same;
        self.has_other_rules |= !is_same;
        if let Some(files) = &files {
            rules.rules = files.rules(path, directory, &rules.rules);
        }
        files
    }

    fn directory(
        &mut self,
        directory: &OwnedFd,
        stat: &EntryStat,
        before: Option<&SnapshotNode>,
        above: &InheritedRules,
    ) -> Result<ScannedDirectory, SnapshotError> {
        let started_ns = self.previous.map_or(i64::MIN, |previous| previous.started_ns);
        let has_same_names = self.has_trusted_ctime
            && before.is_some_and(|before| is_unchanged(&before.stat, stat, started_ns));
        let mut rules = above.clone();
        let known = before.and_then(|before| before.rules.as_ref());
        let path = self.path.clone();
        let files = match before {
            // Use the earlier rules, even if the files have changed.
            Some(_) if self.keeps_rules => {
                if let Some(known) = known {
                    rules.rules = known.rules(&path, directory, &rules.rules);
                }
                known.cloned()
            }
            Some(_) if has_same_names && known.is_none() => None,
            _ => self.settle_rules(known, RuleFiles::read(directory), &mut rules, (&path, directory)),
        };
        if has_same_names
            && !rules.changed
            && let Some(before) = before
            && let Some(children) = self.update_children(directory, before, &rules)?
        {
            return Ok((children, files));
        }
        let children = self.read_children(directory, stat, before, &rules)?;
        Ok((Arc::new(children), files))
    }

    /// Updates the known entries of a directory that has the same names. Returns `None` if one of
    /// them was removed nevertheless.
    fn update_children(
        &mut self,
        directory: &OwnedFd,
        before: &SnapshotNode,
        rules: &InheritedRules,
    ) -> Result<Option<Arc<Vec<SnapshotNode>>>, SnapshotError> {
        let counted = self.counted;
        let updated = match self.take_split(&before.children) {
            Some(middle) => self.update_in_two_threads(directory, (&before.children, middle), rules)?,
            None => self.update_entries(directory, &before.children, rules)?,
        };
        let Some(updated) = updated else {
            self.counted = counted;
            return Ok(None);
        };
        if updated.iter().all(Option::is_none) {
            return Ok(Some(Arc::clone(&before.children)));
        }
        let pairs = updated.into_iter().zip(before.children.iter());
        Ok(Some(Arc::new(pairs.map(|(node, old)| node.unwrap_or_else(|| old.clone())).collect())))
    }

    /// Updates some entries of a directory. Returns the new node of each entry that changed, or
    /// `None` if one of them was removed.
    pub(super) fn update_entries(
        &mut self,
        directory: &OwnedFd,
        before: &[SnapshotNode],
        rules: &InheritedRules,
    ) -> Result<Option<Vec<Option<SnapshotNode>>>, SnapshotError> {
        self.count(before.len())?;
        let mut updated = Vec::with_capacity(before.len());
        for old in before {
            let Ok(stat) = EntryStat::read(directory, &old.name) else { return Ok(None) };
            updated.push(self.entry(directory, &old.name, stat, Some(old), rules)?);
        }
        Ok(Some(updated))
    }

    /// Lists a directory.
    fn read_children(
        &mut self,
        directory: &OwnedFd,
        stat: &EntryStat,
        before: Option<&SnapshotNode>,
        rules: &InheritedRules,
    ) -> Result<Vec<SnapshotNode>, SnapshotError> {
        if is_kernel_interface(directory) {
            return Ok(Vec::new());
        }
        // One more than allowed shows that there are too many.
        let remaining = self.root.limits.max_entries.saturating_sub(self.counted.entries).saturating_add(1);
        let Ok(listing) = DirectoryListing::read(directory, stat.dev, false, remaining) else {
            return Ok(Vec::new());
        };
        if !listing.is_complete {
            return Err(self.too_many());
        }
        let mut children = Vec::new();
        for found in listing.nodes {
            if self.is_stopped() {
                break;
            }
            if self.is_left_out(&found.name, &found.stat, rules) {
                continue;
            }
            self.count(1)?;
            let old = before.and_then(|before| before.child(&found.name));
            let node = self.entry(directory, &found.name, found.stat, old, rules)?;
            // Without a store nothing is collected, so that counting a home directory takes no
            // memory.
            if self.store.is_some() {
                children.extend(node.or_else(|| old.cloned()));
            }
        }
        Ok(children)
    }

    /// Updates one entry. Returns `None` if it is unchanged.
    fn entry(
        &mut self,
        directory: &OwnedFd,
        name: &OsStr,
        stat: EntryStat,
        old: Option<&SnapshotNode>,
        rules: &InheritedRules,
    ) -> Result<Option<SnapshotNode>, SnapshotError> {
        let started_ns = self.previous.map_or(i64::MIN, |previous| previous.started_ns);
        if stat.kind == EntryKind::Directory {
            return self.enter(directory, name, stat, old, rules);
        }
        let unchanged =
            old.filter(|old| old.stat.kind == stat.kind && is_unchanged(&old.stat, &stat, started_ns));
        let unchanged = unchanged.filter(|old| old.stat.size == stat.size);
        if let Some(old) = unchanged {
            if matches!(old.content, NodeContent::File(_)) {
                self.counted.bytes = self.counted.bytes.saturating_add(stat.size);
            }
            return Ok(None);
        }
        let content = match stat.kind {
            EntryKind::File => {
                self.keep(directory, name, &stat).map_or_else(NodeContent::Unkept, NodeContent::File)
            }
            EntryKind::Symlink => read_link(directory, name)
                .map_or(NodeContent::Unkept(UnkeptReason::Unreadable), NodeContent::Symlink),
            EntryKind::Special | EntryKind::Directory => NodeContent::Unkept(UnkeptReason::Special),
        };
        if old.is_some_and(|old| old.stat == stat && old.content == content) {
            return Ok(None);
        }
        Ok(Some(SnapshotNode { name: name.to_owned(), stat, content, children: Arc::default(), rules: None }))
    }

    fn enter(
        &mut self,
        above: &OwnedFd,
        name: &OsStr,
        stat: EntryStat,
        old: Option<&SnapshotNode>,
        rules: &InheritedRules,
    ) -> Result<Option<SnapshotNode>, SnapshotError> {
        let unkept = |reason| (NodeContent::Unkept(reason), (Arc::default(), None));
        let same = old.filter(|old| old.is_directory() && old.stat.is_same_file(&stat));
        let (content, (children, files)) = if self.depth == MAX_DEPTH {
            unkept(UnkeptReason::OverLimit)
        } else {
            match listing::open_directory(above, name, &stat) {
                Err(_) | Ok(None) => unkept(UnkeptReason::Unreadable),
                Ok(Some(directory)) => {
                    self.path.push(name);
                    self.depth += 1;
                    let scanned = self.directory(&directory, &stat, same, rules);
                    self.depth -= 1;
                    self.path.pop();
                    (NodeContent::Directory, scanned?)
                }
            }
        };
        let stat = self.stat_of_read(stat);
        let is_same = old.is_some_and(|old| {
            old.stat == stat && old.content == content && Arc::ptr_eq(&old.children, &children)
        });
        let has_same_rules = old.is_some_and(|old| match (&old.rules, &files) {
            (None, None) => true,
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (Some(_), None) | (None, Some(_)) => false,
        });
        if is_same && has_same_rules {
            return Ok(None);
        }
        Ok(Some(SnapshotNode { name: name.to_owned(), stat, content, children, rules: files }))
    }

    /// Keeps the content of a file, if its metadata is the same before and after it is read.
    fn keep(
        &mut self,
        directory: &OwnedFd,
        name: &OsStr,
        stat: &EntryStat,
    ) -> Result<ContentDigest, UnkeptReason> {
        let limits = &self.root.limits;
        let Some(store) = self.store else { return Err(UnkeptReason::Unreadable) };
        if stat.size > limits.max_file_bytes {
            return Err(UnkeptReason::TooLarge);
        }
        let bytes = self.counted.bytes.saturating_add(stat.size);
        if bytes > limits.max_total_bytes {
            return Err(UnkeptReason::OverLimit);
        }
        let file = File::from(open_read_at(directory, name).map_err(|_| UnkeptReason::Unreadable)?);
        let is_same = || EntryStat::read(&file, OsStr::new("")).is_ok_and(|now| now == *stat);
        if !is_same() {
            return Err(UnkeptReason::Changing);
        }
        let digest =
            store.keep_content(&file, limits.max_file_bytes).map_err(|_| UnkeptReason::Unreadable)?;
        if !is_same() {
            return Err(UnkeptReason::Changing);
        }
        self.counted.bytes = bytes;
        Ok(digest)
    }

    fn is_left_out(&self, name: &OsStr, stat: &EntryStat, rules: &InheritedRules) -> bool {
        if name == GIT {
            return true;
        }
        let is_directory = stat.kind == EntryKind::Directory;
        // The layer of an open preview.
        if is_directory && self.path == self.root.path && layer::is_layer_name(name) {
            return true;
        }
        let path = self.path.join(name);
        if is_directory && self.root.left_out.contains(&path) {
            return true;
        }
        match rules.rules.matched(&path, is_directory) {
            IgnoreMatch::Ignored => true,
            IgnoreMatch::Included => false,
            IgnoreMatch::None => {
                is_directory && GENERATED_DIRECTORIES.iter().any(|generated| name == *generated)
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.root.stop.load(Ordering::Relaxed)
    }

    /// Returns the metadata of a directory that was read. After an early end it may be incomplete,
    /// so its times are cleared and it is read again.
    fn stat_of_read(&self, stat: EntryStat) -> EntryStat {
        if self.is_stopped() { EntryStat { mtime_ns: 0, ctime_ns: 0, ..stat } } else { stat }
    }

    fn count(&mut self, entries: usize) -> Result<(), SnapshotError> {
        self.counted.entries += entries;
        if self.counted.entries > self.root.limits.max_entries { Err(self.too_many()) } else { Ok(()) }
    }

    pub(super) fn too_many(&self) -> SnapshotError {
        SnapshotError::TooMany { limit: self.root.limits.max_entries }
    }
}

fn read_link(directory: &OwnedFd, name: &OsStr) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let target = rustix::fs::readlinkat(directory, name, Vec::new()).ok()?;
    Some(OsString::from_vec(target.into_bytes()))
}

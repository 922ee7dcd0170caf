//! The differences between two scans of one directory.

use std::{cmp::Ordering, path::PathBuf, sync::Arc};

use super::ScanNode;
use crate::{EntryKind, EntryStat};

/// One entry that differs.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// The path below the root.
    pub path: PathBuf,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The entry before, unless it is new.
    pub before: Option<&'a ScanNode>,
    /// The entry now, unless it was removed.
    pub after: Option<&'a ScanNode>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// The entry is new.
    Added,
    /// The file was replaced, or its content or metadata changed. A directory is modified if it was
    /// replaced or has another owner or mode; its entries are listed separately.
    Modified,
    /// The entry was removed.
    Removed,
}

pub(super) fn between<'a>(before: &'a ScanNode, after: &'a ScanNode) -> Vec<Change<'a>> {
    let mut comparison = ScanComparison { path: PathBuf::new(), changes: Vec::new() };
    if !Arc::ptr_eq(&before.children, &after.children) {
        comparison.directory(&before.children, &after.children);
    }
    comparison.changes
}

struct ScanComparison<'a> {
    path: PathBuf,
    changes: Vec<Change<'a>>,
}

impl<'a> ScanComparison<'a> {
    /// Walks two sorted lists side by side.
    fn directory(&mut self, mut before: &'a [ScanNode], mut after: &'a [ScanNode]) {
        loop {
            let order = match (before.first(), after.first()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let old = if order == Ordering::Greater { None } else { before.split_off_first() };
            let new = if order == Ordering::Less { None } else { after.split_off_first() };
            self.entry(old, new);
        }
    }

    fn entry(&mut self, old: Option<&'a ScanNode>, new: Option<&'a ScanNode>) {
        let Some(name) = old.or(new).map(|node| &node.name) else { return };
        self.path.push(name);
        let kind = match (old, new) {
            (None, _) => Some(ChangeKind::Added),
            (_, None) => Some(ChangeKind::Removed),
            (Some(old), Some(new)) => is_changed(&old.stat, &new.stat).then_some(ChangeKind::Modified),
        };
        if let Some(kind) = kind {
            self.changes.push(Change { path: self.path.clone(), kind, before: old, after: new });
        }
        if !old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(&old.children, &new.children)) {
            self.directory(children(old), children(new));
        }
        self.path.pop();
    }
}

fn children(node: Option<&ScanNode>) -> &[ScanNode] {
    node.map_or(&[], |node| &node.children)
}

fn is_changed(before: &EntryStat, after: &EntryStat) -> bool {
    if before.kind == EntryKind::Directory && after.kind == EntryKind::Directory {
        let identity = |stat: &EntryStat| (stat.dev, stat.ino, stat.btime_ns, stat.permissions, stat.uid);
        return identity(before) != identity(after);
    }
    before != after
}

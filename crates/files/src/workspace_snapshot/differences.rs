//! The entries that differ between two snapshots, in the form that an undo needs.

use std::{
    cmp::Ordering,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::snapshot::{EntryChange, EntryContent, EntryVersion, UnkeptEntry, UnkeptReason};

use super::{NodeContent, SnapshotNode};
use crate::EntryStat;

/// The entries that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotChanges {
    /// The entries that can be restored, sorted by path.
    pub kept: Vec<EntryChange>,
    /// The entries that cannot be restored.
    pub unkept: Vec<UnkeptEntry>,
}

impl SnapshotChanges {
    /// Returns true if nothing differs.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.unkept.is_empty()
    }
}

pub(super) fn between(before: &SnapshotNode, after: &SnapshotNode, root: &Path) -> SnapshotChanges {
    let mut comparison = SnapshotComparison { path: root.to_owned(), changes: SnapshotChanges::default() };
    if !Arc::ptr_eq(&before.children, &after.children) {
        comparison.directory(&before.children, &after.children);
    }
    comparison.changes
}

struct SnapshotComparison {
    path: PathBuf,
    changes: SnapshotChanges,
}

impl SnapshotComparison {
    /// Walks two sorted lists side by side.
    fn directory(&mut self, mut before: &[SnapshotNode], mut after: &[SnapshotNode]) {
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

    fn entry(&mut self, old: Option<&SnapshotNode>, new: Option<&SnapshotNode>) {
        let Some(name) = old.or(new).map(|node| &node.name) else { return };
        self.path.push(name);
        if !old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            self.push(old, new);
        }
        if !old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(&old.children, &new.children)) {
            self.directory(children(old), children(new));
        }
        self.path.pop();
    }

    fn push(&mut self, old: Option<&SnapshotNode>, new: Option<&SnapshotNode>) {
        let path = self.path.clone();
        let versions = old.map(version).transpose().and_then(|before| {
            let after = new.map(version).transpose()?;
            if path.to_str().is_some() { Ok((before, after)) } else { Err(UnkeptReason::Name) }
        });
        match versions {
            Ok((before, after)) => self.changes.kept.push(EntryChange { path, before, after }),
            Err(reason) => self.changes.unkept.push(UnkeptEntry { path, reason }),
        }
    }
}

fn children(node: Option<&SnapshotNode>) -> &[SnapshotNode] {
    node.map_or(&[], |node| &node.children)
}

/// Returns true if there is nothing to restore: a difference of times alone does not count.
fn is_same(old: &SnapshotNode, new: &SnapshotNode) -> bool {
    let identity = |stat: &EntryStat| (stat.dev, stat.ino, stat.size, stat.mtime_ns, stat.ctime_ns);
    let access = |stat: &EntryStat| (stat.permissions, stat.uid, stat.gid);
    let is_unkept = matches!(new.content, NodeContent::Unkept(_));
    old.stat.kind == new.stat.kind
        && old.content == new.content
        && access(&old.stat) == access(&new.stat)
        && (!is_unkept || identity(&old.stat) == identity(&new.stat))
}

fn version(node: &SnapshotNode) -> Result<EntryVersion, UnkeptReason> {
    const SECOND_NS: i64 = 1_000_000_000;
    let SnapshotNode { stat, content, .. } = node;
    let content = match content {
        NodeContent::Directory => EntryContent::Directory,
        NodeContent::File(digest) => EntryContent::File(*digest),
        NodeContent::Symlink(target) => {
            let target = OsString::into_string(target.clone()).map_err(|_| UnkeptReason::Name)?;
            EntryContent::Symlink(target.into())
        }
        NodeContent::Unkept(reason) => return Err(*reason),
    };
    let modified = (stat.mtime_ns.div_euclid(SECOND_NS), stat.mtime_ns.rem_euclid(SECOND_NS));
    Ok(EntryVersion { content, mode: stat.permissions.into(), owner: (stat.uid, stat.gid), modified })
}

//! Walks the upper directory of a layer, and derives the change of the root from each entry.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, openat};

use super::{
    RootLayer,
    changes::{
        LayerChange, LayerChangeKind, LayerChanges, LayerConflict, LayerRefusal, MetadataChange, ModeAndTime,
        ProtectedCheck,
    },
    inode::{self, LayerEntry, MAX_ENTRIES, NodeType},
    lower_check::MAX_DEPTH,
};
use crate::DirHandle;

/// Maximum size of a file that is compared. A larger one that was copied up counts as changed: a
/// comparison would take too long.
const MAX_COMPARED_BYTES: u64 = 64 * 1024 * 1024;

const UNREADABLE: &str = "it cannot be looked through: the command has taken the right to read it away";

/// Walks the upper directory of one root.
pub(super) struct UpperScan<'a> {
    pub(super) number: usize,
    pub(super) root: &'a RootLayer,
    pub(super) protected: ProtectedCheck<'a>,
    pub(super) found: &'a mut LayerChanges,
}

/// The entries of one name on both sides.
struct EntryPair<'a> {
    name: &'a OsStr,
    upper: &'a DirHandle,
    after: LayerEntry,
    /// The directory of the root, if it exists.
    lower: Option<&'a DirHandle>,
    before: Option<LayerEntry>,
}

impl EntryPair<'_> {
    /// Returns true if it is a directory that a command has made unreadable, for this user too.
    fn is_unreadable(&self) -> bool {
        is_unreadable(self.upper, self.name, &self.after)
    }

    /// Returns the change of an entry that both sides have and that is no merged directory; `None`
    /// if it is the same.
    fn compare(&self, before: &LayerEntry) -> io::Result<Option<LayerChangeKind>> {
        let (pair, after, lower) = (self, &self.after, self.lower.ok_or(io::ErrorKind::NotFound)?);
        Ok(match (before.node, after.node) {
            (NodeType::Symlink, NodeType::Symlink) => {
                let same = lower.read_link(pair.name)? == pair.upper.read_link(pair.name)?;
                (!same).then_some(LayerChangeKind::Modified)
            }
            (NodeType::File, NodeType::File) => {
                let is_same = has_same_content(pair, before).unwrap_or(false)
                    && inode::own_attributes(lower, pair.name)?
                        == inode::own_attributes(pair.upper, pair.name)?
                    && (before.stat.uid, before.stat.gid) == (after.stat.uid, after.stat.gid);
                if !is_same {
                    Some(LayerChangeKind::Modified)
                } else if ModeAndTime::from(&before.stat) == ModeAndTime::from(&after.stat) {
                    None
                } else {
                    Some(LayerChangeKind::Metadata)
                }
            }
            _ => Some(LayerChangeKind::Replaced),
        })
    }
}

impl UpperScan<'_> {
    /// Compares a directory that is on both sides; returns true if any of its entries changes.
    pub(super) fn scan_merged(
        &mut self,
        upper: &DirHandle,
        lower: &DirHandle,
        path: &mut PathBuf,
        depth: usize,
    ) -> io::Result<bool> {
        let mut names = upper.list(MAX_ENTRIES)?;
        names.sort();
        let is_top = path.as_os_str().is_empty();
        let mut has_changes = false;
        for name in names {
            if is_top && name == self.root.name {
                continue;
            }
            let Some(after) = LayerEntry::find(upper, &name)? else { continue };
            let before = LayerEntry::find(lower, &name)?;
            path.push(&name);
            let pair = EntryPair { name: &name, upper, after, lower: Some(lower), before };
            has_changes |= self.scan_entry(&pair, path, depth)?;
            path.pop();
        }
        Ok(has_changes)
    }

    /// Compares an entry of a merged directory; returns true if the entry changes.
    fn scan_entry(&mut self, pair: &EntryPair<'_>, path: &mut PathBuf, depth: usize) -> io::Result<bool> {
        if depth > MAX_DEPTH {
            return Ok(self.refuse(path, format!("it is more than {MAX_DEPTH} directories deep"), false));
        }
        if pair.is_unreadable() {
            return Ok(self.refuse(path, UNREADABLE.to_owned(), false));
        }
        if let (true, Some(before)) = (pair.after.is_directory(), &pair.before)
            && before.is_directory()
            && !inode::is_opaque(pair.upper, pair.name)?
        {
            return self.scan_merged_directory(pair, before, path, depth).map(|()| false);
        }
        if pair.after.node == NodeType::Whiteout {
            let Some(before) = pair.before else { return Ok(false) };
            return self.add_tree(None, Some((&before, pair)), path);
        }
        if pair.after.node == NodeType::Device {
            return Ok(self.refuse(path, "it is a device".to_owned(), false));
        }
        match pair.before {
            // A copy that was renamed on the layer looks the same, but then the lower directory is
            // unchanged.
            None if inode::was_copied_up(pair.upper, pair.name)? && self.is_changed(pair.lower)? => {
                Ok(self.conflict(path, "it was removed meanwhile, or its directory was changed"))
            }
            None => self.add_tree(Some(pair), None, path),
            Some(before) => {
                let kind = pair.compare(&before)?;
                match kind {
                    None => Ok(false),
                    Some(LayerChangeKind::Replaced) => self.add_tree(Some(pair), Some((&before, pair)), path),
                    Some(kind) => Ok(self.add_file(kind, pair, &before, path)),
                }
            }
        }
    }

    /// Returns true if someone else has changed the entries of a directory.
    fn is_changed(&self, lower: Option<&DirHandle>) -> io::Result<bool> {
        Ok(lower.map(DirHandle::stat).transpose()?.is_some_and(|stat| stat.ctime_ns >= self.root.begun_ns))
    }

    /// Compares a directory that both sides have.
    fn scan_merged_directory(
        &mut self,
        pair: &EntryPair<'_>,
        before: &LayerEntry,
        path: &mut PathBuf,
        depth: usize,
    ) -> io::Result<()> {
        // Without that attribute, a command made the directory where there was none.
        if !inode::was_copied_up(pair.upper, pair.name)? {
            self.conflict(path, "it was made meanwhile");
            return Ok(());
        }
        let Some(lower) = pair.lower else { return Ok(()) };
        let (upper, lower) =
            (pair.upper.open_dir(Path::new(pair.name))?, lower.open_dir(Path::new(pair.name))?);
        let has_changes = self.scan_merged(&upper, &lower, path, depth + 1)?;
        let (before, after) = (ModeAndTime::from(&before.stat), ModeAndTime::from(&pair.after.stat));
        let was_set = before.mode != after.mode;
        if was_set && let Some(reason) = (self.protected)(self.number, path) {
            self.refuse(path, reason, false);
        } else if has_changes || before != after {
            let relative = path.clone();
            self.found.directories.push(MetadataChange { root: self.number, relative, before, after });
        }
        Ok(())
    }

    /// Adds a file or link that is changed.
    fn add_file(
        &mut self,
        kind: LayerChangeKind,
        pair: &EntryPair<'_>,
        before: &LayerEntry,
        path: &Path,
    ) -> bool {
        if let Some(reason) = (self.protected)(self.number, path) {
            return self.refuse(path, reason, false);
        }
        if before.stat.ctime_ns >= self.root.begun_ns {
            return self.conflict(path, "it was changed meanwhile");
        }
        self.push(kind, path, (Some(before), Some(&pair.after)), false);
        kind != LayerChangeKind::Metadata
    }

    /// Adds an entry that is created, removed or replaced as a whole, with everything below it.
    fn add_tree(
        &mut self,
        after: Option<&EntryPair<'_>>,
        before: Option<(&LayerEntry, &EntryPair<'_>)>,
        path: &mut PathBuf,
    ) -> io::Result<bool> {
        if let Some(reason) = (self.protected)(self.number, path) {
            return Ok(self.refuse(path, reason, false));
        }
        let marks = (self.found.changes.len(), self.found.conflicts.len(), self.found.refused.len());
        let mut kept = BTreeSet::new();
        let kind = match (before, after) {
            (None, _) => LayerChangeKind::Created,
            (Some(_), None) => LayerChangeKind::Deleted,
            (Some(_), Some(_)) => LayerChangeKind::Replaced,
        };
        self.push(kind, path, (before.map(|(entry, _)| entry), after.map(|pair| &pair.after)), false);
        if let Some(pair) = after.filter(|pair| pair.after.is_directory()) {
            self.add_created_below(pair, before.is_some(), path, &mut kept, 0)?;
        }
        if let Some((entry, pair)) = before {
            let lower = pair.lower.ok_or(io::ErrorKind::NotFound)?;
            let refused = self.add_deleted_below(lower, pair.name, entry, path, &kept, 0)?;
            if let Some((refused_path, reason)) = refused {
                // The whole entry stays.
                self.found.changes.truncate(marks.0);
                self.found.conflicts.truncate(marks.1);
                self.found.refused.truncate(marks.2);
                let reason = format!("`{}` in it is protected: {reason}", refused_path.display());
                return Ok(self.refuse(path, reason, false));
            }
        }
        Ok(true)
    }

    /// Adds the entries of a new directory. `kept` collects the paths that the replaced directory
    /// of the root has, too.
    fn add_created_below(
        &mut self,
        pair: &EntryPair<'_>,
        has_before: bool,
        path: &mut PathBuf,
        kept: &mut BTreeSet<PathBuf>,
        depth: usize,
    ) -> io::Result<()> {
        let upper = pair.upper.open_dir(Path::new(pair.name))?;
        let lower = match (pair.lower, has_before && pair.before.is_some_and(|before| before.is_directory()))
        {
            (Some(lower), true) => Some(lower.open_dir(Path::new(pair.name))?),
            _ => None,
        };
        let mut names = upper.list(MAX_ENTRIES)?;
        names.sort();
        for name in names {
            let Some(after) = LayerEntry::find(&upper, &name)? else { continue };
            path.push(&name);
            let reason = (self.protected)(self.number, path)
                .or_else(|| is_unreadable(&upper, &name, &after).then(|| UNREADABLE.to_owned()))
                .or_else(|| (after.node == NodeType::Device).then(|| "it is a device".to_owned()))
                .or_else(|| {
                    (depth > MAX_DEPTH).then(|| format!("it is more than {MAX_DEPTH} directories deep"))
                });
            if let Some(reason) = reason {
                self.refuse(path, reason, true);
            } else if after.node != NodeType::Whiteout {
                let before =
                    lower.as_ref().map(|lower| LayerEntry::find(lower, &name)).transpose()?.flatten();
                let inner = EntryPair { name: &name, upper: &upper, after, lower: lower.as_ref(), before };
                self.add_created_inside(&inner, path, kept)?;
                if after.is_directory() {
                    self.add_created_below(&inner, before.is_some(), path, kept, depth + 1)?;
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn add_created_inside(
        &mut self,
        pair: &EntryPair<'_>,
        path: &Path,
        kept: &mut BTreeSet<PathBuf>,
    ) -> io::Result<()> {
        let kind = match &pair.before {
            None => Some(LayerChangeKind::Created),
            Some(before) if before.is_directory() && pair.after.is_directory() => None,
            Some(before) => pair.compare(before)?,
        };
        if pair.before.is_some() {
            kept.insert(path.to_owned());
        }
        if let Some(kind) = kind {
            self.push(kind, path, (pair.before.as_ref(), Some(&pair.after)), true);
        }
        Ok(())
    }

    /// Adds the entries that are removed with a directory of the root, except those that the new
    /// one has. Returns an entry that must stay, if there is one.
    fn add_deleted_below(
        &mut self,
        directory: &DirHandle,
        name: &OsStr,
        entry: &LayerEntry,
        path: &mut PathBuf,
        kept: &BTreeSet<PathBuf>,
        depth: usize,
    ) -> io::Result<Option<(PathBuf, String)>> {
        if let Some(reason) = (self.protected)(self.number, path) {
            return Ok(Some((self.root.path.join(path), reason)));
        }
        if entry.stat.dev != self.root.before.dev || depth > MAX_DEPTH {
            return Ok(Some((self.root.path.join(path), "it cannot be looked through".to_owned())));
        }
        // The time of a directory changes with each of its entries, which are compared themselves.
        if entry.stat.ctime_ns >= self.root.begun_ns {
            self.conflict(path, "it was changed meanwhile");
        }
        if depth > 0 && !kept.contains(path) {
            self.push(LayerChangeKind::Deleted, path, (Some(entry), None), true);
        }
        if entry.is_directory() {
            let inside = directory.open_dir(Path::new(name))?;
            let mut names = inside.list(MAX_ENTRIES)?;
            names.sort();
            for name in names {
                let Some(entry) = LayerEntry::find(&inside, &name)? else { continue };
                path.push(&name);
                let refused = self.add_deleted_below(&inside, &name, &entry, path, kept, depth + 1)?;
                path.pop();
                if refused.is_some() {
                    return Ok(refused);
                }
            }
        }
        Ok(None)
    }

    fn push(
        &mut self,
        kind: LayerChangeKind,
        path: &Path,
        (before, after): (Option<&LayerEntry>, Option<&LayerEntry>),
        is_inside: bool,
    ) {
        self.found.changes.push(LayerChange {
            path: self.root.path.join(path),
            kind,
            before: before.map(|entry| entry.stat),
            after: after.map(|entry| entry.stat),
            root: self.number,
            relative: path.to_owned(),
            is_inside,
        });
    }

    /// Adds a conflict; returns false, because the entry does not change.
    fn conflict(&mut self, path: &Path, reason: &'static str) -> bool {
        self.found.conflicts.push(LayerConflict { path: self.root.path.join(path), reason });
        false
    }

    /// Adds a refusal; returns false, because the entry does not change.
    fn refuse(&mut self, path: &Path, reason: String, is_inside: bool) -> bool {
        let relative = path.to_owned();
        let path = self.root.path.join(path);
        self.found.refused.push(LayerRefusal { path, reason, root: self.number, relative, is_inside });
        false
    }
}

/// Returns true if an entry is a directory that cannot be read.
fn is_unreadable(directory: &DirHandle, name: &OsStr, entry: &LayerEntry) -> bool {
    let opened = || directory.open_dir(Path::new(name));
    entry.is_directory() && opened().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns true if a file has the same bytes on both sides.
fn has_same_content(pair: &EntryPair<'_>, before: &LayerEntry) -> io::Result<bool> {
    let size = before.stat.size;
    if size != pair.after.stat.size || size > MAX_COMPARED_BYTES {
        return Ok(false);
    }
    let lower = pair.lower.ok_or(io::ErrorKind::NotFound)?;
    let (mut one, mut other) = (open_file(lower, pair.name)?, open_file(pair.upper, pair.name)?);
    let (mut ours, mut theirs) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let length = one.read(&mut ours)?;
        if length == 0 {
            return Ok(other.read(&mut theirs)? == 0);
        }
        match other.read_exact(&mut theirs[..length]) {
            Ok(()) if ours[..length] == theirs[..length] => {}
            _ => return Ok(false),
        }
    }
}

fn open_file(directory: &DirHandle, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?.into())
}

//! Copies of files for the archive when a layer is applied, so that `undo` can restore them.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::edit::{Archive, Attributes, Changed, ContentPair, HashedContent, KeptPair, Version};

use super::{LayerChange, LayerChangeKind, LayerChanges, OverlayLayer};
use crate::{EntryKind, EntryStat, sha256::sha256_of};

/// Nanoseconds in a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// Maximum size of a file that is archived, the same as for file tools.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of all files that are archived for one layer.
const MAX_TOTAL_BYTES: u64 = 128 * 1024 * 1024;

/// Maximum number of files that are archived for one layer.
const MAX_FILES: usize = 5_000;

/// The changes that an archive can keep, and the others with the reason.
#[derive(Debug, Default)]
pub(super) struct UndoCopies {
    pub(super) kept: Vec<Changed>,
    pub(super) not_kept: Vec<(PathBuf, &'static str)>,
}

impl UndoCopies {
    /// Reads the files before and after the changes. Call it before anything is applied.
    pub(super) fn read(layer: &OverlayLayer, found: &LayerChanges) -> Self {
        let made = found.changes.iter().filter(|change| is_made_directory(change));
        let made: BTreeSet<_> = made.map(|change| change.path.clone()).collect();
        let mut copies = Self::default();
        let mut left_bytes = MAX_TOTAL_BYTES;
        // Old contents, which would be lost otherwise, come first.
        let is_loss = |change: &&LayerChange| change.before.is_some();
        let (losses, others): (Vec<_>, Vec<_>) = found.changes.iter().partition(is_loss);
        for change in losses.into_iter().chain(others) {
            let Some(reason) = copies.take(layer, change, &made, &mut left_bytes) else { continue };
            copies.not_kept.push((change.path.clone(), reason));
        }
        copies
    }

    /// Writes the contents to an archive.
    pub(super) fn keep(&self, archive: &dyn Archive) -> io::Result<Vec<KeptPair>> {
        let hashed = |version: &Option<Version>| {
            let bytes = Arc::clone(&version.as_ref()?.bytes);
            Some(HashedContent { sha256: sha256_of(&bytes), bytes })
        };
        let pair = |changed: &Changed| ContentPair {
            before: hashed(&changed.before),
            after: hashed(&changed.after),
        };
        archive.keep(&self.kept.iter().map(pair).collect::<Vec<_>>())
    }

    /// Keeps a change, or returns the reason why not.
    fn take(
        &mut self,
        layer: &OverlayLayer,
        change: &LayerChange,
        made: &BTreeSet<PathBuf>,
        left_bytes: &mut u64,
    ) -> Option<&'static str> {
        let is = |stat: &Option<EntryStat>, kind| stat.as_ref().is_none_or(|stat| stat.kind == kind);
        if is(&change.before, EntryKind::Directory) && is(&change.after, EntryKind::Directory) {
            // An undo restores a directory with the files in it.
            return None;
        }
        if change.path.to_str().is_none() {
            return Some("its name is not UTF-8");
        }
        if change.path.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
            return Some("git's own files are not kept");
        }
        let is_time_only = |(before, after): (EntryStat, EntryStat)| before.permissions == after.permissions;
        if change.kind == LayerChangeKind::Metadata
            && change.before.zip(change.after).is_some_and(is_time_only)
        {
            return Some("only its time is another one");
        }
        if !is(&change.before, EntryKind::File) || !is(&change.after, EntryKind::File) {
            return Some("it is no regular file");
        }
        let size = |stat: &Option<EntryStat>| stat.as_ref().map_or(0, |stat| stat.size);
        let (largest, both) =
            (size(&change.before).max(size(&change.after)), size(&change.before) + size(&change.after));
        if largest > MAX_FILE_BYTES {
            return Some("it is too large");
        }
        if both > *left_bytes || self.kept.len() >= MAX_FILES {
            return Some("there is too much of it together");
        }
        let Ok(changed) = changed(layer, change, made) else { return Some("it cannot be read") };
        *left_bytes -= both;
        self.kept.push(changed);
        None
    }
}

fn changed(layer: &OverlayLayer, change: &LayerChange, made: &BTreeSet<PathBuf>) -> io::Result<Changed> {
    let version = |bytes: Vec<u8>, stat: &EntryStat| Version {
        bytes: Arc::from(bytes),
        mode: stat.permissions.into(),
        owner: None,
        modified: Some((stat.mtime_ns.div_euclid(NANOSECONDS), stat.mtime_ns.rem_euclid(NANOSECONDS))),
        attributes: Attributes::new(),
    };
    let before = change
        .before
        .as_ref()
        .map(|stat| layer.read_before(change, MAX_FILE_BYTES).map(|bytes| version(bytes, stat)));
    let after = change
        .after
        .as_ref()
        .map(|stat| layer.read_after(change, MAX_FILE_BYTES).map(|bytes| version(bytes, stat)));
    let mut folders: Vec<_> =
        change.path.ancestors().skip(1).filter(|above| made.contains(*above)).map(Path::to_owned).collect();
    folders.reverse();
    let other_names = change.before.map_or(0, |stat| stat.nlink.saturating_sub(1));
    let path = change.path.clone();
    Ok(Changed {
        path,
        before: before.transpose()?,
        after: after.transpose()?,
        stamp: None,
        folders,
        other_names,
    })
}

fn is_made_directory(change: &LayerChange) -> bool {
    change.before.is_none() && change.after.is_some_and(|stat| stat.kind == EntryKind::Directory)
}

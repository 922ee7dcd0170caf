//! Scans one half of a workspace in a second thread: a command waits for the scan, which mostly
//! makes system calls.

use std::{os::fd::OwnedFd, thread};

use super::{
    SnapshotError, SnapshotNode,
    scanner::{InheritedRules, ScanCounts, SnapshotScanner},
};

/// Minimum number of entries for a second thread, whose start takes 0.05 to 0.1 ms.
pub(super) const MIN_SPLIT_ENTRIES: usize = 400;

/// For each entry its new node, if it changed. `None` if an entry was removed.
type UpdatedEntries = Option<Vec<Option<SnapshotNode>>>;

impl SnapshotScanner<'_> {
    /// Returns the index that splits the entries of a directory into two parts of at least a third
    /// each. If most entries are in one directory, that one is split instead, when it is entered.
    pub(super) fn take_split(&mut self, entries: &[SnapshotNode]) -> Option<usize> {
        let total = self.split_entries?;
        let sizes: Vec<_> = entries.iter().map(SnapshotNode::count).collect();
        let all: usize = sizes.iter().sum();
        if all * 2 < total {
            return None;
        }
        let mut before = 0;
        let middle = sizes.iter().position(|size| {
            before += size;
            before * 3 >= all
        })? + 1;
        if before * 3 > all * 2 {
            return None;
        }
        self.split_entries = None;
        Some(middle)
    }

    pub(super) fn update_in_two_threads(
        &mut self,
        directory: &OwnedFd,
        (entries, middle): (&[SnapshotNode], usize),
        rules: &InheritedRules,
    ) -> Result<UpdatedEntries, SnapshotError> {
        let started = self.clone();
        let mut other = self.clone();
        other.counted = ScanCounts::default();
        let (first, second) = entries.split_at(middle);
        let (updated, others) = thread::scope(|scope| {
            let help = thread::Builder::new()
                .name("windlass-scan".to_owned())
                .spawn_scoped(scope, || other.update_entries(directory, second, rules));
            let updated = self.update_entries(directory, first, rules);
            (updated, help.map(thread::ScopedJoinHandle::join))
        });
        self.counted.entries += other.counted.entries;
        self.counted.bytes = self.counted.bytes.saturating_add(other.counted.bytes);
        self.has_other_rules |= other.has_other_rules;
        let is_over = self.counted.bytes > self.root.limits.max_total_bytes;
        let (Ok(Ok(others)), false) = (others, is_over) else {
            // The limit applies to files in their order, so scan again in one thread.
            *self = started;
            return self.update_entries(directory, entries, rules);
        };
        if self.counted.entries > self.root.limits.max_entries {
            return Err(self.too_many());
        }
        let (Some(mut updated), Some(others)) = (updated?, others?) else { return Ok(None) };
        updated.extend(others);
        Ok(Some(updated))
    }
}

impl SnapshotNode {
    /// Counts this entry and those below it.
    fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }
}

//! Limits within which changes of commands are recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::host::SnapshotLimits;

const MEGABYTE: u64 = 1024 * 1024;

/// Recording of changes by commands, for `windlass undo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UndoOfCommands {
    /// Record what commands change. `false` leaves only the changes of file tools.
    pub(crate) commands: bool,
    /// Maximum number of files and directories of a workspace, without ignored ones. In a larger
    /// one nothing is recorded.
    pub(crate) max_files: usize,
    /// Maximum size of a file that is kept, in megabytes.
    pub(crate) max_file_megabytes: u64,
    /// Maximum size of all that is kept of a workspace, in megabytes.
    pub(crate) max_total_megabytes: u64,
}

impl Default for UndoOfCommands {
    fn default() -> Self {
        let SnapshotLimits { max_entries, max_file_bytes, max_total_bytes } = SnapshotLimits::default();
        Self {
            commands: true,
            max_files: max_entries,
            max_file_megabytes: max_file_bytes / MEGABYTE,
            max_total_megabytes: max_total_bytes / MEGABYTE,
        }
    }
}

impl UndoOfCommands {
    /// Returns the limits; none if nothing is recorded.
    pub(crate) fn limits(&self) -> Option<SnapshotLimits> {
        let bytes = |megabytes: u64| megabytes.saturating_mul(MEGABYTE);
        self.commands.then(|| SnapshotLimits {
            max_entries: self.max_files,
            max_file_bytes: bytes(self.max_file_megabytes),
            max_total_bytes: bytes(self.max_total_megabytes),
        })
    }
}

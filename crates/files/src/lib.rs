//! File access by handle, for code that runs outside of the sandbox.
//!
//! Files that a sandboxed command may have written are accessed through [`DirHandle`] only: beneath
//! an open directory, without following links, regular files only, up to a maximum size.
//! [`WorkspaceScan`] records every entry below such a directory, so that two scans show exactly
//! what a command added, changed or removed. [`ConfinedFiles`] are the files of one grant: opened
//! by [`FileRules`], read, searched, and changed atomically.
//!
//! ```
//! use windlass_files::{ChangeKind, DirHandle, WorkspaceScan};
//!
//! # fn main() -> std::io::Result<()> {
//! let place = tempfile::tempdir()?;
//! let root = DirHandle::open(&place.path().canonicalize()?)?;
//! let before = WorkspaceScan::new(&root)?;
//! std::fs::write(place.path().join("new"), "text")?;
//! let after = WorkspaceScan::new(&root)?;
//! let changes = before.changes_to(&after);
//! assert_eq!((changes[0].path.to_str(), changes[0].kind), (Some("new"), ChangeKind::Added));
//! # Ok(())
//! # }
//! ```

mod checked_rename;
mod commit;
mod confined_files;
mod crash_note;
mod dir_handle;
mod entry_restore;
mod entry_stat;
mod fail_points;
mod file_rules;
mod handle;
mod ignore_rules;
mod layer;
mod list;
mod read_tracker;
mod resolve;
mod search;
mod sha256;
mod walk;
mod workspace_scan;
mod workspace_snapshot;

pub use commit::recovery::{CommitRecovery, recover};
pub use confined_files::{CommitObserver, ConfinedFiles};
pub use dir_handle::DirHandle;
pub use entry_restore::{
    EntryStanding, ReadContent, RestoreError, RestoreReport, inspect_changes, recover_restores,
    restore_entries,
};
pub use entry_stat::{EntryKind, EntryStat};
pub use file_rules::FileRules;
pub use layer::{
    AppliedLayer, LayerApplyError, LayerChange, LayerChangeKind, LayerChanges, LayerConflict, LayerError,
    LayerRecovery, LayerRefusal, LayerRoot, OverlayLayer, recover_layers,
};
pub use read_tracker::ReadTracker;
pub use resolve::resolve_links;
pub use workspace_scan::{Change, ChangeKind, ScanNode, SkippedDirectory, WorkspaceScan};
pub use workspace_snapshot::{
    AfterCommand, SnapshotChanges, SnapshotError, SnapshotLimits, SnapshotRoot, UnkeptSummary,
    WorkspaceSnapshot,
};

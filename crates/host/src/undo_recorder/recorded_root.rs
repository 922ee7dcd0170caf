//! One workspace and its snapshot.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

use windlass_contract::snapshot::{CommandEdit, CommandLog, UnkeptEntry, UnkeptReason};
use windlass_files::{
    AfterCommand, DirHandle, SnapshotError, SnapshotRoot, UnkeptSummary, WorkspaceSnapshot,
};

use super::{RecordedCommand, UndoRoot};

/// Maximum number of names listed of entries that are not kept.
const MAX_NAMES: usize = 3;

/// A workspace whose changes are recorded.
#[derive(Debug)]
pub(super) struct RecordedRoot {
    root: UndoRoot,
    opened: Option<SnapshotRoot>,
    /// Absent if the workspace is not kept, for the reason given.
    snapshot: Result<WorkspaceSnapshot, String>,
    /// The snapshot last saved or loaded.
    saved: Option<WorkspaceSnapshot>,
    unkept: Option<(WorkspaceSnapshot, UnkeptSummary)>,
    /// The log says that changes are not kept. Once per session is enough.
    is_gap_logged: bool,
}

impl RecordedRoot {
    pub(super) fn new(root: UndoRoot) -> Self {
        let snapshot = Err("not read yet".to_owned());
        Self { root, opened: None, snapshot, saved: None, unkept: None, is_gap_logged: false }
    }

    /// Reads the workspace, or what changed since an earlier session read it.
    pub(super) fn fill(&mut self, stop: &Arc<AtomicBool>) {
        let UndoRoot { path, store, left_out, limits } = &self.root;
        if path.parent().is_none() {
            self.snapshot = Err("the whole file system is not kept".to_owned());
            return;
        }
        let opened = match DirHandle::open(path) {
            Ok(handle) => SnapshotRoot {
                handle,
                path: path.clone(),
                left_out: left_out.clone(),
                limits: *limits,
                stop: Arc::clone(stop),
            },
            Err(error) => {
                self.snapshot = Err(error.to_string());
                return;
            }
        };
        let saved = store.load_listing().and_then(|bytes| WorkspaceSnapshot::from_bytes(&bytes));
        let filled = match &saved {
            Some(saved) => saved.update(&opened, &**store),
            None => WorkspaceSnapshot::fill(&opened, &**store),
        };
        self.snapshot = filled.map_err(|error| reason(&error));
        (self.opened, self.saved) = (Some(opened), saved);
        let is_partial = self.snapshot.as_ref().is_ok_and(|filled| !filled.is_whole());
        if self.saved.is_none() || is_partial {
            self.save();
        }
        if is_partial {
            self.snapshot = Err(SnapshotError::Stopped.to_string());
        }
    }

    /// Takes what is there as it is: nothing of it is a command's.
    pub(super) fn update(&mut self) {
        let (Some(opened), Ok(snapshot)) = (&self.opened, &self.snapshot) else { return };
        self.snapshot = snapshot.update(opened, &*self.root.store).map_err(|error| reason(&error));
    }

    /// Writes down what changed since the snapshot, as the work of a command.
    pub(super) fn record(
        &mut self,
        log: &dyn CommandLog,
        command: &RecordedCommand,
        gap: Option<&str>,
    ) -> io::Result<()> {
        let (opened, before) = match (&self.opened, &self.snapshot) {
            (Some(opened), Ok(before)) => (opened, before),
            (_, Err(reason)) => return self.log_gap(log, command, &reason.clone()),
            (None, Ok(_)) => return Ok(()),
        };
        let AfterCommand { by_same_rules, now } = match before.update_after_command(opened, &*self.root.store)
        {
            Ok(after) => after,
            Err(error) => {
                self.snapshot = Err(reason(&error));
                return Err(io::Error::other(error));
            }
        };
        let changes = before.changes_to(&by_same_rules, &opened.path);
        self.snapshot = Ok(now);
        if changes.is_empty() {
            return Ok(());
        }
        let RecordedCommand { call, line, begun, .. } = command;
        let edit =
            CommandEdit { call, line, begun: *begun, changes: &changes.kept, unkept: &changes.unkept, gap };
        log.log_command(&edit, &*self.root.store)
    }

    /// Writes down that what a command changed is not kept.
    pub(super) fn log_gap(
        &mut self,
        log: &dyn CommandLog,
        command: &RecordedCommand,
        gap: &str,
    ) -> io::Result<()> {
        if std::mem::replace(&mut self.is_gap_logged, true) {
            return Ok(());
        }
        let RecordedCommand { call, line, begun, .. } = command;
        let unkept = [UnkeptEntry { path: self.root.path.clone(), reason: UnkeptReason::NotKept }];
        let edit = CommandEdit { call, line, begun: *begun, changes: &[], unkept: &unkept, gap: Some(gap) };
        log.log_command(&edit, &*self.root.store)
    }

    /// Saves the listing for the next session, and removes contents that are not used any more.
    pub(super) fn close(&mut self) {
        self.save();
        if let Ok(snapshot) = &self.snapshot
            && !self.saved.as_ref().is_some_and(|saved| saved.is_same(snapshot))
        {
            // Nothing depends on it but room on the disk.
            let _left = self.root.store.remove_unused(&snapshot.contents().0);
        }
    }

    fn save(&mut self) {
        let Ok(snapshot) = &self.snapshot else { return };
        if !self.saved.as_ref().is_some_and(|saved| saved.is_same(snapshot)) {
            // It is a cache: without it the next session reads the workspace again.
            let _saved = self.root.store.save_listing(&snapshot.to_bytes());
        }
    }

    /// Describes the changes of a command starting now that cannot be undone.
    pub(super) fn limits(&mut self) -> Option<String> {
        let snapshot = match &self.snapshot {
            Ok(snapshot) => snapshot,
            Err(reason) => {
                return Some(format!("undo: not available in {}: {reason}", self.root.path.display()));
            }
        };
        let is_known = self.unkept.as_ref().is_some_and(|(known, _)| known.is_same(snapshot));
        if !is_known {
            self.unkept = Some((snapshot.clone(), snapshot.unkept(MAX_NAMES)));
        }
        let (_, UnkeptSummary { count, first }) = self.unkept.as_ref()?;
        if *count == 0 {
            return None;
        }
        let name = |(path, reason): &(std::path::PathBuf, UnkeptReason)| {
            format!("{} ({})", path.display(), reason.as_str())
        };
        let names: Vec<_> = first.iter().map(name).collect();
        let more = if *count > names.len() { ", ..." } else { "" };
        Some(format!("undo: {count} of the files not kept: {}{more}", names.join(", ")))
    }
}

fn reason(error: &SnapshotError) -> String {
    match error {
        SnapshotError::TooMany { .. } | SnapshotError::Stopped => error.to_string(),
        SnapshotError::Unreadable(source) => format!("{error}: {source}"),
    }
}

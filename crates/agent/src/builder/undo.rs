//! Sets up the recorder of changes by commands, so that they can be undone.

use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use windlass_contract::{Event, event::EventEmitter, policy::SandboxMode};
use windlass_host::{UndoRecorder, UndoRoot};
use windlass_record::{Edits, SnapshotStore};

use super::AgentBuilder;
use crate::StorageSettings;

/// The recorder of what commands change, shared by the agents that work on one session after
/// another. A command that outlives its agent is then recorded like any other.
#[derive(Debug, Clone, Default)]
pub struct UndoRecording(Arc<OnceLock<Arc<UndoRecorder>>>);

impl UndoRecording {
    /// Waits until the changes of commands so far are recorded, up to a limit. They are recorded in
    /// the background after a command has ended.
    pub fn settle(&self) {
        if let Some(recorder) = self.0.get() {
            recorder.settle();
        }
    }
}

impl AgentBuilder {
    /// Creates a recorder for the directories that commands may write. A session starts it at once;
    /// a single call starts it with its command.
    pub(super) fn undo_recorder(
        &self,
        edits: Option<&Edits>,
        events: &dyn EventEmitter,
    ) -> Option<Arc<UndoRecorder>> {
        let edits = edits.filter(|_| self.policy.sandbox != SandboxMode::ReadOnly)?;
        let UndoRecording(shared) = &self.undo_recording;
        if let Some(recorder) = shared.get() {
            return Some(Arc::clone(recorder));
        }
        let roots = match self.undo_roots() {
            Ok(roots) => roots?,
            Err(error) => {
                let message = format!("what commands change cannot be undone: {error}");
                events.emit(Event::Warning { message });
                return None;
            }
        };
        let recorder = UndoRecorder::new(roots, Arc::new(edits.clone()));
        if edits.session().is_some() {
            // If the thread cannot be started, the first command tries again and reports it.
            let _started = recorder.start();
        }
        Some(Arc::clone(shared.get_or_init(|| Arc::new(recorder))))
    }

    fn undo_roots(&self) -> io::Result<Option<Vec<UndoRoot>>> {
        let Some(StorageSettings { home, undo_commands: Some(limits), .. }) = &self.storage else {
            return Ok(None);
        };
        let mut paths: Vec<PathBuf> = vec![fs::canonicalize(&self.policy.cwd)?];
        for writable in &self.policy.walls.writable {
            // A missing directory cannot be written either.
            let Ok(path) = fs::canonicalize(writable) else { continue };
            if path.is_dir() && !paths.iter().any(|known| path.starts_with(known)) {
                paths.push(path);
            }
        }
        let own = fs::canonicalize(home).unwrap_or_else(|_| home.clone());
        let root = |path: PathBuf| {
            let store = Arc::new(SnapshotStore::open(home, &path)?);
            Ok(UndoRoot { path, store, left_out: vec![own.clone()], limits: *limits })
        };
        paths.into_iter().map(root).collect::<io::Result<_>>().map(Some)
    }
}

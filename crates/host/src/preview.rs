//! Commands on a layer: nothing in the workspace changes until someone has seen the changes and
//! said yes.
//!
//! All commands of a preview share one layer, one after the other. To the guard of the workspace
//! the preview is one command, from the first start until it is applied or thrown away: what is
//! applied is checked as a command's changes are.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::OwnedMutexGuard;
use windlass_contract::{CallId, Denial, edit::Archive};
use windlass_files::{AppliedLayer, LayerApplyError, LayerChange, LayerChanges, LayerRoot, OverlayLayer};
use windlass_sandbox::{IdMaps, StartError, Zygotes};

use crate::workspace_guard::{
    CommandGuard, WorkspaceGuard, git_program::SandboxedGit, layer_refusal, private_changes,
};

/// The layer that the commands of a [`Machine`](crate::Machine) run on, and their changes. Dropping
/// it before it was applied discards them.
#[derive(Debug, Clone)]
pub struct Preview(Arc<PreviewInner>);

#[derive(Debug)]
struct PreviewInner {
    /// The directory for the journal.
    notes: PathBuf,
    state: Mutex<PreviewState>,
    /// Held by the command that runs: two mounts of one layer would damage it.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
enum PreviewState {
    /// No command has begun.
    #[default]
    Unused,
    Open(Box<OpenPreview>),
    /// Applied or discarded.
    Closed,
}

/// A preview with at least one command.
#[derive(Debug)]
pub(crate) struct OpenPreview {
    layer: OverlayLayer,
    pub(crate) guard: CommandGuard,
    /// As it was asked for.
    writable: Vec<PathBuf>,
}

/// The changes by the commands of a preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreviewChanges {
    /// The changes on the layer.
    pub layer: LayerChanges,
    /// Files of git's settings that commands have changed. Of those, what may be kept is taken
    /// over.
    pub git_settings: Vec<PathBuf>,
}

impl PreviewChanges {
    /// Tells whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.layer.changes.is_empty() && self.git_settings.is_empty()
    }
}

/// A preview that was applied.
#[derive(Debug, Default)]
pub struct AppliedPreview {
    /// The applied layer.
    pub layer: AppliedLayer,
    /// Changes that were reverted afterwards.
    pub denials: Vec<Denial>,
}

impl Preview {
    /// Makes a preview whose journal is written to a directory that no command can reach.
    pub fn new(notes: PathBuf) -> Self {
        let (state, turn) = (Mutex::default(), Arc::default());
        Self(Arc::new(PreviewInner { notes, state, turn }))
    }

    fn state(&self) -> MutexGuard<'_, PreviewState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other command of the preview runs.
    pub(crate) async fn take_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0.turn).lock_owned().await
    }

    /// Prepares the layer for a command, and hands it over. The first one makes it.
    pub(crate) fn begin<T>(
        &self,
        guard: &Arc<WorkspaceGuard>,
        writable: &[PathBuf],
        zygotes: &mut Zygotes,
        use_it: impl FnOnce(&mut OpenPreview, &str) -> T,
    ) -> Result<T, StartError> {
        let mut state = self.state();
        if matches!(&*state, PreviewState::Unused) {
            *state = PreviewState::Open(Box::new(OpenPreview::new(&self.0.notes, guard, writable, zygotes)?));
        }
        let open = match &mut *state {
            PreviewState::Open(open) => open,
            PreviewState::Unused | PreviewState::Closed => return Err(refused("it is over")),
        };
        if open.writable != writable {
            return Err(refused("its first command could write other directories than this one"));
        }
        open.layer.renew().map_err(|error| refused(&error.to_string()))?;
        let name = open.layer.name().to_string_lossy().into_owned();
        Ok(use_it(open, &name))
    }

    /// Notes what in the roots commands may not read.
    pub(crate) fn hide(&self, hidden: &[PathBuf]) {
        if let PreviewState::Open(open) = &mut *self.state() {
            open.guard.hidden = hidden.to_vec();
        }
    }

    /// Lists what commands changed. None may run any more.
    pub fn changes(&self) -> io::Result<PreviewChanges> {
        match &*self.state() {
            PreviewState::Open(open) => open.changes(),
            PreviewState::Unused | PreviewState::Closed => Ok(PreviewChanges::default()),
        }
    }

    /// Reads a file before and after a change, up to `max_bytes`. Absent if it is not a regular
    /// file.
    pub fn read(&self, change: &LayerChange, max_bytes: u64) -> io::Result<[Option<Vec<u8>>; 2]> {
        let state = self.state();
        let PreviewState::Open(open) = &*state else { return Ok([None, None]) };
        let is_file = |stat: Option<windlass_files::EntryStat>| {
            stat.is_some_and(|stat| stat.kind == windlass_files::EntryKind::File)
        };
        let before = is_file(change.before).then(|| open.layer.read_before(change, max_bytes));
        let after = is_file(change.after).then(|| open.layer.read_after(change, max_bytes));
        Ok([before.transpose()?, after.transpose()?])
    }

    /// Reads where a link leads as a change leaves it.
    pub fn read_link(&self, change: &LayerChange) -> Option<PathBuf> {
        match &*self.state() {
            PreviewState::Open(open) => open.layer.link_after(change).ok().map(PathBuf::from),
            PreviewState::Unused | PreviewState::Closed => None,
        }
    }

    /// Applies the changes shown, all of them or none. Protected names are then checked, as after a
    /// command.
    pub fn apply(
        &self,
        shown: &PreviewChanges,
        archive: Option<(&dyn Archive, &CallId)>,
    ) -> Result<AppliedPreview, LayerApplyError> {
        let state = std::mem::replace(&mut *self.state(), PreviewState::Closed);
        let PreviewState::Open(open) = state else { return Err(LayerApplyError::NotAsShown) };
        let OpenPreview { layer, guard, .. } = *open;
        if private_changes(&guard) != shown.git_settings {
            return Err(LayerApplyError::NotAsShown);
        }
        let refusal = |number: usize, relative: &Path| layer_refusal(&guard, number, relative);
        let applied = layer.apply(&shown.layer, &refusal, archive)?;
        Ok(AppliedPreview { layer: applied, denials: check(guard) })
    }

    /// Throws everything away.
    pub fn discard(&self) -> io::Result<()> {
        match std::mem::replace(&mut *self.state(), PreviewState::Closed) {
            PreviewState::Open(open) => open.layer.discard(),
            PreviewState::Unused | PreviewState::Closed => Ok(()),
        }
    }
}

impl Drop for PreviewInner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let PreviewState::Open(open) = std::mem::replace(state, PreviewState::Closed) {
            // If this fails, the next start removes it.
            let _left = open.layer.discard();
        }
    }
}

impl OpenPreview {
    fn new(
        notes: &Path,
        guard: &Arc<WorkspaceGuard>,
        writable: &[PathBuf],
        zygotes: &mut Zygotes,
    ) -> Result<Self, StartError> {
        if writable.is_empty() {
            return Err(refused("nothing may be written"));
        }
        if !guard.is_idle() {
            return Err(refused("another command runs in this workspace"));
        }
        let mut git = SandboxedGit { environment: &guard.git, writable: writable.to_vec(), zygotes };
        let command = guard.begin(writable, true, &mut git);
        let command = command.map_err(|error| StartError::Impossible(error.to_string()))?;
        let roots = command.roots.iter().map(|root| {
            let handle = root.handle.try_clone().map_err(|error| refused(&error.to_string()))?;
            Ok(LayerRoot { path: root.path.clone(), handle })
        });
        let roots = roots.collect::<Result<_, StartError>>()?;
        let ids = IdMaps::for_layers();
        let layer = OverlayLayer::new(roots, notes, &|user, group| ids.contain(user, group));
        let layer = layer.map_err(|error| refused(&in_words(&error)))?;
        Ok(Self { layer, guard: command, writable: writable.to_vec() })
    }

    fn changes(&self) -> io::Result<PreviewChanges> {
        let refusal = |number: usize, relative: &Path| layer_refusal(&self.guard, number, relative);
        let layer = self.layer.changes(&refusal)?;
        Ok(PreviewChanges { layer, git_settings: private_changes(&self.guard) })
    }
}

/// Checks what was applied, and puts right what must not stay. On a thread of its own, as every
/// other start of a program.
fn check(guard: CommandGuard) -> Vec<Denial> {
    let checked = thread::spawn(move || {
        let workspace = guard.workspace();
        let writable = guard.roots.iter().map(|root| root.path.clone()).collect();
        let mut zygotes = Zygotes::default();
        let mut git = SandboxedGit { environment: &workspace.git, writable, zygotes: &mut zygotes };
        guard.finish(&mut git).denials
    });
    checked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The error where there can be no preview.
pub(crate) fn refused(reason: &str) -> StartError {
    StartError::Impossible(refusal(reason))
}

pub(crate) fn refusal(reason: &str) -> String {
    format!("there can be no preview: {reason}")
}

/// An error with what caused it.
fn in_words(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

//! Guards the workspace of a session: the opened roots, their content, and the changes by commands.
//!
//! Roots are opened once, as descriptors; nothing a command writes changes which directories the
//! next one may write. Before the first command and after every one, each root is scanned by
//! handle. Changes to names that other programs execute or trust are undone or moved aside
//! ([`check`]). If that fails, the workspace is not used any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use windlass_contract::Denial;
use windlass_files::WorkspaceScan;
use windlass_sandbox::ProtectedPaths;

mod check;
mod command_guard;
pub(crate) mod git_config;
pub(crate) mod git_directory;
mod git_index;
#[expect(clippy::disallowed_methods, reason = "a directory of our own that no command can reach")]
pub(crate) mod git_program;
mod interrupted;
mod layer_refusal;
#[expect(clippy::disallowed_methods, reason = "a directory of our own, in which no command runs by then")]
mod private_config;
pub(crate) mod protected_names;
mod protected_paths;
pub(crate) mod roots;
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a directory of our own that no command can reach"
)]
mod running_note;
mod saved_files;
mod start_time;

use check::Findings;
pub(crate) use command_guard::CommandGuard;
use git_index::IndexStats;
use git_program::GitProgram;
pub(crate) use layer_refusal::{layer_refusal, private_changes};
pub(crate) use private_config::PrivateConfig;
pub(crate) use protected_paths::{entry_in_home, has_protected_name, is_protected};
pub(crate) use roots::{RootError, WorkspaceRoot};
use running_note::RunningNote;
use saved_files::SavedFiles;
use start_time::StartTime;

/// Maximum depth of nested directories that a command made inaccessible.
const MAX_DEPTH: usize = 128;

/// The workspace of a session.
#[derive(Debug)]
pub(crate) struct WorkspaceGuard {
    /// Home directories of users of this machine that commands could change.
    homes: Vec<PathBuf>,
    /// The directory for notes of running commands, if any.
    notes: OnceLock<PathBuf>,
    state: Mutex<GuardState>,
    pub(crate) git: git_program::GitEnvironment,
}

#[derive(Debug, Default)]
struct GuardState {
    roots: Vec<GuardedRoot>,
    /// Start times of the commands that still run.
    running: BTreeMap<u64, StartTime>,
    started: u64,
    /// The reason why the workspace must not be used any more.
    unresolved: Option<String>,
    /// The protected paths of the last command, with the indices of its roots.
    protected: Option<(Vec<usize>, Arc<ProtectedPaths>)>,
    saved: SavedFiles,
    note: Option<RunningNote>,
    /// Set when commands of killed sessions were looked for.
    is_recovered: bool,
    /// Findings about a command whose session was killed, not reported yet.
    pending: GuardReport,
}

/// A root with its last scan.
#[derive(Debug)]
struct GuardedRoot {
    /// The requested paths. Several may name one directory.
    asked: Vec<PathBuf>,
    root: Arc<WorkspaceRoot>,
    /// Indices of git directories outside that belong to this root.
    shared: Vec<usize>,
    scan: Option<WorkspaceScan>,
    /// Changes accepted while another command ran, as paths relative to the root.
    unsettled: BTreeSet<PathBuf>,
}

/// The reason why commands may not use a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    Root(#[from] RootError),
    #[error("the workspace cannot be read: {0}")]
    Scan(String),
    #[error(
        "an earlier command left something that could not be put right: {0}. Look at it, then start a new session"
    )]
    Unresolved(String),
}

/// The findings of a check.
#[derive(Debug, Default)]
pub(crate) struct GuardReport {
    pub(crate) denials: Vec<Denial>,
    /// Lines for the receipt.
    pub(crate) not_covered: Vec<String>,
}

impl WorkspaceGuard {
    pub(crate) fn new(git: git_program::GitEnvironment) -> Self {
        let homes = windlass_sandbox::home_directories(git.home.as_deref());
        Self { homes, notes: OnceLock::new(), state: Mutex::default(), git }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Arc<Self> {
        use windlass_sandbox::PrivateTmp;
        let (mechanisms, temporary) = (Arc::default(), Arc::new(PrivateTmp::new(true)));
        let store = PrivateTmp::new(true);
        let git = git_program::GitEnvironment {
            search_path: None,
            home: None,
            mechanisms,
            temporary,
            store,
            leading: Mutex::default(),
        };
        Arc::new(Self::new(git))
    }

    /// Keeps notes of commands in a directory, so that their changes are checked even if this
    /// process is killed.
    pub(crate) fn keep_notes_in(&self, directory: PathBuf) {
        // If it is set twice, the first one counts: there is one home.
        let _known = self.notes.set(directory);
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if no command runs in the workspace.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().running.is_empty()
    }

    /// Returns true if another session runs a command that may write one of these directories.
    pub(crate) fn runs_elsewhere(&self, directories: &[PathBuf]) -> bool {
        self.notes.get().is_some_and(|notes| running_note::runs_elsewhere(notes, directories))
    }

    /// Opens new roots and verifies that the others are still the same directories. A root that
    /// does not exist yet is opened when a command needs it.
    #[expect(clippy::disallowed_methods, reason = "tells only whether a root exists yet")]
    pub(crate) fn open_roots(&self, writable: &[PathBuf]) -> Result<(), GuardError> {
        let exists = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let existing: Vec<_> = writable.iter().filter(exists).cloned().collect();
        self.state().open_roots(&existing).map(drop)
    }

    /// Returns the protected paths of some roots.
    pub(crate) fn protected(
        &self,
        writable: &[PathBuf],
        git: &mut impl GitProgram,
    ) -> Result<Arc<ProtectedPaths>, GuardError> {
        self.check_interrupted(writable)?;
        let mut state = self.state();
        let indices = state.open_roots(writable)?;
        state.scan_changed(&indices)?;
        Ok(state.protected_paths(&indices, &self.homes, git))
    }

    /// Prepares for a command. `mounts_hold` is true if mounts keep protected paths from change.
    pub(crate) fn begin(
        self: &Arc<Self>,
        writable: &[PathBuf],
        mounts_hold: bool,
        git: &mut impl GitProgram,
    ) -> Result<CommandGuard, GuardError> {
        self.check_interrupted(writable)?;
        let mut state = self.state();
        let indices = state.open_roots(writable)?;
        state.scan_changed(&indices)?;
        let protected = state.protected_paths(&indices, &self.homes, git);
        let earlier = std::mem::take(&mut state.saved);
        state.saved = SavedFiles::read(&protected, mounts_hold, earlier);
        let number = state.started;
        state.started += 1;
        let private_configs = if mounts_hold {
            // The next command that runs alone uses the same copies.
            let slot = if state.running.is_empty() { "alone".to_owned() } else { number.to_string() };
            PrivateConfig::prepare(&protected, &self.git.store, &slot)
                .map_err(|error| GuardError::Scan(error.to_string()))?
        } else {
            Vec::new()
        };
        if state.running.is_empty()
            && let Some(directory) = self.notes.get()
        {
            state.write_note(directory, &indices, &protected);
        }
        state.running.insert(number, StartTime::now());
        let roots = indices.iter().map(|index| Arc::clone(&state.roots[*index].root)).collect();
        let guard = Arc::clone(self);
        let (hidden, indexes) = (Vec::new(), IndexStats::read(&protected));
        Ok(CommandGuard {
            guard,
            number,
            indices,
            roots,
            protected,
            private_configs,
            indexes,
            hidden,
            mounts_hold,
        })
    }
}

impl GuardState {
    /// Writes a note of the commands that another process may have to check.
    fn write_note(&mut self, directory: &Path, indices: &[usize], protected: &ProtectedPaths) {
        let note = self.note.take().map_or_else(|| RunningNote::create(directory), Ok);
        let roots = indices.iter().map(|index| self.roots[*index].root.noted());
        let roots: std::io::Result<Vec<_>> = roots.collect();
        let written =
            note.and_then(|note| roots.and_then(|roots| self.note.insert(note).write(&roots, protected)));
        if let Err(error) = written {
            self.pending.not_covered.push(format!(
                "protected names are not checked if this process is killed: no note could be kept in `{}` ({error})",
                directory.display()
            ));
        }
    }

    /// Forgets a command that has ended.
    fn end(&mut self, number: u64) {
        self.running.remove(&number);
        if self.running.is_empty()
            && let Some(note) = &mut self.note
        {
            // If this fails, the next session only checks once more.
            let _left = match &self.unresolved {
                Some(reason) => note.leave(reason),
                None => note.clear(),
            };
        }
    }

    /// Opens the roots for some paths, without those inside of others, and with the git directories
    /// they share.
    fn open_roots(&mut self, writable: &[PathBuf]) -> Result<Vec<usize>, GuardError> {
        if let Some(reason) = &self.unresolved {
            return Err(GuardError::Unresolved(reason.clone()));
        }
        let known: Vec<_> = self.roots.iter().map(|known| known.root.path.clone()).collect();
        let requested = writable.iter().filter_map(|path| Some(windlass_sandbox::links::follow(path)?.end));
        let all: Vec<PathBuf> = known.into_iter().chain(requested).collect();
        let mut indices = Vec::new();
        for path in writable {
            let index = match self.roots.iter().position(|known| known.asked.contains(path)) {
                Some(index) => index,
                None => self.open_root(path, &all)?,
            };
            self.roots[index].root.verify()?;
            indices.push(index);
            indices.extend(self.roots[index].shared.iter().copied());
        }
        indices.sort_unstable();
        indices.dedup();
        let path = |index: &usize| self.roots[*index].root.path.as_path();
        let is_outermost = |index: &usize| {
            !indices.iter().any(|other| other != index && path(index).starts_with(path(other)))
        };
        Ok(indices.iter().copied().filter(is_outermost).collect())
    }

    fn open_root(&mut self, path: &Path, writable: &[PathBuf]) -> Result<usize, GuardError> {
        let root = WorkspaceRoot::open(path, writable)?;
        if let Some(index) = self.roots.iter().position(|known| known.root.path == root.path) {
            self.roots[index].asked.push(path.to_owned());
            return Ok(index);
        }
        let shared = root.shared_git_directories();
        let index = self.push(root, vec![path.to_owned()]);
        for directory in shared {
            let known = self.roots.iter().position(|known| known.root.path == directory.path);
            let shared = known.unwrap_or_else(|| self.push(directory, Vec::new()));
            self.roots[index].shared.push(shared);
        }
        Ok(index)
    }

    fn push(&mut self, root: WorkspaceRoot, asked: Vec<PathBuf>) -> usize {
        self.roots.push(GuardedRoot {
            asked,
            root: Arc::new(root),
            shared: Vec::new(),
            scan: None,
            unsettled: BTreeSet::new(),
        });
        self.roots.len() - 1
    }

    /// Scans roots that are new or were changed by the user. While a command runs, a change may be
    /// its own and is left to the check afterwards.
    fn scan_changed(&mut self, indices: &[usize]) -> Result<(), GuardError> {
        let is_idle = self.running.is_empty();
        for index in indices {
            let guarded = &mut self.roots[*index];
            let scan = match &guarded.scan {
                Some(_) if !is_idle => continue,
                Some(scan) => scan.update(&guarded.root.handle),
                None => WorkspaceScan::new(&guarded.root.handle),
            };
            let scan = scan.map_err(|error| GuardError::Scan(error.to_string()))?;
            if let Some(whole) = scan.skipped().iter().find(|skipped| skipped.path.as_os_str().is_empty()) {
                return Err(GuardError::Scan(whole.reason.clone()));
            }
            if guarded.scan.as_ref().is_none_or(|known| !known.has_same_entries(&scan)) {
                self.protected = None;
            }
            guarded.scan = Some(scan);
        }
        Ok(())
    }

    fn protected_paths(
        &mut self,
        indices: &[usize],
        homes: &[PathBuf],
        git: &mut impl GitProgram,
    ) -> Arc<ProtectedPaths> {
        if let Some((known, protected)) = &self.protected
            && known == indices
        {
            return Arc::clone(protected);
        }
        let guarded = indices.iter().map(|index| &self.roots[*index]);
        let scanned: Vec<_> = guarded.filter_map(|root| Some((&*root.root, root.scan.as_ref()?))).collect();
        let protected = Arc::new(protected_paths::collect(&scanned, homes, git));
        self.protected = Some((indices.to_vec(), Arc::clone(&protected)));
        protected
    }

    /// Returns the start of the earliest command that may have made a change found now.
    fn since(&self) -> Option<StartTime> {
        self.running.values().min_by_key(|start| start.realtime).copied()
    }
}

impl GuardReport {
    fn take(&mut self, findings: Findings, state: &mut GuardState) {
        self.denials.extend(findings.denials);
        if findings.untold > 0 {
            self.not_covered.push(format!("{} more findings are not listed", findings.untold));
        }
        if let Some(reason) = findings.unresolved {
            state.unresolved.get_or_insert(reason);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;

//! The guard of one running command, and the check of its workspace when it has ended.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_files::{DirHandle, WorkspaceScan};
use windlass_sandbox::ProtectedPaths;

use super::{
    GuardReport, GuardState, MAX_DEPTH, PrivateConfig, WorkspaceGuard, WorkspaceRoot,
    check::{self, Findings, RootCheck},
    git_index::IndexStats,
    git_program::GitProgram,
    start_time::StartTime,
};

/// A command that runs in a workspace, from before its start until it is checked.
#[derive(Debug)]
pub(crate) struct CommandGuard {
    pub(super) guard: Arc<WorkspaceGuard>,
    pub(super) number: u64,
    pub(super) indices: Vec<usize>,
    pub(crate) roots: Vec<Arc<WorkspaceRoot>>,
    pub(crate) protected: Arc<ProtectedPaths>,
    pub(crate) private_configs: Vec<PrivateConfig>,
    pub(super) indexes: IndexStats,
    /// Files inside the roots that the command may not read.
    pub(crate) hidden: Vec<PathBuf>,
    pub(super) mounts_hold: bool,
}

impl CommandGuard {
    /// Returns the guard of the session's workspace.
    pub(crate) fn workspace(&self) -> Arc<WorkspaceGuard> {
        Arc::clone(&self.guard)
    }

    /// Checks the changes of the command. Call it when the command and its descendants are gone.
    pub(crate) fn finish(self, git: &mut impl GitProgram) -> GuardReport {
        let guard = Arc::clone(&self.guard);
        let mut state = guard.state();
        let since = state.since().unwrap_or_else(StartTime::now);
        let mut report = std::mem::take(&mut state.pending);
        let roots: Vec<_> = self.roots.iter().map(|root| &**root).collect();
        for index in &self.indices {
            self.check_root(&mut state, *index, (&roots, since), git, &mut report);
        }
        let mut findings = Findings::default();
        for (link, target) in &self.protected.links {
            self.check_link(link, target, &mut findings);
        }
        for config in &self.private_configs {
            config.check(&roots, git, &mut findings);
        }
        report.take(findings, &mut state);
        state.end(self.number);
        if !state.running.is_empty() {
            report.not_covered.push(
                "other commands still ran when protected names were checked: they are checked again when those end"
                    .to_owned(),
            );
        }
        report
    }

    fn check_root(
        &self,
        state: &mut GuardState,
        index: usize,
        (roots, since): (&[&WorkspaceRoot], StartTime),
        git: &mut impl GitProgram,
        report: &mut GuardReport,
    ) {
        let root = Arc::clone(&state.roots[index].root);
        let before = state.roots[index].scan.take();
        let after = match &before {
            Some(before) => before.update(&root.handle),
            None => WorkspaceScan::new(&root.handle),
        };
        let (before, mut after) = match (before, after) {
            (Some(before), Ok(after)) => (before, after),
            (_, after) => {
                let reason =
                    after.err().map_or_else(|| "not scanned before".to_owned(), |error| error.to_string());
                state
                    .unresolved
                    .get_or_insert(format!("`{}` cannot be scanned: {reason}", root.path.display()));
                return;
            }
        };
        let is_trusted = WorkspaceScan::has_trusted_ctime(&root.handle);
        let mut findings = Findings::default();
        for _ in 0..MAX_DEPTH {
            if !check::open_up(&root, &since.changes_made((&before, &after), is_trusted), &mut findings) {
                break;
            }
            match after.update(&root.handle) {
                Ok(opened) => after = opened,
                Err(error) => findings.fail(&root.path, format!("it cannot be scanned: {error}")),
            }
        }
        let is_reshaped = !before.has_same_entries(&after);
        let unsettled = std::mem::take(&mut state.roots[index].unsettled);
        let check = RootCheck {
            root: &root,
            all_roots: roots,
            before: &before,
            after: &after,
            protected: &self.protected,
            private_configs: &self.private_configs,
            saved: &state.saved,
            indexes: &self.indexes,
            unsettled: &unsettled,
            hidden: &self.hidden,
            mounts_hold: self.mounts_hold,
            git,
            findings,
        };
        let skipped = after.skipped().iter().filter(|skipped| !before.skipped().contains(skipped));
        let mut findings = check.run(&since.changes_made((&before, &after), is_trusted), skipped);
        if state.running.keys().any(|number| *number != self.number) {
            findings.accepted.extend(unsettled);
            state.roots[index].unsettled = std::mem::take(&mut findings.accepted);
        }
        if findings.has_acted
            && let Ok(again) = after.update(&root.handle)
        {
            after = again;
        }
        if is_reshaped || findings.has_acted {
            state.protected = None;
        }
        state.roots[index].scan = Some(after);
        report.take(findings, state);
    }

    /// Restores a protected link that was changed.
    fn check_link(&self, link: &Path, target: &Path, findings: &mut Findings) {
        let root = self.roots.iter().find(|root| link.starts_with(&root.path));
        let (Some(root), Some(name)) = (root, link.file_name()) else { return };
        let above =
            link.parent().and_then(|above| above.strip_prefix(&root.path).ok()).unwrap_or(Path::new(""));
        let restored = root.handle.open_dir(above).and_then(|directory| {
            if directory.read_link(name).is_ok_and(|now| now == target.as_os_str()) {
                return Ok(None);
            }
            restore_link(&directory, name, target).map(Some)
        });
        match restored {
            Ok(None) => {}
            Ok(Some(())) => {
                findings.has_acted = true;
                findings.tell(link, "this link is protected and was replaced; it was put back".to_owned());
            }
            Err(error) => {
                findings.fail(link, format!("this link is protected and could not be put back: {error}"));
            }
        }
    }
}

fn restore_link(directory: &DirHandle, name: &OsStr, target: &Path) -> std::io::Result<()> {
    match directory.stat_entry(name) {
        Ok(found) => drop(directory.move_aside(name, &found, "windlass-refused")?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    directory.symlink(target.as_os_str(), name)
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        self.guard.state().end(self.number);
    }
}

//! The check of commands whose session was killed while they ran, by the next session.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Instant,
};

use windlass_files::{ScanNode, WorkspaceScan};
use windlass_sandbox::Zygotes;

use super::{
    GuardError, GuardState, MAX_DEPTH, WorkspaceGuard,
    check::{self, Findings, RootCheck},
    git_index::IndexStats,
    git_program::{GitProgram, SandboxedGit},
    protected_paths,
    roots::WorkspaceRoot,
    running_note::{InterruptedCommand, NotedRoot},
    saved_files::SavedFiles,
    start_time::StartTime,
};

impl WorkspaceGuard {
    /// Checks what commands did whose session was killed while they ran, once for each session.
    /// `candidates` are directories by which a workspace is found that was moved since.
    pub(crate) fn check_interrupted(&self, candidates: &[PathBuf]) -> Result<(), GuardError> {
        let Some(directory) = self.notes.get() else { return Ok(()) };
        let mut state = self.state();
        if std::mem::replace(&mut state.is_recovered, true) {
            return Ok(());
        }
        let real: Vec<_> =
            candidates.iter().filter_map(|path| Some(windlass_sandbox::links::follow(path)?.end)).collect();
        let mut zygotes = Zygotes::default();
        for mut command in InterruptedCommand::find(directory) {
            let (mut failed, mut is_checked) = (None, false);
            for noted in std::mem::take(&mut command.roots) {
                let root = find_root(&noted, candidates);
                // A problem that its own session could not resolve concerns the users of that
                // workspace.
                let is_concerned = |root: &WorkspaceRoot| {
                    command.unresolved.is_none() || real.iter().any(|path| is_around(&root.path, path))
                };
                let Some(root) = root.filter(is_concerned) else {
                    // It may be mounted again, or found where it was moved to.
                    command.roots.push(noted);
                    continue;
                };
                let writable = vec![root.path.clone()];
                let mut git = SandboxedGit { environment: &self.git, writable, zygotes: &mut zygotes };
                self.check_one_interrupted(&mut state, &root, &noted, &command, &mut git)?;
                is_checked = true;
                if let Some(reason) = state.unresolved.take() {
                    command.roots.push(noted);
                    failed = Some(format!("{reason} (noted in `{}`)", command.path.display()));
                    command.unresolved = Some(reason);
                }
            }
            if let Some(reason) = command.unresolved.as_ref().filter(|_| is_checked && failed.is_none()) {
                let line = format!("an earlier session left something that it could not put right: {reason}");
                state.pending.not_covered.push(line);
            }
            command.settle().map_err(|error| GuardError::Scan(error.to_string()))?;
            if let Some(reason) = failed {
                state.unresolved = Some(reason);
                break;
            }
        }
        state.unresolved.clone().map_or(Ok(()), |reason| Err(GuardError::Unresolved(reason)))
    }

    /// Takes names for the command's that are protected, were not known when it began, and have
    /// changed since.
    fn check_one_interrupted(
        &self,
        state: &mut GuardState,
        root: &WorkspaceRoot,
        noted: &NotedRoot,
        command: &InterruptedCommand,
        git: &mut impl GitProgram,
    ) -> Result<(), GuardError> {
        let failed = |error: std::io::Error| GuardError::Scan(error.to_string());
        let since = StartTime { realtime: command.started, monotonic: Instant::now() };
        let is_trusted = WorkspaceScan::has_trusted_ctime(&root.handle);
        let mut findings = Findings::default();
        let mut after = WorkspaceScan::new(&root.handle).map_err(failed)?;
        for _ in 0..MAX_DEPTH {
            let is_new = |_: &Path, node: &ScanNode| !is_trusted || since.is_before(node.stat.ctime_ns);
            let before = after.without(&mut |path, node| is_new(path, node));
            if !check::open_up(root, &before.changes_to(&after), &mut findings) {
                break;
            }
            after = WorkspaceScan::new(&root.handle).map_err(failed)?;
        }
        let is_new = |path: &Path, node: &ScanNode| {
            !command.known.contains(&noted.path.join(path))
                && check::is_suspect((&root.path, path), node, &after, &self.homes)
                && (!is_trusted || since.is_before(last_change(root, path, node)))
        };
        let before = after.without(&mut |path, node| is_new(path, node));
        let protected = protected_paths::collect(&[(root, &before)], &self.homes, git);
        let made = before.changes_to(&after);
        let check = RootCheck {
            root,
            all_roots: &[root],
            before: &before,
            after: &after,
            protected: &protected,
            private_configs: &[],
            saved: &SavedFiles::default(),
            indexes: &IndexStats::default(),
            unsettled: &BTreeSet::new(),
            hidden: &[],
            mounts_hold: false,
            git,
            findings,
        };
        let findings = check.run(&made, after.skipped().iter());
        let mut report = std::mem::take(&mut state.pending);
        report.take(findings, state);
        state.pending = report;
        Ok(())
    }
}

/// The time of the last change of an entry, also where the scan did not read it; 0 if it cannot be
/// known.
fn last_change(root: &WorkspaceRoot, path: &Path, node: &ScanNode) -> i64 {
    if !node.stat.is_from_listing() {
        return node.stat.ctime_ns;
    }
    let directory = root.handle.open_dir(path.parent().unwrap_or(Path::new("")));
    directory.and_then(|directory| directory.stat_entry(&node.name)).map_or(0, |found| found.ctime_ns)
}

/// Tells whether one path is the other, or lies in it.
fn is_around(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Finds a directory again: by its path, or among others.
fn find_root(noted: &NotedRoot, candidates: &[PathBuf]) -> Option<WorkspaceRoot> {
    let paths = std::iter::once(&noted.path).chain(candidates);
    let mut roots = paths.filter_map(|path| WorkspaceRoot::open(path, &[]).ok());
    roots.find(|root| root.handle.stat().is_ok_and(|found| (found.dev, found.ino) == (noted.dev, noted.ino)))
}

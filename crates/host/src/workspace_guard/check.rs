//! The check of one root after a command: what it added, changed or removed among names that others
//! execute or trust.
//!
//! Nothing is deleted. A file that must not stay is renamed through the descriptor of its
//! directory, and only if it is still the file that was checked. If it cannot be renamed, that is
//! reported, and the workspace is not used any more.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use windlass_contract::{
    Denial, Effects,
    host::{Layer, Proof},
};
use windlass_files::{
    Change, ChangeKind, DirHandle, EntryKind, EntryStat, ScanNode, SkippedDirectory, WorkspaceScan,
};
use windlass_sandbox::ProtectedPaths;

use git::{GitDirectoriesToCheck, is_git_code};
use worktree::is_unreadable_for_git;

use super::{
    git_config::MAX_CONFIG_BYTES,
    git_directory::is_git_directory,
    git_index::IndexStats,
    git_program::GitProgram,
    private_config::PrivateConfig,
    protected_names::{in_root, protected_ancestor, starts_with_ignoring_case},
    protected_paths::entry_in_home,
    roots::WorkspaceRoot,
    saved_files::{SavedFile, SavedFiles},
};

mod copies;
mod git;
mod worktree;

/// Suffix of a file that was moved aside.
const ASIDE: &str = "windlass-refused";

/// Maximum number of findings that are reported one by one.
const MAX_DENIALS: usize = 64;

const NEW_NAME: &str = "this name is protected and did not exist before";

/// The data to check one root.
pub(super) struct RootCheck<'a, G> {
    pub(super) root: &'a WorkspaceRoot,
    pub(super) all_roots: &'a [&'a WorkspaceRoot],
    pub(super) before: &'a WorkspaceScan,
    pub(super) after: &'a WorkspaceScan,
    pub(super) protected: &'a ProtectedPaths,
    pub(super) private_configs: &'a [PrivateConfig],
    pub(super) saved: &'a SavedFiles,
    pub(super) indexes: &'a IndexStats,
    /// Repositories and copies below the root that were accepted while another command ran, which
    /// may have changed them since.
    pub(super) unsettled: &'a BTreeSet<PathBuf>,
    /// Files inside the root that commands may not read.
    pub(super) hidden: &'a [PathBuf],
    /// Mounts kept the protected paths from change.
    pub(super) mounts_hold: bool,
    pub(super) git: &'a mut G,
    pub(super) findings: Findings,
}

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) denials: Vec<Denial>,
    /// Number of findings that are not reported one by one.
    pub(super) untold: usize,
    /// Something was renamed or rewritten.
    pub(super) has_acted: bool,
    /// The problem that could not be resolved: the workspace must not be used any more.
    pub(super) unresolved: Option<String>,
    /// Paths below the root that were moved aside: what was in them needs no further look.
    moved: Vec<PathBuf>,
    /// New repositories and copies of protected files below the root that may stay.
    pub(super) accepted: BTreeSet<PathBuf>,
}

impl Findings {
    pub(super) fn tell(&mut self, path: &Path, rule: String) {
        if self.denials.len() >= MAX_DENIALS {
            self.untold += 1;
            return;
        }
        self.denials.push(Denial {
            layer: Layer::Files,
            what: path.display().to_string(),
            rule,
            // No question offers a command access to files that other programs execute or trust.
            need: Effects::none(),
            proof: Proof::Observed,
            remedy: String::new(),
        });
    }

    pub(super) fn fail(&mut self, path: &Path, rule: String) {
        self.unresolved.get_or_insert_with(|| format!("`{}`: {rule}", path.display()));
        self.tell(path, rule);
    }
}

/// Gives the owner access to directories that a command made inaccessible, so that they can be
/// checked and moved. Returns true if there were any.
pub(super) fn open_up(root: &WorkspaceRoot, changes: &[Change<'_>], findings: &mut Findings) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    let directories = changes.iter().filter_map(|change| Some((change, change.after?)));
    let mut has_opened = false;
    for (change, node) in directories.filter(|(_, node)| node.is_directory()) {
        let is_shut = node.stat.permissions & 0o700 != 0o700 && node.stat.uid == owner;
        if !is_shut {
            continue;
        }
        match root.handle.give_owner_access(&change.path, &node.stat) {
            Ok(()) => has_opened = true,
            Err(error) => {
                let rule = format!("it cannot be opened ({error}): look at it before you use it");
                findings.fail(&root.path.join(&change.path), rule);
            }
        }
    }
    findings.has_acted |= has_opened;
    has_opened
}

impl<G: GitProgram> RootCheck<'_, G> {
    /// Checks what a command changed, and puts right what must not stay.
    pub(super) fn run<'s>(
        mut self,
        changes: &[Change<'_>],
        skipped: impl Iterator<Item = &'s SkippedDirectory>,
    ) -> Findings {
        let mut git_directories = GitDirectoriesToCheck::default();
        for change in changes {
            self.check_hidden(change);
            if self.is_below_hidden(&change.path)
                || self.is_moved(&change.path)
                || self.check_protected_name(change)
            {
                continue;
            }
            if change.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")) {
                self.check_dot_git(change);
            }
            self.check_read_by_git(change);
            self.check_in_git_directory(change, &mut git_directories);
        }
        self.check_unsettled(&mut git_directories);
        self.check_git_directories(git_directories);
        for SkippedDirectory { path, reason } in skipped {
            self.check_skipped(path, reason);
        }
        self.restore_saved();
        self.findings
    }

    /// Checks again what was accepted while another command ran: that one may have written it
    /// without a trace in any directory.
    fn check_unsettled(&mut self, git_directories: &mut GitDirectoriesToCheck) {
        for path in self.unsettled {
            if self.after.find(path).is_some_and(is_git_directory) {
                git_directories.insert_new(path);
            } else if !self.is_copy(path) {
                self.move_aside(path, NEW_NAME);
            }
        }
    }

    /// Moves a directory aside that was not scanned, with all its content.
    fn check_skipped(&mut self, path: &Path, reason: &str) {
        let rule = format!("it was not looked through ({reason})");
        if path.as_os_str().is_empty() || self.after.find(path).is_none() {
            return self.findings.fail(&self.absolute(path), format!("{rule}: look before you use it"));
        }
        self.move_aside(path, &rule);
    }

    /// Tells of a hidden file that is another now: for a moment the command could read it.
    fn check_hidden(&mut self, change: &Change<'_>) {
        let absolute = self.absolute(&change.path);
        let is_another =
            change.before.zip(change.after).is_some_and(|(old, new)| !old.stat.is_same_file(&new.stat));
        if is_another && self.hidden.contains(&absolute) {
            self.findings.tell(&absolute, REPLACED_OUTSIDE.to_owned());
        }
    }

    /// Returns true if a path lies in a directory that the command could not see. Windlass keeps
    /// its own files in one, if the home directory is the workspace.
    fn is_below_hidden(&self, path: &Path) -> bool {
        let absolute = self.absolute(path);
        let mut above = absolute.ancestors().skip(1);
        self.mounts_hold && above.any(|directory| self.hidden.iter().any(|hidden| hidden == directory))
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        self.root.path.join(path)
    }

    fn is_moved(&self, path: &Path) -> bool {
        self.findings.moved.iter().any(|moved| path.starts_with(moved))
    }

    /// Handles a change to a protected name or inside one. Returns whether it was one.
    fn check_protected_name(&mut self, change: &Change<'_>) -> bool {
        let below_root = in_root()
            .find(|name| starts_with_ignoring_case(&change.path, name))
            .map(|name| change.path.iter().take(name.iter().count()).collect::<PathBuf>());
        let absolute = self.absolute(&change.path);
        let absent = self.protected.absent.contains(&absolute).then(|| change.path.clone());
        let in_home = entry_in_home(&self.protected.homes, &absolute)
            .and_then(|entry| entry.strip_prefix(&self.root.path).ok().map(Path::to_owned));
        let inside = || self.protected_around(&absolute);
        let top = protected_ancestor(&change.path).or(below_root).or(in_home).or(absent);
        if let Some(top) = top.or_else(inside) {
            self.check_below_protected(&top, change);
            return true;
        }
        // A directory on the way to a protected path that is something else now.
        if self.protected.pinned.contains(&absolute)
            && change.kind == ChangeKind::Modified
            && !change.after.is_some_and(ScanNode::is_directory)
        {
            self.move_aside(&change.path, "a protected name lies behind it");
            return true;
        }
        // A new link on the way to a protected path puts something else there.
        let is_link = change.after.is_some_and(|node| node.stat.kind == EntryKind::Symlink);
        let absent_below = |name: &Path| name != change.path && name.starts_with(&change.path);
        let leads_to_protected = in_root().any(absent_below)
            || self.protected.absent.iter().any(|path| *path != absolute && path.starts_with(&absolute));
        if is_link && leads_to_protected {
            self.move_aside(&change.path, "a protected name would lead elsewhere through this link");
            return true;
        }
        false
    }

    /// The protected path around another that is protected for where a link or a setting leads.
    fn protected_around(&self, absolute: &Path) -> Option<PathBuf> {
        let in_git = |path: &&Path| path.components().any(|part| part.as_os_str() == ".git");
        let known =
            |path: &Path| self.protected.read_only.contains(path) || self.protected.unmounted.contains(path);
        let found = absolute.ancestors().find(|path| known(path))?;
        // Git's own directories have rules of their own.
        let relative = found.strip_prefix(&self.root.path).ok().filter(|path| !in_git(path))?;
        self.before.find(relative).map(|_| relative.to_owned())
    }

    fn check_below_protected(&mut self, top: &Path, change: &Change<'_>) {
        match self.before.find(top) {
            None if self.is_copy(top) => {
                self.findings.moved.push(top.to_owned());
                self.findings.accepted.insert(top.to_owned());
            }
            None => self.move_aside(top, NEW_NAME),
            Some(_) if change.kind == ChangeKind::Added => {
                self.move_aside(&change.path, "this directory is protected and did not hold it before");
            }
            Some(_) => self.put_back(change, "this name is protected and was changed"),
        }
    }

    /// Puts back what was changed or removed. Where a mount kept it from change, another program
    /// did it.
    fn put_back(&mut self, change: &Change<'_>, why: &str) {
        let absolute = self.absolute(&change.path);
        let is_mounted =
            self.mounts_hold && absolute.ancestors().any(|path| self.protected.read_only.contains(path));
        let has_other_name = change.before.is_some_and(|node| node.stat.nlink > 1);
        let saved = self.saved.get(&absolute);
        if is_mounted && !(has_other_name && saved.is_some()) {
            return self.findings.tell(&absolute, REPLACED_OUTSIDE.to_owned());
        }
        if self.protected.links.iter().any(|(link, _)| *link == absolute) {
            // Links are put back at the end, all together.
            return;
        }
        if change.after.is_some() {
            self.move_aside(&change.path, why);
        }
        if saved.is_none() && change.after.is_none() && change.before.is_some_and(|node| !node.is_directory())
        {
            self.findings.tell(&absolute, "this file is protected and was removed".to_owned());
        }
    }

    /// Puts back every saved file that is not as it was. Settings of git have been checked for
    /// themselves.
    fn restore_saved(&mut self) {
        let saved: Vec<_> = self.saved.below(&self.root.path).collect();
        for (absolute, file) in saved {
            if self.is_config(absolute) {
                continue;
            }
            if let Err(error) = self.restore(absolute, file) {
                let rule = format!("this file is protected and could NOT be put back ({error})");
                self.findings.fail(absolute, rule);
            }
        }
    }

    /// Tells whether a protected file is settings of git.
    fn is_config(&self, absolute: &Path) -> bool {
        let name = absolute.file_name().and_then(OsStr::to_str);
        let is_named = matches!(name, Some("config" | "config.worktree"));
        self.protected.git_configs.contains(absolute)
            || is_named && self.protected.unmounted.contains(absolute)
    }

    /// Reads the metadata of a file below the root as it is now.
    fn stat(&self, absolute: &Path) -> Option<EntryStat> {
        let path = absolute.strip_prefix(&self.root.path).ok()?;
        let (directory, name) = self.parent(path).ok()?;
        directory.stat_entry(&name).ok()
    }

    fn restore(&mut self, absolute: &Path, file: &SavedFile) -> io::Result<()> {
        let (Ok(path), Some(name)) = (absolute.strip_prefix(&self.root.path), absolute.file_name()) else {
            return Ok(());
        };
        let directory = self.root.handle.make_dir(path.parent().unwrap_or(Path::new("")))?;
        match directory.stat_entry(name) {
            Ok(found) if found == file.stat => return Ok(()),
            Ok(found) => {
                let is_same = found.kind == EntryKind::File
                    && found.permissions == file.permissions
                    && directory.read_file(name, MAX_CONFIG_BYTES).is_ok_and(|bytes| bytes == file.bytes);
                if is_same {
                    return Ok(());
                }
                let aside = directory.move_aside(name, &found, ASIDE)?;
                let rule = "this file is protected and was changed; it was put back, and what it was is in";
                self.findings.tell(absolute, format!("{rule} `{}`", aside.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.findings
                    .tell(absolute, "this file is protected and was removed; it was put back".to_owned());
            }
            Err(error) => return Err(error),
        }
        self.findings.has_acted = true;
        directory.replace_file(name, &file.bytes, file.permissions)
    }

    fn move_aside(&mut self, path: &Path, why: &str) {
        let Some(node) = self.after.find(path).filter(|_| !self.is_moved(path)) else { return };
        let absolute = self.absolute(path);
        let moved = self.parent(path).and_then(|(directory, name)| {
            let expected = expected_entry(&directory, node)?;
            directory.move_aside(&name, &expected, ASIDE)
        });
        self.findings.has_acted = true;
        self.findings.moved.push(path.to_owned());
        match moved {
            Ok(aside) => {
                let aside = absolute.with_file_name(aside);
                self.findings.tell(&absolute, format!("{why}; it was moved to `{}`", aside.display()));
            }
            // Gone already, which is as good.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let rule =
                    format!("{why}; it could NOT be moved aside ({error}): look at it before you use it");
                self.findings.fail(&absolute, rule);
            }
        }
    }

    /// The directory of an entry, opened beneath the root, and the entry's name.
    fn parent(&self, path: &Path) -> io::Result<(DirHandle, std::ffi::OsString)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.root.handle.open_dir(above)?, name))
    }
}

/// Returns the metadata by which an entry is recognized. A file in a directory of generated files
/// was scanned by name alone: there the name must not stay, for any regular file.
fn expected_entry(directory: &DirHandle, node: &ScanNode) -> io::Result<EntryStat> {
    if !node.stat.is_from_listing() {
        return Ok(node.stat);
    }
    let found = directory.stat_entry(&node.name)?;
    if found.kind == node.stat.kind {
        return Ok(found);
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is another kind of file by now"))
}

/// Tells whether an entry is of the kind that this check is about: a protected name, a repository,
/// or a link, a device or an unfinished rebase inside one.
pub(super) fn is_suspect(
    (root, path): (&Path, &Path),
    node: &ScanNode,
    scan: &WorkspaceScan,
    homes: &[PathBuf],
) -> bool {
    let is_repository = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
        || node.is_directory() && is_git_directory(node);
    let is_odd = matches!(node.stat.kind, EntryKind::Symlink | EntryKind::Special);
    let lies_in_one = || path.ancestors().skip(1).any(|above| scan.find(above).is_some_and(is_git_directory));
    protected_ancestor(path).is_some()
        || entry_in_home(homes, &root.join(path)).is_some()
        || in_root().any(|name| starts_with_ignoring_case(path, name))
        || is_repository
        || is_unreadable_for_git(path, node.stat.kind)
        || lies_in_one() && (is_odd || is_git_code(path))
}

/// The reason why a protected file changed although a mount kept commands from it.
const REPLACED_OUTSIDE: &str = "another program replaced or removed it while the command ran, and for a moment at least the command could read and change it, or make it anew: look at what it says";

/// Returns the message about settings that were not kept.
pub(super) fn dropped_settings(keys: &[String]) -> String {
    let keys = keys.join(", ");
    format!(
        "these settings of git, or these values of them, are not among those that a command may change, and were not kept: {keys}. Run `git config` yourself if you want them"
    )
}

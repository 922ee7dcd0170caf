//! The check of one root after a command: what it added, changed or removed among names that others execute or trust.
//!
//! Nothing is deleted: what must not stay is renamed, through the descriptor of its directory, and only if it is still
//! the file that was looked at. What cannot be renamed is reported, and the workspace is not used any more.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use windlass_contract::{Denial, Effects, Layer, Proof};
use windlass_files::{Change, ChangeKind, DirHandle, EntryKind, EntryStat, ScanNode, WorkspaceScan};

use super::{
    git_config::{self, GitConfigChange, GitSetting, MAX_CONFIG_BYTES},
    git_directory::{
        SEQUENCER_DIRECTORIES, is_git_directory, is_inner_git_directory, is_open_git_directory,
        sequencer_problem,
    },
    git_program::GitProgram,
    protected_names::{in_root, protected_ancestor, starts_with_ignoring_case},
    protected_paths::ProtectedPaths,
    roots::{WorkspaceRoot, gitfile_target},
    saved_files::{SavedFile, SavedFiles},
};

mod copies;

/// What is added to a name that must not stay.
const ASIDE: &str = "windlass-refused";

/// The largest `.git` file, `gitdir` or `commondir` that is read.
const MAX_POINTER_BYTES: u64 = 16 * 1024;

/// How many findings are told one by one.
const MAX_DENIALS: usize = 64;

const NEW_NAME: &str = "this name is protected and did not exist before";

/// What is needed to check a root.
pub(super) struct RootCheck<'a, G> {
    pub(super) root: &'a WorkspaceRoot,
    pub(super) all_roots: &'a [&'a WorkspaceRoot],
    pub(super) before: &'a WorkspaceScan,
    pub(super) after: &'a WorkspaceScan,
    pub(super) protected: &'a ProtectedPaths,
    pub(super) saved: &'a SavedFiles,
    /// Files inside the root that commands may not read.
    pub(super) hidden: &'a [PathBuf],
    /// Mounts kept the protected paths from change.
    pub(super) mounts_hold: bool,
    pub(super) git: &'a mut G,
    pub(super) findings: Findings,
}

/// What came of a check.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) denials: Vec<Denial>,
    /// Findings that are not told one by one.
    pub(super) untold: usize,
    /// Something was renamed or rewritten.
    pub(super) has_acted: bool,
    /// What could not be put right: the workspace must not be used any more.
    pub(super) unresolved: Option<String>,
    /// Paths below the root that were moved aside: what was in them needs no further look.
    moved: Vec<PathBuf>,
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
            need: Effects::write(path),
            proof: Proof::Observed,
        });
    }

    pub(super) fn fail(&mut self, path: &Path, rule: String) {
        self.unresolved.get_or_insert_with(|| format!("`{}`: {rule}", path.display()));
        self.tell(path, rule);
    }
}

impl<G: GitProgram> RootCheck<'_, G> {
    /// Checks what a command changed, and puts right what must not stay.
    pub(super) fn run(mut self, changes: &[Change<'_>]) -> Findings {
        let mut git_directories = GitDirectoriesToCheck::default();
        for change in changes {
            self.check_hidden(change);
            if self.is_moved(&change.path) || self.check_protected_name(change) {
                continue;
            }
            if change.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")) {
                self.check_dot_git(change);
            }
            self.check_in_git_directory(change, &mut git_directories);
        }
        for path in &git_directories.new {
            self.check_new_git_directory(path);
        }
        for path in &git_directories.sequencers {
            self.check_sequencer(path);
        }
        for path in git_directories.configs {
            self.check_config(&path);
        }
        self.restore_saved();
        self.findings
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
        let inside = || self.protected_around(&absolute);
        if let Some(top) = protected_ancestor(&change.path).or(below_root).or(absent).or_else(inside) {
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
            None if self.is_copy(top) => self.findings.moved.push(top.to_owned()),
            None => self.move_aside(top, NEW_NAME),
            Some(_) if change.kind == ChangeKind::Added => {
                self.move_aside(&change.path, "this directory is protected and did not hold it before");
            }
            Some(_) => self.put_back(change, "this name is protected and was changed"),
        }
    }

    /// Puts back what was changed or removed. Where a mount kept it from change, another program did it.
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

    /// Puts back every saved file that is not as it was. Settings of git have been checked for themselves.
    fn restore_saved(&mut self) {
        let saved: Vec<_> = self.saved.below(&self.root.path).collect();
        for (absolute, file) in saved {
            if self.protected.git_configs.contains(absolute) || self.is_config(absolute) {
                continue;
            }
            if let Err(error) = self.restore(absolute, file) {
                let rule = format!("this file is protected and could NOT be put back ({error})");
                self.findings.fail(absolute, rule);
            }
        }
    }

    fn is_config(&self, absolute: &Path) -> bool {
        let name = absolute.file_name().and_then(OsStr::to_str);
        matches!(name, Some("config" | "config.worktree")) && self.protected.unmounted.contains(absolute)
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

    /// A `.git` that is new or changed: a directory is a new repository; a file must lead to one of this workspace.
    fn check_dot_git(&mut self, change: &Change<'_>) {
        let Some(node) = change.after else { return };
        match node.stat.kind {
            EntryKind::Directory => {}
            EntryKind::File if self.is_sound_gitfile(&change.path) => {}
            EntryKind::File => {
                self.move_aside(
                    &change.path,
                    "it leads git to a repository that is not this workspace's own",
                );
            }
            EntryKind::Symlink | EntryKind::Special => {
                self.move_aside(&change.path, "git would take what it leads to for a repository");
            }
        }
    }

    /// Tells whether a `.git` file leads, without links, to the git directory of a linked worktree or a submodule.
    fn is_sound_gitfile(&self, path: &Path) -> bool {
        let Ok((directory, name)) = self.parent(path) else { return false };
        let content = directory.read_file(&name, MAX_POINTER_BYTES);
        let target = content.ok().and_then(|content| gitfile_target(&content));
        let (Some(target), Some(above)) = (target, path.parent()) else { return false };
        let target = windlass_contract::normal(&self.absolute(above).join(target));
        self.all_roots.iter().any(|root| {
            let Ok(inside) = target.strip_prefix(&root.path) else { return false };
            let is_open = |path: &Path| {
                root.handle.open_dir(path).is_ok_and(|directory| is_open_git_directory(&directory))
            };
            // Every git directory around it that may hold it.
            let holds =
                |above: &Path| inside.strip_prefix(above).is_ok_and(is_inner_git_directory) && is_open(above);
            is_open(inside) && inside.ancestors().skip(1).any(holds)
        })
    }

    /// Sorts a change inside a git directory. The innermost one counts.
    fn check_in_git_directory(&mut self, change: &Change<'_>, to_check: &mut GitDirectoriesToCheck) {
        let is_directory = change.after.is_some_and(ScanNode::is_directory);
        let from = if is_directory { 0 } else { 1 };
        let around =
            change.path.ancestors().skip(from).find(|above| self.is_git_directory(self.after, above));
        let Some(around) = around else { return };
        let known = self.is_git_directory(self.before, around) && self.is_same(around);
        if !known {
            to_check.new.insert(around.to_owned());
            return;
        }
        let Ok(inside) = change.path.strip_prefix(around) else { return };
        let first = inside.iter().next().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        let is_changed_link = change
            .after
            .is_some_and(|node| matches!(node.stat.kind, EntryKind::Symlink | EntryKind::Special));
        let is_removed = change.kind == ChangeKind::Removed;
        if is_changed_link {
            self.move_aside(&change.path, "git would follow it out of its directory, or wait for it");
        } else if first == "config" || first == "config.worktree" {
            if !is_removed && inside.iter().count() == 1 {
                to_check.configs.insert(change.path.clone());
            }
        } else if first == "hooks"
            || first == "commondir"
            || starts_with_ignoring_case(inside, Path::new("info/attributes"))
        {
            self.check_protected_in_git(change, inside);
        } else if let Some(name) = SEQUENCER_DIRECTORIES.iter().find(|name| first == **name) {
            to_check.sequencers.insert(around.join(name));
        }
    }

    fn check_protected_in_git(&mut self, change: &Change<'_>, inside: &Path) {
        let is_directory = change.after.is_some_and(ScanNode::is_directory);
        let is_sample = inside.extension().is_some_and(|extension| extension == "sample");
        match change.kind {
            ChangeKind::Added if is_directory || is_sample => {}
            ChangeKind::Added => {
                self.move_aside(&change.path, "git would run it, or look for settings there")
            }
            ChangeKind::Modified if is_directory => {}
            _ => self.put_back(change, "this file is protected and was changed"),
        }
    }

    fn is_git_directory(&self, scan: &WorkspaceScan, path: &Path) -> bool {
        let is_named = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        scan.find(path).is_some_and(|node| node.is_directory() && (is_named || is_git_directory(node)))
    }

    /// Tells whether a path is the same directory as before.
    fn is_same(&self, path: &Path) -> bool {
        let before = self.before.find(path).map(|node| node.stat);
        before.zip(self.after.find(path)).is_some_and(|(before, after)| before.is_same_file(&after.stat))
    }

    /// Makes a repository harmless that was not there before.
    fn check_new_git_directory(&mut self, path: &Path) {
        let Some(node) = self.after.find(path).filter(|_| !self.is_moved(path)) else { return };
        if path.as_os_str().is_empty() {
            return self
                .move_aside(Path::new("HEAD"), "with it this directory would count as a git repository");
        }
        let mut links = Vec::new();
        let mut place = path.to_owned();
        node.visit(&mut place, &mut |below, entry| {
            let is_odd = matches!(entry.stat.kind, EntryKind::Symlink | EntryKind::Special);
            if is_odd {
                links.push(below.to_owned());
            }
            !is_git_directory(entry)
        });
        for link in links {
            self.move_aside(&link, "git would follow it out of its directory, or wait for it");
        }
        let hooks = node.child(OsStr::new("hooks")).map_or(&[][..], |hooks| &hooks.children);
        let is_hook =
            |entry: &&ScanNode| Path::new(&entry.name).extension().is_none_or(|end| end != "sample");
        for hook in hooks.iter().filter(is_hook) {
            self.move_aside(&path.join("hooks").join(&hook.name), "git would run it");
        }
        if node.child(OsStr::new("info")).is_some_and(|info| info.child(OsStr::new("attributes")).is_some()) {
            self.move_aside(&path.join("info/attributes"), "it sends files through filters");
        }
        if node.child(OsStr::new("commondir")).is_some() && !self.is_sound_commondir(path) {
            self.move_aside(&path.join("commondir"), "it would send git elsewhere for its settings");
        }
        for name in ["config", "config.worktree"] {
            if node.child(OsStr::new(name)).is_some() {
                self.check_config(&path.join(name));
            }
        }
        for name in SEQUENCER_DIRECTORIES {
            if node.child(OsStr::new(name)).is_some() {
                self.check_sequencer(&path.join(name));
            }
        }
    }

    /// Tells whether the git directory of a linked worktree leads back to the repository it lies in.
    fn is_sound_commondir(&self, git_directory: &Path) -> bool {
        let Some(common) = git_directory.parent().and_then(Path::parent) else { return false };
        let is_inner = git_directory
            .strip_prefix(common)
            .is_ok_and(|inside| inside.starts_with("worktrees") && is_inner_git_directory(inside));
        let content = self
            .root
            .handle
            .open_dir(git_directory)
            .and_then(|directory| directory.read_file(OsStr::new("commondir"), MAX_POINTER_BYTES));
        is_inner && content.is_ok_and(|content| matches!(&content[..], b"../..\n" | b"../.."))
    }

    fn check_sequencer(&mut self, path: &Path) {
        if self.is_moved(path) || self.after.find(path).is_none() {
            return;
        }
        let problem = match self.root.handle.open_dir(path) {
            Ok(directory) => sequencer_problem(&directory),
            Err(_) => Some("git would read it, and it is no directory"),
        };
        if let Some(problem) = problem {
            self.move_aside(path, problem);
        }
    }

    /// Checks settings of git that a command wrote where no copy stood between: keeps the allowed ones.
    fn check_config(&mut self, path: &Path) {
        let absolute = self.absolute(path);
        if self.is_moved(path) {
            return;
        }
        if self.mounts_hold
            && self.protected.git_configs.contains(&absolute)
            && self.saved.get(&absolute).is_none()
        {
            return self.findings.tell(&absolute, REPLACED_OUTSIDE.to_owned());
        }
        let Ok((directory, name)) = self.parent(path) else { return };
        let base = self.saved.get(&absolute).map(|saved| saved.bytes.clone());
        match self.checked_config(&directory, &name, base.as_deref()) {
            Ok(None) => {}
            Ok(Some(checked)) => self.replace_config(path, (&directory, &name), &checked),
            Err(reason) => self.move_aside(path, &format!("git's settings could not be checked: {reason}")),
        }
    }

    /// Returns the settings that may stay, unless that is what the file says already.
    fn checked_config(
        &mut self,
        directory: &DirHandle,
        name: &OsStr,
        base: Option<&[u8]>,
    ) -> Result<Option<CheckedConfig>, String> {
        let stat = directory.stat_entry(name).map_err(|error| error.to_string())?;
        // A file with another name could be changed by it later, so it is written anew.
        let is_shared = stat.nlink > 1;
        let content = directory.read_file(name, MAX_CONFIG_BYTES).map_err(|error| error.to_string())?;
        let Some(base) = base else {
            let settings = self.git.list(&content)?;
            let (kept, dropped): (Vec<_>, Vec<_>) = settings.into_iter().partition(GitSetting::is_allowed);
            let bytes = git_config::write(&kept);
            let dropped = dropped.iter().map(GitSetting::name).collect();
            return Ok((is_shared || bytes != content).then_some(CheckedConfig { bytes, dropped, stat }));
        };
        let change = GitConfigChange::between(&self.git.list(base)?, &self.git.list(&content)?);
        let bytes = self.git.edit(base, &change.edits)?;
        Ok((is_shared || bytes != content).then_some(CheckedConfig { bytes, dropped: change.dropped, stat }))
    }

    fn replace_config(
        &mut self,
        path: &Path,
        (directory, name): (&DirHandle, &OsStr),
        checked: &CheckedConfig,
    ) {
        let absolute = self.absolute(path);
        self.findings.has_acted = true;
        match directory.replace_file(name, &checked.bytes, checked.stat.permissions | 0o600) {
            Ok(()) if checked.dropped.is_empty() => {}
            Ok(()) => self.findings.tell(&absolute, dropped_settings(&checked.dropped)),
            Err(error) => self.move_aside(path, &format!("git's settings could not be written: {error}")),
        }
    }

    fn move_aside(&mut self, path: &Path, why: &str) {
        let Some(node) = self.after.find(path).filter(|_| !self.is_moved(path)) else { return };
        let absolute = self.absolute(path);
        let moved =
            self.parent(path).and_then(|(directory, name)| directory.move_aside(&name, &node.stat, ASIDE));
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

/// Why a protected file changed although a mount kept commands from it.
const REPLACED_OUTSIDE: &str = "another program replaced or removed it while the command ran, and for a moment at least the command could read and change it, or make it anew: look at what it says";

/// What is told about settings that were not kept.
pub(super) fn dropped_settings(keys: &[String]) -> String {
    format!("settings by which git may run programs or look elsewhere are not kept: {}", keys.join(", "))
}

/// Git directories with something to be looked at, and what.
#[derive(Debug, Default)]
struct GitDirectoriesToCheck {
    new: BTreeSet<PathBuf>,
    sequencers: BTreeSet<PathBuf>,
    configs: BTreeSet<PathBuf>,
}

/// Settings that may stay.
struct CheckedConfig {
    bytes: Vec<u8>,
    dropped: Vec<String>,
    stat: EntryStat,
}

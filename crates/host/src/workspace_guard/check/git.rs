//! The part of the check that is about git: repositories a command made or changed.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use windlass_files::{Change, ChangeKind, DirHandle, EntryKind, EntryStat, ScanNode, WorkspaceScan};

use super::{
    super::{
        git_config::{self, GitConfigChange, GitSetting, MAX_CONFIG_BYTES},
        git_directory::{
            ALTERNATES, REMOTE_DIRECTORIES, SEQUENCER_DIRECTORIES, is_git_directory, is_inner_git_directory,
            is_open_git_directory, sequencer_problem,
        },
        git_index::{find_unsafe_path, is_index},
        git_program::GitProgram,
        protected_names::starts_with_ignoring_case,
        roots::{WorkspaceRoot, gitfile_target},
    },
    REPLACED_OUTSIDE, RootCheck, dropped_settings,
};

/// The largest `.git` file, `gitdir` or `commondir` that is read.
const MAX_POINTER_BYTES: u64 = 16 * 1024;

/// The message about a partial clone, which is kept because it is broken without its settings.
const PARTIAL_CLONE: &str = "this new repository is a partial clone, by which git connects to its remote whenever an object is missing, in your name: look at the address before you use it";

/// Git directories with something to be looked at, and what.
#[derive(Debug, Default)]
pub(super) struct GitDirectoriesToCheck {
    new: BTreeSet<PathBuf>,
    sequencers: BTreeSet<PathBuf>,
    configs: BTreeSet<PathBuf>,
    /// Git directories whose index was written.
    indexes: BTreeSet<PathBuf>,
    /// Git directories in which another commit was checked out, or something was merged.
    moved_heads: BTreeSet<PathBuf>,
    /// Git directories whose list of other directories of objects was written.
    alternates: BTreeSet<PathBuf>,
}

impl GitDirectoriesToCheck {
    /// Adds a git directory that is to be checked as a new one.
    pub(super) fn insert_new(&mut self, path: &Path) {
        self.new.insert(path.to_owned());
    }
}

/// Settings that may stay.
struct CheckedConfig {
    bytes: Vec<u8>,
    dropped: Vec<String>,
    stat: EntryStat,
}

/// Tells whether a path inside a git directory is one of those that git executes or takes settings
/// from.
pub(super) fn is_git_code(path: &Path) -> bool {
    let own = ["hooks", "commondir", "attributes", "config.worktree", "remotes", "branches", "alternates"];
    let names = own.iter().chain(&SEQUENCER_DIRECTORIES);
    names.into_iter().any(|name| path.iter().any(|own| own.eq_ignore_ascii_case(name)))
}

impl<G: GitProgram> RootCheck<'_, G> {
    /// Checks the git directories in which something changed, and files in them whose change does
    /// not show in a scan.
    pub(super) fn check_git_directories(&mut self, mut to_check: GitDirectoriesToCheck) {
        let below = |path: &PathBuf| path.strip_prefix(&self.root.path).ok().map(Path::to_owned);
        to_check.sequencers.extend(self.protected.sequencers.iter().filter_map(below));
        let configs = self.saved.below(&self.root.path).filter(|(path, file)| {
            self.is_config(path) && self.stat(path).is_some_and(|now| now != file.stat)
        });
        to_check.configs.extend(configs.filter_map(|(path, _)| below(path)));
        for changed in self.indexes.changed_below(&self.root.path) {
            let is_list = changed.ends_with(ALTERNATES);
            let git_directory = changed.ancestors().nth(if is_list { 3 } else { 1 });
            let git_directory = git_directory.map(Path::to_owned).as_ref().and_then(below);
            if is_list { &mut to_check.alternates } else { &mut to_check.indexes }.extend(git_directory);
        }
        for path in &to_check.new {
            self.check_new_git_directory(path);
        }
        for path in to_check.indexes.difference(&to_check.new) {
            self.check_index(path);
        }
        for path in to_check.alternates.difference(&to_check.new) {
            self.check_alternates(path);
        }
        for path in to_check.moved_heads.difference(&to_check.new) {
            self.tell_left_files(path);
        }
        for path in &to_check.sequencers {
            self.check_sequencer(path);
        }
        for path in to_check.configs {
            self.check_config(&path);
        }
    }

    /// A `.git` that is new or changed: a directory is a new repository; a file must lead to one of
    /// this workspace.
    pub(super) fn check_dot_git(&mut self, change: &Change<'_>) {
        let Some(node) = change.after else { return };
        match node.stat.kind {
            EntryKind::Directory => {}
            EntryKind::File if self.gitfile_directory(&change.path).is_some() => {
                self.check_new_worktree(change.path.parent().unwrap_or(Path::new("")));
            }
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

    /// Returns the git directory of a linked worktree or a submodule that a `.git` file leads to
    /// without links.
    fn gitfile_directory(&self, path: &Path) -> Option<PathBuf> {
        let (directory, name) = self.parent(path).ok()?;
        let content = directory.read_file(&name, MAX_POINTER_BYTES);
        let target = content.ok().and_then(|content| gitfile_target(&content))?;
        let above = path.parent()?;
        let target = windlass_contract::effects::normal(&self.absolute(above).join(target));
        let is_sound = |root: &&WorkspaceRoot| {
            let Ok(inside) = target.strip_prefix(&root.path) else { return false };
            let is_open = |path: &Path| {
                root.handle.open_dir(path).is_ok_and(|directory| is_open_git_directory(&directory))
            };
            // Every git directory around it that may hold it.
            let holds =
                |above: &Path| inside.strip_prefix(above).is_ok_and(is_inner_git_directory) && is_open(above);
            is_open(inside) && inside.ancestors().skip(1).any(holds)
        };
        self.all_roots.iter().copied().any(|root| is_sound(&root)).then_some(target)
    }

    /// Tells whether a setting of a submodule says where it is checked out, and the `.git` file
    /// there leads back.
    fn is_own_worktree(&self, config: &Path, setting: &GitSetting) -> bool {
        let value = setting.value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
        let (Some(git_directory), Some(value)) = (config.parent(), value) else { return false };
        let git_directory = self.absolute(git_directory);
        let worktree = windlass_contract::effects::normal(&git_directory.join(value));
        let inside = worktree.strip_prefix(&self.root.path).ok();
        let leads_back = inside.and_then(|inside| self.gitfile_directory(&inside.join(".git")));
        setting.key == b"core.worktree" && leads_back == Some(git_directory)
    }

    /// Sorts a change inside a git directory. The innermost one counts.
    pub(super) fn check_in_git_directory(
        &mut self,
        change: &Change<'_>,
        to_check: &mut GitDirectoriesToCheck,
    ) {
        let is_directory = change.after.is_some_and(ScanNode::is_directory);
        let from = usize::from(!is_directory);
        let around =
            change.path.ancestors().skip(from).find(|above| Self::is_git_directory(self.after, above));
        let Some(around) = around else { return };
        let known = Self::is_git_directory(self.before, around) && self.is_same(around);
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
        if inside.iter().count() == 1 && first.ends_with("head") {
            to_check.moved_heads.insert(around.to_owned());
        }
        if is_changed_link {
            self.move_aside(&change.path, "git would follow it out of its directory, or wait for it");
        } else if first == "config" || first == "config.worktree" {
            if !is_removed && inside.iter().count() == 1 {
                to_check.configs.insert(change.path.clone());
            }
        } else if first == "hooks"
            || first == "commondir"
            || starts_with_ignoring_case(inside, Path::new("info/attributes"))
            || REMOTE_DIRECTORIES.contains(&first.as_str())
        {
            self.check_protected_in_git(change, inside);
        } else if inside.as_os_str().eq_ignore_ascii_case(ALTERNATES) {
            to_check.alternates.insert(around.to_owned());
        } else if is_index(OsStr::new(&first)) {
            to_check.indexes.insert(around.to_owned());
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
                self.move_aside(&change.path, "git would run it, or look for settings or addresses there");
            }
            ChangeKind::Modified if is_directory => {}
            _ => self.put_back(change, "this file is protected and was changed"),
        }
    }

    fn is_git_directory(scan: &WorkspaceScan, path: &Path) -> bool {
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
            if self.replace_copied_config(&link) {
                continue;
            }
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
        for name in REMOTE_DIRECTORIES {
            let entries = node.child(OsStr::new(name)).map_or(&[][..], |entry| &entry.children);
            for entry in entries {
                self.move_aside(&path.join(name).join(&entry.name), "git would take it for a remote");
            }
        }
        self.check_alternates(path);
        self.check_index(path);
        if !self.is_moved(path) {
            self.findings.accepted.insert(path.to_owned());
        }
        self.check_new_worktree(path.parent().unwrap_or(Path::new("")));
    }

    /// Moves an index aside that lists paths outside of its working tree, or in a git directory.
    fn check_index(&mut self, git_directory: &Path) {
        let Some(node) = self.after.find(git_directory).filter(|_| !self.is_moved(git_directory)) else {
            return;
        };
        let Some(index) = node.children.iter().find(|child| child.name.eq_ignore_ascii_case("index")) else {
            return;
        };
        let path = git_directory.join(&index.name);
        match self.git.index_paths(&self.absolute(git_directory)) {
            Ok(list) => {
                if let Some(bad) = find_unsafe_path(&list) {
                    let bad = String::from_utf8_lossy(bad);
                    self.move_aside(&path, &format!("git would write `{bad}`, which this index lists"));
                }
            }
            Err(reason) => {
                self.move_aside(&path, &format!("the paths in git's index could not be checked: {reason}"));
            }
        }
    }

    /// Puts settings in the place of a link to the command's private copy of them, as `cp -r` of a
    /// repository leaves it. They are checked as those of any new repository. Returns whether it
    /// was such a link.
    fn replace_copied_config(&mut self, link: &Path) -> bool {
        let (Ok((directory, name)), Some(node)) = (self.parent(link), self.after.find(link)) else {
            return false;
        };
        let Ok(target) = directory.read_link(&name) else { return false };
        let mut configs = self.private_configs.iter();
        let config = configs.find(|config| config.as_private_file().path_in_sandbox() == Path::new(&target));
        let Some(bytes) = config.and_then(|config| config.read_copy().ok()) else { return false };
        let removed = directory.remove_link(&name, &node.stat);
        let replaced = removed.and_then(|()| directory.replace_file(&name, &bytes, 0o644));
        self.findings.has_acted |= replaced.is_ok();
        replaced.is_ok()
    }

    /// Tells whether the git directory of a linked worktree leads back to the repository it lies
    /// in.
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

    /// Checks settings of git that a command wrote where no copy stood between: keeps the allowed
    /// ones.
    fn check_config(&mut self, path: &Path) {
        let absolute = self.absolute(path);
        if self.is_moved(path) {
            return;
        }
        let is_unsettled = path.parent().is_some_and(|around| self.unsettled.contains(around));
        if self.mounts_hold
            && !is_unsettled
            && self.protected.git_configs.contains(&absolute)
            && self.saved.get(&absolute).is_none()
        {
            return self.findings.tell(&absolute, REPLACED_OUTSIDE.to_owned());
        }
        let (directory, name) = match self.parent(path) {
            Ok(found) => found,
            Err(error) => {
                let rule =
                    format!("git's settings could not be checked ({error}): look at them before you use git");
                return self.findings.fail(&absolute, rule);
            }
        };
        let base = self.saved.get(&absolute).filter(|_| !is_unsettled).map(|saved| saved.bytes.clone());
        match self.checked_config((path, &directory, &name), base.as_deref()) {
            Ok(None) => {}
            Ok(Some(checked)) => self.replace_config(path, (&directory, &name), &checked),
            Err(reason) => self.move_aside(path, &format!("git's settings could not be checked: {reason}")),
        }
    }

    /// Returns the settings that may stay, unless that is what the file says already.
    fn checked_config(
        &mut self,
        (path, directory, name): (&Path, &DirHandle, &OsStr),
        base: Option<&[u8]>,
    ) -> Result<Option<CheckedConfig>, String> {
        let stat = directory.stat_entry(name).map_err(|error| error.to_string())?;
        // A file with another name could be changed by it later, so it is written anew.
        let is_shared = stat.nlink > 1;
        let content = directory.read_file(name, MAX_CONFIG_BYTES).map_err(|error| error.to_string())?;
        let Some(base) = base else {
            let settings = self.git.list(&content)?;
            let is_kept = |setting: &GitSetting| setting.is_allowed() || self.is_own_worktree(path, setting);
            let (kept, dropped): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_kept);
            if kept.iter().any(|setting| setting.promisor().is_some()) {
                self.findings.tell(&self.absolute(path), PARTIAL_CLONE.to_owned());
            }
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
}

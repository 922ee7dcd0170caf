//! Checks the files that git opens or runs in a working tree: programs that settings name relative
//! to it, files that it reads regardless of their kind, and alternate object directories.

use std::path::{Path, PathBuf};

use windlass_files::{Change, EntryKind, ScanNode};

use super::{
    super::{
        git_directory::{ALTERNATES, is_git_directory, is_open_git_directory},
        git_program::GitProgram,
        roots::WorkspaceRoot,
    },
    RootCheck,
};

/// Files of a working tree that git opens by itself. It waits for a FIFO, and reads a device to its
/// end.
const READ_BY_GIT: [&str; 5] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".lfsconfig"];

/// The largest list of other directories of objects that is read.
const MAX_ALTERNATES_BYTES: u64 = 64 * 1024;

/// Maximum number of protected files that git is asked about.
const MAX_LEFT_FILES: usize = 64;

const LEFT_FILE: &str = "this name is protected, so git could not change it for the commit that is checked out now, and `git status` lists it; run the git command yourself, or `git checkout` of this file";

/// Tells whether an entry has a name that git opens in a working tree, and is no file that it can
/// read. Git itself takes no link by these names, or should not.
pub(super) fn is_unreadable_for_git(path: &Path, kind: EntryKind) -> bool {
    let is_odd = matches!(kind, EntryKind::Symlink | EntryKind::Special);
    is_odd
        && path.file_name().is_some_and(|name| READ_BY_GIT.iter().any(|own| name.eq_ignore_ascii_case(own)))
}

impl<G: GitProgram> RootCheck<'_, G> {
    /// Moves a FIFO, a device or a link aside that git would open.
    pub(super) fn check_read_by_git(&mut self, change: &Change<'_>) {
        if change.after.is_some_and(|node| is_unreadable_for_git(&change.path, node.stat.kind)) {
            self.move_aside(&change.path, "git would open it, and it is no regular file");
        }
    }

    /// Checks a new working tree for hooks and programs that settings name relative to its top. A
    /// file with the same content as in another working tree may stay.
    pub(super) fn check_new_worktree(&mut self, top: &Path) {
        let protected = self.protected;
        for hooks in &protected.hook_paths {
            self.check_program(top, hooks);
        }
        for program in &protected.program_paths {
            let path = self.below_top(top, program);
            if !path.is_some_and(|path| self.after.find(&path).is_some_and(ScanNode::is_directory)) {
                self.check_program(top, program);
            }
        }
    }

    /// A path relative to the top of a working tree, below the root.
    fn below_top(&self, top: &Path, relative: &Path) -> Option<PathBuf> {
        let absolute = windlass_contract::effects::normal(&self.absolute(top).join(relative));
        absolute.strip_prefix(&self.root.path).ok().map(Path::to_owned)
    }

    fn check_program(&mut self, top: &Path, relative: &Path) {
        let Some(path) = self.below_top(top, relative) else { return };
        let absolute = self.absolute(&path);
        let is_known = |known: &Path| {
            self.protected.read_only.contains(known) || self.protected.unmounted.contains(known)
        };
        if absolute.ancestors().any(is_known) {
            return;
        }
        let mut way = PathBuf::new();
        for name in &path {
            way.push(name);
            let Some(node) = self.after.find(&way) else { return };
            let is_link = node.stat.kind == EntryKind::Symlink;
            if is_link && self.before.find(&way).is_none_or(|before| before.stat != node.stat) {
                return self
                    .move_aside(&way, "a program or hook that git's settings name lies behind this link");
            }
        }
        if self.is_copy(&path) {
            self.findings.accepted.insert(path);
        } else {
            self.move_aside(
                &path,
                "git's settings name it as a program or as hooks of this new working tree",
            );
        }
    }

    /// Tells which protected files git could not change when another commit was checked out: it
    /// goes on without them, and may say that it succeeded.
    pub(super) fn tell_left_files(&mut self, git_directory: &Path) {
        let Some(top) = git_directory.parent().filter(|_| git_directory.ends_with(".git")) else { return };
        let top = self.absolute(top);
        let git_directory = self.absolute(git_directory);
        let is_plain = |path: &&PathBuf| path.starts_with(&top) && !path.starts_with(&git_directory);
        let inside = |path: &'_ PathBuf| Some(path.strip_prefix(&top).ok()?.to_str()?.to_owned());
        let protected = self.protected.read_only.iter().filter(is_plain).filter_map(inside);
        let protected: Vec<_> = protected.filter(|path| !path.is_empty()).take(MAX_LEFT_FILES).collect();
        if protected.is_empty() {
            return;
        }
        let paths: Vec<_> = protected.iter().map(String::as_str).collect();
        // This only informs the user; nothing depends on it.
        let listed = self.git.differing_paths(&top, &paths).unwrap_or_default();
        for entry in listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)) {
            self.findings.tell(&top.join(String::from_utf8_lossy(entry).as_ref()), LEFT_FILE.to_owned());
        }
    }

    /// Moves a list of other directories of objects aside, unless each is that of a repository
    /// whose files are checked, or that no command can write.
    pub(super) fn check_alternates(&mut self, git_directory: &Path) {
        let list = git_directory.join(ALTERNATES);
        if self.after.find(&list).is_none() || self.is_moved(&list) {
            return;
        }
        let (objects, content) = match self.parent(&list) {
            Ok((directory, name)) => (
                self.absolute(git_directory).join("objects"),
                directory.read_file(&name, MAX_ALTERNATES_BYTES),
            ),
            Err(_) => return,
        };
        let lines = content.ok().and_then(|content| String::from_utf8(content).ok());
        let is_sound = |line: &str| {
            // Git reads quoted and escaped paths, too: those are not taken for sound.
            line.is_empty() || !line.starts_with(['#', '"']) && self.is_object_directory(&objects.join(line))
        };
        if !lines.is_some_and(|lines| lines.split('\n').all(is_sound)) {
            self.move_aside(&list, "it leads git to objects that are not those of a repository known here");
        }
    }

    /// Tells whether a path leads, without links, to the objects of a repository: one of this
    /// workspace, or one where no command can write.
    fn is_object_directory(&self, path: &Path) -> bool {
        let path = windlass_contract::effects::normal(path);
        let Some(above) = path.parent().filter(|_| path.ends_with("objects")) else { return false };
        let root = self.all_roots.iter().copied().find(|root| above.starts_with(&root.path));
        let is_own = |root: &WorkspaceRoot| {
            let inside = above.strip_prefix(&root.path).unwrap_or(above);
            let is_open = |directory| is_open_git_directory(&directory);
            root.handle.open_dir(inside).is_ok_and(is_open)
                && root.handle.open_dir(&inside.join("objects")).is_ok()
                // In another root it was scanned, too.
                && (root.path != self.root.path || self.after.find(inside).is_some_and(is_git_directory))
        };
        match root {
            Some(root) => is_own(root),
            None => windlass_files::DirHandle::open(above)
                .is_ok_and(|directory| is_open_git_directory(&directory)),
        }
    }
}

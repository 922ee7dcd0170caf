//! Names that must not change hands: what stands there makes other programs of the user run code.
//!
//! A protected path that exists is covered by a read-only mount. One that does not exist cannot be, so it is looked at
//! again when the command and all it started are gone: what has appeared there is moved aside
//! ([`inspect`](crate::inspect)).

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    below::{Below, LOOKED_INTO},
    git,
    links::{self, Way},
    names::Names,
};

/// In every directory that may be written and in those below, each with who runs what it says.
#[rustfmt::skip]
const ANYWHERE: &[(&str, &str)] = &[
    (".windlass", "our own settings for this project"),
    (".codex", "another agent's settings, with commands"),
    (".claude", "another agent's settings, with commands"),
    (".gemini", "another agent's settings, with commands"),
    (".agents", "settings several agents read"),
    (".mcp.json", "servers that agents start"),
    (".cursor", "an editor's settings, with commands"),
    (".vscode", "tasks an editor runs when the folder is opened"),
    (".idea", "tasks an editor runs"),
    (".envrc", "direnv runs it on entering the directory"),
];

/// In every directory that may be written, in case it is a home.
#[rustfmt::skip]
const IN_ROOT: &[(&str, &str)] = &[
    (".bashrc", "shells run it when they start"),
    (".bash_profile", "shells run it when they start"),
    (".bash_login", "shells run it when they start"),
    (".bash_logout", "shells run it when they end"),
    (".profile", "shells run it when they start"),
    (".zshrc", "shells run it when they start"),
    (".zshenv", "shells run it when they start"),
    (".zprofile", "shells run it when they start"),
    (".zlogin", "shells run it when they start"),
    (".config/fish", "shells run it when they start"),
    (".config/autostart", "desktops run it when they start"),
    (".config/systemd", "the system runs it when the user logs in"),
    (".gitconfig", "git runs programs it names"),
    (".config/git/config", "git runs programs it names"),
    (".ssh", "who may log in, and commands ssh runs"),
];

/// In every git directory. `commondir` would send git elsewhere for all the others.
#[rustfmt::skip]
const IN_GIT: &[(&str, &str)] = &[
    ("config", "names programs for hooks, filters, pagers, file watching"),
    ("config.worktree", "the same, for one worktree"),
    ("hooks", "programs git runs"),
    ("info/attributes", "sends files through filters"),
    ("commondir", "where git looks for all of these"),
];

/// How many repositories below a git directory's `modules` and `worktrees` are looked after.
pub(crate) const INNER_LIMIT: usize = 256;

/// How many protected names below a root are kept from change. Each costs a mount or two, for every command.
const NAMES_BELOW: usize = 64;

/// How many links inside protected directories are followed. What each leads to costs as much.
const LINKS_INSIDE: usize = 64;

/// How many files of a protected directory are remembered, and how large ones.
const SAVED_FILES: usize = 64;
const SAVED_BYTES: u64 = 1024 * 1024;

/// What is protected in some directories.
#[derive(Debug, Default)]
pub(crate) struct Protection {
    /// Exists, and must stay as it is.
    pub(crate) fixed: BTreeSet<PathBuf>,
    /// Must stay where it is, though what is in it may change.
    pub(crate) pinned: BTreeSet<PathBuf>,
    /// What commands must be able to write although no root holds it: the repository a linked worktree belongs to.
    pub(crate) also_writable: BTreeSet<PathBuf>,
    /// Does not exist, and must not afterwards.
    pub(crate) absent: BTreeSet<PathBuf>,
    /// Links as they are, and must be afterwards: nothing can be mounted on a link.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// How many of them are inside protected directories, and those directories where not all were followed.
    pub(crate) links_inside: usize,
    pub(crate) unfollowed: BTreeSet<PathBuf>,
    /// Git directories that are protected.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Places where a repository may be made, and then is cleaned.
    pub(crate) open: BTreeSet<PathBuf>,
    /// What may be written.
    pub(crate) roots: Vec<PathBuf>,
    /// What was found below each of them.
    pub(crate) below: Vec<Below>,
    /// Those of them that were not looked through to the end.
    pub(crate) unseen: Vec<PathBuf>,
    /// Which file was covered by a mount at each path. Someone outside who puts another in its place takes the mount away.
    pub(crate) covered: Vec<(PathBuf, FileId)>,
    /// Files to put back, where nothing keeps them from being changed.
    pub(crate) saved: Vec<Saved>,
    /// Directories that must hold nothing else, where nothing keeps them from it.
    pub(crate) listed: Vec<(PathBuf, BTreeSet<OsString>)>,
}

/// Which file it is, by its file system, its number there, and when it was made, where the file system knows: the number of
/// a file that is gone is given to the next.
pub(crate) type FileId = (u64, u64, Option<SystemTime>);

/// Which file is at a path, if there is one.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino(), found.created().ok()))
}

/// A file as it was.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) permissions: fs::Permissions,
}

/// Whether a name is protected in whichever directory it stands.
pub(crate) fn is_protected_anywhere(name: &str) -> bool {
    ANYWHERE.iter().any(|(protected, _)| *protected == name)
}

/// Whether a file could make git take the directory around it for a repository, settings and all: its `HEAD`, or the rest
/// of one beside a `HEAD` that is there.
fn makes_repository(real: &Path) -> bool {
    const REST: [&str; 8] =
        ["config", "config.worktree", "objects", "refs", "hooks", "commondir", "info", "packed-refs"];
    let is = |part: &Path, name: &str| part.file_name().is_some_and(|own| own.eq_ignore_ascii_case(name));
    let beside_head = |part: &Path| {
        let head = part.parent().map(|around| around.join("HEAD"));
        REST.iter().any(|name| is(part, name)) && head.is_some_and(|head| head.symlink_metadata().is_ok())
    };
    is(real, "HEAD") || real.ancestors().any(beside_head)
}

impl Protection {
    /// Looks at the roots, for a command that begins in a directory. Costs the same however many files they hold.
    pub(crate) fn of(roots: &[PathBuf], begins: &Path) -> Self {
        let mut protection = Self { roots: roots.to_vec(), ..Self::default() };
        // By its real name: a link must not lead out of the root.
        let begins = begins.canonicalize().unwrap_or_default();
        for root in roots {
            let names = Names::of(root);
            for name in ANYWHERE.iter().chain(IN_ROOT).map(|(name, _)| Path::new(name)) {
                if names.lack(name) {
                    protection.absent.insert(root.join(name));
                } else {
                    protection.name(&root.join(name), root);
                }
            }
            protection.repository(root, root);
            let below = Below::of(root, &begins);
            for top in &below.repositories {
                protection.repository(top, root);
            }
            for path in below.names.iter().take(NAMES_BELOW) {
                protection.name(path, root);
            }
            if !below.is_all || below.names.len() > NAMES_BELOW {
                protection.unseen.push(root.clone());
            }
            protection.below.push(below);
        }
        protection
    }

    /// Whether a file tool may not write here, by its real name. Stricter than what commands are held to: git itself
    /// writes in its directory, and no one else has to.
    pub(crate) fn guards(&self, real: &Path) -> bool {
        let around = |path: &PathBuf| real.starts_with(path) || path.starts_with(real);
        let below = |root: &PathBuf| real.strip_prefix(root).ok();
        let is_named = |part: &OsStr| ANYWHERE.iter().any(|(name, _)| part.eq_ignore_ascii_case(name));
        self.roots.iter().filter_map(below).any(|inside| inside.iter().any(is_named))
            || real.iter().any(|part| part.eq_ignore_ascii_case(".git"))
            || makes_repository(real)
            || self.fixed.iter().any(around)
            || self.absent.iter().any(|path| real.starts_with(path))
    }

    /// What is left open: what a command may do to files that count for more than themselves.
    pub(crate) fn not_covered(&self) -> impl Iterator<Item = String> {
        let unseen = self.unseen.iter().map(|root| {
            format!(
                "all but the first {LOOKED_INTO} directories of `{}`: protected names, and repositories that its index does not name",
                root.display()
            )
        });
        let unfollowed = self.unfollowed.iter().map(|directory| {
            format!(
                "what some links inside `{}` lead to: those beyond its first {} entries, beyond {LINKS_INSIDE} in all, and to a whole writable root",
                directory.display(),
                links::ENTRIES
            )
        });
        unseen.chain(unfollowed)
    }

    /// Remembers which files are covered by mounts: the protected ones and these.
    pub(crate) fn cover(&mut self, hidden: &[PathBuf]) {
        let known = |path: &PathBuf| Some((path.clone(), file_id(path)?));
        self.covered = self.fixed.iter().chain(hidden).filter_map(known).collect();
    }

    /// Remembers what protected files hold, for a rung that cannot keep them from being changed.
    pub(crate) fn save(&mut self) {
        for path in &self.fixed {
            let names: BTreeSet<_> =
                fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
            let files: Vec<_> = names.iter().take(SAVED_FILES).map(|name| path.join(name)).collect();
            if path.is_dir() {
                self.listed.push((path.clone(), names));
            }
            for file in files.into_iter().chain([path.clone()]) {
                let found = fs::symlink_metadata(&file);
                let small = found.ok().filter(|found| found.is_file() && found.len() <= SAVED_BYTES);
                if let (Some(found), Ok(bytes)) = (small, fs::read(&file)) {
                    self.saved.push(Saved { path: file, bytes, permissions: found.permissions() });
                }
            }
        }
    }

    /// Protects one name below `root`, and pins the directories between.
    fn name(&mut self, path: &Path, root: &Path) {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => self.way(links::follow(path)),
            Ok(found) => {
                self.pin_between(path, root);
                self.fixed.insert(path.to_owned());
                if found.is_dir() {
                    self.inside(path);
                }
            }
            Err(_) => {
                self.absent.insert(path.to_owned());
            }
        }
    }

    /// Protects the links on a way and what is at its end, as far as it could be changed. What goes in circles leads nobody
    /// anywhere.
    fn way(&mut self, way: Option<Way>) {
        let Some(Way { links, end }) = way else { return };
        for (link, target) in links {
            if let Some(tree) = self.tree(&link) {
                if !self.is_fixed(&link) {
                    self.pin_between(&link, &tree);
                }
                self.links.push((link, target));
            }
        }
        if let Some(tree) = self.tree(&end).filter(|_| !self.is_fixed(&end)) {
            self.name(&end, &tree);
        }
    }

    /// Protects what links directly inside a protected directory lead to.
    fn inside(&mut self, directory: &Path) {
        let inside = links::inside(directory);
        let names = inside.links.iter().take(LINKS_INSIDE - self.links_inside);
        if !inside.is_all || names.len() < inside.links.len() {
            self.unfollowed.insert(directory.to_owned());
        }
        self.links_inside += names.len();
        for name in names {
            let way = links::follow(&directory.join(name));
            if way.as_ref().is_some_and(|way| self.roots.contains(&way.end)) {
                // Nobody could work there any more.
                self.unfollowed.insert(directory.to_owned());
            } else {
                self.way(way);
            }
        }
    }

    /// Which of the trees that may be written holds a path.
    fn tree(&self, path: &Path) -> Option<PathBuf> {
        self.roots.iter().chain(&self.also_writable).find(|tree| path.starts_with(tree)).cloned()
    }

    fn is_fixed(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.fixed.contains(above))
    }

    /// A directory that is moved takes its mounts along, and leaves its name free for another.
    fn pin_between(&mut self, path: &Path, root: &Path) {
        let above = path.ancestors().skip(1).take_while(|above| *above != root && above.starts_with(root));
        self.pinned.extend(above.map(Path::to_owned));
    }

    /// Protects the repository whose worktree is `top`, if there is one, and else the place for one.
    fn repository(&mut self, top: &Path, root: &Path) {
        let dot_git = top.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.open.insert(dot_git);
                if git::is_bare(top) {
                    self.git_directory(top, root);
                }
                return;
            }
            Err(_) => return,
            Ok(found) if found.is_symlink() => {
                if let Ok(target) = fs::read_link(&dot_git) {
                    self.links.push((dot_git.clone(), target));
                }
            }
            Ok(found) if found.is_dir() => {
                self.pin_between(&dot_git, root);
                self.pinned.insert(dot_git.clone());
            }
            Ok(_) => {
                self.pin_between(&dot_git, root);
                self.fixed.insert(dot_git.clone());
            }
        }
        let Some(directory) = git::directory(&dot_git) else { return };
        if !directory.starts_with(root) && git::belongs(&directory, &dot_git) {
            self.also_writable.insert(git::common(&directory).unwrap_or_else(|| directory.clone()));
        }
        self.git_directory(&directory, root);
        if let Some(common) = git::common(&directory) {
            self.git_directory(&common, root);
        }
    }

    fn git_directory(&mut self, directory: &Path, root: &Path) {
        if !self.repositories.insert(directory.to_owned()) {
            return;
        }
        let base = if directory.starts_with(root) { root } else { directory };
        if directory != root {
            self.pin_between(directory, base);
            self.pinned.insert(directory.to_owned());
        }
        for (name, _) in IN_GIT {
            self.name(&directory.join(name), base);
        }
        let elsewhere = git::elsewhere(directory);
        for path in elsewhere.hooks.iter().chain(&elsewhere.included) {
            self.way(links::follow(path));
        }
        for inner in git::inner(directory).take(INNER_LIMIT) {
            self.repositories.insert(inner.clone());
            for (name, _) in IN_GIT {
                // A worktree's own directory has a `commondir`, which git made.
                self.name(&inner.join(name), base);
            }
            git::elsewhere(&inner).included.iter().for_each(|path| self.way(links::follow(path)));
        }
        for linked in git::gitlinks(directory) {
            if let Some(top) = directory.parent() {
                self.repository(&top.join(linked), root);
            }
        }
    }
}

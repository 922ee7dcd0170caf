//! The paths that must not change while a command runs, found in the scans of its roots.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use windlass_files::{DirHandle, EntryKind, ScanNode, WorkspaceScan};
use windlass_sandbox::{
    ProtectedPaths,
    links::{self, Way},
};

use super::{
    git_directory::{ALTERNATES, SEQUENCER_DIRECTORIES, is_git_directory},
    git_index::is_index,
    git_program::GitProgram,
    protected_names::{
        IN_GIT_DIRECTORY, in_root, is_package_directory, is_protected_entry, is_protected_in_home,
        protected_ancestor,
    },
    roots::WorkspaceRoot,
};

mod settings;

use settings::SettingsSource;

/// Maximum number of paths that mounts keep from change. Each costs about 15 µs at every start.
const MAX_MOUNTS: usize = 128;

/// Maximum number of links inside protected directories that are followed.
const MAX_LINKS: usize = 64;

/// Maximum number of links in a home directory that are followed.
const MAX_LINKS_FROM_HOME: usize = 256;

/// Maximum number of directories below a home directory that are searched for links.
const MAX_SETTINGS_DIRECTORIES: usize = 256;

/// The directory of a home directory with one directory of settings for each program.
const CONFIG_DIRECTORY: &str = ".config";

/// Directories of a home directory with programs.
const PROGRAM_DIRECTORIES: [&str; 2] = [".local/bin", "bin"];

/// Collects the protected paths from what the roots of a command hold.
pub(super) fn collect(
    roots: &[(&WorkspaceRoot, &WorkspaceScan)],
    homes: &[PathBuf],
    git: &mut impl GitProgram,
) -> ProtectedPaths {
    let paths: Vec<_> = roots.iter().map(|(root, _)| root.path.clone()).collect();
    let mut collector = ProtectedPathCollector {
        roots: &paths,
        git,
        links_followed: 0,
        worktrees: BTreeSet::new(),
        words: BTreeSet::new(),
        found: ProtectedPaths::default(),
    };
    collector.global_settings();
    for home in homes {
        collector.linked_from_home(home);
    }
    for (root, scan) in roots {
        for home in homes.iter().filter(|home| home.starts_with(&root.path)) {
            collector.home(home, scan, &root.path);
        }
        collector.root(&root.path, scan.root());
        for skipped in scan.skipped() {
            collector.skipped(&root.path, &skipped.path, &skipped.reason);
        }
    }
    collector.programs_of_worktrees();
    let mut found = collector.found;
    limit_mounts(&mut found);
    found
}

/// Tells whether a file tool may not write here, by its path without links. Stricter than what
/// commands are held to: git itself writes in its directory, and file tools have no need to.
pub(crate) fn is_protected(protected: &ProtectedPaths, real: &Path, roots: &[PathBuf]) -> bool {
    let around = |path: &PathBuf| real.starts_with(path) || path.starts_with(real);
    let inside = |root: &PathBuf| real.strip_prefix(root).ok();
    roots.iter().filter_map(inside).any(|below| below.ancestors().any(is_protected_entry))
        || entry_in_home(&protected.homes, real).is_some()
        || real.iter().any(|name| name.eq_ignore_ascii_case(".git"))
        || makes_git_directory(real)
        || protected.read_only.iter().chain(&protected.unmounted).chain(&protected.git_configs).any(around)
        || protected.absent.iter().any(|path| real.starts_with(path))
}

/// Tells whether a path is protected wherever it lies, by its names alone. Where the workspace
/// itself lies does not count.
pub(crate) fn has_protected_name(path: &Path, workspace: &Path, homes: &[PathBuf]) -> bool {
    let (below, is_inside) = path.strip_prefix(workspace).map_or((path, false), |below| (below, true));
    protected_ancestor(below).is_some()
        || below.iter().any(|name| name.eq_ignore_ascii_case(".git"))
        || !is_inside && entry_in_home(homes, path).is_some()
}

/// Returns the protected entry of a home directory that a path is or lies in.
pub(crate) fn entry_in_home<'a>(
    homes: impl IntoIterator<Item = &'a PathBuf>,
    path: &Path,
) -> Option<PathBuf> {
    let in_home = |home: &PathBuf| {
        let name = path.strip_prefix(home).ok()?.iter().next()?;
        is_protected_in_home(name).then(|| home.join(name))
    };
    homes.into_iter().find_map(in_home)
}

/// Leaves mounts to the paths nearest to a root, and the rest to the check afterwards.
fn limit_mounts(protected: &mut ProtectedPaths) {
    let count = protected.read_only.len() + protected.git_configs.len();
    if count <= MAX_MOUNTS {
        return;
    }
    let mut all: Vec<_> = protected.read_only.iter().chain(&protected.git_configs).cloned().collect();
    all.sort_by_key(|path| path.components().count());
    for path in all.into_iter().skip(MAX_MOUNTS) {
        protected.read_only.remove(&path);
        protected.git_configs.remove(&path);
        protected.unmounted.insert(path);
    }
    protected.not_covered.push(format!(
        "{} protected files can be changed while the command runs; they are put back when it has ended",
        protected.unmounted.len()
    ));
}

/// Tells whether a file could make git take the directory around it for a repository: its `HEAD`,
/// or the rest of one beside a `HEAD` that is there.
fn makes_git_directory(real: &Path) -> bool {
    const REST: [&str; 8] =
        ["config", "config.worktree", "objects", "refs", "hooks", "commondir", "info", "packed-refs"];
    let is = |part: &Path, name: &str| part.file_name().is_some_and(|own| own.eq_ignore_ascii_case(name));
    let has_head = |above: &Path| {
        DirHandle::open(above).is_ok_and(|directory| directory.stat_entry(OsStr::new("HEAD")).is_ok())
    };
    let beside_head =
        |part: &Path| REST.iter().any(|name| is(part, name)) && part.parent().is_some_and(has_head);
    is(real, "HEAD") || real.ancestors().any(beside_head)
}

struct ProtectedPathCollector<'a, G> {
    roots: &'a [PathBuf],
    git: &'a mut G,
    links_followed: usize,
    /// The tops of all working trees.
    worktrees: BTreeSet<PathBuf>,
    /// Words of git's settings that may be paths below each of them.
    words: BTreeSet<PathBuf>,
    found: ProtectedPaths,
}

impl<G: GitProgram> ProtectedPathCollector<'_, G> {
    fn root(&mut self, root: &Path, scan: &ScanNode) {
        for path in in_root() {
            self.name_in_root(path, root, scan);
        }
        if is_git_directory(scan) {
            self.git_directory(root, scan, root);
        }
        let mut top = root.to_owned();
        self.below(&mut top, scan, root);
    }

    /// Protects every name with a dot in a home directory.
    fn home(&mut self, home: &Path, scan: &WorkspaceScan, root: &Path) {
        let node = home.strip_prefix(root).ok().and_then(|below| scan.find(below));
        let Some(node) = node.filter(|node| node.is_directory()) else { return };
        self.found.homes.insert(home.to_owned());
        for child in node.children.iter().filter(|child| is_protected_in_home(&child.name)) {
            self.protect(&home.join(&child.name), child.stat.kind, root);
        }
    }

    /// Protects files of the workspace that links in a home directory lead to. Settings that are
    /// kept in a repository (`~/.gitconfig`, `~/.bashrc`) are obeyed by their names in the home
    /// directory.
    fn linked_from_home(&mut self, home: &Path) {
        let in_home = links::inside(home);
        let settings = in_home.links.iter().filter(|name| is_protected_in_home(name));
        let mut found: Vec<_> = settings.map(|name| home.join(name)).collect();
        let config = home.join(CONFIG_DIRECTORY);
        let below = links::inside(&config);
        let deeper = below.directories.iter().map(|name| config.join(name));
        let programs = PROGRAM_DIRECTORIES.iter().map(|name| home.join(name));
        for directory in programs.chain(deeper).chain([config.clone()]).take(MAX_SETTINGS_DIRECTORIES) {
            found.extend(links::inside(&directory).links.iter().map(|name| directory.join(name)));
        }
        for link in found.iter().take(MAX_LINKS_FROM_HOME) {
            let way = links::follow(link);
            if way.as_ref().is_some_and(|way| self.roots.contains(&way.end)) {
                // No command could work there any more.
                let line = format!("`{}` is a link to a whole writable root", link.display());
                self.found.not_covered.push(line);
            } else {
                self.way(way);
            }
        }
    }

    /// Keeps commands from writing where changes could not be seen.
    fn skipped(&mut self, root: &Path, path: &Path, reason: &str) {
        let path = root.join(path);
        self.found
            .not_covered
            .push(format!("`{}` is read-only: it cannot be watched ({reason})", path.display()));
        self.protect(&path, EntryKind::Directory, root);
    }

    /// Protects a path below a root that may not exist, or only behind a link.
    fn name_in_root(&mut self, path: &Path, root: &Path, scan: &ScanNode) {
        let mut node = scan;
        for name in path {
            match node.child(name) {
                Some(child) if child.stat.kind == EntryKind::Symlink => {
                    return self.way(links::follow(&root.join(path)));
                }
                Some(child) => node = child,
                None => {
                    self.found.absent.insert(root.join(path));
                    return;
                }
            }
        }
        self.protect(&root.join(path), node.stat.kind, root);
    }

    fn below(&mut self, directory: &mut PathBuf, node: &ScanNode, root: &Path) {
        for child in node.children.iter() {
            directory.push(&child.name);
            let is_gitfile = child.name.eq_ignore_ascii_case(".git") && !child.is_directory();
            if child.name.eq_ignore_ascii_case(".git") {
                self.worktrees.extend(directory.parent().map(Path::to_owned));
            }
            if is_gitfile || is_protected_entry(directory) {
                self.protect(&directory.clone(), child.stat.kind, root);
            } else if child.is_directory() {
                if child.name.eq_ignore_ascii_case(".git") || is_git_directory(child) {
                    self.git_directory(&directory.clone(), child, root);
                }
                if is_package_directory(&child.name) {
                    self.repositories_below(directory, child, root);
                } else {
                    self.below(directory, child, root);
                }
            }
            directory.pop();
        }
    }

    /// Looks for repositories alone.
    fn repositories_below(&mut self, directory: &mut PathBuf, node: &ScanNode, root: &Path) {
        for child in node.children.iter().filter(|child| child.is_directory()) {
            directory.push(&child.name);
            if child.name.eq_ignore_ascii_case(".git") || is_git_directory(child) {
                self.worktrees.extend(directory.parent().map(Path::to_owned));
                self.git_directory(&directory.clone(), child, root);
            }
            self.repositories_below(directory, child, root);
            directory.pop();
        }
    }

    /// Protects what exists at a path, and pins the directories between it and the root.
    fn protect(&mut self, path: &Path, kind: EntryKind, root: &Path) {
        if kind == EntryKind::Symlink {
            return self.way(links::follow(path));
        }
        self.pin_between(path, root);
        self.found.read_only.insert(path.to_owned());
        if kind == EntryKind::Directory {
            self.links_inside(path);
        }
    }

    /// Protects the links on a way and what is at its end, as far as commands could change them.
    fn way(&mut self, way: Option<Way>) {
        let Some(Way { links, end }) = way else { return };
        let has_links = !links.is_empty();
        for (link, target) in links {
            if let Some(root) = self.root_of(&link) {
                if !self.is_read_only(&link) {
                    self.pin_between(&link, &root);
                }
                self.found.links.push((link, target));
            }
        }
        let Some(root) = self.root_of(&end).filter(|root| *root != end && !self.is_read_only(&end)) else {
            return;
        };
        let kind = end.parent().zip(end.file_name()).map(|(above, name)| {
            DirHandle::open(above).and_then(|directory| directory.stat_entry(name)).map(|found| found.kind)
        });
        match kind {
            Some(Ok(kind)) => self.protect(&end, kind, &root),
            _ if has_links || self.roots.iter().any(|root| end.starts_with(root)) => {
                self.found.absent.insert(end);
            }
            _ => {}
        }
    }

    /// Protects what links directly inside a protected directory lead to.
    fn links_inside(&mut self, directory: &Path) {
        let inside = links::inside(directory);
        let names: Vec<OsString> =
            inside.links.iter().take(MAX_LINKS - self.links_followed).cloned().collect();
        self.links_followed += names.len();
        let mut is_all = inside.is_all && names.len() == inside.links.len();
        for name in names {
            let way = links::follow(&directory.join(name));
            if way.as_ref().is_some_and(|way| self.roots.contains(&way.end)) {
                // No command could work there any more.
                is_all = false;
            } else {
                self.way(way);
            }
        }
        if !is_all {
            self.found.not_covered.push(format!(
                "what some links inside `{}` lead to: those beyond its first {} entries, beyond {MAX_LINKS} in all, and to a whole writable root",
                directory.display(),
                links::MAX_ENTRIES
            ));
        }
    }

    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        self.roots.iter().find(|root| path.starts_with(root)).cloned()
    }

    fn is_read_only(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.found.read_only.contains(above))
    }

    /// Pins the directories between: one that is renamed takes its mounts along, and leaves its
    /// name to another.
    fn pin_between(&mut self, path: &Path, root: &Path) {
        let above = path.ancestors().skip(1).take_while(|above| *above != root && above.starts_with(root));
        self.found.pinned.extend(above.map(Path::to_owned));
    }

    fn git_directory(&mut self, path: &Path, node: &ScanNode, root: &Path) {
        if path != root {
            self.pin_between(path, root);
            self.found.pinned.insert(path.to_owned());
        }
        let indexes = node.children.iter().filter(|child| is_index(&child.name));
        self.found.git_indexes.extend(indexes.map(|index| path.join(&index.name)));
        let sequencers = SEQUENCER_DIRECTORIES.iter().filter(|name| node.child(OsStr::new(name)).is_some());
        self.found.sequencers.extend(sequencers.map(|name| path.join(name)));
        for (name, _) in IN_GIT_DIRECTORY {
            let entry = Path::new(name).iter().try_fold(node, |node, name| node.child(name));
            // One without anything in it needs no mount.
            let is_used =
                |entry: &&ScanNode| *name == "hooks" || !entry.is_directory() || !entry.children.is_empty();
            if let Some(entry) = entry.filter(is_used) {
                self.protect(&path.join(name), entry.stat.kind, root);
            }
        }
        let alternates = Path::new(ALTERNATES);
        if alternates.iter().try_fold(node, |node, name| node.child(name)).is_some() {
            self.found.git_indexes.insert(path.join(alternates));
        }
        for name in ["config", "config.worktree"] {
            match node.child(OsStr::new(name)).map(|entry| entry.stat.kind) {
                Some(EntryKind::File) => {
                    self.found.git_configs.insert(path.join(name));
                    self.settings_lead(&path.join(name), SettingsSource::Repository);
                }
                Some(kind) => self.protect(&path.join(name), kind, root),
                None => {}
            }
        }
    }
}

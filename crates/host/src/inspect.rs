//! What is looked at when a command and all it started are gone: names that must not have appeared, links that must
//! still lead where they led, repositories that must not run what the command has written into them.
//!
//! Nothing is lost: what must not stay is renamed. Nothing is followed: what is renamed or rewritten is the thing
//! itself, inside the directories that commands may write.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use windlass_contract::{Denial, Effects, Layer, Proof};

use crate::{
    below::Below,
    git::{self, config},
    names::Names,
    protect::{FileId, INNER_LIMIT, Protection, Saved, file_id},
};

/// What is added to a name that must not stay.
const ASIDE: &str = "windlass-refused";

/// How deep repositories in repositories are followed.
const DEPTH: usize = 4;

/// How large a file, and how many in a directory, are compared with others.
const SAME_BYTES: u64 = 1024 * 1024;
const SAME_ENTRIES: usize = 64;

/// Puts right what is not as it must be, and tells of it.
pub(crate) fn inspect(protection: &Protection) -> Vec<Denial> {
    let mut inspection = Inspection { protection, denials: Vec::new() };
    for (path, before) in &protection.covered {
        inspection.uncovered(path, *before);
    }
    for (path, names) in &protection.listed {
        inspection.relist(path, names);
    }
    for saved in &protection.saved {
        inspection.restore(saved);
    }
    let names: Vec<_> = protection.roots.iter().map(|root| (root, Names::of(root))).collect();
    let is_lacking = |path: &Path| {
        names.iter().any(|(root, names)| path.strip_prefix(root).is_ok_and(|below| names.lack(below)))
    };
    for path in &protection.absent {
        if !is_lacking(path) && path.symlink_metadata().is_ok() && inspection.is_held(path) {
            inspection.move_aside(path, "this name is protected and did not exist before");
        }
    }
    for (path, target) in &protection.links {
        inspection.restore_link(path, target);
    }
    for path in &protection.open {
        inspection.new_repository(path);
    }
    for repository in &protection.repositories {
        inspection.linked(repository, DEPTH);
        for inner in git::inner(repository).take(INNER_LIMIT) {
            inspection.clean(&inner, DEPTH);
        }
    }
    for before in &protection.below {
        inspection.look_below(before);
    }
    inspection.denials
}

struct Inspection<'a> {
    protection: &'a Protection,
    denials: Vec<Denial>,
}

impl Inspection<'_> {
    fn tell(&mut self, path: &Path, rule: String) {
        self.denials.push(Denial {
            layer: Layer::Files,
            what: path.display().to_string(),
            rule,
            need: Effects::write(path),
            proof: Proof::Observed,
        });
    }

    /// Tells of a file that is another now. The command cannot have removed the one before, but where somebody else did, it may
    /// have made this one; and nothing kept it from it until it was covered again. It stays: `git checkout` outside removes and
    /// makes files in just this way.
    fn uncovered(&mut self, path: &Path, before: FileId) {
        if file_id(path).is_some_and(|now| now != before) {
            let rule = "another program replaced or removed it while the command ran, and for a moment at least the command could read and change it, or make it anew: look at what it says";
            self.tell(path, rule.to_owned());
        }
    }

    /// What has appeared in the directories below a root.
    fn look_below(&mut self, before: &Below) {
        let now = before.again();
        for top in &now.repositories {
            self.new_repository(&top.join(".git"));
        }
        for path in now.names.iter().filter(|path| !before.names.contains(path)) {
            if self.is_copy(path) {
                self.own(path, DEPTH);
            } else {
                self.move_aside(path, "this name is protected and did not exist before");
            }
        }
        if before.is_all && !now.is_all {
            let rule = "so much was made in it that not all was looked through: look before you use it";
            self.tell(&before.root, rule.to_owned());
        }
    }

    /// Whether it says the same as something of this name that was there before and cannot have changed: as in another
    /// worktree of a repository.
    fn is_copy(&self, path: &Path) -> bool {
        let mut known = self.protection.fixed.iter().filter(|known| known.file_name() == path.file_name());
        known.any(|known| is_same(known, path, DEPTH))
    }

    /// Gives a file, or those of a directory, to itself alone: what has another name could be changed by that later.
    fn own(&mut self, path: &Path, depth: usize) {
        let Ok(found) = path.symlink_metadata() else { return };
        if found.is_dir() && depth > 0 {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return entries.take(SAME_ENTRIES).for_each(|entry| self.own(&entry.path(), depth - 1));
        }
        if found.is_file() && found.nlink() > 1 {
            let copy = path.with_extension(format!("{ASIDE}-copy"));
            let copied = fs::copy(path, &copy).and_then(|_| fs::rename(&copy, path));
            let rule = "this file is protected and had another name, by which it could be changed";
            let done = copied.map_or_else(
                |error| format!("{rule}; it could NOT be separated ({error})"),
                |()| format!("{rule}; it is a copy now"),
            );
            self.tell(path, done);
        }
    }

    fn move_aside(&mut self, path: &Path, why: &str) {
        let rule = match move_aside(path) {
            Ok(aside) => format!("{why}; it was moved to `{}`", aside.display()),
            Err(error) => {
                format!("{why}; it could NOT be moved aside ({error}): look at it before you use it")
            }
        };
        self.tell(path, rule);
    }

    fn restore_link(&mut self, path: &Path, target: &Path) {
        if fs::read_link(path).is_ok_and(|now| now == target) {
            return;
        }
        if path.symlink_metadata().is_ok() {
            self.move_aside(path, "this link is protected and was replaced");
        }
        if let Err(error) = symlink(target, path) {
            self.tell(path, format!("this link is protected and could not be put back: {error}"));
        }
    }

    /// Takes out of a protected directory what was not in it before.
    fn relist(&mut self, path: &Path, names: &BTreeSet<OsString>) {
        if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return self.move_aside(path, "this directory is protected and was replaced");
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if !names.contains(&entry.file_name()) {
                self.move_aside(&entry.path(), "this directory is protected and did not hold it before");
            }
        }
    }

    /// Puts a file back that the rung could not protect.
    fn restore(&mut self, saved: &Saved) {
        let path = &saved.path;
        let found = path.symlink_metadata();
        let same =
            found.as_ref().is_ok_and(|found| found.is_file() && found.permissions() == saved.permissions);
        if same && fs::read(path).is_ok_and(|now| now == saved.bytes) {
            return;
        }
        if found.is_ok() {
            self.move_aside(path, "this file is protected and was changed");
        }
        let above = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = above.and_then(|()| fs::write(path, &saved.bytes));
        if let Err(error) = written.and_then(|()| fs::set_permissions(path, saved.permissions.clone())) {
            self.tell(path, format!("this file is protected and could not be put back: {error}"));
        }
    }

    /// Whether a path is, with all links followed, inside what commands may write.
    fn inside(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.protection.roots.iter().any(|root| real.starts_with(root)))
    }

    /// Whether a path is itself, whatever it leads to, in what commands may write. A link that a command has put on the way
    /// to it may lead to the user's own files.
    fn is_held(&self, path: &Path) -> bool {
        let trees = || self.protection.roots.iter().chain(&self.protection.also_writable);
        let around = path.parent().and_then(|above| above.canonicalize().ok());
        around.is_some_and(|real| trees().any(|tree| real.starts_with(tree)))
    }

    /// A `.git` that may have been made by the command.
    fn new_repository(&mut self, dot_git: &Path) {
        if let Some(directory) = git::directory(dot_git) {
            self.clean(&directory, DEPTH);
        }
        let Some(top) = dot_git.parent().filter(|top| git::is_bare(top)) else { return };
        if !self.protection.roots.iter().any(|root| root == top) {
            self.clean(top, DEPTH);
        } else if !self.protection.repositories.contains(top) {
            self.move_aside(&top.join("HEAD"), "with it this directory would count as a git repository");
        }
    }

    /// Makes a repository that was not there before harmless. Those that were are protected already.
    fn clean(&mut self, directory: &Path, depth: usize) {
        if self.protection.repositories.contains(directory) || !self.inside(directory) || depth == 0 {
            return;
        }
        self.clean_hooks(&directory.join("hooks"));
        for name in ["config", "config.worktree"] {
            self.clean_config(&directory.join(name));
        }
        let linked = git::common(directory).is_some();
        if directory.join("commondir").symlink_metadata().is_ok() && !linked {
            self.move_aside(&directory.join("commondir"), "it would send git elsewhere for its settings");
        }
        if let Some(common) = git::common(directory) {
            self.clean(&common, depth - 1);
        }
        for inner in git::inner(directory).take(INNER_LIMIT) {
            self.clean(&inner, depth - 1);
        }
        self.linked(directory, depth - 1);
    }

    /// Repositories that an index names: git looks into them by itself.
    fn linked(&mut self, directory: &Path, depth: usize) {
        let Some(top) = directory.parent() else { return };
        for link in git::gitlinks(directory) {
            if let Some(inner) = git::directory(&top.join(link).join(".git")) {
                self.clean(&inner, depth);
            }
        }
    }

    fn clean_hooks(&mut self, hooks: &Path) {
        let Ok(found) = hooks.symlink_metadata() else { return };
        if !found.is_dir() {
            return self.move_aside(hooks, "git would run the programs it leads to");
        }
        let moved = format!(".{ASIDE}");
        for entry in fs::read_dir(hooks).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.ends_with(".sample") && !name.contains(&moved) {
                self.move_aside(&entry.path(), "git would run it");
            }
        }
    }

    fn clean_config(&mut self, path: &Path) {
        let Ok(found) = path.symlink_metadata() else { return };
        let text = if found.is_file() { fs::read(path).ok() } else { None };
        let Some(cleaned) = text.as_deref().map(config::harmless) else {
            return self.move_aside(path, "git's settings must be a file of their own");
        };
        if Some(&cleaned) == text.as_ref() {
            return self.own(path, 0);
        }
        self.move_aside(path, "it holds settings by which git may run programs; the others were kept");
        if let Err(error) = fs::write(path, cleaned) {
            self.tell(path, format!("the harmless settings could not be kept: {error}"));
        }
    }
}

/// Whether two files, or two directories with all that is in them, are the same. Large ones count as different.
fn is_same(one: &Path, other: &Path, depth: usize) -> bool {
    let (Ok(first), Ok(second)) = (one.symlink_metadata(), other.symlink_metadata()) else { return false };
    if first.is_file() && second.is_file() {
        let small = first.len() == second.len() && first.len() <= SAME_BYTES;
        return small
            && fs::read(one).ok().is_some_and(|bytes| fs::read(other).is_ok_and(|too| too == bytes));
    }
    if !first.is_dir() || !second.is_dir() || depth == 0 {
        return false;
    }
    let names = |directory: &Path| -> io::Result<BTreeSet<OsString>> {
        fs::read_dir(directory)?.take(SAME_ENTRIES).map(|entry| Ok(entry?.file_name())).collect()
    };
    let (Ok(names), Ok(others)) = (names(one), names(other)) else { return false };
    names.len() < SAME_ENTRIES
        && names == others
        && names.iter().all(|name| is_same(&one.join(name), &other.join(name), depth - 1))
}

/// Renames something, whatever it is, to a name that is free.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 0..1000 {
        let suffix = if number == 0 { ASIDE.to_owned() } else { format!("{ASIDE}-{number}") };
        let aside = path.with_file_name(format!("{name}.{suffix}"));
        if aside.symlink_metadata().is_err() {
            return fs::rename(path, &aside).map(|()| aside);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

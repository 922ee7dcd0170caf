//! How git lays out its files, as far as it matters who may change them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::seen::Seen;

pub(crate) mod config;

/// How much of a small file is read.
const SMALL_FILE_BYTES: u64 = 64 * 1024;

/// The largest index that is read. One entry takes about 100 bytes.
const INDEX_BYTES: u64 = 256 * 1024 * 1024;

/// The git directory a `.git` leads to: itself, or what the file or link that it is names.
pub(crate) fn directory(dot_git: &Path) -> Option<PathBuf> {
    let found = fs::metadata(dot_git).ok()?;
    if found.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let text = small(dot_git)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    dot_git.parent()?.join(target).canonicalize().ok()
}

/// The directory a linked worktree shares with the others.
pub(crate) fn common(directory: &Path) -> Option<PathBuf> {
    let text = small(&directory.join("commondir"))?;
    directory.join(text.trim()).canonicalize().ok()
}

/// Whether a git directory elsewhere says itself that this worktree is its own. Whoever can write here can point
/// anywhere; only git, or the user, can make the other end point back.
pub(crate) fn belongs(directory: &Path, dot_git: &Path) -> bool {
    let back = small(&directory.join("gitdir")).map(|text| PathBuf::from(text.trim()));
    back.and_then(|back| back.canonicalize().ok())
        .is_some_and(|back| dot_git.canonicalize().is_ok_and(|own| own == back))
}

/// Whether a directory is itself what a `.git` usually is: of its own, or with the rest elsewhere.
pub(crate) fn is_bare(directory: &Path) -> bool {
    let is = |name: &str| directory.join(name).symlink_metadata().is_ok();
    is("HEAD") && (is("objects") && is("refs") || is("commondir"))
}

/// How many directories are looked into for those of submodules.
const LOOKED_INTO: usize = 1024;

/// What every git directory holds. Its submodules are not in there, unless somebody wants them not to be seen.
const OWN: [&str; 7] = ["objects", "refs", "logs", "hooks", "info", "branches", "lfs"];

/// The git directories inside another: of linked worktrees, and of submodules, whose names may be paths and which may have
/// submodules themselves.
pub(crate) fn inner(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<_> = entries(&directory.join("worktrees")).collect();
    let mut queue = vec![directory.join("modules")];
    let mut looked_into = 0;
    while let Some(directory) = queue.pop().filter(|_| looked_into < LOOKED_INTO) {
        looked_into += 1;
        let is_repository = is_bare(&directory);
        for entry in entries(&directory).filter(|entry| entry.is_dir() && !entry.is_symlink()) {
            let is_own = is_repository && OWN.iter().any(|name| entry.ends_with(name));
            if !is_own || is_bare(&entry) {
                queue.push(entry);
            }
        }
        if is_repository {
            found.push(directory);
        }
    }
    found.into_iter()
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// How many files of settings are read for one repository: an included one may include others.
const SETTINGS: usize = 16;

/// Where the settings of a repository lead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// Its hooks, if they are not in the git directory.
    pub(crate) hooks: Option<PathBuf>,
    /// Files with more settings, in the order they are found. They need not be there.
    pub(crate) included: Vec<PathBuf>,
}

pub(crate) fn elsewhere(directory: &Path) -> Elsewhere {
    static SEEN: Seen<config::Leads> = Seen::new();
    let mut files = vec![directory.join("config"), directory.join("config.worktree")];
    let own = files.len();
    let mut hooks = None;
    let mut read = 0;
    while let Some(file) = files.get(read).filter(|_| read < SETTINGS).cloned() {
        read += 1;
        let leads = SEEN.or(&file, || small(&file).map(|text| config::leads(&text)).unwrap_or_default());
        hooks = leads.hooks.or(hooks);
        // What is in a home directory, or beside git itself, is no command's to write.
        let near = leads.included.iter().filter(|path| !path.starts_with(['~', '%']));
        let near = near.filter_map(|path| Some(file.parent()?.join(path)));
        let new: Vec<_> = near.filter(|path| !files.contains(path)).collect();
        files.extend(new);
    }
    // A linked worktree is not beside its git directory.
    let top = directory.parent().filter(|_| hooks.is_some() && common(directory).is_none());
    let hooks = top.zip(hooks).map(|(top, place)| top.join(place));
    // The hooks that husky makes call those of the same names beside them.
    let hooks = hooks.map(|place| match place.parent() {
        Some(around) if place.ends_with("_") => around.to_owned(),
        _ => place,
    });
    files.truncate(own + SETTINGS);
    Elsewhere { hooks, included: files.split_off(own) }
}

/// Where the index says that other repositories are checked out. Git looks into them by itself.
pub(crate) fn gitlinks(directory: &Path) -> Vec<PathBuf> {
    static SEEN: Seen<Vec<PathBuf>> = Seen::new();
    let path = directory.join("index");
    SEEN.or(&path, || {
        let small_enough = fs::metadata(&path).is_ok_and(|found| found.len() <= INDEX_BYTES);
        let bytes = if small_enough { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        parse_gitlinks(&bytes).unwrap_or_default()
    })
}

/// Reads an index of version 2, 3 or 4 up to its last entry; of a broken one, nothing.
fn parse_gitlinks(index: &[u8]) -> Option<Vec<PathBuf>> {
    /// The mode of an entry that is a repository.
    const GITLINK: u32 = 0o160_000;
    let word = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (word(4)?, word(8)?);
    let mut found = Vec::new();
    let mut name: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let begin = at;
        let mode = word(begin + 24)?;
        let flags = u16::from_be_bytes(index.get(begin + 60..begin + 62)?.try_into().ok()?);
        at = begin + if flags & 0x4000 != 0 { 64 } else { 62 };
        if version == 4 {
            let (dropped, length) = varint(index.get(at..)?)?;
            at += length;
            name.truncate(name.len().checked_sub(dropped)?);
        } else {
            name.clear();
        }
        let rest = index.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..end]);
        at = if version == 4 { at + end + 1 } else { begin + ((at + end - begin) / 8 + 1) * 8 };
        if mode == GITLINK {
            found.push(PathBuf::from(String::from_utf8(name.clone()).ok()?));
        }
    }
    Some(found)
}

/// A number in git's variable length, and how many bytes it took.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (index, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
        value += 1;
    }
    None
}

/// The text of a file that is a line or two.
fn small(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= SMALL_FILE_BYTES).then(|| fs::read_to_string(path).ok())?
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn submodules_are_found_however_they_are_called() {
        let place = tempfile::tempdir().unwrap();
        let names = ["modules/a", "modules/b/c", "modules/a/modules/d", "modules/a/e", "modules/a/hooks"];
        for name in names.map(|name| place.path().join(name)) {
            for part in ["objects", "refs"] {
                fs::create_dir_all(name.join(part)).unwrap();
            }
            fs::write(name.join("HEAD"), "").unwrap();
        }
        fs::create_dir_all(place.path().join("worktrees/w")).unwrap();
        let found: BTreeSet<_> = inner(place.path()).collect();
        let expected = names.iter().chain(&["worktrees/w"]).map(|name| place.path().join(name));
        assert_eq!(found, expected.collect());
    }

    #[test]
    fn hooks_are_where_the_settings_say() {
        let place = tempfile::tempdir().unwrap();
        git(place.path(), &["init", "-q", "."]);
        let directory = place.path().join(".git");
        assert_eq!(elsewhere(&directory), Elsewhere { hooks: None, included: Vec::new() });
        for (value, expected) in [("hk", "hk"), (".husky/_", ".husky"), ("a b/c", "a b/c")] {
            git(place.path(), &["config", "core.hooksPath", value]);
            assert_eq!(elsewhere(&directory).hooks, Some(place.path().join(expected)));
        }
    }

    #[test]
    fn settings_that_are_included_may_include_others_and_name_hooks() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join(".git");
        fs::create_dir(&directory).unwrap();
        let files = [
            (".git/config", "[include]\npath = ../a\npath = ~/own\n[core]\nhooksPath = old\n"),
            ("a", "[includeIf \"onbranch:x\"]\npath = a\npath = b\n"),
            ("b", "[core]\nhooksPath = hk\n"),
        ];
        for (name, text) in files {
            fs::write(place.path().join(name), text).unwrap();
        }
        let included = ["../a", "../b"].map(|name| directory.join(name));
        let found = elsewhere(&directory);
        assert_eq!(found.hooks, Some(place.path().join("hk")));
        assert!(included.iter().all(|path| found.included.contains(path)), "{found:?}");
        let endless: String = (0..1000).map(|number| format!("path = x{number}\n")).collect();
        fs::write(place.path().join("b"), format!("[include]\n{endless}")).unwrap();
        assert_eq!(elsewhere(&directory).included.len(), SETTINGS);
    }

    fn git(directory: &Path, arguments: &[&str]) {
        let mut git = std::process::Command::new("git");
        let identity = ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"];
        git.envs(identity.map(|name| (format!("GIT_{name}"), "t"))).env("HOME", directory);
        assert!(
            git.args(arguments).current_dir(directory).output().unwrap().status.success(),
            "{arguments:?}"
        );
    }

    #[test]
    fn repositories_in_an_index_are_found_in_every_version_of_it() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        git(top, &["init", "-q", "."]);
        git(top, &["init", "-q", "deep/er/sub"]);
        git(&top.join("deep/er/sub"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        fs::write(top.join("deep/er/file"), "x").unwrap();
        fs::write(top.join("zebra"), "x").unwrap();
        git(top, &["add", "-A"]);
        for version in ["2", "3", "4"] {
            git(top, &["update-index", "--index-version", version]);
            assert_eq!(gitlinks(&top.join(".git")), [Path::new("deep/er/sub")], "version {version}");
        }
    }

    #[test]
    fn a_worktree_belongs_to_a_repository_only_if_both_say_so() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        git(&top, &["init", "-q", "main"]);
        git(&top.join("main"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&top.join("main"), &["worktree", "add", "-q", "../linked"]);
        let directory = directory(&top.join("linked/.git")).unwrap();
        assert_eq!(directory, top.join("main/.git/worktrees/linked"));
        assert_eq!(common(&directory), Some(top.join("main/.git")));
        assert!(belongs(&directory, &top.join("linked/.git")));
        fs::create_dir(top.join("liar")).unwrap();
        fs::copy(top.join("linked/.git"), top.join("liar/.git")).unwrap();
        assert!(!belongs(&directory, &top.join("liar/.git")));
    }

    proptest! {
        #[test]
        fn no_index_however_broken_is_fatal(mut bytes in prop::collection::vec(any::<u8>(), 0..200), version in 2_u8..5) {
            drop(parse_gitlinks(&bytes));
            let head = [b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, 9];
            bytes.splice(0..0, head);
            drop(parse_gitlinks(&bytes));
        }
    }
}

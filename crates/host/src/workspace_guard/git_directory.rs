//! Git directories, known by their layout: wherever git would take one for a repository, it is
//! treated as one.

use std::{ffi::OsStr, path::Path};

use windlass_files::{DirHandle, ScanNode};

/// The commands of a rebase's list of steps that run nothing.
const HARMLESS_STEPS: &[&str] = &[
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "break",
    "b",
    "noop",
    "update-ref",
    "u",
];

/// The merge strategies that git has itself; for any other it runs a program of that name.
const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// The largest file of an unfinished rebase that is read.
const MAX_STATE_BYTES: u64 = 1024 * 1024;

/// The directories of an unfinished rebase, cherry-pick or revert.
pub(super) const SEQUENCER_DIRECTORIES: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Directories with a file for each remote, as git kept them before there were settings for it.
pub(super) const REMOTE_DIRECTORIES: [&str; 2] = ["remotes", "branches"];

/// The list of other directories of objects that a git directory uses.
pub(super) const ALTERNATES: &str = "objects/info/alternates";

/// Tells whether git would take a scanned directory for a git directory.
pub(super) fn is_git_directory(node: &ScanNode) -> bool {
    let has = |name: &str| node.child(OsStr::new(name)).is_some() || has_ignoring_case(node, name);
    is_git_layout(has)
}

/// The same for an open directory.
pub(super) fn is_open_git_directory(directory: &DirHandle) -> bool {
    is_git_layout(|name| directory.stat_entry(OsStr::new(name)).is_ok())
}

fn is_git_layout(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// File systems may ignore case. Large directories are no git directories.
fn has_ignoring_case(node: &ScanNode, name: &str) -> bool {
    const MAX_ENTRIES: usize = 64;
    node.children.len() <= MAX_ENTRIES
        && node.children.iter().any(|child| child.name.eq_ignore_ascii_case(name))
}

/// Tells whether a path below a git directory is where git keeps the git directories of linked
/// worktrees or submodules.
pub(super) fn is_inner_git_directory(path: &Path) -> bool {
    let mut names = path.iter();
    match names.next().and_then(OsStr::to_str) {
        Some("worktrees") => names.count() == 1,
        Some("modules") => names.count() >= 1,
        _ => false,
    }
}

/// Returns why an unfinished rebase, cherry-pick or revert would run a program when it is
/// continued.
pub(super) fn sequencer_problem(directory: &DirHandle) -> Option<&'static str> {
    let read = |name: &str| match directory.read_file(OsStr::new(name), MAX_STATE_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Vec::new()),
        read => read.ok(),
    };
    let unreadable = "git would read it, and it is no small regular file";
    let Some(todo) = read("git-rebase-todo") else { return Some(unreadable) };
    if !is_harmless_todo(&todo) {
        return Some("its list of steps runs a program when the rebase is continued");
    }
    let Some(strategy) = read("strategy") else { return Some(unreadable) };
    if !is_harmless_strategy(&strategy) {
        return Some("it names a merge strategy that is a program");
    }
    let Some(options) = read("opts") else { return Some(unreadable) };
    let names_strategy = options.to_ascii_lowercase().windows(8).any(|part| part == b"strategy");
    names_strategy.then_some("it names a merge strategy, which may be a program")
}

/// Tells whether a list of steps (`git-rebase-todo`) runs no program.
pub(crate) fn is_harmless_todo(todo: &[u8]) -> bool {
    todo.split(|byte| *byte == b'\n').all(is_harmless_step)
}

/// Tells whether a file `strategy` names nothing, or a merge strategy of git's own.
pub(crate) fn is_harmless_strategy(strategy: &[u8]) -> bool {
    let is_known = |name: &&str| name.as_bytes() == strategy.trim_ascii();
    strategy.is_empty() || STRATEGIES.iter().any(is_known)
}

fn is_harmless_step(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    line.is_empty() || line.starts_with(b"#") || HARMLESS_STEPS.iter().any(|step| step.as_bytes() == word)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_rebase_that_runs_a_program_is_told_from_one_that_does_not() {
        for (file, content, is_harmless) in [
            ("git-rebase-todo", "pick 123 text\n# comment\n\nfixup -C 4 x\n", true),
            ("git-rebase-todo", "pick 123\n \texec evil\n", false),
            ("git-rebase-todo", "x evil\n", false),
            ("git-rebase-todo", "pick 1\r\nx evil\r\n", false),
            ("strategy", "ort\n", true),
            ("strategy", "x/../evil\n", false),
            ("opts", "[options]\n\tno-commit = true\n", true),
            ("opts", "[options]\n\tStrategy = evil\n", false),
        ] {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join(file), content).unwrap();
            let handle = DirHandle::open(&place.path().canonicalize().unwrap()).unwrap();
            assert_eq!(sequencer_problem(&handle).is_none(), is_harmless, "{file}: {content}");
        }
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", place.path().join("git-rebase-todo")).unwrap();
        let handle = DirHandle::open(&place.path().canonicalize().unwrap()).unwrap();
        assert!(sequencer_problem(&handle).is_some());
    }

    #[test]
    fn worktrees_and_submodules_have_their_places() {
        for (path, expected) in [
            ("worktrees/a", true),
            ("worktrees/a/b", false),
            ("modules/a/b", true),
            ("modules", false),
            ("ev", false),
        ] {
            assert_eq!(is_inner_git_directory(Path::new(path)), expected, "{path}");
        }
    }
}

//! Paths as a command names them, without looking at any file.

use std::{borrow::Cow, path::Path};

/// The directories that a command may run in: the starting one, and all that a `cd` before it may
/// have entered.
#[derive(Debug, Clone)]
pub(crate) struct WorkingDirectories {
    /// `""` is an unknown directory.
    directories: Vec<String>,
    /// `""` if there is none.
    workspace: String,
}

/// Maximum number of directories. A command written by hand has fewer.
const MAX_PLACES: usize = 16;

impl WorkingDirectories {
    pub(crate) fn starting(cwd: Option<&Path>) -> Self {
        Self { directories: vec![cwd.map(settled).unwrap_or_default()], workspace: String::new() }
    }

    pub(crate) fn with_workspace(self, workspace: &Path) -> Self {
        Self { workspace: settled(workspace), ..self }
    }

    /// Returns the directory that the user works in, wherever the command runs.
    pub(crate) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Follows a `cd`, which may or may not have succeeded. Returns false if there are too many
    /// directories to keep.
    pub(crate) fn enter(&mut self, directory: &str) -> bool {
        // `cd .` and `cd` to a directory that is already listed add nothing.
        let further: Vec<_> = self
            .resolve(directory)
            .map(Cow::into_owned)
            .filter(|place| !self.directories.contains(place))
            .collect();
        let fits = self.directories.len() + further.len() <= MAX_PLACES;
        if fits {
            self.directories.extend(further);
        }
        fits
    }

    /// Returns true if there was a `cd`.
    pub(crate) fn have_changed(&self) -> bool {
        self.directories.len() > 1
    }

    /// Returns the paths that a path may stand for: absolute, below `~`, or below an unknown
    /// directory.
    pub(crate) fn resolve<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        self.directories.iter().map(move |directory| normalize_lexically(directory, path))
    }
}

fn settled(path: &Path) -> String {
    normalize_lexically("", &path.to_string_lossy()).into_owned()
}

/// Joins two paths and resolves `.` and `..` lexically.
fn normalize_lexically<'a>(base: &str, path: &'a str) -> Cow<'a, str> {
    // The fast path for most words.
    if (base.is_empty() || path.starts_with('/')) && !path.starts_with('$') && is_settled(path) {
        return path.into();
    }
    let (home, path) = match path.strip_prefix("$HOME") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => ("~", rest),
        _ => ("", path),
    };
    let own_start = !home.is_empty() || path.starts_with('/') || path == "~" || path.starts_with("~/");
    let base = if own_start { home } else { base };
    let rooted = if base.is_empty() { path.starts_with('/') } else { base.starts_with('/') };
    let mut out = String::with_capacity(base.len() + path.len() + 1);
    for part in base.split('/').chain(path.split('/')).filter(|part| !matches!(*part, "" | ".")) {
        if part == ".."
            && let Some(parent) = parent(&out, rooted)
        {
            out.truncate(parent);
            continue;
        }
        if rooted || !out.is_empty() {
            out.push('/');
        }
        out.push_str(part);
    }
    if out.is_empty() && rooted { "/".into() } else { out.into() }
}

/// Returns true if a path has no `.` or `..` to resolve.
fn is_settled(path: &str) -> bool {
    let names = path.strip_prefix('/').unwrap_or(path);
    names.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Returns the length of the parent directory of a path, if the text determines it.
fn parent(path: &str, rooted: bool) -> Option<usize> {
    let parent = path.rfind('/').unwrap_or(0);
    let last = path.get(parent..).unwrap_or_default().trim_start_matches('/');
    let stays = matches!(last, ".." | "~") || (last.is_empty() && !rooted);
    (!stays).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(places: &WorkingDirectories, path: &str) -> Vec<String> {
        places.resolve(path).map(Cow::into_owned).collect()
    }

    #[test]
    fn a_path_is_settled_by_its_text() {
        let somewhere = WorkingDirectories::starting(None);
        let there = WorkingDirectories::starting(Some(Path::new("/home/u/p")));
        assert_eq!(resolved(&somewhere, "./a//b/../c"), ["a/c"]);
        assert_eq!(resolved(&somewhere, "../x"), ["../x"]);
        assert_eq!(resolved(&somewhere, "~/x/../.."), ["~/.."]);
        assert_eq!(resolved(&somewhere, "$HOME/.ssh"), ["~/.ssh"]);
        assert_eq!(resolved(&there, "../.ssh/id"), ["/home/u/.ssh/id"]);
        assert_eq!(resolved(&there, "/../etc/./shadow"), ["/etc/shadow"]);
        assert_eq!(resolved(&there, "."), ["/home/u/p"]);
    }

    #[test]
    fn after_a_cd_both_directories_are_possible() {
        let mut places = WorkingDirectories::starting(None);
        assert!(!places.have_changed());
        assert!(places.enter("~/.ssh"));
        assert!(places.have_changed());
        assert_eq!(resolved(&places, "id"), ["id", "~/.ssh/id"]);
    }
}

//! Paths as a command names them, without looking at any file.

use std::{borrow::Cow, path::Path};

/// Where a command may be when it is run: where it starts, and wherever a `cd` before it may have gone.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// `""` is a directory nobody named.
    directories: Vec<String>,
    /// `""` if there is none.
    workspace: String,
}

/// More than anyone changes directories in one command.
const MAX_PLACES: usize = 16;

impl Places {
    pub(crate) fn starting(cwd: Option<&Path>) -> Self {
        Self { directories: vec![cwd.map(settled).unwrap_or_default()], workspace: String::new() }
    }

    pub(crate) fn with_workspace(self, workspace: &Path) -> Self {
        Self { workspace: settled(workspace), ..self }
    }

    /// Where the user works, wherever the command is.
    pub(crate) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// After a `cd`, which may or may not have worked. Says whether all the places could be kept.
    pub(crate) fn enter(&mut self, directory: &str) -> bool {
        // `cd .` and `cd` to where one already is lead nowhere else.
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

    /// Whether there was a `cd`.
    pub(crate) fn have_changed(&self) -> bool {
        self.directories.len() > 1
    }

    /// What a path may mean: absolute, below `~`, or below a directory nobody named.
    pub(crate) fn resolve<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        self.directories.iter().map(move |directory| normal(directory, path))
    }
}

fn settled(path: &Path) -> String {
    normal("", &path.to_string_lossy()).into_owned()
}

/// Joins two paths and settles `.` and `..` by their text.
fn normal<'a>(base: &str, path: &'a str) -> Cow<'a, str> {
    // What most words of a command are.
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

/// Whether a path has nothing to settle.
fn is_settled(path: &str) -> bool {
    let names = path.strip_prefix('/').unwrap_or(path);
    names.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// How much of a path is the directory above it, if its text tells.
fn parent(path: &str, rooted: bool) -> Option<usize> {
    let parent = path.rfind('/').unwrap_or(0);
    let last = path.get(parent..).unwrap_or_default().trim_start_matches('/');
    let stays = matches!(last, ".." | "~") || (last.is_empty() && !rooted);
    (!stays).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(places: &Places, path: &str) -> Vec<String> {
        places.resolve(path).map(Cow::into_owned).collect()
    }

    #[test]
    fn a_path_is_settled_by_its_text() {
        let somewhere = Places::starting(None);
        let there = Places::starting(Some(Path::new("/home/u/p")));
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
        let mut places = Places::starting(None);
        assert!(!places.have_changed());
        assert!(places.enter("~/.ssh"));
        assert!(places.have_changed());
        assert_eq!(resolved(&places, "id"), ["id", "~/.ssh/id"]);
    }
}

//! Paths as a command names them, without looking at any file.

use std::path::Path;

/// Where a command may be when it is run: where it starts, and wherever a `cd` before it may have gone.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// `""` is a directory nobody named.
    directories: Vec<String>,
}

/// More than anyone changes directories in one command.
const MAX_PLACES: usize = 16;

impl Places {
    pub(crate) fn starting(cwd: Option<&Path>) -> Self {
        let cwd = cwd.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        Self { directories: vec![normal("", &cwd)] }
    }

    /// After a `cd`, which may or may not have worked. Says whether all the places could be kept.
    pub(crate) fn enter(&mut self, directory: &str) -> bool {
        let further: Vec<_> = self.resolve(directory).collect();
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
    pub(crate) fn resolve<'a>(&'a self, path: &'a str) -> impl Iterator<Item = String> + 'a {
        self.directories.iter().map(move |directory| normal(directory, path))
    }
}

/// Joins two paths and settles `.` and `..` by their text.
fn normal(base: &str, path: &str) -> String {
    let path = path.strip_prefix("$HOME").map_or_else(|| path.to_owned(), |rest| format!("~{rest}"));
    let own_start = path.starts_with('/') || path == "~" || path.starts_with("~/");
    let base = if own_start { "" } else { base };
    let rooted = base.starts_with('/') || (base.is_empty() && path.starts_with('/'));
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&(".." | "~")) => parts.push(part),
                Some(_) => drop(parts.pop()),
                None if rooted => {}
                None => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    format!("{}{}", if rooted { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(places: &Places, path: &str) -> Vec<String> {
        places.resolve(path).collect()
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

//! Paths as a person reads them: relative inside the working directory, and with `~` for the home
//! directory.
//!
//! Only for display. Texts for models, `--json` and session files have paths that are valid in any
//! directory.

use std::path::{Path, PathBuf};

use crate::screen::{path_text, visible};

/// The directories that paths are shown relative to.
pub(crate) struct PathDisplay {
    cwd: PathBuf,
    home: Option<PathBuf>,
}

impl PathDisplay {
    /// Creates a display for a user of this directory.
    pub(crate) fn seen_from(cwd: &Path) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
        // In the root everything is inside, and relative paths would not be shorter.
        Self { cwd: cwd.to_owned(), home }
    }

    /// Formats a path. Relative ones stay as they are.
    pub(crate) fn show(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.cwd).ok().filter(|rest| !rest.as_os_str().is_empty());
        match inside {
            Some(rest) if self.cwd.parent().is_some() => {
                let rest = path_text(rest);
                let dot = if rest.starts_with(['~', '-']) { "./" } else { "" };
                visible(&format!("{dot}{rest}"))
            }
            _ => self.show_whole(path),
        }
    }

    /// Formats a directory that others are relative to, with its full name.
    pub(crate) fn show_whole(&self, path: &Path) -> String {
        let inside = self.home.as_deref().and_then(|home| path.strip_prefix(home).ok());
        visible(&match inside {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", path_text(rest)),
            None => path_text(path),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen_from(cwd: &str) -> PathDisplay {
        PathDisplay { cwd: cwd.into(), home: Some("/home/bob".into()) }
    }

    #[test]
    fn the_home_directory_is_short_and_nothing_else_looks_like_it() {
        let paths = seen_from("/w");
        let shown = ["/home/bob", "/home/bob/a b", "/home/bobby/x", "/x/~/x", "~/x"]
            .map(|path| paths.show(Path::new(path)));
        assert_eq!(shown, ["~", "~/a b", "/home/bobby/x", "/x/~/x", "~/x"]);
    }

    #[test]
    fn what_is_inside_the_working_directory_is_known_by_its_name_there() {
        let paths = seen_from("/home/bob/p");
        let shown =
            ["/home/bob/p/src/a.rs", "/home/bob/p2/a", "/home/bob/p", "/home/bob/p/~", "/home/bob/p/-x"]
                .map(|path| paths.show(Path::new(path)));
        assert_eq!(shown, ["src/a.rs", "~/p2/a", "~/p", "./~", "./-x"]);
        assert_eq!(seen_from("/").show(Path::new("/etc/x")), "/etc/x");
    }
}

//! Places that are never offered for writing because a program printed their names. A process that
//! can write there can replace programs of the machine.

use std::path::{Path, PathBuf};

/// Directories of the system, by the Filesystem Hierarchy Standard and by macOS.
const SYSTEM: [&str; 20] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    "/Applications",
    "/Library",
    "/System",
    "/private/etc",
    "/private/var",
];

/// Directories in those that are there to be written by everyone, and the users' own caches on
/// macOS.
const SHARED: [&str; 4] = ["/var/tmp", "/private/var/tmp", "/var/folders", "/private/var/folders"];

/// Directories that hold data of people and sites. What is in them may be offered, not all of it at
/// once.
const COLLECTIONS: [&str; 6] = ["/home", "/media", "/mnt", "/srv", "/Users", "/Volumes"];

/// Directories whose entries are home directories.
const HOMES: [&str; 2] = ["/home", "/Users"];

/// Directories that need protection from such offers. All paths are without links.
pub(super) struct SystemPlaces<'a> {
    /// The working directory of the session. The mode for writing grants it, wherever it is.
    pub(super) workspace: &'a Path,
    /// The home directories of the user.
    pub(super) homes: &'a [PathBuf],
    /// The directories in which programs are searched.
    pub(super) search_path: &'a [PathBuf],
}

impl SystemPlaces<'_> {
    /// Returns whether a directory must not be offered: it is of the system, a home directory, or
    /// programs are started from it or from below it.
    pub(super) fn forbid_offer(&self, directory: &Path) -> bool {
        !self.is_in_workspace(directory) && (self.is_of_system(directory) || self.has_programs(directory))
    }

    /// Returns whether no option should be named that allows a directory: it is of the system, or
    /// programs are started from it.
    pub(super) fn forbid_remedy(&self, directory: &Path) -> bool {
        let has_programs = || self.program_directories().any(|place| place == directory);
        !self.is_in_workspace(directory) && (self.is_of_system(directory) || has_programs())
    }

    fn is_in_workspace(&self, directory: &Path) -> bool {
        self.workspace.parent().is_some() && directory.starts_with(self.workspace)
    }

    fn is_of_system(&self, directory: &Path) -> bool {
        let is_below = |places: &[&str]| places.iter().any(|place| directory.starts_with(place));
        let is_in_home = self.homes.iter().any(|home| directory.starts_with(home) && directory != home);
        let is_home = directory.parent().is_some_and(|parent| HOMES.iter().any(|homes| parent == *homes));
        let is_collection = COLLECTIONS.iter().any(|collection| directory == *collection);
        is_home || is_collection || is_below(&SYSTEM) && !is_below(&SHARED) && !is_in_home
    }

    fn has_programs(&self, directory: &Path) -> bool {
        self.program_directories().any(|place| place.starts_with(directory) || directory.starts_with(&place))
    }

    /// Returns the directories in which programs are searched, and the one of this program.
    fn program_directories(&self) -> impl Iterator<Item = PathBuf> {
        let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
        self.search_path.iter().cloned().chain(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses(directory: &str) -> bool {
        let homes = ["/root".into(), "/var/lib/ci".into()];
        let search_path = ["/usr/bin".into(), "/root/.local/bin".into(), "/data/tools/bin".into()];
        let places =
            SystemPlaces { workspace: "/opt/app".as_ref(), homes: &homes, search_path: &search_path };
        places.forbid_offer(directory.as_ref())
    }

    #[test]
    fn places_of_the_system_and_of_programs_are_not_offered() {
        for directory in [
            "/usr",
            "/usr/bin",
            "/usr/share/x",
            "/etc/cron.d",
            "/boot",
            "/lib64",
            "/opt",
            "/opt/other",
            "/run/user/0",
            "/var",
            "/var/lib/docker",
            "/var/spool/cron",
            "/var/lib/ci",
            "/home",
            "/home/u",
            "/mnt",
            "/srv",
            "/root/.local",
            "/root/.local/bin/x",
            "/data/tools",
            "/data/tools/bin",
        ] {
            assert!(refuses(directory), "{directory}");
        }
        let own = std::env::current_exe().unwrap();
        assert!(refuses(own.parent().unwrap().to_str().unwrap()));
    }

    #[test]
    fn the_workspace_caches_and_places_of_people_are_offered() {
        for directory in [
            "/opt/app",
            "/opt/app/build",
            "/root/.cache/tool",
            "/var/lib/ci/.cache",
            "/var/tmp/x",
            "/home/u/project",
            "/srv/data",
            "/mnt/disk",
            "/library",
        ] {
            assert!(!refuses(directory), "{directory}");
        }
        let root = SystemPlaces { workspace: "/".as_ref(), homes: &[], search_path: &[] };
        assert!(root.forbid_offer("/etc".as_ref()), "everything is below `/`");
    }
}

//! Finds the file that the name of a program stands for, by the environment that commands get.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use windlass_contract::program::{ProgramFile, ProgramFinder, ProgramSearch};

use crate::Machine;

/// As many links as the kernel follows (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

impl ProgramFinder for Machine {
    fn find_program(&self, name: &str, cwd: &Path) -> ProgramSearch {
        find_program(name, self.environment(), cwd)
    }
}

/// Looks a program up as a command with this environment that starts in this directory would.
pub fn find_program(name: &str, environment: &BTreeMap<String, String>, cwd: &Path) -> ProgramSearch {
    // A file or a function in the environment may give bash another meaning for any name.
    let function = format!("BASH_FUNC_{name}");
    if name.is_empty()
        || environment.contains_key("BASH_ENV")
        || environment.keys().any(|variable| variable.starts_with(&function))
    {
        return ProgramSearch::Unknown;
    }
    if name.contains('/') {
        let path = cwd.join(name);
        return match executable(&path) {
            Some(file) => ProgramSearch::Found(file),
            // The kernel's error for a file that may not be executed is more precise.
            None if path.symlink_metadata().is_ok() => ProgramSearch::Unknown,
            None => ProgramSearch::Missing,
        };
    }
    // Without the variable every shell has directories of its own.
    let Some(search_path) = environment.get("PATH").filter(|path| !path.is_empty()) else {
        return ProgramSearch::Unknown;
    };
    // An empty entry is the working directory.
    let candidates = || search_path.split(':').map(|directory| cwd.join(directory).join(name));
    match candidates().find_map(|path| executable(&path)) {
        Some(file) => ProgramSearch::Found(file),
        None if candidates().any(|path| path.symlink_metadata().is_ok()) => ProgramSearch::Unknown,
        None => ProgramSearch::Missing,
    }
}

/// The program at a path, if there is one.
fn executable(path: &Path) -> Option<ProgramFile> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let path = in_real_directory(path)?;
    let mut leads_to = Vec::new();
    let mut at = path.clone();
    while let Ok(target) = fs::read_link(&at) {
        at = in_real_directory(&at.parent()?.join(target))?;
        leads_to.push(at.clone());
        if leads_to.len() > MAX_LINKS {
            return None;
        }
    }
    Some(ProgramFile { path, leads_to })
}

/// The same file by a path with no link before its last name.
fn in_real_directory(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn program(directory: &Path, name: &str) -> PathBuf {
        fs::create_dir_all(directory).unwrap();
        let path = directory.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn found(search: ProgramSearch) -> ProgramFile {
        match search {
            ProgramSearch::Found(file) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_directory_of_the_path_counts_and_links_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (system, workspace) = (root.join("system"), root.join("workspace"));
        let make = program(&system, "make");
        program(&system, "tool");
        program(&workspace.join("bin"), "own");
        symlink(workspace.join("bin/own"), system.join("led")).unwrap();
        let path = format!("{}:{}", workspace.join("venv").display(), system.display());
        let environment = BTreeMap::from([("PATH".to_owned(), path)]);
        let search = |name: &str| find_program(name, &environment, &workspace);

        let file = found(search("make"));
        assert_eq!((file.path.clone(), file.leads_to.clone()), (make, Vec::new()));
        assert!(file.is_outside([workspace.as_path()].into_iter()));
        assert_eq!(search("frobnicate"), ProgramSearch::Missing);
        assert_eq!(found(search("bin/own")).path, workspace.join("bin/own"));
        assert_eq!(search("./nothing"), ProgramSearch::Missing);
        fs::write(workspace.join("plain"), "").unwrap();
        assert_eq!(search("./plain"), ProgramSearch::Unknown, "it may not be executed");
        // A link out of the system into the workspace is of the workspace.
        assert!(!found(search("led")).is_outside([workspace.as_path()].into_iter()));
        // A program that was planted in an earlier directory is the one that would run.
        program(&workspace.join("venv"), "make");
        assert!(!found(search("make")).is_outside([workspace.as_path()].into_iter()));
    }

    #[test]
    fn what_a_shell_may_know_otherwise_is_unknown() {
        let with = |name: &str, value: &str| {
            let environment = BTreeMap::from([
                ("PATH".to_owned(), "/nowhere".to_owned()),
                (name.to_owned(), value.to_owned()),
            ]);
            find_program("frobnicate", &environment, Path::new("/"))
        };
        assert_eq!(with("BASH_ENV", "/x"), ProgramSearch::Unknown);
        assert_eq!(with("BASH_FUNC_frobnicate%%", "() { :; }"), ProgramSearch::Unknown);
        assert_eq!(with("PATH", ""), ProgramSearch::Unknown);
        assert_eq!(with("OTHER", ""), ProgramSearch::Missing);
    }
}

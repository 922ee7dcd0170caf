//! Finds the file that the name of a program stands for, by the environment that commands get.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::Read,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use windlass_contract::program::{ProgramFile, ProgramFinder, ProgramSearch};

use crate::Machine;

/// As many links as the kernel follows (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// Maximum number of interpreters of scripts that are scripts themselves, as in the kernel.
const MAX_INTERPRETERS: usize = 4;

/// Maximum length of the first line of a script that the kernel reads (`BINPRM_BUF_SIZE`).
const MAX_SCRIPT_LINE_BYTES: u64 = 256;

/// Directories of the system and of package managers, where only an administrator makes links.
const ADMINISTERED: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/opt", "/nix", "/snap"];

impl ProgramFinder for Machine {
    fn find_program(&self, name: &str, cwd: &Path) -> ProgramSearch {
        find_program(name, self.environment(), cwd)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment().get(name).cloned()
    }

    fn obstacle_outside(&self, writable: &[PathBuf]) -> Option<String> {
        Machine::obstacle_outside(self, writable)
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
            Some(found) => found,
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
        Some(found) => found,
        None if candidates().any(|path| path.symlink_metadata().is_ok()) => ProgramSearch::Unknown,
        None => ProgramSearch::Missing,
    }
}

/// Returns true if a directory is one of the system, whose programs no command replaces.
pub(crate) fn is_administered(directory: &Path) -> bool {
    ADMINISTERED.iter().any(|administered| directory.starts_with(administered))
}

/// The program at a path, if there is one. It is unknown if its file has other names that may be
/// anywhere.
pub(crate) fn executable(path: &Path) -> Option<ProgramSearch> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let path = in_real_directory(path)?;
    let mut leads_to = Vec::new();
    let mut file = follow_links(path.clone(), &mut leads_to)?;
    let mut is_known = !has_names_elsewhere(&file, &metadata);
    for _ in 0..MAX_INTERPRETERS {
        let Some(interpreter) = interpreter(&file) else { break };
        if !interpreter.is_absolute() {
            return Some(ProgramSearch::Unknown);
        }
        // Without it the script does not start.
        let metadata = fs::metadata(&interpreter).ok()?;
        let interpreter = in_real_directory(&interpreter)?;
        leads_to.push(interpreter.clone());
        file = follow_links(interpreter, &mut leads_to)?;
        is_known &= !has_names_elsewhere(&file, &metadata);
    }
    let found = ProgramFile { path, leads_to };
    Some(if is_known { ProgramSearch::Found(found) } else { ProgramSearch::Unknown })
}

/// Follows symbolic links to a file. Returns `None` if there are too many.
fn follow_links(mut at: PathBuf, passed: &mut Vec<PathBuf>) -> Option<PathBuf> {
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&at) else { return Some(at) };
        at = in_real_directory(&at.parent()?.join(target))?;
        passed.push(at.clone());
    }
    None
}

/// The interpreter that the first line of a script names. The program that `env` would look up is
/// not included.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(MAX_SCRIPT_LINE_BYTES).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let path = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\0')).next()?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Returns true if a file has hard links outside of its directory. Commands could write the file by
/// one of those names.
fn has_names_elsewhere(file: &Path, metadata: &Metadata) -> bool {
    if metadata.nlink() < 2 || is_administered(file) {
        return false;
    }
    let entries = file.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten();
    let is_same = |found: &Metadata| (found.dev(), found.ino()) == (metadata.dev(), metadata.ino());
    let here = entries.flatten().filter(|entry| entry.metadata().is_ok_and(|found| is_same(&found)));
    (here.count() as u64) < metadata.nlink()
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
        fs::write(&path, "").unwrap();
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
    fn an_interpreter_counts_as_much_as_its_script() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (own, workspace) = (root.join("own"), root.join("workspace"));
        let interpreter = program(&workspace, "python");
        let script = program(&own, "tool");
        let search = || find_program(script.to_str().unwrap(), &BTreeMap::new(), &workspace);
        assert!(found(search()).is_outside([workspace.as_path()].into_iter()));
        fs::write(&script, format!("#! {} -E\n", interpreter.display())).unwrap();
        let file = found(search());
        assert!(file.leads_to.contains(&interpreter), "{file:?}");
        assert!(!file.is_outside([workspace.as_path()].into_iter()));
        // The interpreter of the interpreter, and a link to it.
        symlink(&interpreter, own.join("led")).unwrap();
        fs::write(program(&own, "second"), format!("#!{}/led\n", own.display())).unwrap();
        fs::write(&script, format!("#!{}/second\n", own.display())).unwrap();
        assert!(!found(search()).is_outside([workspace.as_path()].into_iter()));
        fs::write(&script, "#!python\n").unwrap();
        assert_eq!(search(), ProgramSearch::Unknown, "it depends on the working directory");
    }

    #[test]
    fn a_file_with_names_in_other_directories_is_unknown() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let tool = program(&root.join("own"), "tool");
        fs::create_dir(root.join("workspace")).unwrap();
        let search = || find_program(tool.to_str().unwrap(), &BTreeMap::new(), &root);
        fs::hard_link(&tool, root.join("own/proxy")).unwrap();
        assert_eq!(found(search()).path, tool);
        fs::hard_link(&tool, root.join("workspace/tool")).unwrap();
        assert_eq!(search(), ProgramSearch::Unknown);
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

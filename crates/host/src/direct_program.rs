//! The command of a program that was let out of the sandbox for longer than once: its file and its
//! words, and nothing of what commands in the sandbox may have put where it looks for more.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use windlass_contract::{grant::DirectProgram, host::Command, program::ProgramSearch};
use windlass_sandbox::links;

use crate::{
    program_finder::{executable, is_administered},
    workspace_guard::entry_in_home,
};

/// Variables with a list of directories in which programs or libraries are looked up.
const SEARCH_PATHS: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// Search path if no directory of the user's own path is left.
const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// Maximum number of entries of a directory on the search path that are looked at. A larger
/// directory is left out.
const MAX_ENTRIES: usize = 4096;

/// The command to start for a call, which may name another one, with its whole environment. The
/// time limit stays.
///
/// Programs obey files that variables name (`GIT_SSH_COMMAND`, `PYTHONPATH`, `KUBECONFIG`). So a
/// variable that names something which sandboxed commands can write is left out, and search paths
/// lose the directories that lead there.
pub(crate) fn command(
    direct: &DirectProgram,
    asked: &Command,
    environment: &BTreeMap<String, String>,
) -> Command {
    let paths = UntrustedPaths::new(direct);
    let mut env = environment.clone();
    env.extend(asked.env.clone());
    for name in SEARCH_PATHS {
        if let Some(value) = env.get_mut(name) {
            *value = paths.trusted_entries(value);
        }
    }
    if env.get("PATH").is_some_and(String::is_empty) {
        env.insert("PATH".to_owned(), SYSTEM_PATH.to_owned());
    }
    // No program starts like this if the home directory can be written.
    env.retain(|name, value| {
        name == "HOME" || SEARCH_PATHS.contains(&name.as_str()) || !paths.are_named_in(value)
    });
    // As a shell would have set it.
    env.insert("PWD".to_owned(), direct.cwd.to_string_lossy().into_owned());
    Command { argv: direct.argv.clone(), cwd: Some(direct.cwd.clone()), env, time_limit: asked.time_limit }
}

/// Directories, without links, whose files the program must not obey.
struct UntrustedPaths<'a> {
    cwd: &'a Path,
    writable: Vec<PathBuf>,
    temporary: Vec<PathBuf>,
}

impl<'a> UntrustedPaths<'a> {
    fn new(direct: &'a DirectProgram) -> Self {
        let real_paths =
            |paths: &[PathBuf]| paths.iter().map(|path| real(path).unwrap_or_else(|| path.clone())).collect();
        Self {
            cwd: &direct.cwd,
            writable: real_paths(&direct.writable),
            temporary: real_paths(&direct.temporary),
        }
    }

    /// Returns the entries of a search path that are absolute and lead to no untrusted program. An
    /// empty entry is the working directory.
    fn trusted_entries(&self, value: &str) -> String {
        let is_trusted = |entry: &&str| {
            let path = Path::new(entry);
            path.is_absolute() && real(path).is_some_and(|directory| self.is_trusted_directory(&directory))
        };
        value.split(':').filter(is_trusted).collect::<Vec<_>>().join(":")
    }

    fn is_trusted_directory(&self, directory: &Path) -> bool {
        if self.contain(directory) {
            return false;
        }
        if is_administered(directory) {
            return true;
        }
        let Ok(entries) = fs::read_dir(directory) else { return false };
        let is_trusted = |path: PathBuf| match executable(&path) {
            Some(ProgramSearch::Found(file)) => file.is_outside(self.all()),
            Some(ProgramSearch::Unknown | ProgramSearch::Missing) => false,
            None => true,
        };
        let mut entries = entries.flatten();
        entries.by_ref().take(MAX_ENTRIES).all(|entry| is_trusted(entry.path())) && entries.next().is_none()
    }

    /// Returns true if a value names something untrusted: as a whole, in a list, or as part of a
    /// command line or an address.
    fn are_named_in(&self, value: &str) -> bool {
        let is_list_with_cwd = value.starts_with(':') || value.ends_with(':') || value.contains("::");
        let ends_word = |letter: char| letter.is_whitespace() || "':;,=|&()<>@\"".contains(letter);
        let mut words = value.split(ends_word).filter(|word| !word.is_empty());
        is_list_with_cwd && self.contain(self.cwd) || words.any(|word| self.is_untrusted(word))
    }

    fn is_untrusted(&self, word: &str) -> bool {
        // A relative path counts only if it exists: most words are none.
        let relative = real(&self.cwd.join(word));
        // `-f/x` and `unix:///x` name `/x`.
        let absolute =
            word.find('/').and_then(|start| word.get(start..)).and_then(|path| nearest(Path::new(path)));
        [relative, absolute].into_iter().flatten().any(|path| {
            let is_socket = fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_socket());
            // Agents listen in temporary directories.
            let is_agent = is_socket && !self.writable.iter().any(|directory| path.starts_with(directory));
            self.contain(&path) && !is_agent
        })
    }

    fn contain(&self, path: &Path) -> bool {
        self.all().any(|directory| path.starts_with(directory))
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        self.writable.iter().chain(&self.temporary).map(PathBuf::as_path)
    }
}

/// Returns true if one of these directories holds settings of the user: the home directory, or a
/// protected name in it such as `~/.config`.
pub(crate) fn hold_settings(directories: &[PathBuf], home: &Path) -> bool {
    let resolve = |path: &Path| Some(links::follow(path)?.end);
    let Some(home) = resolve(home) else { return false };
    let mut directories = directories.iter().filter_map(|directory| resolve(directory));
    directories.any(|directory| home.starts_with(&directory) || entry_in_home([&home], &directory).is_some())
}

/// The path without links, if there is something.
fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The path without links, or that of the nearest directory above it that exists.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_was_approved_replaces_the_command_and_finds_nothing_in_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, own) = (root.path().join("w"), root.path().join("own"));
        for directory in [&workspace.join("bin"), &own] {
            fs::create_dir_all(directory).unwrap();
        }
        symlink(workspace.join("bin"), root.path().join("led")).unwrap();
        let list = format!(
            ".:{w}/bin:{led}:{own}::bin:{w}/none:/usr/bin",
            w = workspace.display(),
            led = root.path().join("led").display(),
            own = own.display()
        );
        let environment = ["PATH", "LD_LIBRARY_PATH"].map(|name| (name.to_owned(), list.clone())).into();
        let direct = direct(&workspace);
        let asked = Command {
            argv: vec!["bash".into(), "-c".into(), "git fetch".into()],
            cwd: Some("elsewhere".into()),
            env: BTreeMap::from([("LANG".to_owned(), "C".to_owned())]),
            time_limit: None,
        };
        let started = command(&direct, &asked, &environment);
        let kept = format!("{}:/usr/bin", own.display());
        let place = workspace.to_str().unwrap();
        let env = [("PATH", kept.as_str()), ("LD_LIBRARY_PATH", &kept), ("LANG", "C"), ("PWD", place)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = Command {
            argv: direct.argv.clone(),
            cwd: Some(workspace.clone()),
            env: env.into(),
            time_limit: None,
        };
        assert_eq!(started, expected);
    }

    fn direct(workspace: &Path) -> DirectProgram {
        DirectProgram {
            argv: vec!["/usr/bin/git".into(), "fetch".into()],
            cwd: workspace.to_owned(),
            writable: vec![workspace.to_owned()],
            temporary: vec![],
        }
    }

    /// The names of the variables that reach the program, but for `PWD`.
    fn passed(direct: &DirectProgram, variables: &[(&str, String)]) -> Vec<String> {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let asked = Command { argv: vec![], cwd: None, env: BTreeMap::new(), time_limit: None };
        let env = command(direct, &asked, &environment).env;
        env.into_keys().filter(|name| name != "PWD").collect()
    }

    #[test]
    fn variables_that_name_something_in_the_workspace_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, led) = (root.path().join("w"), root.path().join("led"));
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("gitconfig"), "").unwrap();
        symlink(&workspace, &led).unwrap();
        let (w, led) = (workspace.display(), led.display());
        for value in [
            format!("{w}/lib"),
            format!("/usr/lib:{w}/lib"),
            format!("{led}/new"),
            format!("ssh -i {w}/key"),
            format!("--require={w}/x.js"),
            format!("-f{w}/m"),
            format!("unix://{w}/docker.sock"),
            format!("|'{w}/pipe' %s"),
            "gitconfig".to_owned(),
            "./gitconfig".to_owned(),
            "../w/gitconfig".to_owned(),
            ".".to_owned(),
            "/usr/lib:".to_owned(),
            ":/usr/lib".to_owned(),
            "/usr/lib::/lib".to_owned(),
        ] {
            assert_eq!(passed(&direct(&workspace), &[("X", value.clone())]), [""; 0], "{value}");
        }
        for value in [
            "",
            "1",
            "xterm-256color",
            "/usr/lib",
            "ssh -o BatchMode=yes",
            "https://h:3128/",
            "gitconfig2",
            "a/b",
        ] {
            assert_eq!(passed(&direct(&workspace), &[("X", value.to_owned())]), ["X"], "{value}");
        }
    }

    #[test]
    fn the_home_directory_and_settings_in_it_are_recognized() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        for directory in [".config/git", "work"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        symlink(home.join(".config"), root.path().join("led")).unwrap();
        let hold = |path: PathBuf| hold_settings(&[root.path().join("elsewhere/x"), path], &home);
        assert!(!hold(home.join("work")));
        for path in [
            home.clone(),
            home.join(".config"),
            home.join(".config/git"),
            home.join(".new/x"),
            root.path().join("led"),
        ] {
            assert!(hold(path.clone()), "{path:?}");
        }
        assert!(hold_settings(&[root.path().to_owned()], &home));
    }

    #[test]
    fn the_socket_of_an_agent_stays_unless_it_is_in_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, temporary) = (root.path().join("w"), root.path().join("t"));
        let direct = DirectProgram { temporary: vec![temporary.clone()], ..direct(&workspace) };
        for (directory, is_kept) in [(&temporary, true), (&workspace, false)] {
            fs::create_dir(directory).unwrap();
            let socket = directory.join("agent.1");
            let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            let passed = passed(&direct, &[("SSH_AUTH_SOCK", socket.to_str().unwrap().to_owned())]);
            assert_eq!(passed.len(), usize::from(is_kept), "{socket:?}");
        }
        fs::write(temporary.join("config"), "").unwrap();
        let config = temporary.join("config").to_str().unwrap().to_owned();
        assert_eq!(passed(&direct, &[("KUBECONFIG", config)]), [""; 0]);
    }

    #[test]
    fn a_directory_with_a_program_that_leads_into_the_workspace_is_off_the_path() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, own) = (root.path().join("w"), root.path().join("own"));
        for directory in [&workspace, &own] {
            fs::create_dir(directory).unwrap();
        }
        let helper = workspace.join("helper");
        fs::write(&helper, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
        let direct = direct(&workspace);
        let path = |direct: &DirectProgram| {
            UntrustedPaths::new(direct).trusted_entries(&format!("{}:/usr/bin", own.display()))
        };
        assert_eq!(path(&direct), format!("{}:/usr/bin", own.display()));
        symlink(&helper, own.join("helper")).unwrap();
        assert_eq!(path(&direct), "/usr/bin");
        fs::remove_file(own.join("helper")).unwrap();
        fs::hard_link(&helper, own.join("helper")).unwrap();
        assert_eq!(path(&direct), "/usr/bin");
    }
}

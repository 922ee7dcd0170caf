//! The command of a program that was let out of the sandbox for longer than once: its file and its
//! words, and nothing of what commands in the sandbox may have put where it looks for more.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use windlass_contract::{grant::DirectProgram, host::Command};

/// Variables with directories, or files, whose contents programs run.
const SEARCH_PATHS: [&str; 5] =
    ["PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"];

/// Search path if no directory of the user's own path is left.
const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// The command to start for a call, which may name another one. Its time limit and terminal
/// settings stay.
pub(crate) fn command(
    direct: &DirectProgram,
    asked: &Command,
    environment: &BTreeMap<String, String>,
) -> Command {
    let untrusted: Vec<_> =
        direct.untrusted.iter().map(|path| real(path).unwrap_or_else(|| path.clone())).collect();
    let mut env = asked.env.clone();
    for name in SEARCH_PATHS {
        let Some(value) = asked.env.get(name).or_else(|| environment.get(name)) else { continue };
        let trusted = trusted_entries(value, &untrusted);
        let value = if trusted.is_empty() && name == "PATH" { SYSTEM_PATH.to_owned() } else { trusted };
        env.insert(name.to_owned(), value);
    }
    // As a shell would have set it.
    env.insert("PWD".to_owned(), direct.cwd.to_string_lossy().into_owned());
    Command { argv: direct.argv.clone(), cwd: Some(direct.cwd.clone()), env, time_limit: asked.time_limit }
}

/// The entries of a search path that are absolute, exist and are outside of these directories. An
/// empty one is the working directory.
fn trusted_entries(value: &str, untrusted: &[PathBuf]) -> String {
    let is_trusted = |entry: &&str| {
        let path = Path::new(entry);
        let outside = |real: PathBuf| !untrusted.iter().any(|directory| real.starts_with(directory));
        path.is_absolute() && real(path).is_some_and(outside)
    };
    value.split(':').filter(is_trusted).collect::<Vec<_>>().join(":")
}

/// The path without links, if there is something.
#[expect(clippy::disallowed_methods, reason = "nothing is opened by it: a name is compared with others")]
fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::os::unix::fs::symlink;

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
        let direct = DirectProgram {
            argv: vec!["/usr/bin/git".into(), "fetch".into()],
            cwd: workspace.clone(),
            untrusted: vec![workspace.clone()],
        };
        let asked = Command {
            argv: vec!["bash".into(), "-c".into(), "git fetch".into()],
            cwd: Some("elsewhere".into()),
            env: BTreeMap::from([("LD_PRELOAD".to_owned(), "x.so".to_owned())]),
            time_limit: None,
        };
        let started = command(&direct, &asked, &environment);
        let kept = format!("{}:/usr/bin", own.display());
        let place = workspace.to_str().unwrap();
        let env = [("PATH", kept.as_str()), ("LD_LIBRARY_PATH", &kept), ("LD_PRELOAD", ""), ("PWD", place)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = Command {
            argv: direct.argv.clone(),
            cwd: Some(workspace.clone()),
            env: env.into(),
            time_limit: None,
        };
        assert_eq!(started, expected);
    }
}

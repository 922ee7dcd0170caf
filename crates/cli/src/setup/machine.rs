//! Facts about the machine: directories, the shell, the environment.

use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
};

use crate::{config, problem::CliProblem, screen::visible_path};

/// Returns the home directory of Windlass.
pub(crate) fn home() -> Result<PathBuf, CliProblem> {
    home_in(&working_directory(None)?)
}

pub(super) fn home_in(cwd: &Path) -> Result<PathBuf, CliProblem> {
    if env::var_os("WINDLASS_HOME").is_some_and(|home| home.to_str().is_none()) {
        return Err(CliProblem::usage("WINDLASS_HOME is not UTF-8; move the directory to a path that is"));
    }
    config::home(&variable, cwd).map_err(|error| CliProblem::usage(error.to_string()))
}

/// Returns the working directory: it exists, and links are resolved.
pub(super) fn working_directory(cd: Option<&Path>) -> Result<PathBuf, CliProblem> {
    let path = cd.map_or_else(env::current_dir, |path| Ok(path.to_owned()));
    let path = path.map_err(|error| CliProblem::usage(format!("there is no working directory: {error}")))?;
    let real = path
        .canonicalize()
        .and_then(|real| if real.is_dir() { Ok(real) } else { Err(io::ErrorKind::NotADirectory.into()) });
    let real = real.map_err(|error| CliProblem::file("cannot work in", &path, &error))?;
    // Session files and prompts are text, so the path of the directory must be valid text.
    let named = real.to_str().is_some();
    named
        .then_some(real)
        .ok_or_else(|| CliProblem::usage(format!("the name of `{}` is not UTF-8", visible_path(&path))))
}

/// Returns the user's shell, if it reads POSIX command lines.
pub(crate) fn shell_program() -> PathBuf {
    let usual = ["bash", "zsh", "sh", "dash", "ksh"];
    let own = env::var_os("SHELL").map(PathBuf::from);
    let own = own.filter(|path| {
        path.is_absolute() && path.file_name().is_some_and(|name| usual.iter().any(|each| name == *each))
    });
    let candidates = own.into_iter().chain(["/bin/bash", "/usr/bin/bash", "/bin/sh"].map(PathBuf::from));
    candidates.into_iter().find(|path| path.exists()).unwrap_or_else(|| "/bin/sh".into())
}

/// Returns the environment, as far as it is text.
pub(crate) fn variables() -> BTreeMap<String, String> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Returns a variable that may hold a key. Client libraries of this family pass theirs in a
/// variable of their own, which has precedence over the user's environment.
pub(crate) fn key(name: &str) -> Option<String> {
    let handed_over = (name == "OPENAI_API_KEY").then(|| variable("CODEX_API_KEY")).flatten();
    handed_over.or_else(|| variable(name)).filter(|value| !value.is_empty())
}

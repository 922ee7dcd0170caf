//! `windlass config edit`: a copy is edited, and replaces the file only if it is valid.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    config,
    confirm::{forget_typed, is_attended},
    exit::ProgramExit,
    init::ask_line,
    note, private_file,
    problem::CliProblem,
    screen::visible_path,
};

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const DEFAULT_EDITOR: &str = "vi";

/// Runs the command for a home directory.
pub(super) fn run(home: &Path) -> Result<ProgramExit, CliProblem> {
    let path = config::file(home);
    let before = config::read_or_new(home).map_err(|error| CliProblem::usage(error.to_string()))?;
    let draft = Draft::create(home, &before)?;
    loop {
        draft.edit()?;
        let after = draft.read()?;
        if after == before {
            note("nothing was changed");
            return Ok(ProgramExit::Done);
        }
        match config::check_text(home, &after) {
            Ok(()) => {
                replace(home, &before, &after)?;
                note(&format!("wrote {}", visible_path(&path)));
                return Ok(ProgramExit::Done);
            }
            // The names of the draft and of the file differ; people know the file.
            Err(problems) => note(&problems.to_string()),
        }
        if !asks_again()? {
            return Err(CliProblem::usage("the file was not changed, because the edited one is not valid"));
        }
    }
}

fn asks_again() -> Result<bool, CliProblem> {
    if !is_attended() {
        return Ok(false);
    }
    forget_typed()?;
    let answer = ask_line("Edit it again? [Y/n] ")?;
    Ok(answer.is_some_and(|answer| !answer.trim().to_ascii_lowercase().starts_with('n')))
}

/// Replaces the file, unless another program changed it meanwhile.
fn replace(home: &Path, before: &str, after: &str) -> Result<(), CliProblem> {
    let path = config::file(home);
    let cannot = |error: io::Error| CliProblem::file("cannot write", &path, &error);
    let _lock = private_file::lock(&path).map_err(cannot)?;
    let now = config::read_or_new(home).map_err(|error| CliProblem::usage(error.to_string()))?;
    if now != before {
        let message = format!("{} was changed meanwhile; edit it again", visible_path(&path));
        return Err(CliProblem::failed(message));
    }
    private_file::replace(&path, after).map_err(cannot)
}

/// A private copy beside the file. It is removed at the end.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn create(home: &Path, text: &str) -> Result<Self, CliProblem> {
        // Editors choose the syntax by the ending.
        let path = home.join(format!("config.{}.draft.toml", std::process::id()));
        private_file::replace(&path, text)
            .map_err(|error| CliProblem::file("cannot write", &path, &error))?;
        Ok(Self { path })
    }

    fn read(&self) -> Result<String, CliProblem> {
        fs::read_to_string(&self.path).map_err(|error| CliProblem::file("cannot read", &self.path, &error))
    }

    /// Runs the editor. Its variable may hold arguments, so a shell splits it.
    fn edit(&self) -> Result<(), CliProblem> {
        let set = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| DEFAULT_EDITOR.to_owned());
        let line = format!("{editor} \"$1\"");
        let status = Command::new("/bin/sh").args(["-c", &line, "sh"]).arg(&self.path).status();
        let status =
            status.map_err(|error| CliProblem::failed(format!("cannot start the editor: {error}")))?;
        if status.success() {
            return Ok(());
        }
        let message =
            format!("the editor `{editor}` failed ({status}); nothing was changed. Set $EDITOR to another");
        Err(CliProblem::failed(message))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The editor may have removed it.
        let _gone = fs::remove_file(&self.path);
    }
}

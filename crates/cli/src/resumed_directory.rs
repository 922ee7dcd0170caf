//! The directory of a session that is resumed: it may be another one, or gone.

use std::path::Path;

use windlass::{
    ThreadId,
    record::{self, Which},
};

use crate::{args::CommonOptions, problem::CliProblem, screen::visible_path, setup::ProgramSetup};

/// Checks the directory of a session before it goes on. A session whose directory is gone goes on
/// only where the user says so: its commands and paths may mean other files here.
pub(crate) fn check(setup: &ProgramSetup, common: &CommonOptions, which: &Which) -> Result<(), CliProblem> {
    let Which::Id(id) = which else { return Ok(()) };
    if common.cd.is_some() {
        return Ok(());
    }
    // A file that is lost or damaged is reported when it is resumed.
    let found = record::find(&setup.home, id).and_then(|(_, path)| record::read_entry(&path));
    let Ok(Some(entry)) = found else { return Ok(()) };
    // The last turn may have been in another directory, which costs reading the whole file.
    if entry.cwd == setup.cwd {
        return Ok(());
    }
    if !entry.cwd.is_dir() {
        return Err(gone(id, &entry.cwd));
    }
    let there = visible_path(&entry.cwd);
    crate::note(&format!("note: this session was begun in {there}; it goes on here (`-C {there}`: there)"));
    Ok(())
}

fn gone(id: &ThreadId, directory: &Path) -> CliProblem {
    CliProblem::usage(format!(
        "the directory of session {id} is gone: `{}`\n  windlass resume {id} -C .       go on in this directory\n  \
         windlass fork {id} -C .         go on in this directory with a copy\n  windlass sessions export {id}   read it",
        visible_path(directory)
    ))
}

//! `windlass fork`: a new session with the conversation of an earlier one.

use serde_json::json;
use windlass::{SessionFork, SessionForkError, record};

use crate::{
    args::{CommonOptions, ForkOptions},
    exit::ProgramExit,
    ids,
    output::print,
    problem::{CliProblem, chain},
    screen::visible_path,
    sessions,
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &ForkOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let (parent, _) = match &options.id {
        Some(name) => ids::file(&setup, name)?,
        None => sessions::newest_here(&setup)?,
    };
    if let Ok((record::ThreadFolder::Calls, _)) = record::find(&setup.home, &parent) {
        return Err(CliProblem::usage(format!("{parent} is a call outside of any session, not a session")));
    }
    // Without -C the new session belongs where its parent does, wherever it is made.
    let cwd = common.cd.as_ref().map(|_| setup.cwd.clone());
    let fork = SessionFork { parent: parent.clone(), before_message: options.at, cwd };
    let forked = fork.write(&setup.home, &setup.secrets()).map_err(|error| match error {
        SessionForkError::NoMessage { .. } => CliProblem::usage(format!(
            "{error}; `windlass rewind --session {parent}` lists its messages with their numbers"
        )),
        error => CliProblem::failed(chain(&error)),
    })?;
    if options.json {
        return print(&format!(
            "{:#}\n",
            json!({
                "id": forked.id,
                "parent": parent,
                "before_message": options.at,
                "messages": forked.messages,
                "cwd": forked.cwd,
                "file": forked.path,
            })
        ));
    }
    let messages = windlass::counted(forked.messages as u64, "message");
    crate::note(&format!("a new session with {messages} of {parent}; no file was changed"));
    crate::note(&format!("to go on:  windlass resume {}", forked.id));
    if forked.cwd != setup.cwd {
        crate::note(&format!("it belongs to {}", visible_path(&forked.cwd)));
    }
    print(&format!("{}\n", forked.id))
}

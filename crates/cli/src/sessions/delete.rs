//! `windlass sessions delete`: deletes sessions with everything that belongs to them.

use windlass::{
    counted,
    record::{self, Calls, DiskUsage, Edits, SessionEntry, SessionError, SessionNames, ThreadFolder, UNDO},
};

use super::{failed, size, title};
use crate::{
    confirm::agrees,
    exit::ProgramExit,
    ids,
    output::print_text,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
};

/// Runs the command.
pub(super) fn run(
    setup: &ProgramSetup,
    names: &[String],
    is_agreed: bool,
) -> Result<ProgramExit, CliProblem> {
    let mut sessions: Vec<SessionEntry> = Vec::new();
    for name in names {
        let session = session(setup, name)?;
        if record::is_session_running(&session.path).map_err(|error| failed(&error))? {
            return Err(in_use(&session));
        }
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    let usage = DiskUsage::measure(&setup.home).map_err(|error| failed(&error))?;
    let mut losses = String::new();
    for session in &sessions {
        losses.push_str(&loss(setup, session, &usage)?);
    }
    if !is_agreed {
        crate::note(&format!("{losses}This cannot be undone."));
        let question = format!("Delete {}? [y/N] ", counted(sessions.len() as u64, "session"));
        if !agrees(&question, "pass `--yes` to delete")? {
            crate::note("nothing was deleted");
            return Ok(ProgramExit::Refused);
        }
    }
    for session in &sessions {
        delete(setup, session)?;
    }
    Ok(ProgramExit::Done)
}

/// Finds the session to delete. A call does not stand for its session here.
fn session(setup: &ProgramSetup, name: &str) -> Result<SessionEntry, CliProblem> {
    match ids::thread_by_own_id(setup, name)? {
        Some(found) if found.folder == ThreadFolder::Sessions => Ok(found.entry),
        _ => {
            let call = ids::of_call(setup, name)?;
            Err(CliProblem::usage(match call.filter(|call| call.folder == ThreadFolder::Sessions) {
                Some(call) => format!(
                    "`{}` is a call, not a session; `windlass sessions delete {}` deletes its session",
                    visible(name),
                    call.thread
                ),
                None => {
                    format!("there is no session `{}`; see `windlass sessions list`", visible(name))
                }
            }))
        }
    }
}

fn in_use(session: &SessionEntry) -> CliProblem {
    CliProblem::usage(format!("session {} is in use by another process; nothing was deleted", session.id))
}

/// Describes what is lost with a session.
fn loss(setup: &ProgramSetup, session: &SessionEntry, usage: &DiskUsage) -> Result<String, CliProblem> {
    let summary = record::summarize(&session.path).map_err(|error| failed(&error))?;
    let title = title(&ids::names(setup)?, session, Some(&summary), &setup.secrets());
    let bytes =
        usage.sessions.iter().find(|(id, _)| id == session.id.as_str()).map_or(0, |(_, bytes)| *bytes);
    let edits = Edits::of_session(&setup.home, &session.id).and_then(|edits| edits.list());
    let edits = edits.map_err(|error| failed(&error))?;
    let is_open = |edit: &&record::Edit| {
        !edit.undone && !edit.files.is_empty() && !edit.call.as_str().starts_with(UNDO)
    };
    let open = edits.iter().filter(is_open).count() as u64;
    let undo = if open == 0 {
        String::new()
    } else {
        format!("; {} can no longer be undone then", counted(open, "change"))
    };
    Ok(format!(
        "{}  {title}\n  {}: {}, {}, {} with outputs and edits{undo}\n",
        session.id,
        visible_path(&session.cwd),
        counted(summary.turns, "turn"),
        counted(summary.calls, "call"),
        size(bytes)
    ))
}

fn delete(setup: &ProgramSetup, session: &SessionEntry) -> Result<(), CliProblem> {
    let removed = record::remove_session(&setup.home, session).map_err(|error| match error {
        SessionError::Busy { .. } => in_use(session),
        error => failed(&error),
    })?;
    SessionNames::set(&setup.home, &session.id, None).map_err(|error| failed(&error))?;
    // The index can be rebuilt at any time; without it there is nothing to forget.
    if Calls::index_path(&setup.home).exists() {
        let forgotten =
            Calls::open(&setup.home, setup.keep()).and_then(|mut index| index.forget(session.id.as_str()));
        if let Err(error) = forgotten {
            crate::note(&format!(
                "warning: {}; `windlass stats --rebuild` helps",
                visible(&error.to_string())
            ));
        }
    }
    let bytes = removed.iter().map(|unit| unit.bytes).sum();
    print_text(&format!("deleted session {}, {} freed\n", session.id, size(bytes)))?;
    Ok(())
}

//! Ids on the command line. Every command accepts what any command prints: the id of a session or a
//! unique beginning of it, the name of a session, the id of a call, and the id that the model gave
//! it.

use std::path::PathBuf;

use windlass::{
    ThreadId,
    record::{self, Call, Calls, SessionEntry, SessionNames, ThreadFolder},
};

use crate::{
    calls,
    problem::{CliProblem, chain},
    screen::{named, visible, visible_path},
    setup::ProgramSetup,
    wrap,
};

/// Length of the beginning of a session id that holds its time in milliseconds. It is as good as
/// unique, and short enough for a table.
const SHORT_CHARS: usize = 13;

/// Maximum number of matches that are listed for an ambiguous id.
const MAX_MATCHES: usize = 10;

/// A session, or the thread of a call outside of any.
pub(crate) struct FoundThread {
    pub(crate) folder: ThreadFolder,
    pub(crate) entry: SessionEntry,
}

/// Finds the one session that a name stands for. A call stands for its session.
pub(crate) fn session(setup: &ProgramSetup, name: &str) -> Result<SessionEntry, CliProblem> {
    let found = thread(setup, name)?;
    if found.folder == ThreadFolder::Calls {
        return Err(CliProblem::usage(format!(
            "`{}` is a call outside of any session; `windlass show {}` shows it",
            visible(name),
            visible(name)
        )));
    }
    Ok(found.entry)
}

/// Returns the id of the session that a name stands for. A whole id is taken as it is: the file of
/// the session may be lost or damaged.
pub(crate) fn session_id(setup: &ProgramSetup, name: &str) -> Result<ThreadId, CliProblem> {
    if is_whole(name) { Ok(name.to_lowercase().into()) } else { Ok(session(setup, name)?.id) }
}

/// Returns the id of the session, or of the thread of a call, that a name stands for.
pub(crate) fn thread_id(setup: &ProgramSetup, name: &str) -> Result<ThreadId, CliProblem> {
    if is_whole(name) { Ok(name.to_lowercase().into()) } else { Ok(thread(setup, name)?.entry.id) }
}

/// Returns the id and the file of the session, or thread of a call, that a name stands for. The
/// file may be damaged.
pub(crate) fn file(setup: &ProgramSetup, name: &str) -> Result<(ThreadId, PathBuf), CliProblem> {
    if is_whole(name) {
        let id = ThreadId::from(name.to_lowercase());
        let (_, path) = record::find(&setup.home, &id).map_err(|error| CliProblem::usage(chain(&error)))?;
        return Ok((id, path));
    }
    let entry = thread(setup, name)?.entry;
    Ok((entry.id, entry.path))
}

/// Returns true if a name has the form of a whole session id.
fn is_whole(name: &str) -> bool {
    let is_digit = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    name.len() == 36 && name.bytes().enumerate().all(is_digit)
}

/// Finds the one session or thread of a call that a name stands for.
pub(crate) fn thread(setup: &ProgramSetup, name: &str) -> Result<FoundThread, CliProblem> {
    if let Some(found) = thread_by_own_id(setup, name)? {
        return Ok(found);
    }
    let call = of_call(setup, name)?.ok_or_else(|| {
        CliProblem::usage(format!("there is no session `{}`; see `windlass sessions list`", visible(name)))
    })?;
    let found = record::find_by_prefix(&setup.home, call.thread.as_str()).map_err(|error| failed(&error))?;
    let (folder, entry) = found.into_iter().next().ok_or_else(|| {
        CliProblem::usage(format!(
            "`{}` is a call of session {}, whose file is gone",
            visible(name),
            call.thread
        ))
    })?;
    if folder == ThreadFolder::Sessions {
        crate::note(&format!("note: `{}` is a call of session {}", visible(name), entry.id));
    }
    Ok(FoundThread { folder, entry })
}

/// Finds the session that a name stands for, without the ids of calls.
pub(crate) fn thread_by_own_id(setup: &ProgramSetup, name: &str) -> Result<Option<FoundThread>, CliProblem> {
    let names = names(setup)?;
    let wanted = names.find(name).map_or_else(|| name.trim().to_owned(), |id| id.to_string());
    let mut found = record::find_by_prefix(&setup.home, &wanted).map_err(|error| failed(&error))?;
    // Threads of calls outside of sessions are in no list, so a prefix hardly means one of them.
    if found.iter().any(|(folder, _)| *folder == ThreadFolder::Sessions) {
        found.retain(|(folder, _)| *folder == ThreadFolder::Sessions);
    }
    if found.len() > 1 {
        let line = |(_, entry): &(ThreadFolder, SessionEntry)| {
            let name = names.get(&entry.id).map(|name| format!("  {}", visible(name))).unwrap_or_default();
            format!("\n  {}  {}{name}", entry.id, visible_path(&entry.cwd))
        };
        return Err(ambiguous(name, "sessions", found.iter().map(line)));
    }
    Ok(found.pop().map(|(folder, entry)| FoundThread { folder, entry }))
}

/// Finds the one call that a name stands for.
pub(crate) fn call(setup: &ProgramSetup, index: &Calls, name: &str) -> Result<Call, CliProblem> {
    if let Some(call) = one_call(index, name)? {
        return Ok(call);
    }
    let session = thread_by_own_id(setup, name)?;
    Err(CliProblem::usage(match session {
        Some(found) if found.folder == ThreadFolder::Sessions => {
            format!(
                "`{0}` is a session, not a call; `windlass history --session {0}` lists its calls",
                visible(name)
            )
        }
        _ => format!("there is no call `{}` on record; see `windlass history --all`", visible(name)),
    }))
}

/// Finds the one call that a name stands for, if there is any.
fn one_call(index: &Calls, name: &str) -> Result<Option<Call>, CliProblem> {
    let mut found = index.find(name).map_err(|error| calls::problem(&error))?;
    if found.len() > 1 {
        let line =
            |call: &Call| format!("\n  {}  {:.0}  {}", call.handle, call.time, named(call.tool.as_str()));
        return Err(ambiguous(name, "calls", found.iter().map(line)));
    }
    Ok(found.pop())
}

/// Finds a call by its id. The index is only brought up to date if it does not know the call yet:
/// `audit verify` compares files with what the index knew before.
pub(crate) fn of_call(setup: &ProgramSetup, name: &str) -> Result<Option<Call>, CliProblem> {
    if name.is_empty() {
        return Ok(None);
    }
    if Calls::index_path(&setup.home).exists()
        && let Ok(index) = Calls::open(&setup.home, setup.keep())
        && let Some(call) = one_call(&index, name)?
    {
        return Ok(Some(call));
    }
    one_call(&calls::open(setup)?, name)
}

fn ambiguous(name: &str, what: &str, lines: impl ExactSizeIterator<Item = String>) -> CliProblem {
    let count = lines.len();
    let mut text: String = lines.take(MAX_MATCHES).collect();
    if count > MAX_MATCHES {
        text.push_str(&format!("\n  and {} more", count - MAX_MATCHES));
    }
    CliProblem::usage(format!("`{}` is ambiguous; choose one of these {what}:{text}", visible(name)))
}

/// Reads the names of sessions.
pub(crate) fn names(setup: &ProgramSetup) -> Result<SessionNames, CliProblem> {
    SessionNames::load(&setup.home).map_err(|error| failed(&error))
}

fn failed(error: &record::SessionError) -> CliProblem {
    CliProblem::failed(chain(error))
}

/// Returns the id of a session as tables show it: whole for programs, and on a terminal so much
/// that it is unique among these.
pub(crate) fn shown<'a>(id: &str, all: impl Iterator<Item = &'a str>) -> String {
    if wrap::stdout_columns().is_none() { id.to_owned() } else { short(id, all) }
}

fn short<'a>(id: &str, all: impl Iterator<Item = &'a str>) -> String {
    let beginning = id.get(..SHORT_CHARS).unwrap_or(id);
    let is_unique = all.filter(|other| other.starts_with(beginning)).all(|other| other == id);
    if is_unique { beginning.to_owned() } else { id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_unique_among_those_that_are_shown() {
        let ids = ["0199f3a2-7c1e-7000-8000-000000000001", "0199f3a2-7c1e-7000-8000-000000000002"];
        assert_eq!(short(ids[0], ids.into_iter()), ids[0]);
        assert_eq!(short(ids[0], ids.into_iter().take(1)), "0199f3a2-7c1e");
    }
}

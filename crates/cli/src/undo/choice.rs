//! Selects the edits to undo.

use windlass::record::{Edit, UNDO};

use super::{
    EditPlace,
    names::{CallNames, without_undo},
    newest_first,
};
use crate::{
    args::UndoOptions,
    calls::{self, one_line},
    ids,
    problem::CliProblem,
    screen::{self, visible},
    setup::ProgramSetup,
};

/// Returns true if an edit is not undone, and can be.
pub(super) fn is_open(edit: &Edit) -> bool {
    !edit.undone && !edit.is_undo() && !edit.files.is_empty()
}

/// Returns the problem that there is nothing to undo, with the reason if nothing was kept.
fn nothing(places: &[EditPlace]) -> CliProblem {
    let edits = places.iter().flat_map(|place| &place.list);
    let unkept = edits.filter(|edit| edit.files.is_empty()).max_by_key(|edit| edit.order());
    let reason = unkept.and_then(|edit| edit.command.as_ref()).map(|note| {
        let reason = note.gap.as_ref().or(note.unkept.first().map(|file| &file.reason));
        let reason = reason.map(|reason| format!(": {}", visible(reason))).unwrap_or_default();
        format!(" The changes of `{}` were not recorded{reason}.", one_line(&note.line))
    });
    CliProblem::usage(format!(
        "there is nothing to undo here.{} Name a session with --session, or see --list",
        reason.unwrap_or_default()
    ))
}

/// Returns the problem that a name stands for no edit, and what it stands for instead.
pub(super) fn unknown(setup: &ProgramSetup, name: &str) -> CliProblem {
    let name = visible(name);
    if let Ok(Some(call)) = ids::of_call(setup, without_undo(&name).1) {
        let (tool, time) = (screen::named(call.tool.as_str()), calls::when(call.time));
        return CliProblem::usage(format!(
            "call `{name}` ({tool}, {time}) changed no files that are on record; see `windlass undo --list`"
        ));
    }
    if let Ok(Some(_)) = ids::thread_by_own_id(setup, &name) {
        return CliProblem::usage(format!(
            "`{name}` is a session; `windlass undo --session {name}` undoes its newest change, and `--list` with it \
             shows all"
        ));
    }
    CliProblem::usage(format!("there is no call `{name}` that changed files; see --list"))
}

/// Returns the edits to undo, newest first, all of one session.
pub(super) fn chosen<'a>(
    places: &'a [EditPlace],
    args: &UndoOptions,
    names: &CallNames,
) -> Result<(&'a EditPlace, Vec<&'a Edit>), CliProblem> {
    if let Some(name) = args.call.as_ref().or(args.to.as_ref()) {
        return named(places, args, names, name);
    }
    if args.redo {
        // An undo of an undo has restored the change already.
        let is_meant = |edit: &Edit| without_undo(edit.call.as_str()).0 % 2 == 1 && !edit.undone;
        let place = newest_first(places, is_meant).into_iter().next();
        let newest =
            place.and_then(|place| Some((place, place.list.iter().rev().find(|edit| is_meant(edit))?)));
        let (place, edit) =
            newest.ok_or_else(|| CliProblem::usage("there is no undo to reverse here; see --list"))?;
        return Ok((place, vec![edit]));
    }
    let place = newest_first(places, is_open).into_iter().next().ok_or_else(|| nothing(places))?;
    let mut open = place.list.iter().rev().filter(|edit| is_open(edit)).peekable();
    let newest = *open.peek().ok_or_else(|| nothing(places))?;
    let turn = newest.turn;
    let chosen = if args.turn { open.filter(|edit| edit.turn == turn).collect() } else { vec![newest] };
    Ok((place, chosen))
}

/// Returns the edits of the call of this name, or those since.
fn named<'a>(
    places: &'a [EditPlace],
    args: &UndoOptions,
    names: &CallNames,
    name: &str,
) -> Result<(&'a EditPlace, Vec<&'a Edit>), CliProblem> {
    let found = places.iter().flat_map(|place| place.list.iter().map(move |edit| (place, edit)));
    let mut found: Vec<_> = found.filter(|(place, edit)| names.is_meant(&place.edits, edit, name)).collect();
    if found.is_empty() {
        return Err(CliProblem::usage(format!("there is no call `{name}` that changed files; see --list")));
    }
    found.sort_by_key(|(_, edit)| edit.order());
    let mut different: Vec<_> =
        found.iter().map(|(place, edit)| names.display_name(&place.edits, edit)).collect();
    different.sort();
    different.dedup();
    if different.len() > 1 {
        let lines: String = different.iter().map(|name| format!("\n  {}", visible(name))).collect();
        return Err(CliProblem::usage(format!("`{name}` is ambiguous; choose one of these calls:{lines}")));
    }
    let again =
        || CliProblem::usage(format!("`{name}` is already undone; `windlass undo {UNDO}{name}` redoes it"));
    let can_undo = |edit: &Edit| !edit.undone && !edit.files.is_empty();
    if found.iter().all(|(_, edit)| edit.files.is_empty()) {
        return Err(CliProblem::usage(format!("the changes of `{name}` were not recorded; see --list")));
    }
    let (place, newest) = found.iter().rev().find(|(_, edit)| can_undo(edit)).copied().ok_or_else(again)?;
    if args.to.is_none() {
        return Ok((place, vec![newest]));
    }
    // By the log and not by the clock. A long-running command may have several edits.
    let same =
        found.iter().filter(|(other, edit)| other.edits.session() == place.edits.session() && can_undo(edit));
    let first = same.map(|(_, edit)| edit.order()).min().unwrap_or(newest.order());
    let since = place.list.iter().rev().filter(|edit| edit.order() >= first);
    Ok((place, since.filter(|edit| is_open(edit) || edit.order() == newest.order()).collect()))
}

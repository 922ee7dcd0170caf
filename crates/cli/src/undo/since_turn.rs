//! The changes of a session since a turn, for `windlass rewind`.

use std::fs::File;

use windlass::{
    CallId, ThreadId,
    record::{CommandNote, Edit, Edits},
};

use super::{
    EditPlace, UndoEnd, UndoRun, choice::is_open, claims, everywhere, host, lock, names::CallNames, recover,
    session,
};
use crate::{args::UndoOptions, problem::CliProblem, setup::ProgramSetup};

/// The changes of a session, and what is to be done with them.
pub(crate) struct ChangesSinceTurn<'a> {
    setup: &'a ProgramSetup,
    options: UndoOptions,
    place: EditPlace,
    names: CallNames,
    /// Keeps other processes from undoing. None if the changes are only shown.
    _lock: Option<File>,
}

impl<'a> ChangesSinceTurn<'a> {
    /// Reads the changes of a session that are not undone, from a turn on.
    pub(crate) fn read(
        setup: &'a ProgramSetup,
        id: &ThreadId,
        turn: usize,
        options: UndoOptions,
    ) -> Result<Self, CliProblem> {
        recover(setup);
        let lock = (!options.preview).then(|| lock(setup)).transpose()?;
        let mut all = everywhere(setup)?;
        claims::leave_to_others(&mut all);
        let edits = Edits::of_session(&setup.home, id).map_err(|error| session(&error))?;
        let known = all.into_iter().find(|place| place.edits.session() == edits.session());
        let mut place = known.unwrap_or_else(|| EditPlace { edits, list: Vec::new() });
        place.list.retain(|edit| edit.turn >= turn);
        let names = CallNames::open(setup, std::iter::once(&place));
        Ok(Self { setup, options, place, names, _lock: lock })
    }

    /// Returns the changes to undo, newest first.
    fn open(&self) -> Vec<&Edit> {
        self.place.list.iter().rev().filter(|edit| is_open(edit)).collect()
    }

    /// Returns the calls whose changes are to be undone, newest first.
    pub(crate) fn calls(&self) -> Vec<CallId> {
        self.open().into_iter().map(|edit| edit.call.clone()).collect()
    }

    /// Returns the number of commands whose changes were not recorded, or only in part.
    pub(crate) fn partly_recorded(&self) -> usize {
        let is_partial = |edit: &&Edit| edit.command.as_ref().is_some_and(CommandNote::is_partial);
        self.place.list.iter().filter(is_partial).count()
    }

    /// Shows the changes, asks and undoes them, unless files have changed since.
    pub(crate) fn undo(&self, question: &str) -> Result<UndoEnd, CliProblem> {
        let Self { setup, options, place, names, .. } = self;
        let host = host(setup, &place.edits)?;
        let undo = UndoRun { setup, edits: &place.edits, files: host.files(), names, args: options };
        crate::runtime()?.block_on(undo.run(&self.open(), question))
    }
}

//! `windlass rewind`: takes a session back to before a message, with its changes to files.

use serde_json::{Value, json};
use windlass::{
    CallId, Rewind, SandboxMode, Stop, ThreadId,
    host::Window,
    record::{self, LoadedSession, LoadedTurn, SessionFile, Which},
};

use crate::{
    args::{CommonOptions, RewindOptions, UndoOptions},
    calls::{one_line, when},
    confirm::{ConfirmAnswer, confirm, is_attended},
    exit::ProgramExit,
    ids, interrupts,
    output::{print, print_text},
    problem::{CliProblem, chain},
    screen::visible,
    sessions,
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
    undo::{ChangesSinceTurn, UndoEnd},
};

const QUESTION: &str = "Take this back? [y/N] ";

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &RewindOptions) -> Result<ProgramExit, CliProblem> {
    let is_read_only = common.sandbox.map(SandboxMode::from) == Some(SandboxMode::ReadOnly);
    if is_read_only && options.message.is_some() && !options.keep_files && !options.dry_run {
        let message =
            "`rewind` writes files, which `--sandbox read-only` forbids; `--keep-files` leaves them";
        return Err(CliProblem::usage(message));
    }
    let setup = ProgramSetup::for_tools(common)?;
    let (id, path) = match &options.session {
        Some(name) => {
            let entry = ids::session(&setup, name)?;
            (entry.id, entry.path)
        }
        None => sessions::newest_here(&setup)?,
    };
    let failed = |error: record::SessionError| CliProblem::failed(chain(&error));
    let Some(message) = options.message else {
        return list(&setup, &id, &record::load(&path).map_err(failed)?, options.json);
    };
    let opened = if options.dry_run {
        (None, record::load(&path).map_err(failed)?)
    } else {
        let (file, session) = SessionFile::resume(&setup.home, &Which::Id(id.clone())).map_err(failed)?;
        (Some(file), session)
    };
    let (file, session) = opened;
    for repair in &session.repaired {
        crate::note(&format!("warning: {}", visible(&repair.to_string())));
    }
    let turn = turn(&session, message).ok_or_else(|| {
        let count = session.turns.len();
        CliProblem::usage(format!(
            "there is no message {message}: the conversation has {count}; `windlass rewind --session {id}` lists them"
        ))
    })?;
    SessionRewind { setup: &setup, id: &id, session: &session, turn, message, options }.run(file.as_ref())
}

fn turn(session: &LoadedSession, message: usize) -> Option<&LoadedTurn> {
    session.turns.get(message.checked_sub(1)?)
}

/// Lists the messages with their numbers.
fn list(
    setup: &ProgramSetup,
    id: &ThreadId,
    session: &LoadedSession,
    is_json: bool,
) -> Result<ProgramExit, CliProblem> {
    let secrets = setup.secrets();
    let edits = windlass::record::Edits::of_session(&setup.home, id).and_then(|edits| edits.list());
    let edits = edits.map_err(|error| CliProblem::failed(chain(&error)))?;
    let numbers: Vec<_> = session.turns.iter().map(|turn| turn.number).collect();
    let rows = session.turns.iter().enumerate().map(|(at, turn)| {
        let next = numbers.get(at + 1).copied().unwrap_or(usize::MAX);
        let is_of_turn = |edit: &&record::Edit| (turn.number..next).contains(&edit.turn);
        let open = edits.iter().filter(is_of_turn).filter(|edit| !edit.undone && !edit.is_undo());
        let mut files: Vec<_> = open.flat_map(|edit| &edit.files).map(|file| &file.path).collect();
        files.sort();
        files.dedup();
        (at + 1, turn, files.len(), secrets.clean(&turn.message).into_owned())
    });
    if is_json {
        let line = |(number, turn, files, text): (usize, &LoadedTurn, usize, String)| {
            let time = turn.begun.map(|begun| begun.to_string());
            format!("{}\n", json!({"message": number, "time": time, "files": files, "text": text}))
        };
        return print(&rows.map(line).collect::<String>());
    }
    if session.turns.is_empty() {
        crate::note(&format!("session {id} has no messages"));
        return Ok(ProgramExit::Done);
    }
    let rows = rows.map(|(number, turn, files, text)| {
        [number.to_string(), turn.begun.map(when).unwrap_or_default(), files.to_string(), one_line(&text)]
    });
    let titles = ["MESSAGE", "TIME", "FILES", "TEXT"];
    let expendable = &["FILES", "TIME"];
    print(&TextTable { titles, expendable, last: LastColumn::Cut, rows: rows.collect() }.text())
}

/// A rewind of a session.
struct SessionRewind<'a> {
    setup: &'a ProgramSetup,
    id: &'a ThreadId,
    session: &'a LoadedSession,
    /// The first turn that is taken back.
    turn: &'a LoadedTurn,
    /// The number of its message.
    message: usize,
    options: &'a RewindOptions,
}

impl SessionRewind<'_> {
    /// Shows what would be taken back, asks, and does it. Without a file it is only shown.
    fn run(&self, file: Option<&SessionFile>) -> Result<ProgramExit, CliProblem> {
        self.show_messages()?;
        let (end, undone) = if self.options.keep_files {
            (self.ask_about_conversation()?, Vec::new())
        } else {
            let changes = ChangesSinceTurn::read(self.setup, self.id, self.turn.number, self.undo_options())?;
            let partly = changes.partly_recorded();
            if partly > 0 {
                let commands = windlass::counted(partly as u64, "command");
                crate::note(&format!("note: changes of {commands} were not recorded, or only in part"));
            }
            let calls = changes.calls();
            (changes.undo(QUESTION)?, calls)
        };
        match (end, file) {
            (UndoEnd::Declined(exit), _) => {
                crate::note("nothing was taken back");
                Ok(exit)
            }
            (UndoEnd::Undone(changes), Some(file)) => {
                // Last: if this process ends before, the same command finishes the work.
                let rewind = Rewind { turn: self.turn.number, undone: undone.clone() };
                file.rewind(&rewind).map_err(|error| CliProblem::failed(chain(&error)))?;
                self.report(&changes, &undone)
            }
            (UndoEnd::Previewed(changes) | UndoEnd::Undone(changes), _) if self.options.json => {
                print(&format!("{:#}\n", self.as_json(&changes)))
            }
            (UndoEnd::Previewed(_) | UndoEnd::Undone(_), _) => Ok(ProgramExit::Done),
        }
    }

    /// Returns the options of the undo of the changes.
    fn undo_options(&self) -> UndoOptions {
        let RewindOptions { dry_run, keep_changed, yes, json, .. } = self.options;
        UndoOptions {
            call: None,
            to: None,
            turn: false,
            redo: false,
            list: false,
            preview: *dry_run,
            keep_changed: *keep_changed,
            yes: *yes,
            json: *json,
            session: None,
        }
    }

    /// Shows the messages that are taken back.
    fn show_messages(&self) -> Result<(), CliProblem> {
        if self.options.json {
            return Ok(());
        }
        let secrets = self.setup.secrets();
        let gone = (self.message..).zip(&self.session.turns[self.message - 1..]);
        let lines = gone.map(|(number, turn)| {
            format!("message {number}  {}\n", visible(&one_line(&secrets.clean(&turn.message))))
        });
        print_text(&lines.collect::<String>()).map(drop)
    }

    /// Asks a person about a rewind that changes no files.
    fn ask_about_conversation(&self) -> Result<UndoEnd, CliProblem> {
        if self.options.dry_run {
            return Ok(UndoEnd::Previewed(Vec::new()));
        }
        if self.options.yes || !is_attended() {
            return Ok(UndoEnd::Undone(Vec::new()));
        }
        let stop = Stop::default();
        interrupts::watch(stop.clone(), Window::default())?;
        Ok(match crate::runtime()?.block_on(confirm(QUESTION, &stop))? {
            ConfirmAnswer::Yes => UndoEnd::Undone(Vec::new()),
            ConfirmAnswer::No => UndoEnd::Declined(ProgramExit::Failed),
            ConfirmAnswer::Interrupted => UndoEnd::Declined(ProgramExit::Interrupted),
        })
    }

    fn report(&self, changes: &[Value], undone: &[CallId]) -> Result<ProgramExit, CliProblem> {
        if self.options.json {
            return print(&format!("{:#}\n", self.as_json(changes)));
        }
        let files = match undone.len() {
            _ if self.options.keep_files => "the files are as they were".to_owned(),
            0 => "no file had been changed".to_owned(),
            count => format!("{} undone", windlass::counted(count as u64, "change")),
        };
        crate::note(&format!("session {} is back before message {}; {files}", self.id, self.message));
        crate::note(&format!("to go on:  windlass resume {}", self.id));
        Ok(ProgramExit::Done)
    }

    fn as_json(&self, changes: &[Value]) -> Value {
        let secrets = self.setup.secrets();
        let gone = (self.message..).zip(&self.session.turns[self.message - 1..]);
        let messages: Vec<_> = gone
            .map(|(number, turn)| json!({"message": number, "text": secrets.clean(&turn.message)}))
            .collect();
        json!({
            "session": self.id,
            "dry_run": self.options.dry_run,
            "keep_files": self.options.keep_files,
            "messages": messages,
            "changes": changes,
        })
    }
}

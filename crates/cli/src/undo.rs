//! `windlass undo`: undoes changes of tools and commands, unless the files have changed since.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use windlass::{
    Action, ApprovalPolicy, Archive, CallId, Change, Expected, Files, Host, Policy, Sandbox, SandboxMode,
    Stop,
    host::{Machine, Window, restore_entries},
    record::{self, Edit, EditedFile, Edits, UNDO},
};

pub(crate) use self::show::change_diff;
use self::{choice::chosen, conflicts::EditConflicts, names::CallNames, show::EditView};
use crate::{
    args::{CommonOptions, UndoOptions},
    confirm::{ConfirmAnswer, confirm, is_attended},
    exit::ProgramExit,
    ids, interrupts,
    output::{print, print_text},
    problem::{CliProblem, chain},
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
    wrap,
};

mod choice;
mod claims;
mod conflicts;
mod names;
mod session_diff;
mod show;
mod since_turn;

pub(crate) use session_diff::session_diff;
pub(crate) use since_turn::ChangesSinceTurn;

/// The edits of a session, or of calls outside of any.
struct EditPlace {
    edits: Edits,
    list: Vec<Edit>,
}

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &UndoOptions) -> Result<ProgramExit, CliProblem> {
    if common.sandbox.map(SandboxMode::from) == Some(SandboxMode::ReadOnly) {
        return Err(CliProblem::usage("`undo` writes files, which `--sandbox read-only` forbids"));
    }
    let setup = ProgramSetup::for_tools(common)?;
    recover(&setup);
    let only_shows = args.list || args.preview;
    let _lock = (!only_shows).then(|| lock(&setup)).transpose()?;
    let mut all = everywhere(&setup)?;
    claims::leave_to_others(&mut all);
    let here: Vec<_> = all.iter().filter_map(|place| place.below(&setup.cwd)).collect();
    let mut places = match &args.session {
        Some(name) => {
            let id = ids::session_id(&setup, name)?;
            let edits = Edits::of_session(&setup.home, &id).map_err(|error| session(&error))?;
            let known = all.iter().find(|place| place.edits.session() == edits.session());
            vec![known.map_or_else(|| EditPlace { edits, list: Vec::new() }, EditPlace::copy)]
        }
        None => here.iter().map(EditPlace::copy).collect(),
    };
    let mut names = CallNames::open(&setup, places.iter().chain(&here));
    names.note_unfinished();
    if let Some(name) = args.call.as_ref().or(args.to.as_ref())
        && args.session.is_none()
        && !names.knows(&places, name)
    {
        // An id means its call wherever that worked.
        places = all.iter().map(EditPlace::copy).collect();
        names = CallNames::open(&setup, places.iter().chain(&here));
        if !names.knows(&places, name) {
            return Err(choice::unknown(&setup, name));
        }
    }
    if args.list {
        return list(&places, &names, &setup, args.json);
    }
    let (place, chosen) = chosen(&places, args, &names)?;
    note_newer(&here, place, &chosen, &names);
    let host = host(&setup, &place.edits)?;
    let undo = UndoRun { setup: &setup, edits: &place.edits, files: host.files(), names: &names, args };
    let end = crate::runtime()?.block_on(undo.run(&chosen, "Undo this? [y/N] "))?;
    match end {
        UndoEnd::Declined(exit) => {
            crate::note("nothing was undone");
            Ok(exit)
        }
        UndoEnd::Previewed(shown) | UndoEnd::Undone(shown) if args.json => {
            print(&format!("{:#}\n", Value::Array(shown)))
        }
        UndoEnd::Previewed(_) | UndoEnd::Undone(_) => Ok(ProgramExit::Done),
    }
}

/// Completes or rolls back an interrupted edit: only then do files and log agree.
fn recover(setup: &ProgramSetup) {
    for message in windlass::recover_edits(&setup.home) {
        crate::note(&format!("warning: {}", visible(&message)));
    }
}

/// Keeps other processes from undoing while the file is open.
fn lock(setup: &ProgramSetup) -> Result<File, CliProblem> {
    Edits::lock_undo(&setup.home).map_err(|error| {
        CliProblem::failed(format!("cannot undo while another `windlass undo` runs: {error}"))
    })
}

/// The end of an undo.
pub(crate) enum UndoEnd {
    /// The changes were only shown. With `--json`, they are here.
    Previewed(Vec<Value>),
    /// The changes were undone. With `--json`, they are here.
    Undone(Vec<Value>),
    /// The person did not want it.
    Declined(ProgramExit),
}

fn session(error: &record::SessionError) -> CliProblem {
    CliProblem::failed(chain(error))
}

impl EditPlace {
    fn copy(&self) -> Self {
        Self { edits: self.edits.clone(), list: self.list.clone() }
    }

    /// Returns the edits of files below a directory: a person who works here does not mean those of
    /// other directories.
    fn below(&self, directory: &Path) -> Option<Self> {
        let is_below = |edit: &&Edit| {
            let unkept = edit.command.iter().flat_map(|note| &note.unkept).map(|file| Path::new(&file.path));
            let mut paths = edit.files.iter().map(|file| file.path.as_path()).chain(unkept);
            paths.any(|path| path.starts_with(directory))
        };
        let list: Vec<_> = self.list.iter().filter(is_below).cloned().collect();
        (!list.is_empty()).then(|| Self { edits: self.edits.clone(), list })
    }
}

/// Returns the edits of all sessions and of calls outside of any.
fn everywhere(setup: &ProgramSetup) -> Result<Vec<EditPlace>, CliProblem> {
    let mut places = Vec::new();
    for edits in Edits::all(&setup.home).map_err(|error| session(&error))? {
        let list = edits.list().map_err(|error| session(&error))?;
        let damaged = edits.damaged_lines().map_err(|error| session(&error))?;
        if damaged > 0 {
            let owner =
                edits.session().map_or("calls without a session".to_owned(), |id| format!("session {id}"));
            let what = match damaged {
                1 => "a line cannot be read, and its change".to_owned(),
                lines => format!("{lines} lines cannot be read, and their changes"),
            };
            crate::note(&format!("warning: the edit log of {owner} is damaged: {what} cannot be undone"));
        }
        places.push(EditPlace { edits, list });
    }
    Ok(places)
}

fn list(
    places: &[EditPlace],
    names: &CallNames,
    setup: &ProgramSetup,
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let views = places
        .iter()
        .flat_map(|place| place.list.iter().map(|edit| EditView { edit, edits: &place.edits, names, setup }));
    let mut views: Vec<_> = views.collect();
    views.sort_by_key(|view| view.edit.order());
    if json {
        let all: Vec<Value> = views.iter().map(EditView::as_json).collect();
        return print(&format!("{:#}\n", Value::Array(all)));
    }
    if views.iter().any(|view| view.edit.command.is_some()) {
        crate::note("note: changes that commands made to ignored files and `.git` are not recorded");
    }
    if wrap::stdout_columns().is_some() && !views.is_empty() {
        let rows = views.iter().map(EditView::row).collect();
        let titles = ["CALL", "TIME", "CHANGES"];
        return print(&TextTable { titles, expendable: &[], last: LastColumn::Wrapped, rows }.text());
    }
    print(&views.iter().map(EditView::line).collect::<String>())
}

/// Notes that other sessions changed files here since. Those are left alone.
fn note_newer(here: &[EditPlace], chosen_place: &EditPlace, chosen: &[&Edit], names: &CallNames) {
    let newest = chosen.iter().map(|edit| edit.order()).max();
    let others = here.iter().filter(|place| place.edits.session() != chosen_place.edits.session());
    let newer = others.flat_map(|place| place.list.iter().map(move |edit| (place, edit)));
    let newer = newer.filter(|(_, edit)| choice::is_open(edit) && Some(edit.order()) > newest);
    if let Some((place, edit)) = newer.max_by_key(|(_, edit)| edit.order()) {
        let session =
            place.edits.session().map_or("a call without a session".to_owned(), |id| format!("session {id}"));
        let name = names.display_name(&place.edits, edit);
        crate::note(&format!(
            "note: {session} changed files here since then (call {}); those changes are kept",
            visible(&name)
        ));
    }
}

/// Returns a host that may write wherever the tools could: it only restores earlier contents. That
/// is safe only if no link redirects a path by now: see [`EditConflicts`].
fn host(setup: &ProgramSetup, edits: &Edits) -> Result<Arc<dyn Host>, CliProblem> {
    let policy = Policy { sandbox: SandboxMode::DangerFullAccess, ..setup.policy(ApprovalPolicy::Never) };
    let machine = Machine::new(BTreeMap::new()).with_archive(Arc::new(edits.clone()));
    machine.confine(&policy.grant_to_person()).map_err(|error| CliProblem::failed(chain(&error)))
}

struct UndoRun<'a> {
    setup: &'a ProgramSetup,
    edits: &'a Edits,
    files: &'a dyn Files,
    names: &'a CallNames,
    args: &'a UndoOptions,
}

impl UndoRun<'_> {
    /// Shows the changes, asks and undoes them, unless files have changed since.
    async fn run(&self, chosen: &[&Edit], question: &str) -> Result<UndoEnd, CliProblem> {
        let conflicts = EditConflicts::find(self, chosen).await?;
        let as_json = || -> Vec<Value> {
            let edits = chosen.iter().filter(|_| self.args.json);
            edits.map(|edit| self.view(edit).as_json_with_diff(&conflicts)).collect()
        };
        if self.args.preview && self.args.json {
            return Ok(UndoEnd::Previewed(as_json()));
        }
        let is_asked = !self.args.yes && is_attended();
        if self.args.preview || is_asked {
            print_text(&chosen.iter().map(|edit| self.view(edit).whole()).collect::<String>())?;
        }
        let skipped: HashSet<&Path> = conflicts.paths().collect();
        if !skipped.is_empty() && !self.args.keep_changed {
            return Err(CliProblem::failed(conflicts.message()));
        }
        if self.args.preview {
            return Ok(UndoEnd::Previewed(Vec::new()));
        }
        if is_asked {
            let stop = Stop::default();
            interrupts::watch(stop.clone(), Window::default())?;
            match confirm(question, &stop).await? {
                ConfirmAnswer::Yes => {}
                ConfirmAnswer::No => return Ok(UndoEnd::Declined(ProgramExit::Failed)),
                ConfirmAnswer::Interrupted => return Ok(UndoEnd::Declined(ProgramExit::Interrupted)),
            }
        }
        for edit in chosen {
            self.undo(edit, &skipped).await?;
        }
        Ok(UndoEnd::Undone(as_json()))
    }

    fn view<'a>(&'a self, edit: &'a Edit) -> EditView<'a> {
        EditView { edit, edits: self.edits, names: self.names, setup: self.setup }
    }

    async fn undo(&self, edit: &Edit, skipped: &HashSet<&Path>) -> Result<(), CliProblem> {
        let files: Vec<_> =
            edit.files.iter().filter(|file| !skipped.contains(file.path.as_path())).cloned().collect();
        let name = self.names.display_name(self.edits, edit);
        let failed = |error: String| {
            CliProblem::failed(format!("cannot undo `{}`: {}", visible(&name), visible(&error)))
        };
        if edit.command.is_some() {
            self.undo_command(edit, &files).map_err(failed)?;
        } else {
            let call: CallId = format!("{UNDO}{}", edit.call).into();
            let host = host(self.setup, &self.edits.undoing(edit))?;
            let undone = host.files().commit(&call, self.changes(&files)?).await;
            undone.map_err(|error| failed(error.to_string()))?;
        }
        let done = if edit.call.as_str().starts_with(UNDO) { "redid" } else { "undid" };
        let line = format!("{done} {}", self.view(edit).line());
        if self.args.json {
            crate::note(line.trim_end());
        } else {
            print_text(&line)?;
        }
        for path in skipped.iter().filter(|path| edit.files.iter().any(|file| file.path == **path)) {
            crate::note(&format!("left as it is: {}", visible_path(path)));
        }
        self.view(edit).unkept().iter().for_each(|line| crate::note(line));
        Ok(())
    }

    /// Undoes the changes of a command: files, links and directories.
    fn undo_command(&self, edit: &Edit, files: &[EditedFile]) -> Result<(), String> {
        let changes: Option<Vec<_>> =
            files.iter().map(|file| file.as_entry_change().map(|change| change.reversed())).collect();
        let changes = changes.ok_or("the edit log is damaged")?;
        let read = |digest: &[u8; 32]| self.edits.content(digest);
        let report =
            restore_entries(&changes, &read, self.edits.notes()).map_err(|error| error.to_string())?;
        for path in &report.left {
            crate::note(&format!(
                "not removed, because it holds something else: {}",
                visible(&path.display().to_string())
            ));
        }
        self.edits.undoing(edit).log_undo(edit, files).map_err(|error| {
            format!("it was undone, but this could not be recorded, so it is still listed: {}", chain(&error))
        })
    }

    fn changes(&self, files: &[EditedFile]) -> Result<Vec<Change>, CliProblem> {
        let mut changes = Vec::new();
        for file in files {
            let version = |kept: Option<_>| {
                let version = kept.map(|kept| self.edits.version(kept)).transpose();
                version.map_err(|error| session(&error))
            };
            let (after, before) = (version(file.after.as_ref())?, version(file.before.as_ref())?);
            let expected =
                after.as_ref().map_or(Expected::Absent, |after| Expected::Content(Arc::clone(&after.bytes)));
            let action = match (before, after) {
                (Some(before), after) => Action::Restore { before, after },
                (None, Some(_)) => Action::Delete { folders: file.folders.clone() },
                (None, None) => continue,
            };
            changes.push(Change { path: PathBuf::from(&file.path), expected, action });
        }
        Ok(changes)
    }
}

/// Sorts places by their newest matching edit, newest first.
fn newest_first(places: &[EditPlace], is_meant: impl Fn(&Edit) -> bool) -> Vec<&EditPlace> {
    let mut places: Vec<_> = places.iter().collect();
    places
        .sort_by_key(|place| Reverse(place.list.iter().filter(|edit| is_meant(edit)).map(Edit::order).max()));
    places
}

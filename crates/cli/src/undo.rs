//! `windlass undo`: takes back what tools have changed in files, unless someone has changed them since.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass::{
    Action, ApprovalPolicy, CallId, Change, Expected, FileError, Files, Host, Policy, Sandbox, SandboxMode,
    Version,
    host::Machine,
    patch::{Side, diff},
    record::{self, Edit, Edits, Kept, UNDO},
};

use crate::{
    args::{Common, Undo},
    exit::Exit,
    output::print,
    paths::Paths,
    problem::{Problem, chain},
    screen::{visible, visible_path},
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Undo) -> Result<Exit, Problem> {
    if common.sandbox.map(SandboxMode::from) == Some(SandboxMode::ReadOnly) {
        return Err(Problem::usage("`undo` writes files, which `--sandbox read-only` forbids"));
    }
    let setup = Setup::for_tools(common)?;
    // An edit that was cut short is finished or taken back first: only then do files and log agree.
    for message in windlass::recover_edits(&setup.home) {
        crate::note(&format!("warning: {}", visible(&message)));
    }
    let mut places = match &args.session {
        Some(id) => {
            let edits =
                Edits::of_session(&setup.home, &id.as_str().into()).map_err(|error| session(&error))?;
            vec![(edits.list().map_err(|error| session(&error))?, edits)]
        }
        None => here(&setup)?,
    };
    if args.list {
        let mut all: Vec<_> = places.iter().flat_map(|(list, _)| list).collect();
        all.sort_by_key(|edit| edit.order());
        return print(&all.into_iter().map(|edit| listed(edit, &setup)).collect::<String>());
    }
    // The place of what is to be taken back, or of nothing, which is told then.
    places.sort_by_key(|(list, _)| {
        Reverse(list.iter().filter(|edit| is_meant(edit, args)).map(Edit::order).max())
    });
    let Some((all, edits)) = places.into_iter().next() else { return Err(nothing()) };
    let chosen = chosen(&all, args)?;
    let host = host(&setup, &edits)?;
    let undo = Undoing { setup: &setup, edits: &edits, files: host.files() };
    crate::runtime()?.block_on(undo.run(&chosen))
}

fn session(error: &record::SessionError) -> Problem {
    Problem::failed(chain(error))
}

/// The edits of files below this directory, by any session or none.
fn here(setup: &Setup) -> Result<Vec<(Vec<Edit>, Edits)>, Problem> {
    let all = Edits::all(&setup.home).map_err(|error| session(&error))?;
    let listed = all.into_iter().map(|edits| {
        let mut list = edits.list().map_err(|error| session(&error))?;
        // Whoever works here does not mean what was done elsewhere.
        list.retain(|edit| edit.files.iter().any(|file| file.path.starts_with(&setup.cwd)));
        Ok((list, edits))
    });
    listed.filter(|listed| !listed.as_ref().is_ok_and(|(list, _)| list.is_empty())).collect()
}

/// Whether this is what is to be taken back, or could be.
fn is_meant(edit: &Edit, args: &Undo) -> bool {
    match &args.call {
        Some(call) => edit.call.as_str() == call,
        None => is_open(edit),
    }
}

/// Whether it is a change that was not taken back.
fn is_open(edit: &Edit) -> bool {
    !edit.undone && !edit.call.as_str().starts_with(UNDO)
}

fn nothing() -> Problem {
    Problem::usage("there is nothing to undo here; name a session with --session, or see --list")
}

/// What is to be taken back, the newest first.
fn chosen<'a>(all: &'a [Edit], args: &Undo) -> Result<Vec<&'a Edit>, Problem> {
    if let Some(call) = &args.call {
        let mut named = all.iter().rev().filter(|edit| edit.call.as_str() == call).peekable();
        if named.peek().is_none() {
            return Err(Problem::usage(format!("there is no call `{call}` that changed files; see --list")));
        }
        let again = || format!("`{call}` is undone already; `windlass undo {UNDO}{call}` does it again");
        return named.find(|edit| !edit.undone).map(|edit| vec![edit]).ok_or_else(|| Problem::usage(again()));
    }
    let mut open = all.iter().rev().filter(|edit| is_open(edit)).peekable();
    let newest = *open.peek().ok_or_else(nothing)?;
    let turn = newest.turn;
    Ok(if args.turn { open.filter(|edit| edit.turn == turn).collect() } else { vec![newest] })
}

/// A machine that may write wherever the tools were allowed to: what is put there is what was there. That holds only
/// where no link leads elsewhere by now: see [`displaced`].
fn host(setup: &Setup, edits: &Edits) -> Result<Arc<dyn Host>, Problem> {
    let policy = Policy { sandbox: SandboxMode::DangerFullAccess, ..setup.policy(ApprovalPolicy::Never) };
    let machine = Machine::new(BTreeMap::new()).with_archive(Arc::new(edits.clone()));
    machine.confine(&policy.grant_to_person()).map_err(|error| Problem::failed(chain(&error)))
}

struct Undoing<'a> {
    setup: &'a Setup,
    edits: &'a Edits,
    files: &'a dyn Files,
}

impl Undoing<'_> {
    async fn run(&self, chosen: &[&Edit]) -> Result<Exit, Problem> {
        for file in chosen.iter().flat_map(|edit| &edit.files) {
            if let Some(link) = displaced(&file.path) {
                return Err(Problem::failed(format!(
                    "not undone: `{}` is not what it was, because `{}` is a link now; remove the link first",
                    visible_path(&file.path),
                    visible_path(link)
                )));
            }
        }
        let conflicts = self.conflicts(chosen).await?;
        if !conflicts.is_empty() {
            return Err(Problem::failed(format!(
                "not undone, because files have changed since; what has changed:\n{conflicts}"
            )));
        }
        for edit in chosen {
            let changes = self.changes(edit)?;
            let call: CallId = format!("{UNDO}{}", edit.call).into();
            let undone = self.files.commit(&call, changes).await;
            undone.map_err(|error| {
                Problem::failed(format!(
                    "cannot undo `{}`: {}",
                    visible(edit.call.as_str()),
                    visible(&error.to_string())
                ))
            })?;
            print(&format!("undid {}", listed(edit, self.setup)))?;
        }
        Ok(Exit::Done)
    }

    /// What is not as the newest of these edits has left it, as a diff.
    async fn conflicts(&self, chosen: &[&Edit]) -> Result<String, Problem> {
        let mut seen: BTreeMap<&Path, Option<&Kept>> = BTreeMap::new();
        for file in chosen.iter().flat_map(|edit| &edit.files) {
            seen.entry(&file.path).or_insert(file.after.as_ref());
        }
        let mut conflicts = String::new();
        for (path, kept) in seen {
            let left = self.version(kept)?;
            let (left, now) = (left.map(|version| version.bytes), self.now(path).await?);
            if left.as_deref() == now.as_deref() {
                continue;
            }
            let name = visible_path(path);
            let side = |bytes| Side { path: name.trim_start_matches('/'), bytes, executable: false };
            conflicts.push_str(&diff(left.as_deref().map(side), now.as_deref().map(side)));
        }
        Ok(conflicts)
    }

    async fn now(&self, path: &Path) -> Result<Option<Vec<u8>>, Problem> {
        let failed = |error: FileError| Problem::failed(chain(&error));
        let file = match self.files.open(path).await {
            Err(FileError::NotFound { .. }) => return Ok(None),
            file => file.map_err(failed)?,
        };
        let size = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
        file.read_at(0, size).await.map(Some).map_err(failed)
    }

    fn changes(&self, edit: &Edit) -> Result<Vec<Change>, Problem> {
        let mut changes = Vec::new();
        for file in &edit.files {
            let (after, before) = (self.version(file.after.as_ref())?, self.version(file.before.as_ref())?);
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

    fn version(&self, kept: Option<&Kept>) -> Result<Option<Version>, Problem> {
        kept.map(|kept| self.edits.version(kept)).transpose().map_err(|error| session(&error))
    }
}

/// The link on the way to a file that was none when the file was changed. Edits are written down by their real names, so
/// any link is new; a tool may have left it there to send the old content where it was never allowed to write.
fn displaced(path: &Path) -> Option<&Path> {
    path.ancestors().find(|part| part.symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// An edit in one line.
fn listed(edit: &Edit, setup: &Setup) -> String {
    let paths = io::stdout().is_terminal().then(|| Paths::seen_from(&setup.cwd));
    let shown = |path: &Path| paths.as_ref().map_or_else(|| visible_path(path), |paths| paths.show(path));
    let files = edit.files.iter().map(|file| {
        let letter = match (&file.before, &file.after) {
            (None, _) => "A",
            (Some(_), None) => "D",
            (Some(_), Some(_)) => "M",
        };
        format!("{letter} {}", shown(&file.path))
    });
    let files = files.collect::<Vec<_>>().join(", ");
    let state = if edit.undone { " (undone)" } else { "" };
    format!("{}  {:.0}{state}  {files}\n", visible(edit.call.as_str()), edit.time)
}

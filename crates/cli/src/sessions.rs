//! `windlass sessions`: lists, shows, searches, names, deletes and exports sessions.

mod delete;
mod disk;
mod export;
mod export_text;
mod rename;
mod search;
mod transcript;
mod tree;

pub(crate) use disk::kept;

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass::{
    Body, Content, ParentKind, ParentSession, Role, ThreadId,
    clean::Secrets,
    is_of_program,
    record::{self, DiskUsage, LoadedSession, SessionEntry, SessionError, SessionNames, SessionSummary},
};

use self::disk::size;
use crate::{
    args::{CommonOptions, SessionsCommand},
    calls::{one_line, when},
    exit::ProgramExit,
    ids::{self, FoundThread},
    output::print,
    paths::PathDisplay,
    problem::{CliProblem, chain},
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{self, LastColumn, TextTable},
    wrap,
};

/// Maximum width of a directory in a table on a terminal.
const MAX_DIRECTORY_COLUMNS: usize = 20;

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &SessionsCommand) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    match args {
        SessionsCommand::List { limit, json } => list(&setup, *limit, *json),
        SessionsCommand::Show { id, json } => show(&setup, ids::thread(&setup, id)?, *json),
        SessionsCommand::Tree { id, limit, json } => tree::run(&setup, id.as_deref(), *limit, *json),
        SessionsCommand::Search(search) => search::run(&setup, search),
        SessionsCommand::Rename(rename) => rename::run(&setup, rename),
        SessionsCommand::Delete { ids, yes } => delete::run(&setup, ids, *yes),
        SessionsCommand::Export(export) => export::run(&setup, export),
        SessionsCommand::Du { json } => disk::usage(&setup, *json),
        SessionsCommand::Gc(collect) => disk::collect_garbage(&setup, collect),
    }
}

/// Returns true if nothing was asked or run in a session. One that cannot be read is not empty.
pub(crate) fn is_empty(setup: &ProgramSetup, id: &ThreadId) -> bool {
    let path = record::find(&setup.home, id).ok().map(|(_, path)| path);
    path.and_then(|path| record::summarize(&path).ok()).is_some_and(|summary| has_nothing(&summary))
}

fn has_nothing(summary: &SessionSummary) -> bool {
    summary.prompt.is_none() && summary.calls == 0
}

/// The directories whose sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPlaces {
    /// The current directory.
    Here,
    /// All directories.
    Everywhere,
}

/// Returns the newest session of the current directory in which something was asked, and its file.
pub(crate) fn newest_here(setup: &ProgramSetup) -> Result<(ThreadId, PathBuf), CliProblem> {
    let found = resumable(setup, SessionPlaces::Here, 1)?.into_iter().next();
    found.map(|(entry, _)| (entry.id, entry.path)).ok_or_else(|| none_here(setup))
}

/// Returns the problem that no session was begun in the current directory.
pub(crate) fn none_here(setup: &ProgramSetup) -> CliProblem {
    CliProblem::usage(chain(&SessionError::NoneIn { cwd: setup.cwd.clone() }))
}

/// Returns the sessions in which something was asked, newest first, each with a line for a person.
pub(crate) fn resumable(
    setup: &ProgramSetup,
    places: SessionPlaces,
    limit: usize,
) -> Result<Vec<(SessionEntry, String)>, CliProblem> {
    let entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    let (secrets, names) = (setup.secrets(), ids::names(setup)?);
    let is_here = |entry: &SessionEntry| places == SessionPlaces::Everywhere || entry.cwd == setup.cwd;
    let here = entries.into_iter().filter(|entry| is_here(entry) && !entry.is_of_sub_agent());
    // A session that cannot be read is listed, and the error appears when it is chosen.
    let summarized = here.map(|entry| (record::summarize(&entry.path).ok(), entry));
    let has_name = |entry: &SessionEntry| names.get(&entry.id).is_some();
    let is_wanted = |(summary, entry): &(Option<SessionSummary>, SessionEntry)| {
        has_name(entry) || !summary.as_ref().is_some_and(has_nothing)
    };
    let found: Vec<_> = summarized.filter(is_wanted).take(limit).collect();
    let all: Vec<_> = found.iter().map(|(_, entry)| entry.id.to_string()).collect();
    let described = found.into_iter().map(|(summary, entry)| {
        let title = title(&names, &entry, summary.as_ref(), &secrets);
        let id = ids::shown(entry.id.as_str(), all.iter().map(String::as_str));
        let directory = match places {
            SessionPlaces::Here => String::new(),
            SessionPlaces::Everywhere => format!("{}  ", directory(setup, &entry)),
        };
        let line = format!("{}  {id}  {directory}{title}", when(entry.started));
        (entry, line)
    });
    Ok(described.collect())
}

fn failed(error: &SessionError) -> CliProblem {
    CliProblem::failed(chain(error))
}

/// Returns the name of a session, or its first prompt, on one line and without secrets. A fork is
/// marked, because it begins as its parent did.
fn title(
    names: &SessionNames,
    entry: &SessionEntry,
    summary: Option<&SessionSummary>,
    secrets: &Secrets,
) -> String {
    let prompt = summary.and_then(|summary| summary.prompt.as_deref()).unwrap_or_default();
    let name = names.get(&entry.id);
    let is_fork = entry.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Fork);
    let mark = if is_fork && name.is_none() { "(fork) " } else { "" };
    one_line(&format!("{mark}{}", secrets.clean(name.unwrap_or(prompt))))
}

fn list(setup: &ProgramSetup, limit: usize, json: bool) -> Result<ProgramExit, CliProblem> {
    let mut entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    let all: Vec<_> = entries.iter().map(|entry| entry.id.to_string()).collect();
    entries.truncate(limit);
    let found: Result<Vec<_>, _> =
        entries.into_iter().map(|entry| record::summarize(&entry.path).map(|found| (entry, found))).collect();
    let found = found.map_err(|error| failed(&error))?;
    let (names, secrets) = (ids::names(setup)?, setup.secrets());
    if json {
        let lines = found.iter().map(|(entry, summary)| {
            let mut line = summary_as_json(entry, summary, &names);
            line["prompt"] = json!(summary.prompt.as_deref().map(|prompt| secrets.clean(prompt)));
            format!("{line}\n")
        });
        return print(&lines.collect::<String>());
    }
    if found.is_empty() {
        crate::note("there are no sessions yet");
        return Ok(ProgramExit::Done);
    }
    let rows = found.iter().map(|(entry, summary)| {
        let id = ids::shown(entry.id.as_str(), all.iter().map(String::as_str));
        let (turns, size) = (summary.turns.to_string(), size(summary.bytes));
        let title = title(&names, entry, Some(summary), &secrets);
        [id, when(entry.started), turns, size, directory(setup, entry), title]
    });
    let titles = ["SESSION", "TIME", "TURNS", "SIZE", "DIRECTORY", "TITLE"];
    let expendable = &["SIZE", "DIRECTORY", "TURNS", "TIME"];
    print(&TextTable { titles, expendable, last: LastColumn::Cut, rows: rows.collect() }.text())
}

/// Returns the directory of a session: complete for programs, and short on a terminal.
fn directory(setup: &ProgramSetup, entry: &SessionEntry) -> String {
    match wrap::stdout_columns() {
        Some(_) => {
            let path = PathDisplay::seen_from(&setup.cwd).show_whole(&entry.cwd);
            wrap::cut_path(&path, MAX_DIRECTORY_COLUMNS)
        }
        None => visible_path(&entry.cwd),
    }
}

fn summary_as_json(entry: &SessionEntry, summary: &SessionSummary, names: &SessionNames) -> Value {
    json!({
        "id": entry.id,
        "name": names.get(&entry.id),
        "started": entry.started.to_string(),
        "changed": summary.changed.to_string(),
        "cwd": entry.cwd,
        "parent": entry.parent,
        "turns": summary.turns,
        "calls": summary.calls,
        "records": summary.records,
        "bytes": summary.bytes,
        "file": entry.path,
    })
}

/// The details of one session.
struct SessionDetails {
    entry: SessionEntry,
    names: SessionNames,
    session: LoadedSession,
    summary: SessionSummary,
    /// Bytes with outputs and edits.
    total: u64,
    /// The prompts of the user, without secrets.
    asked: Vec<String>,
    problems: Vec<String>,
}

/// Runs `show` for a session, or the thread of a call outside of any.
pub(crate) fn show(setup: &ProgramSetup, found: FoundThread, json: bool) -> Result<ProgramExit, CliProblem> {
    let entry = found.entry;
    let session = record::load(&entry.path).map_err(|error| failed(&error))?;
    let summary = record::summarize(&entry.path).map_err(|error| failed(&error))?;
    let usage = DiskUsage::measure(&setup.home).map_err(|error| failed(&error))?;
    let total = usage.sessions.iter().find(|(id, _)| id == entry.id.as_str()).map_or(0, |(_, bytes)| *bytes);
    let secrets = setup.secrets();
    let asked = prompts(&session).map(|text| secrets.clean(&text).into_owned()).collect();
    let problems = session.repaired.iter().map(ToString::to_string).collect();
    let names = ids::names(setup)?;
    let details = SessionDetails { entry, names, session, summary, total, asked, problems };
    print(&if json { format!("{:#}\n", details.as_json()) } else { details.as_text() })
}

impl SessionDetails {
    fn as_json(&self) -> Value {
        let context = self.session.context.as_ref();
        let mut shown = summary_as_json(&self.entry, &self.summary, &self.names);
        shown["version"] = json!(self.session.meta.version);
        shown["provider"] = json!(context.map(|context| &context.provider));
        shown["model"] = json!(context.map(|context| &context.model));
        shown["total_bytes"] = json!(self.total);
        shown["asked"] = json!(self.asked);
        shown["problems"] = json!(self.problems);
        shown
    }

    fn as_text(&self) -> String {
        let Self { entry, names, session, summary, total, asked, problems } = self;
        let model = session.context.as_ref().map_or("none yet".to_owned(), |context| {
            format!("{} ({})", visible(&context.model), visible(&context.provider))
        });
        let rows = [
            ("session", entry.id.to_string()),
            ("name", names.get(&entry.id).map(visible).unwrap_or_default()),
            ("started", format!("{:.0}", entry.started)),
            ("changed", format!("{:.0}", summary.changed)),
            ("directory", visible_path(&entry.cwd)),
            ("from", entry.parent.as_ref().map(parent_in_words).unwrap_or_default()),
            ("model", model),
            ("turns", summary.turns.to_string()),
            ("calls", summary.calls.to_string()),
            ("size", format!("{}, {} with outputs and edits", size(summary.bytes), size(*total))),
            ("file", visible_path(&entry.path)),
        ];
        let problems = problems.iter().map(|problem| ("problem", problem.clone()));
        let asked = asked.iter().map(|text| ("asked", one_line(text)));
        let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
        table::pairs(rows.chain(problems).chain(asked))
    }
}

/// Describes where a session comes from.
fn parent_in_words(parent: &ParentSession) -> String {
    if let Some(agent) = &parent.agent {
        return format!("{} {} of {}", parent.kind.as_str(), visible(agent), parent.id);
    }
    let before = parent.before_message.map(|number| format!(", before message {number}")).unwrap_or_default();
    format!("{} of {}{before}", parent.kind.as_str(), parent.id)
}

/// Returns the user's messages, except those that the program adds in their name.
fn prompts(session: &LoadedSession) -> impl Iterator<Item = String> {
    session
        .transcript()
        .filter_map(|item| match &item.body {
            Body::Message { role: Role::User, content } => Some(Content::join(content)),
            _ => None,
        })
        .filter(|text| !is_of_program(text))
}

//! Lists of tools that a user adds: one JSON object per line, or an array of them, from a file or
//! from stdin.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass::{AgentBuilder, AnyTool, Quarantined, Registry, counted, program, select::Card};

use crate::{problem::CliProblem, screen::named, screen::visible_path};

/// Maximum size of a list: some fifty thousand complete tools.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum number of unusable tools that are reported one by one.
const MAX_PROBLEMS: usize = 20;

/// A tool that is a program.
#[derive(Deserialize)]
struct UserToolRow {
    #[serde(flatten)]
    card: Card,
    #[serde(default)]
    command: Vec<String>,
}

/// A position in a list.
#[derive(Clone, Copy)]
enum ListPosition {
    Line(usize),
    Item(usize),
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Item(number) => write!(f, "item {number}"),
        }
    }
}

/// Adds the tools of a list, each a program. Unusable ones are reported and left out.
pub(crate) fn with_user_tools(
    builder: AgentBuilder,
    path: Option<&Path>,
) -> Result<AgentBuilder, CliProblem> {
    let Some(path) = path else { return Ok(builder) };
    // The model calls them by name alone.
    let rows = usable(path, |row: &UserToolRow| (row.card.name.clone(), row.card.name.clone()), tool)?;
    Ok(rows.into_iter().fold(builder, AgentBuilder::listed_tool))
}

/// Reports the tools that could not be used.
pub(crate) fn report_quarantined(quarantined: &[Quarantined]) {
    for Quarantined { name, reason } in quarantined {
        crate::note(&format!("warning: tool `{}`: {reason}; it is left out", named(name.as_str())));
    }
}

/// Returns a tool that is a program, or why it cannot be one.
fn tool(row: UserToolRow) -> Result<Arc<dyn AnyTool>, String> {
    let UserToolRow { card, command } = row;
    let name = named(&card.name);
    if command.is_empty() {
        return Err(format!(
            "tool `{name}` has no `command`, so it cannot be run; give the program as a list of words"
        ));
    }
    let tool = program(&card.name, &card.description, &card.parameters, command);
    let tool: Arc<dyn AnyTool> = Arc::new(tool.requests(card.examples));
    // A registry of its own, so that every problem is reported with its position.
    let alone = Registry::builder().listed(Arc::clone(&tool)).build();
    let alone = alone.map_err(|errors| errors.to_string())?;
    match alone.quarantined() {
        [] => Ok(tool),
        [why, ..] => Err(format!("tool `{name}`: {}", why.reason)),
    }
}

/// Returns the tools of a list, to choose from. Malformed ones are reported and left out.
pub(crate) fn cards(path: &Path) -> Result<Vec<Card>, CliProblem> {
    usable(path, |card: &Card| (card.name.clone(), card.key()), Ok)
}

/// Returns the usable rows of a list. Names and keys differ because a name may occur once for each
/// server.
fn usable<T: for<'a> Deserialize<'a>, U>(
    path: &Path,
    names: impl Fn(&T) -> (String, String),
    made: impl Fn(T) -> Result<U, String>,
) -> Result<Vec<U>, CliProblem> {
    let mut places: HashMap<String, ListPosition> = HashMap::new();
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for (place, row) in placed::<T>(path)? {
        let row = row.and_then(|row| {
            let (name, key) = names(&row);
            is_new(&mut places, place, &name, key)?;
            made(row)
        });
        match row {
            Ok(row) => rows.push(row),
            Err(problem) => problems.push(format!("`{}`, {place}: {problem}", visible_path(path))),
        }
    }
    if rows.is_empty() && !problems.is_empty() {
        problems.truncate(MAX_PROBLEMS);
        return Err(CliProblem::usage(problems.join("\n")));
    }
    for problem in problems.iter().take(MAX_PROBLEMS) {
        crate::note(&format!("warning: {problem}; it is left out"));
    }
    if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
        crate::note(&format!("warning: left out: {}", counted(more as u64, "more tool")));
    }
    Ok(rows)
}

/// Refuses a tool without a name, or with a name that is taken.
fn is_new(
    places: &mut HashMap<String, ListPosition>,
    place: ListPosition,
    name: &str,
    key: String,
) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("the tool has no name".to_owned());
    }
    match places.entry(key) {
        Entry::Vacant(free) => {
            free.insert(place);
            Ok(())
        }
        Entry::Occupied(other) => {
            let (name, other) = (named(name), other.get());
            Err(format!("the tool `{name}` is already on {other}; remove one, or rename it"))
        }
    }
}

/// Returns the rows of a list.
pub(crate) fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, CliProblem> {
    let read = |(place, row): (ListPosition, Result<T, String>)| {
        row.map_err(|problem| CliProblem::usage(format!("`{}`, {place}: {problem}", visible_path(path))))
    };
    placed(path)?.into_iter().map(read).collect()
}

/// A row, or why it cannot be read.
type ReadRow<T> = (ListPosition, Result<T, String>);

/// Returns the rows of a list, each with its position. `-` is stdin.
fn placed<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<ReadRow<T>>, CliProblem> {
    let text = text(path)?;
    let form = |error: serde_json::Error| {
        format!("{error}; a list is one JSON object per line, or one array of them")
    };
    let rows: Vec<_> = if text.trim_start().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(&text).map_err(|error| {
            let (path, place) = (visible_path(path), ListPosition::Line(error.line()));
            CliProblem::usage(format!("`{path}`, {place}: {}", form(error)))
        })?;
        (1..).map(ListPosition::Item).zip(items.into_iter().map(RawValue::get)).collect()
    } else {
        (1..).map(ListPosition::Line).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect()
    };
    Ok(rows.into_iter().map(|(place, row)| (place, serde_json::from_str(row).map_err(form))).collect())
}

/// Returns the text of a regular file: a device never ends, and a pipe may never begin.
fn text(path: &Path) -> Result<String, CliProblem> {
    if path == Path::new("-") {
        return bounded(io::stdin().lock(), path);
    }
    let unread = |error: io::Error| CliProblem::file("cannot read", path, &error);
    // Checked before opening: opening a pipe waits for its other end.
    let kind = path.metadata().map_err(unread)?;
    if !kind.is_file() {
        return Err(CliProblem::usage(format!(
            "cannot read `{}`: it is not a regular file; pass one, or `-` for stdin",
            visible_path(path)
        )));
    }
    bounded(File::open(path).map_err(unread)?, path)
}

fn bounded(from: impl Read, path: &Path) -> Result<String, CliProblem> {
    let mut text = String::new();
    let read = from.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| CliProblem::file("cannot read", path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES / 1024 / 1024;
        return Err(CliProblem::usage(format!(
            "`{}` is larger than {limit} MB; remove some tools",
            visible_path(path)
        )));
    }
    Ok(text)
}

//! Lists of tools that a user brings: one JSON object per line, or an array of them, from a file or from stdin.

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
use windlass::{AnyTool, program, select::Card};

use crate::{problem::Problem, screen::named, screen::visible_path};

/// The longest list that is read: some fifty thousand tools with everything about them.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A tool that is a program.
#[derive(Deserialize)]
struct Row {
    #[serde(flatten)]
    card: Card,
    #[serde(default)]
    command: Vec<String>,
}

/// Where in a list something is.
#[derive(Clone, Copy)]
enum Place {
    Line(usize),
    Item(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Item(number) => write!(f, "item {number}"),
        }
    }
}

/// The tools of a list, each a program.
pub(crate) fn tools(path: &Path) -> Result<Vec<Arc<dyn AnyTool>>, Problem> {
    let rows = placed::<Row>(path)?;
    // The model calls them by name alone.
    check(path, rows.iter().map(|(place, row)| (*place, row.card.name.as_str(), row.card.name.clone())))?;
    rows.into_iter().map(|(place, row)| tool(row, place, path)).collect()
}

fn tool(row: Row, place: Place, path: &Path) -> Result<Arc<dyn AnyTool>, Problem> {
    let Row { card, command } = row;
    if command.is_empty() {
        let (path, name) = (visible_path(path), named(&card.name));
        return Err(Problem::usage(format!(
            "`{path}`, {place}: tool `{name}` has no `command`, so it cannot be run; give the program as a list of words"
        )));
    }
    let tool = program(&card.name, &card.description, &card.parameters, command);
    Ok(Arc::new(tool.requests(card.examples)))
}

/// The tools of a list, to choose from.
pub(crate) fn cards(path: &Path) -> Result<Vec<Card>, Problem> {
    let rows = placed::<Card>(path)?;
    check(path, rows.iter().map(|(place, card)| (*place, card.name.as_str(), card.key())))?;
    Ok(rows.into_iter().map(|(_, card)| card).collect())
}

/// That every tool has a name, and none that of another.
fn check<'a>(path: &Path, tools: impl Iterator<Item = (Place, &'a str, String)>) -> Result<(), Problem> {
    let mut places = HashMap::new();
    for (place, name, key) in tools {
        let problem = match places.entry(key) {
            _ if name.trim().is_empty() => "the tool has no name".to_owned(),
            Entry::Vacant(free) => {
                free.insert(place);
                continue;
            }
            Entry::Occupied(other) => {
                let (name, other) = (named(name), other.get());
                format!(
                    "the tool `{name}` is on {other} already; leave one out, or give each a name of its own"
                )
            }
        };
        return Err(Problem::usage(format!("`{}`, {place}: {problem}", visible_path(path))));
    }
    Ok(())
}

/// The rows of a list.
pub(crate) fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, Problem> {
    Ok(placed(path)?.into_iter().map(|(_, row)| row).collect())
}

/// The rows of a list, each with where it is. `-` is stdin.
fn placed<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<(Place, T)>, Problem> {
    let text = text(path)?;
    let problem = |place: Place, error: serde_json::Error| {
        let (path, form) = (visible_path(path), "a list is one JSON object per line, or one array of them");
        Problem::usage(format!("`{path}`, {place}: {error}; {form}"))
    };
    let rows: Vec<_> = if text.trim_start().starts_with('[') {
        let items: Vec<&RawValue> =
            serde_json::from_str(&text).map_err(|error| problem(Place::Line(error.line()), error))?;
        (1..).map(Place::Item).zip(items.into_iter().map(RawValue::get)).collect()
    } else {
        (1..).map(Place::Line).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect()
    };
    let parse = |(place, row): (Place, &str)| {
        serde_json::from_str(row).map(|row| (place, row)).map_err(|error| problem(place, error))
    };
    rows.into_iter().map(parse).collect()
}

/// The text of an ordinary file: a device never ends, and a pipe may never begin.
fn text(path: &Path) -> Result<String, Problem> {
    if path == Path::new("-") {
        return bounded(io::stdin().lock(), path);
    }
    let unread = |error: io::Error| Problem::file("cannot read", path, &error);
    // Looked at before it is opened: opening a pipe waits for its other end.
    let kind = path.metadata().map_err(unread)?;
    if !kind.is_file() {
        return Err(Problem::usage(format!(
            "cannot read `{}`: it is not an ordinary file; give one, or `-` for stdin",
            visible_path(path)
        )));
    }
    bounded(File::open(path).map_err(unread)?, path)
}

fn bounded(from: impl Read, path: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    let read = from.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| Problem::file("cannot read", path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES / 1024 / 1024;
        return Err(Problem::usage(format!(
            "`{}` is longer than {limit} MB; leave tools out",
            visible_path(path)
        )));
    }
    Ok(text)
}

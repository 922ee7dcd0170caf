//! Lists of tools that a user brings: one JSON object per line, from a file or from stdin.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use serde::Deserialize;
use windlass::{AnyTool, program, select::Card};

use crate::problem::Problem;

/// The longest list that is read: some ten thousand tools with everything about them.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A tool that is a program.
#[derive(Deserialize)]
struct Row {
    #[serde(flatten)]
    card: Card,
    #[serde(default)]
    command: Vec<String>,
}

/// The tools of a list, each a program.
pub(crate) fn tools(path: &Path) -> Result<Vec<Arc<dyn AnyTool>>, Problem> {
    rows::<Row>(path)?.into_iter().map(|row| tool(row, path)).collect()
}

fn tool(row: Row, path: &Path) -> Result<Arc<dyn AnyTool>, Problem> {
    let Row { card, command } = row;
    if command.is_empty() {
        let (path, name) = (path.display(), card.name);
        return Err(Problem::usage(format!(
            "`{path}`: tool `{name}` has no `command`, so it cannot be run; give the program as a list of words"
        )));
    }
    Ok(Arc::new(program(&card.name, &card.description, &card.parameters, command)))
}

/// The lines of a file, each of which is JSON. `-` is stdin.
pub(crate) fn rows<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, Problem> {
    let text = text(path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| Problem::usage(format!("`{}`, line {number}: {error}", path.display())))
    };
    lines.map(parse).collect()
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
            path.display()
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
            path.display()
        )));
    }
    Ok(text)
}

//! Requests that led to successful calls, read from the session files. The index only has their
//! offsets.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    time::Duration,
};

use jiff::Timestamp;
use serde::Deserialize;
use windlass_contract::{
    Content, Item, ToolName,
    item::{Body, Role},
};

use super::{CallIndexError, Calls, error::SqliteResultExt, store::number};
use crate::{ThreadFolder, session_paths};

/// Maximum number of requests that are read, newest first.
const MAX_REQUESTS: u32 = 200;
/// Maximum number of calls that are searched, newest first: there may be a million.
const MAX_CALLS: u32 = 5000;
/// Maximum length of a line. A longer request is pasted data, and the line at the start of a turn
/// is far shorter.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Maximum number of lines after the start of a turn in which its request is searched. Normally it
/// is the next line.
const MAX_LINES_AHEAD: usize = 4;

/// A request that was answered with calls of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessfulRequest {
    /// The text of the user.
    pub request: String,
    /// The tools with a successful call, as the model named them.
    pub tools: Vec<ToolName>,
    /// The time since the last of these calls.
    pub age: Duration,
}

/// The place of a request in the session files.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RequestLocation {
    thread: String,
    byte: u64,
}

impl Calls {
    /// Returns requests that led to calls which succeeded or were rated good, newest first. A
    /// session file that is gone or was replaced is skipped.
    pub fn requests(&self, now: Timestamp) -> Result<Vec<SuccessfulRequest>, CallIndexError> {
        let mut found: Vec<_> = self.answered().at_path(&self.path)?.into_iter().collect();
        found.sort_by_key(|(_, (last, _))| std::cmp::Reverse(*last));
        let read = |(at, (last, tools)): (RequestLocation, (i64, Vec<String>))| {
            let path = ThreadFolder::Sessions.path_of(&self.home, &at.thread).ok()?;
            let age = u64::try_from(now.as_millisecond().saturating_sub(last)).unwrap_or_default();
            let tools = tools.into_iter().map(ToolName::from).collect();
            Some(SuccessfulRequest {
                request: request_at(&path, at.byte)?,
                tools,
                age: Duration::from_millis(age),
            })
        };
        Ok(found.into_iter().filter_map(read).collect())
    }

    /// Returns the places of the newest such requests, each with the time of its last call and its
    /// tools.
    fn answered(&self) -> rusqlite::Result<BTreeMap<RequestLocation, (i64, Vec<String>)>> {
        let mut statement = self.db.prepare(
            "WITH newest_calls AS (SELECT * FROM calls ORDER BY time DESC LIMIT ?2), \
             good AS (SELECT file, turn_at, tool, time FROM newest_calls \
               WHERE turn_at IS NOT NULL AND coalesce(feedback, success) = 1), \
             newest AS (SELECT file, turn_at FROM good GROUP BY file, turn_at ORDER BY max(time) DESC LIMIT ?1) \
             SELECT thread, turn_at, max(time), tool FROM good JOIN newest USING (file, turn_at) \
               JOIN files ON files.id = file GROUP BY file, turn_at, tool",
        )?;
        let mut rows = statement.query([MAX_REQUESTS, MAX_CALLS])?;
        let mut found: BTreeMap<RequestLocation, (i64, Vec<String>)> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let at = RequestLocation { thread: row.get(0)?, byte: number(row.get(1)?) };
            let (last, tools) = found.entry(at).or_default();
            *last = row.get::<_, i64>(2)?.max(*last);
            tools.push(row.get(3)?);
        }
        Ok(found)
    }
}

/// Reads the text of the user at the start of a turn.
fn request_at(path: &Path, turn_at: u64) -> Option<String> {
    #[derive(Deserialize)]
    struct ItemLine {
        payload: Item,
    }
    let mut file = BufReader::new(session_paths::open_to_read(path).ok()?);
    file.seek(SeekFrom::Start(turn_at)).ok()?;
    (0..=MAX_LINES_AHEAD).find_map(|_| {
        let mut line = Vec::new();
        file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        match serde_json::from_slice::<ItemLine>(&line).ok()?.payload.body {
            Body::Message { role: Role::User, content } => Some(Content::join(&content)),
            _ => None,
        }
    })
}

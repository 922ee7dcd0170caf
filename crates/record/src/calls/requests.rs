//! What was asked for when calls succeeded, read from the session files: the index only knows where that is written.

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

use super::{Calls, CallsError, error::Attempt, store::number};
use crate::{Folder, place};

/// So many requests are read, the newest.
const MOST: u32 = 200;
/// So many calls are looked at, the newest: there may be a million.
const MOST_CALLS: u32 = 5000;
/// What is longer is data that someone pasted; the line that says where a turn begins is far shorter.
const LONGEST_LINE_BYTES: u64 = 64 * 1024;
/// So many lines after the beginning of a turn its request is looked for. It is the next, unless something went wrong.
const NEAR_LINES: usize = 4;

/// A request that tools were the answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What the person wrote.
    pub request: String,
    /// The tools of which a call succeeded, as the model named them.
    pub tools: Vec<ToolName>,
    /// How long ago the last of these calls was.
    pub age: Duration,
}

/// Where a request is written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct At {
    thread: String,
    byte: u64,
}

impl Calls {
    /// Requests that calls were the answer to which did what was asked, or are said to be good; the newest first. A session
    /// file that is gone, or is another by now, says nothing.
    pub fn requests(&self, now: Timestamp) -> Result<Vec<Asked>, CallsError> {
        let mut found: Vec<_> = self.answered().at(&self.path)?.into_iter().collect();
        found.sort_by_key(|(_, (last, _))| std::cmp::Reverse(*last));
        let read = |(at, (last, tools)): (At, (i64, Vec<String>))| {
            let path = Folder::Sessions.path_of(&self.home, &at.thread).ok()?;
            let age = u64::try_from(now.as_millisecond().saturating_sub(last)).unwrap_or_default();
            let tools = tools.into_iter().map(ToolName::from).collect();
            Some(Asked { request: request_at(&path, at.byte)?, tools, age: Duration::from_millis(age) })
        };
        Ok(found.into_iter().filter_map(read).collect())
    }

    /// Where the newest such requests are, each with when it was answered last and by which tools.
    fn answered(&self) -> rusqlite::Result<BTreeMap<At, (i64, Vec<String>)>> {
        let mut statement = self.db.prepare(
            "WITH newest_calls AS (SELECT * FROM calls ORDER BY time DESC LIMIT ?2), \
             good AS (SELECT file, turn_at, tool, time FROM newest_calls \
               WHERE turn_at IS NOT NULL AND coalesce(feedback, success) = 1), \
             newest AS (SELECT file, turn_at FROM good GROUP BY file, turn_at ORDER BY max(time) DESC LIMIT ?1) \
             SELECT thread, turn_at, max(time), tool FROM good JOIN newest USING (file, turn_at) \
               JOIN files ON files.id = file GROUP BY file, turn_at, tool",
        )?;
        let mut rows = statement.query([MOST, MOST_CALLS])?;
        let mut found: BTreeMap<At, (i64, Vec<String>)> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let at = At { thread: row.get(0)?, byte: number(row.get(1)?) };
            let (last, tools) = found.entry(at).or_default();
            *last = row.get::<_, i64>(2)?.max(*last);
            tools.push(row.get(3)?);
        }
        Ok(found)
    }
}

/// What the person wrote at the beginning of a turn.
fn request_at(path: &Path, turn_at: u64) -> Option<String> {
    #[derive(Deserialize)]
    struct Line {
        payload: Item,
    }
    let mut file = BufReader::new(place::open_to_read(path).ok()?);
    file.seek(SeekFrom::Start(turn_at)).ok()?;
    (0..=NEAR_LINES).find_map(|_| {
        let mut line = Vec::new();
        file.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line).ok()?;
        match serde_json::from_slice::<Line>(&line).ok()?.payload.body {
            Body::Message { role: Role::User, content } => Some(Content::join(&content)),
            _ => None,
        }
    })
}

//! Looks up calls: in the index, and their records in the session files.

use std::{
    io::{BufRead, BufReader, Seek, SeekFrom},
    ops::ControlFlow,
    path::PathBuf,
    time::Duration,
};

use jiff::Timestamp;
use rusqlite::{Row, params};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use windlass_contract::{
    CallId, Clean, Journal, ToolCall, ToolName,
    id::ThreadId,
    journal::{Feedback, Rating, Record},
};

use super::{CallIndexError, Calls, error::SqliteResultExt, store::number};
use crate::{SessionError, SessionFile, ThreadFolder, error::cannot, session_paths};

/// A row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// A short hash that identifies the call. A unique prefix is enough for [`Calls::find`].
    pub handle: String,
    /// The id from the model, unique only within an answer.
    pub id: CallId,
    /// Its tool, as the model named it.
    pub tool: ToolName,
    /// The session, or the file of a standalone call.
    pub thread: ThreadId,
    /// The kind of thread.
    pub folder: ThreadFolder,
    /// The working directory of the thread.
    pub cwd: PathBuf,
    /// The time of the request.
    pub time: Timestamp,
    /// The first half of the SHA-256 of its input, as hexadecimal digits. Equal inputs have equal
    /// hashes.
    pub input_hash: String,
    /// The length of its input.
    pub bytes_in: u64,
    /// The decision that allowed it; empty if it was not allowed.
    pub decision: String,
    /// The mechanism that confined it; empty if it never ran.
    pub held: String,
    /// The status at its end; none if no end is recorded.
    pub status: Option<String>,
    /// The kind of failure.
    pub class: Option<String>,
    /// Set if it succeeded or failed; none if its end says nothing about the tool.
    pub success: Option<bool>,
    /// Its duration.
    pub duration: Duration,
    /// The length of its result.
    pub bytes_out: u64,
    /// The verdict, as the session file has it.
    pub verdict: Option<Value>,
    /// The last rating by the user.
    pub feedback: Option<Rating>,
    asked_at: u64,
    intent_at: Option<u64>,
    ended_at: Option<u64>,
    said_at: Option<u64>,
}

/// Selects calls. Every condition that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// The tool.
    pub tool: Option<String>,
    /// The status; `running` for calls that have not ended.
    pub status: Option<String>,
    /// The earliest time of the request.
    pub since: Option<Timestamp>,
    /// The session.
    pub session: Option<ThreadId>,
    /// The rating by the user.
    pub feedback: Option<Rating>,
}

/// The records of a call in its session file.
#[derive(Debug)]
pub struct CallRecord {
    /// The call, as the model wrote it.
    pub call: ToolCall,
    /// The record from before it ran, if it did.
    pub intent: Option<Value>,
    /// The record of its end, if it ended.
    pub outcome: Option<Value>,
    /// The last feedback of the user.
    pub feedback: Option<Feedback>,
}

const COLUMNS: &str = "SELECT handle, call, tool, thread, folder, cwd, time, lower(hex(input_hash)), bytes_in, decision, held, \
    status, class, success, duration_ms, bytes_out, verdict, asked_at, intent_at, ended_at, feedback, said_at \
    FROM calls JOIN files ON files.id = calls.file";

impl Call {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let folder: String = row.get(4)?;
        let verdict: Option<String> = row.get(16)?;
        Ok(Self {
            handle: row.get(0)?,
            id: row.get::<_, String>(1)?.into(),
            tool: row.get::<_, String>(2)?.into(),
            thread: row.get::<_, String>(3)?.into(),
            folder: if folder == ThreadFolder::Calls.name() {
                ThreadFolder::Calls
            } else {
                ThreadFolder::Sessions
            },
            cwd: row.get::<_, String>(5)?.into(),
            time: Timestamp::from_millisecond(row.get(6)?).unwrap_or_default(),
            input_hash: row.get(7)?,
            bytes_in: number(row.get(8)?),
            decision: row.get(9)?,
            held: row.get(10)?,
            status: row.get(11)?,
            class: row.get(12)?,
            success: row.get(13)?,
            duration: Duration::from_millis(number(row.get(14)?)),
            bytes_out: number(row.get(15)?),
            verdict: verdict.and_then(|text| serde_json::from_str(&text).ok()),
            asked_at: number(row.get(17)?),
            intent_at: row.get::<_, Option<i64>>(18)?.map(number),
            ended_at: row.get::<_, Option<i64>>(19)?.map(number),
            feedback: row.get::<_, Option<bool>>(20)?.map(rating),
            said_at: row.get::<_, Option<i64>>(21)?.map(number),
        })
    }
}

impl Calls {
    /// Calls `show` for each selected call, newest first, until it returns `Break`.
    pub fn for_each_call(
        &self,
        wanted: &CallFilter,
        mut show: impl FnMut(Call) -> ControlFlow<()>,
    ) -> Result<(), CallIndexError> {
        let CallFilter { tool, status, since, session, feedback } = wanted;
        let good = feedback.map(|rating| rating == Rating::Good);
        let since = since.map(Timestamp::as_millisecond);
        let session = session.as_ref().map(ThreadId::as_str);
        let sql = format!(
            "{COLUMNS} WHERE (?1 IS NULL OR tool = ?1) AND (?2 IS NULL OR coalesce(status, 'running') = ?2) \
             AND (?3 IS NULL OR time >= ?3) AND (?4 IS NULL OR thread = ?4) AND (?5 IS NULL OR feedback = ?5) \
             ORDER BY time DESC, thread DESC, asked_at DESC"
        );
        let mut run = || -> rusqlite::Result<()> {
            let mut statement = self.db.prepare(&sql)?;
            let mut rows = statement.query(params![tool, status, since, session, good])?;
            while let Some(row) = rows.next()? {
                if show(Call::from_row(row)?).is_break() {
                    break;
                }
            }
            Ok(())
        };
        run().at_path(&self.path)
    }

    /// Finds calls by a prefix of the handle or by the id from the model, newest first.
    pub fn find(&self, name: &str) -> Result<Vec<Call>, CallIndexError> {
        let sql = format!(
            "{COLUMNS} WHERE call = ?1 OR (length(?1) >= 4 AND handle >= ?1 AND handle < ?1 || 'g') ORDER BY time DESC LIMIT 20"
        );
        let run =
            || -> rusqlite::Result<_> { self.db.prepare(&sql)?.query_map([name], Call::from_row)?.collect() };
        run().at_path(&self.path)
    }

    /// Reads the records of a call from its session file.
    pub fn read_record(&self, call: &Call) -> Result<CallRecord, CallIndexError> {
        #[derive(Deserialize)]
        struct CallItem {
            body: ToolCall,
        }
        #[derive(Deserialize)]
        struct RawOutcome {
            outcome: Value,
        }
        let path = call.folder.path_of(&self.home, call.thread.as_str())?;
        let changed = || SessionError::Changed { path: path.clone(), call: call.id.to_string() };
        let mut file = BufReader::new(session_paths::open_to_read(&path)?);
        let mut line = |at: u64| -> Result<Box<RawValue>, SessionError> {
            #[derive(Deserialize)]
            struct RawPayload {
                payload: Box<RawValue>,
            }
            let mut text = Vec::new();
            file.seek(SeekFrom::Start(at)).map_err(cannot("read", &path))?;
            file.read_until(b'\n', &mut text).map_err(cannot("read", &path))?;
            serde_json::from_slice(&text).map(|RawPayload { payload }| payload).map_err(|_| changed())
        };
        let CallItem { body } = serde_json::from_str(line(call.asked_at)?.get()).map_err(|_| changed())?;
        if body.id != call.id {
            return Err(changed().into());
        }
        let intent = call.intent_at.map(&mut line).transpose()?;
        let outcome = call.ended_at.map(&mut line).transpose()?;
        let feedback = call.said_at.map(&mut line).transpose()?;
        // A record that is nested too deeply for the parser is left out; it is no error.
        Ok(CallRecord {
            call: body,
            intent: intent.and_then(|payload| serde_json::from_str(payload.get()).ok()),
            outcome: outcome
                .and_then(|payload| serde_json::from_str(payload.get()).ok())
                .map(|RawOutcome { outcome }| outcome),
            feedback: feedback.and_then(|payload| serde_json::from_str(payload.get()).ok()),
        })
    }

    /// Appends the user's feedback on a call to its session file. Fails while another process
    /// writes that file.
    pub fn add_feedback(
        &self,
        call: &Call,
        rating: Option<Rating>,
        note: Clean<String>,
    ) -> Result<(), CallIndexError> {
        let path = call.folder.path_of(&self.home, call.thread.as_str())?;
        let feedback = Clean::feedback(call.id.clone(), call.handle.clone(), rating, note);
        let written = SessionFile::reopen(path)?.append(&Record::Feedback(feedback.as_ref()));
        Ok(written.map_err(SessionError::from)?)
    }
}

fn rating(good: bool) -> Rating {
    if good { Rating::Good } else { Rating::Bad }
}

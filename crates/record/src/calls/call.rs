//! Calls, looked up: which there were, and what the session file says about one.

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
    CallId, Journal, ToolCall, ToolName,
    id::ThreadId,
    journal::{Feedback, Rating, Record},
};

use super::{Calls, CallsError, error::Attempt, store::number};
use crate::{Folder, SessionError, SessionFile, error::cannot, place};

/// A call, as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// A short name, unique but for bad luck. Any part of its beginning that is unique will do for [`Calls::find`].
    pub handle: String,
    /// The name its model gave it, unique in its answer only.
    pub id: CallId,
    /// Its tool, as the model named it.
    pub tool: ToolName,
    /// The session, or the run of a single call.
    pub thread: ThreadId,
    /// Which of the two.
    pub folder: Folder,
    /// Where that was started.
    pub cwd: PathBuf,
    /// When it was asked for.
    pub time: Timestamp,
    /// The first half of the SHA-256 of its input, as hexadecimal digits: the same input has the same.
    pub input_hash: String,
    /// The length of its input.
    pub bytes_in: u64,
    /// Who let it run; empty if nobody did.
    pub decision: String,
    /// What held it; empty if it never ran.
    pub held: String,
    /// How it ended; none if that is not on record.
    pub status: Option<String>,
    /// What kind of failure it was.
    pub class: Option<String>,
    /// Whether it did what was asked; none if its end says nothing about its tool.
    pub success: Option<bool>,
    /// How long it took.
    pub duration: Duration,
    /// The length of what came of it.
    pub bytes_out: u64,
    /// The verdict, as the session file has it.
    pub verdict: Option<Value>,
    /// What a person said of it last.
    pub feedback: Option<Rating>,
    asked_at: u64,
    intent_at: Option<u64>,
    ended_at: Option<u64>,
    said_at: Option<u64>,
}

/// Which calls.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Of this tool.
    pub tool: Option<String>,
    /// With this end; `running` for those without one.
    pub status: Option<String>,
    /// Asked for at this time or later.
    pub since: Option<Timestamp>,
    /// Of this session.
    pub session: Option<ThreadId>,
    /// Of which a person said this.
    pub feedback: Option<Rating>,
}

/// What the session file says about a call.
#[derive(Debug)]
pub struct Recorded {
    /// The call, as its model wrote it.
    pub call: ToolCall,
    /// What was written down before it ran, if it did.
    pub intent: Option<Value>,
    /// How it ended, if it did.
    pub outcome: Option<Value>,
    /// What a person said of it last.
    pub feedback: Option<Feedback>,
}

const COLUMNS: &str = "SELECT handle, call, tool, thread, folder, cwd, time, lower(hex(input_hash)), bytes_in, decision, held, \
    status, class, success, duration_ms, bytes_out, verdict, asked_at, intent_at, ended_at, feedback, said_at \
    FROM calls JOIN files ON files.id = calls.file";

impl Call {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let folder: String = row.get(4)?;
        let verdict: Option<String> = row.get(16)?;
        Ok(Self {
            handle: row.get(0)?,
            id: row.get::<_, String>(1)?.into(),
            tool: row.get::<_, String>(2)?.into(),
            thread: row.get::<_, String>(3)?.into(),
            folder: if folder == Folder::Calls.name() { Folder::Calls } else { Folder::Sessions },
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
    /// Shows calls, the newest first, until told to stop.
    pub fn each(
        &self,
        wanted: &Wanted,
        mut show: impl FnMut(Call) -> ControlFlow<()>,
    ) -> Result<(), CallsError> {
        let Wanted { tool, status, since, session, feedback } = wanted;
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
                if show(Call::of(row)?).is_break() {
                    break;
                }
            }
            Ok(())
        };
        run().at(&self.path)
    }

    /// Every call that may be meant: by the beginning of its handle, or by the name its model gave it. The newest first.
    pub fn find(&self, name: &str) -> Result<Vec<Call>, CallsError> {
        let sql = format!(
            "{COLUMNS} WHERE call = ?1 OR (length(?1) >= 4 AND handle >= ?1 AND handle < ?1 || 'g') ORDER BY time DESC LIMIT 20"
        );
        let run = || -> rusqlite::Result<_> { self.db.prepare(&sql)?.query_map([name], Call::of)?.collect() };
        run().at(&self.path)
    }

    /// What the session file says about a call.
    pub fn recorded(&self, call: &Call) -> Result<Recorded, CallsError> {
        #[derive(Deserialize)]
        struct Item {
            body: ToolCall,
        }
        #[derive(Deserialize)]
        struct Ended {
            outcome: Value,
        }
        let path = call.folder.path_of(&self.home, call.thread.as_str())?;
        let changed = || SessionError::Changed { path: path.clone(), call: call.id.to_string() };
        let mut file = BufReader::new(place::open_to_read(&path)?);
        let mut line = |at: u64| -> Result<Box<RawValue>, SessionError> {
            #[derive(Deserialize)]
            struct Envelope {
                payload: Box<RawValue>,
            }
            let mut text = Vec::new();
            file.seek(SeekFrom::Start(at)).map_err(cannot("read", &path))?;
            file.read_until(b'\n', &mut text).map_err(cannot("read", &path))?;
            serde_json::from_slice(&text).map(|Envelope { payload }| payload).map_err(|_| changed())
        };
        let Item { body } = serde_json::from_str(line(call.asked_at)?.get()).map_err(|_| changed())?;
        if body.id != call.id {
            return Err(changed().into());
        }
        let intent = call.intent_at.map(&mut line).transpose()?;
        let outcome = call.ended_at.map(&mut line).transpose()?;
        let feedback = call.said_at.map(&mut line).transpose()?;
        // What is nested deeper than a parser goes is left out rather than an error.
        Ok(Recorded {
            call: body,
            intent: intent.and_then(|payload| serde_json::from_str(payload.get()).ok()),
            outcome: outcome
                .and_then(|payload| serde_json::from_str(payload.get()).ok())
                .map(|Ended { outcome }| outcome),
            feedback: feedback.and_then(|payload| serde_json::from_str(payload.get()).ok()),
        })
    }

    /// Writes down what a person thinks of a call, in the file of its session. Nobody may be writing that meanwhile.
    pub fn rate(&self, call: &Call, rating: Option<Rating>, note: String) -> Result<(), CallsError> {
        let path = call.folder.path_of(&self.home, call.thread.as_str())?;
        let feedback = Feedback { call: call.id.clone(), handle: call.handle.clone(), rating, note };
        let written = SessionFile::reopen(path)?.append(&Record::Feedback(&feedback));
        Ok(written.map_err(SessionError::from)?)
    }
}

fn rating(good: bool) -> Rating {
    if good { Rating::Good } else { Rating::Bad }
}

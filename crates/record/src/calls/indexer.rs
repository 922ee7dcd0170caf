//! Turns the lines of a session file into rows. A call is requested, perhaps started, and ends.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Seek, SeekFrom},
    ops::ControlFlow,
    os::unix::fs::FileExt,
    path::Path,
};

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_contract::{
    CallId, Content, Input,
    host::Exit,
    journal::{Feedback, Rating},
    outcome::Facts,
};

use super::{
    CallIndexError, Calls,
    error::SqliteResultExt,
    store::{head_at, number, signed},
};
use crate::{
    ChainHead, LineHash, OutputSubstitute, ThreadFolder,
    error::cannot,
    session_line::{LineRead, LineReader},
    session_paths,
};

/// Maximum number of bytes that are read in one transaction, so that other processes get the lock.
const MAX_BATCH_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum size of a verdict in the index. A longer one is only in the session file.
const MAX_VERDICT_BYTES: usize = 2048;

impl Calls {
    /// Returns how many bytes of each file were read.
    pub(super) fn read_so_far(&self) -> Result<HashMap<String, u64>, CallIndexError> {
        let read = || -> rusqlite::Result<_> {
            let mut files = self.db.prepare_cached("SELECT thread, read_bytes FROM files")?;
            files.query_map([], |row| Ok((row.get(0)?, number(row.get(1)?))))?.collect()
        };
        read().at_path(&self.path)
    }

    /// Reads the lines that were added to a file.
    pub(super) fn read(
        &mut self,
        folder: ThreadFolder,
        thread: &str,
        path: &Path,
    ) -> Result<(), CallIndexError> {
        let mut file = session_paths::open_to_read(path)?;
        let mut is_first_batch = true;
        loop {
            let behavior = TransactionBehavior::Immediate;
            let all = self.db.transaction_with_behavior(behavior).at_path(&self.path)?;
            let mut indexer = FileIndexer::begin(&all, folder, thread).at_path(&self.path)?;
            let bytes = file.metadata().map_err(cannot("look at", path))?.len();
            if bytes < indexer.read.bytes {
                indexer.start_over().at_path(&self.path)?;
            }
            let done = loop {
                let from = indexer.read.bytes;
                if !begins_line(&file, from).map_err(cannot("read", path))? {
                    // Damaged records were cut off, and others were written in their place.
                    indexer.start_over().at_path(&self.path)?;
                    continue;
                }
                file.seek(SeekFrom::Start(from)).map_err(cannot("read", path))?;
                let mut lines = LineReader::new(BufReader::new(&file));
                let mut first = is_first_batch;
                let end = loop {
                    let LineRead::Whole(line) = lines.next().map_err(cannot("read", path))? else {
                        break ControlFlow::Break(true);
                    };
                    if first && indexer.is_another_file(line) {
                        break ControlFlow::Continue(());
                    }
                    first = false;
                    indexer.add_line(line).at_path(&self.path)?;
                    if indexer.read.bytes - from >= MAX_BATCH_BYTES {
                        break ControlFlow::Break(false);
                    }
                };
                is_first_batch = false;
                match end {
                    ControlFlow::Break(done) => break done,
                    ControlFlow::Continue(()) => indexer.start_over().at_path(&self.path)?,
                }
            };
            indexer.save().at_path(&self.path)?;
            all.commit().at_path(&self.path)?;
            if done {
                return Ok(());
            }
        }
    }
}

/// Returns true if a line begins at an offset.
fn begins_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut byte = [0];
    match offset.checked_sub(1) {
        Some(before) => file.read_exact_at(&mut byte, before).map(|()| byte == *b"\n"),
        None => Ok(true),
    }
}

/// A file while its lines are added to the index.
struct FileIndexer<'a> {
    rows: &'a Transaction<'a>,
    file: i64,
    thread: &'a str,
    asked: i64,
    /// The offset of the last turn.
    turn_at: Option<i64>,
    read: ChainHead,
    head: ChainHead,
}

/// The fields of every line.
#[derive(Deserialize)]
struct TimedEnvelope<'a> {
    timestamp: Option<Timestamp>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct SessionStart {
    cwd: String,
}

/// An item, with the fields of a call.
#[derive(Deserialize)]
struct ItemPayload<'a> {
    #[serde(borrow)]
    body: CallBody<'a>,
}

#[derive(Deserialize)]
struct CallBody<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    id: Option<CallId>,
    name: Option<String>,
    input: Option<Input>,
}

#[derive(Deserialize)]
struct IntentPayload {
    call: CallId,
    decision: String,
}

#[derive(Deserialize)]
struct OutcomePayload<'a> {
    call: CallId,
    #[serde(borrow)]
    outcome: OutcomeFields<'a>,
}

/// An outcome, parsed so that unknown values of a newer version are kept as they are.
#[derive(Deserialize)]
struct OutcomeFields<'a> {
    status: String,
    #[serde(default)]
    content: Vec<Content>,
    #[serde(borrow)]
    facts: Option<&'a RawValue>,
    #[serde(borrow)]
    verdict: &'a RawValue,
    receipt: ReceiptFields,
}

#[derive(Deserialize)]
struct ReceiptFields {
    held: Option<HeldBy>,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    duration_ms: u64,
    refusal: Option<String>,
    #[serde(default)]
    unknown_tool: bool,
}

#[derive(Deserialize)]
struct HeldBy {
    rung: String,
}

#[derive(Deserialize)]
struct VerdictFields {
    success: bool,
    #[serde(default)]
    reasons: Vec<String>,
}

impl<'a> FileIndexer<'a> {
    fn begin(rows: &'a Transaction<'a>, folder: ThreadFolder, thread: &'a str) -> rusqlite::Result<Self> {
        let now = Timestamp::now().as_millisecond();
        let start = ChainHead::start().link.to_string();
        rows.prepare_cached(
            "INSERT INTO files (thread, folder, changed, read_lines, read_bytes, read_link, head_lines, head_bytes, head_link) \
             VALUES (?1, ?2, ?3, 0, 0, ?4, 0, 0, ?4) ON CONFLICT DO UPDATE SET changed = ?3",
        )?
        .execute(params![thread, folder.name(), now, start])?;
        let sql = "SELECT id, asked, read_lines, read_bytes, read_link, head_lines, head_bytes, head_link, last_turn_at \
                   FROM files WHERE thread = ?1";
        rows.prepare_cached(sql)?.query_row([thread], |row| {
            let (read, head) = (head_at(row, 2)?, head_at(row, 5)?);
            Ok(Self { rows, file: row.get(0)?, thread, asked: row.get(1)?, turn_at: row.get(8)?, read, head })
        })
    }

    /// Returns true if the next line does not follow the lines that were read.
    fn is_another_file(&self, line: &[u8]) -> bool {
        self.read.lines > 0 && self.read.precedes(line) == Some(false)
    }

    fn start_over(&mut self) -> rusqlite::Result<()> {
        self.rows.execute("DELETE FROM calls WHERE file = ?1", [self.file])?;
        (self.asked, self.turn_at, self.read) = (0, None, ChainHead::start());
        Ok(())
    }

    fn save(self) -> rusqlite::Result<()> {
        let Self { rows, file, asked, turn_at, read, head, .. } = self;
        let columns = |head: ChainHead| (signed(head.lines), signed(head.bytes), head.link.to_string());
        let (read, head) = (columns(read), columns(head));
        let sql = "UPDATE files SET asked = ?2, read_lines = ?3, read_bytes = ?4, read_link = ?5, head_lines = ?6, \
                   head_bytes = ?7, head_link = ?8, last_turn_at = ?9 WHERE id = ?1";
        rows.prepare_cached(sql)?
            .execute(params![file, asked, read.0, read.1, read.2, head.0, head.1, head.2, turn_at])
            .map(|_| ())
    }

    /// Adds a line. A line that cannot be parsed is counted, but adds no call.
    fn add_line(&mut self, line: &[u8]) -> rusqlite::Result<()> {
        if let Ok(envelope) = serde_json::from_slice::<TimedEnvelope>(line) {
            let time = envelope.timestamp.unwrap_or(Timestamp::UNIX_EPOCH).as_millisecond();
            let payload = envelope.payload.get();
            match envelope.kind.as_ref() {
                "session_meta" => self.set_cwd(payload)?,
                "turn_context" => self.turn_at = Some(signed(self.read.bytes)),
                "item" => self.insert_call(payload, time)?,
                "intent" => self.set_intent(payload)?,
                "outcome" => self.set_outcome(payload)?,
                "feedback" => self.set_feedback(payload)?,
                _ => {}
            }
        }
        let is_at_head = self.read == self.head;
        self.read = self.read.extended_by(line);
        if is_at_head {
            self.head = self.read;
        }
        Ok(())
    }

    fn set_cwd(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(SessionStart { cwd }) = serde_json::from_str(payload) else { return Ok(()) };
        let set = "UPDATE files SET cwd = ?2 WHERE id = ?1";
        self.rows.prepare_cached(set)?.execute(params![self.file, cwd]).map(|_| ())
    }

    fn insert_call(&mut self, payload: &str, time: i64) -> rusqlite::Result<()> {
        let Ok(ItemPayload { body }) = serde_json::from_str(payload) else { return Ok(()) };
        let (Some(id), Some(tool), Some(input)) = (body.id, body.name, body.input) else { return Ok(()) };
        if body.kind != "call" {
            return Ok(());
        }
        let handle = LineHash::new(format!("{}\0{}\0{id}", self.thread, self.asked).as_bytes()).to_string();
        self.asked += 1;
        let hash = digest(&SHA256, input.as_str().as_bytes());
        self.rows
            .prepare_cached(
                "INSERT INTO calls (file, handle, call, tool, time, input_hash, bytes_in, asked_at, turn_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                self.file,
                &handle[..10],
                id.as_str(),
                tool,
                time,
                &hash.as_ref()[..16],
                signed(input.as_str().len() as u64),
                signed(self.read.bytes),
                self.turn_at,
            ])
            .map(|_| ())
    }

    /// Returns the row of the call with this id that has not ended. Ids need not be unique; then it
    /// is the first.
    fn find_open(&self, call: &CallId) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT min(id) FROM calls WHERE file = ?1 AND call = ?2 AND status IS NULL";
        let id =
            self.rows.prepare_cached(sql)?.query_row(params![self.file, call.as_str()], |row| row.get(0));
        id.optional().map(Option::flatten)
    }

    fn set_intent(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(IntentPayload { call, decision }) = serde_json::from_str(payload) else { return Ok(()) };
        let Some(id) = self.find_open(&call)? else { return Ok(()) };
        let sql = "UPDATE calls SET decision = ?2, intent_at = ?3 WHERE id = ?1";
        self.rows.prepare_cached(sql)?.execute(params![id, decision, signed(self.read.bytes)]).map(|_| ())
    }

    fn set_feedback(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(Feedback { handle, rating, .. }) = serde_json::from_str(payload) else { return Ok(()) };
        let good = rating.map(|rating| rating == Rating::Good);
        let said_at = rating.map(|_| signed(self.read.bytes));
        let sql = "UPDATE calls SET feedback = ?3, said_at = ?4 WHERE file = ?1 AND handle = ?2";
        self.rows.prepare_cached(sql)?.execute(params![self.file, handle, good, said_at]).map(|_| ())
    }

    fn set_outcome(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(OutcomePayload { call, outcome }) = serde_json::from_str(payload) else { return Ok(()) };
        let Some(id) = self.find_open(&call)? else { return Ok(()) };
        let verdict: Option<VerdictFields> = serde_json::from_str(outcome.verdict.get()).ok();
        let (class, success) = classify(&outcome, verdict.as_ref());
        let texts = outcome.content.iter().map(|part| match part {
            Content::Text(text) | Content::Image(text) => text.len() as u64,
            Content::Tool(tool) => tool.description.len() as u64,
        });
        let ReceiptFields { held, decision, duration_ms, .. } = outcome.receipt;
        self.rows
            .prepare_cached(
                "UPDATE calls SET status = ?2, class = ?3, success = ?4, duration_ms = ?5, bytes_out = ?6, verdict = ?7, \
                 held = ?8, ended_at = ?9, decision = CASE ?10 WHEN '' THEN decision ELSE ?10 END WHERE id = ?1",
            )?
            .execute(params![
                id,
                outcome.status,
                class,
                success,
                signed(duration_ms),
                signed(texts.sum()),
                Some(outcome.verdict.get()).filter(|text| text.len() <= MAX_VERDICT_BYTES),
                held.map(|held| held.rung).unwrap_or_default(),
                signed(self.read.bytes),
                decision,
            ])
            .map(|_| ())
    }
}

/// The kind of failure of a call whose tool does not exist.
pub(super) const UNKNOWN_TOOL: &str = "unknown tool";

/// Returns the kind of failure of a call, and whether it succeeded. The latter is none if it says
/// nothing about the tool: the call was refused, or interrupted from outside.
fn classify(outcome: &OutcomeFields<'_>, verdict: Option<&VerdictFields>) -> (Option<String>, Option<bool>) {
    let success = verdict.is_some_and(|verdict| verdict.success);
    let exit = outcome.facts.and_then(|facts| serde_json::from_str::<Facts>(facts.get()).ok()?.exit());
    let lost = [OutputSubstitute::Unknown, OutputSubstitute::NotStarted, OutputSubstitute::Lost]
        .into_iter()
        .filter_map(OutputSubstitute::outcome)
        .any(|note| verdict.is_some_and(|verdict| verdict.reasons == note.verdict.reasons));
    let class = match (outcome.status.as_str(), exit) {
        _ if success => return (None, Some(true)),
        _ if lost => return (Some("cut short".to_owned()), None),
        ("rejected", _) if outcome.receipt.refusal.is_some() => return (Some("refused".to_owned()), None),
        ("rejected", _) => return (Some("interrupted".to_owned()), None),
        ("timeout", _) => "timeout".to_owned(),
        ("permission_denied", _) => "denied".to_owned(),
        (_, Some(Exit::Code(127))) => "command not found".to_owned(),
        // Earlier versions used this status for unknown tools only. No decision is made about an
        // unknown tool.
        ("not_found", _) if outcome.receipt.unknown_tool || outcome.receipt.decision.is_empty() => {
            UNKNOWN_TOOL.to_owned()
        }
        ("not_found", _) => "not found".to_owned(),
        (_, Some(Exit::Code(126))) => "not executable".to_owned(),
        (_, Some(Exit::Code(code))) => format!("exit code {code}"),
        (_, Some(Exit::Signal(signal))) => format!("signal {signal}"),
        ("error", _) => "tool error".to_owned(),
        (other, _) => other.to_owned(),
    };
    (Some(class), Some(false))
}

//! From the lines of a session file to rows: one call is asked for, perhaps let through, and ends.

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
    Calls, CallsError,
    error::Attempt,
    store::{head_at, number, signed},
};
use crate::{
    Folder, Head, Link, Substitute,
    error::cannot,
    line::{Lines, Next},
    place,
};

/// So much is read in one transaction, so that others get their turn.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;
/// A longer verdict is kept in the session file only.
const MAX_VERDICT_BYTES: usize = 2048;

impl Calls {
    /// How many bytes of each file were read.
    pub(super) fn read_so_far(&self) -> Result<HashMap<String, u64>, CallsError> {
        let read = || -> rusqlite::Result<_> {
            let mut files = self.db.prepare_cached("SELECT thread, read_bytes FROM files")?;
            files.query_map([], |row| Ok((row.get(0)?, number(row.get(1)?))))?.collect()
        };
        read().at(&self.path)
    }

    /// Reads what a file has gained.
    pub(super) fn read(&mut self, folder: Folder, thread: &str, path: &Path) -> Result<(), CallsError> {
        let mut file = place::open_to_read(path)?;
        let mut entering = true;
        loop {
            let behavior = TransactionBehavior::Immediate;
            let all = self.db.transaction_with_behavior(behavior).at(&self.path)?;
            let mut reading = Reading::begin(&all, folder, thread).at(&self.path)?;
            let bytes = file.metadata().map_err(cannot("look at", path))?.len();
            if bytes < reading.read.bytes {
                reading.start_over().at(&self.path)?;
            }
            let done = loop {
                let from = reading.read.bytes;
                if !begins_line(&file, from).map_err(cannot("read", path))? {
                    // Damaged records were cut off, and others were written in their place.
                    reading.start_over().at(&self.path)?;
                    continue;
                }
                file.seek(SeekFrom::Start(from)).map_err(cannot("read", path))?;
                let mut lines = Lines::new(BufReader::new(&file));
                let mut first = entering;
                let end = loop {
                    let Next::Whole(line) = lines.next().map_err(cannot("read", path))? else {
                        break ControlFlow::Break(true);
                    };
                    if first && reading.is_another_file(line) {
                        break ControlFlow::Continue(());
                    }
                    first = false;
                    reading.take(line).at(&self.path)?;
                    if reading.read.bytes - from >= BATCH_BYTES {
                        break ControlFlow::Break(false);
                    }
                };
                entering = false;
                match end {
                    ControlFlow::Break(done) => break done,
                    ControlFlow::Continue(()) => reading.start_over().at(&self.path)?,
                }
            };
            reading.end().at(&self.path)?;
            all.commit().at(&self.path)?;
            if done {
                return Ok(());
            }
        }
    }
}

/// Whether a line begins at an offset.
fn begins_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut byte = [0];
    match offset.checked_sub(1) {
        Some(before) => file.read_exact_at(&mut byte, before).map(|()| byte == *b"\n"),
        None => Ok(true),
    }
}

/// One file while it is read.
struct Reading<'a> {
    rows: &'a Transaction<'a>,
    file: i64,
    thread: &'a str,
    asked: i64,
    /// Where the last turn begins.
    turn_at: Option<i64>,
    read: Head,
    head: Head,
}

/// What every line has.
#[derive(Deserialize)]
struct Envelope<'a> {
    timestamp: Option<Timestamp>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct Begun {
    cwd: String,
}

/// An item, as far as it is a call.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    body: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    id: Option<CallId>,
    name: Option<String>,
    input: Option<Input>,
}

#[derive(Deserialize)]
struct Intended {
    call: CallId,
    decision: String,
}

#[derive(Deserialize)]
struct Ended<'a> {
    call: CallId,
    #[serde(borrow)]
    outcome: Outcome<'a>,
}

/// An outcome, read so that a newer version's still makes sense: what is not known here stays as it is.
#[derive(Deserialize)]
struct Outcome<'a> {
    status: String,
    #[serde(default)]
    content: Vec<Content>,
    #[serde(borrow)]
    facts: Option<&'a RawValue>,
    #[serde(borrow)]
    verdict: &'a RawValue,
    receipt: Receipt,
}

#[derive(Deserialize)]
struct Receipt {
    held: Option<Held>,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    duration_ms: u64,
    refusal: Option<String>,
    #[serde(default)]
    unknown_tool: bool,
}

#[derive(Deserialize)]
struct Held {
    rung: String,
}

#[derive(Deserialize)]
struct Verdict {
    success: bool,
    #[serde(default)]
    reasons: Vec<String>,
}

impl<'a> Reading<'a> {
    fn begin(rows: &'a Transaction<'a>, folder: Folder, thread: &'a str) -> rusqlite::Result<Self> {
        let now = Timestamp::now().as_millisecond();
        let start = Head::start().link.to_string();
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

    /// Whether the line that comes next was written after others than those that were read.
    fn is_another_file(&self, line: &[u8]) -> bool {
        self.read.lines > 0 && self.read.leads_to(line) == Some(false)
    }

    fn start_over(&mut self) -> rusqlite::Result<()> {
        self.rows.execute("DELETE FROM calls WHERE file = ?1", [self.file])?;
        (self.asked, self.turn_at, self.read) = (0, None, Head::start());
        Ok(())
    }

    fn end(self) -> rusqlite::Result<()> {
        let Self { rows, file, asked, turn_at, read, head, .. } = self;
        let of = |head: Head| (signed(head.lines), signed(head.bytes), head.link.to_string());
        let (read, head) = (of(read), of(head));
        let sql = "UPDATE files SET asked = ?2, read_lines = ?3, read_bytes = ?4, read_link = ?5, head_lines = ?6, \
                   head_bytes = ?7, head_link = ?8, last_turn_at = ?9 WHERE id = ?1";
        rows.prepare_cached(sql)?
            .execute(params![file, asked, read.0, read.1, read.2, head.0, head.1, head.2, turn_at])
            .map(|_| ())
    }

    /// Takes a line. One that makes no sense says nothing about calls.
    fn take(&mut self, line: &[u8]) -> rusqlite::Result<()> {
        if let Ok(envelope) = serde_json::from_slice::<Envelope>(line) {
            let time = envelope.timestamp.unwrap_or(Timestamp::UNIX_EPOCH).as_millisecond();
            let payload = envelope.payload.get();
            match envelope.kind.as_ref() {
                "session_meta" => self.begun(payload)?,
                "turn_context" => self.turn_at = Some(signed(self.read.bytes)),
                "item" => self.asked(payload, time)?,
                "intent" => self.intended(payload)?,
                "outcome" => self.ended(payload)?,
                "feedback" => self.rated(payload)?,
                _ => {}
            }
        }
        let known = self.read == self.head;
        self.read = self.read.after(line);
        if known {
            self.head = self.read;
        }
        Ok(())
    }

    fn begun(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(Begun { cwd }) = serde_json::from_str(payload) else { return Ok(()) };
        let set = "UPDATE files SET cwd = ?2 WHERE id = ?1";
        self.rows.prepare_cached(set)?.execute(params![self.file, cwd]).map(|_| ())
    }

    fn asked(&mut self, payload: &str, time: i64) -> rusqlite::Result<()> {
        let Ok(Said { body }) = serde_json::from_str(payload) else { return Ok(()) };
        let (Some(id), Some(tool), Some(input)) = (body.id, body.name, body.input) else { return Ok(()) };
        if body.kind != "call" {
            return Ok(());
        }
        let handle = Link::of(format!("{}\0{}\0{id}", self.thread, self.asked).as_bytes()).to_string();
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

    /// The call of this name that has no end yet. Names need not be unique; then the first is meant.
    fn open(&self, call: &CallId) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT min(id) FROM calls WHERE file = ?1 AND call = ?2 AND status IS NULL";
        let id =
            self.rows.prepare_cached(sql)?.query_row(params![self.file, call.as_str()], |row| row.get(0));
        id.optional().map(Option::flatten)
    }

    fn intended(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(Intended { call, decision }) = serde_json::from_str(payload) else { return Ok(()) };
        let Some(id) = self.open(&call)? else { return Ok(()) };
        let sql = "UPDATE calls SET decision = ?2, intent_at = ?3 WHERE id = ?1";
        self.rows.prepare_cached(sql)?.execute(params![id, decision, signed(self.read.bytes)]).map(|_| ())
    }

    fn rated(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(Feedback { handle, rating, .. }) = serde_json::from_str(payload) else { return Ok(()) };
        let good = rating.map(|rating| rating == Rating::Good);
        let said_at = rating.map(|_| signed(self.read.bytes));
        let sql = "UPDATE calls SET feedback = ?3, said_at = ?4 WHERE file = ?1 AND handle = ?2";
        self.rows.prepare_cached(sql)?.execute(params![self.file, handle, good, said_at]).map(|_| ())
    }

    fn ended(&self, payload: &str) -> rusqlite::Result<()> {
        let Ok(Ended { call, outcome }) = serde_json::from_str(payload) else { return Ok(()) };
        let Some(id) = self.open(&call)? else { return Ok(()) };
        let verdict: Option<Verdict> = serde_json::from_str(outcome.verdict.get()).ok();
        let (class, success) = classed(&outcome, verdict.as_ref());
        let texts = outcome.content.iter().map(|part| match part {
            Content::Text(text) | Content::Image(text) => text.len() as u64,
            Content::Tool(tool) => tool.description.len() as u64,
        });
        let Receipt { held, decision, duration_ms, .. } = outcome.receipt;
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

/// What kind of failure a call was, if it was one, and whether it succeeded, if that says something about its tool: what nobody
/// allowed, or what was cut short from outside, does not.
fn classed(outcome: &Outcome<'_>, verdict: Option<&Verdict>) -> (Option<String>, Option<bool>) {
    let success = verdict.is_some_and(|verdict| verdict.success);
    let exit = outcome.facts.and_then(|facts| serde_json::from_str::<Facts>(facts.get()).ok()?.exit());
    let lost = [Substitute::Unknown, Substitute::NotStarted, Substitute::Lost]
        .into_iter()
        .filter_map(Substitute::outcome)
        .any(|note| verdict.is_some_and(|verdict| verdict.reasons == note.verdict.reasons));
    let class = match (outcome.status.as_str(), exit) {
        _ if success => return (None, Some(true)),
        _ if lost => return (Some("cut short".to_owned()), None),
        ("rejected", _) if outcome.receipt.refusal.is_some() => return (Some("refused".to_owned()), None),
        ("rejected", _) => return (Some("interrupted".to_owned()), None),
        ("timeout", _) => "timeout".to_owned(),
        ("permission_denied", _) => "denied".to_owned(),
        (_, Some(Exit::Code(127))) => "command not found".to_owned(),
        // Earlier versions had no other end of this name, and nobody decides about a tool that does not exist.
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

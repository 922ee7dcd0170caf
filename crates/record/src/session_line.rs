//! One line of a session file: writing it and reading it back.

use std::{
    borrow::Cow,
    io::{self, BufRead, Write},
    path::PathBuf,
};

use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use windlass_contract::{
    CallId, Content, Item, Outcome, Verdict,
    compaction::{CompactedHistory, OutputDigest},
    event::Plan,
    journal::{Record, Rewind, SessionMeta, TurnContext},
    outcome::{Facts, Receipt, Status, View},
};

use crate::chain::{LineHash, append_checksum};

/// A record of a session file, with the fields that are needed to rebuild the session.
pub(crate) enum SessionLine {
    Meta(Box<SessionMeta>),
    /// The beginning of a turn, with its time.
    Context(TurnContext, Option<Timestamp>),
    Item(Item),
    Intent(StartedCall),
    Outcome(CallId, CallResult),
    Outputs(Vec<CallId>),
    /// The conversation goes back to the beginning of this turn.
    Rewound(usize),
    Compacted(Box<CompactedHistory>),
    Plan(Plan),
    /// A record that does not belong to the conversation.
    Aside,
}

/// A call that was about to act.
#[derive(Deserialize)]
pub(crate) struct StartedCall {
    pub(crate) call: CallId,
    #[serde(default)]
    pub(crate) effects: DeclaredWrites,
}

/// The files that a call declared to change.
#[derive(Default, Deserialize)]
pub(crate) struct DeclaredWrites {
    #[serde(default)]
    pub(crate) writes: Vec<PathBuf>,
}

/// The result of a call as the model receives it, and what can stand for it.
#[derive(Default)]
pub(crate) struct CallResult {
    pub(crate) content: Vec<Content>,
    pub(crate) failed: bool,
    pub(crate) digest: OutputDigest,
    /// The file that the call read.
    pub(crate) file_read: Option<PathBuf>,
}

/// The fields of a line around its payload.
#[derive(Deserialize)]
pub(crate) struct LineEnvelope<'a> {
    /// The hash of the previous line, as hexadecimal digits.
    #[serde(borrow)]
    pub(crate) prev: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    // Raw, because items hold raw JSON themselves, which survives no other intermediate form.
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl<'a> LineEnvelope<'a> {
    /// Returns the payload as JSON.
    pub(crate) fn payload(&self) -> &str {
        self.payload.get()
    }

    /// Parses a line. The error says in a few words why it makes no sense.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| problem("line", &error))
    }

    /// Parses the payload as one kind of record.
    pub(crate) fn parse_payload<T: DeserializeOwned>(&self) -> Result<T, String> {
        read(self.payload)
    }
}

impl SessionLine {
    /// Parses the payload of a line. The error says in a few words why it makes no sense.
    pub(crate) fn parse(line: &LineEnvelope<'_>) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct EndedCall {
            call: CallId,
            outcome: ModelOutcome,
        }
        #[derive(Deserialize)]
        struct OutputCalls {
            calls: Vec<CallId>,
        }

        let payload = line.payload;
        match line.kind.as_ref() {
            "session_meta" => read(payload).map(Self::Meta),
            "turn_context" => {
                let time = line.timestamp.as_ref().and_then(|time| time.parse().ok());
                read(payload).map(|context| Self::Context(context, time))
            }
            "item" | "inherited" => read(payload).map(Self::Item),
            "rewound" => read(payload).map(|Rewind { turn, .. }| Self::Rewound(turn)),
            "intent" => read(payload).map(Self::Intent),
            "outcome" => {
                read(payload).map(|EndedCall { call, outcome }| Self::Outcome(call, outcome.into_result()))
            }
            "outputs" => read(payload).map(|OutputCalls { calls }| Self::Outputs(calls)),
            "compacted" => read(payload).map(Self::Compacted),
            // Other events do not belong to the conversation.
            "event" => Ok(read(payload).map_or(Self::Aside, |PlanEvent::PlanUpdated(plan)| Self::Plan(plan))),
            "feedback" => Ok(Self::Aside),
            other => Err(format!("`{}` is no type of record this version knows", other.escape_debug())),
        }
    }
}

/// The event of a changed plan. No other event is parsed.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum PlanEvent {
    PlanUpdated(Plan),
}

/// The fields of an outcome that the text for the model is made from. Other fields are skipped: a
/// tool's data may be nested deeper than the parser allows, and must not cost the result.
#[derive(Deserialize)]
struct ModelOutcome {
    status: Status,
    content: Vec<Content>,
    #[serde(default)]
    view: View,
    #[serde(default)]
    facts: Facts,
    #[serde(default)]
    insight: Option<InsightLine>,
    verdict: Verdict,
    #[serde(default)]
    receipt: ReceiptRepairs,
}

/// The line of an insight, and the file that it is about.
#[derive(Deserialize)]
struct InsightLine {
    summary: String,
    kind: String,
    #[serde(default)]
    path: Option<PathBuf>,
}

/// The fields of a receipt that the text for the model is made from.
#[derive(Default, Deserialize)]
struct ReceiptRepairs {
    #[serde(default)]
    repairs: Vec<String>,
}

impl ModelOutcome {
    fn into_result(self) -> CallResult {
        let Self { status, content, view, facts, insight, verdict, receipt } = self;
        let success = verdict.success;
        let outcome = Outcome {
            status,
            content,
            view,
            data: None,
            facts,
            insight: None,
            verdict,
            receipt: Receipt { repairs: receipt.repairs, ..Receipt::default() },
        };
        let summary = insight.as_ref().map(|insight| insight.summary.as_str());
        let is_file = insight.as_ref().is_some_and(|insight| insight.kind == "file");
        let digest = OutputDigest { is_file, ..OutputDigest::new(&outcome, summary) };
        let file_read = insight.filter(|_| is_file && success);
        CallResult {
            content: outcome.for_model(),
            failed: !success,
            digest,
            file_read: file_read.and_then(|insight| insight.path),
        }
    }
}

/// Returns the type of a record by the beginning of its line. The line is not parsed: most of a
/// file are the outputs of commands, and most readers want something else. None if the beginning is
/// not one that Windlass writes.
pub(crate) fn kind_of(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = br#""type":""#;
    /// The time, the hash of the previous line, and the longest type.
    const MAX_BEGINNING: usize = 200;
    let beginning = &line[..line.len().min(MAX_BEGINNING)];
    let at = beginning.windows(KEY.len()).position(|part| part == KEY)? + KEY.len();
    let end = beginning[at..].iter().position(|byte| *byte == b'"')?;
    Some(&beginning[at..at + end])
}

fn read<T: DeserializeOwned>(payload: &RawValue) -> Result<T, String> {
    serde_json::from_str(payload.get()).map_err(|error| problem("payload", &error))
}

/// Formats a parser error without its line number, which is always 1 and would be taken for a line
/// of the file.
fn problem(what: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("the {what} makes no sense, {text} at column {}", error.column())
}

/// Replaces `line` with a record that follows the line with the hash `prev`. The new line has a
/// checksum and a line break. Returns its hash.
pub(crate) fn write(
    record: &Record<'_>,
    now: Timestamp,
    prev: LineHash,
    line: &mut Vec<u8>,
) -> io::Result<LineHash> {
    line.clear();
    write!(line, r#"{{"timestamp":"{now:.3}","prev":"{prev}""#)?;
    // A record is an object; its opening brace becomes the comma after the hash.
    let brace = line.len();
    serde_json::to_writer(&mut *line, record)?;
    line[brace] = b',';
    // A provider's raw JSON may span several lines. Inside JSON a bare line break is always white
    // space.
    line[brace..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.pop();
    Ok(append_checksum(line))
}

/// Reads the lines of a file one at a time, so that only the longest has to fit into memory.
pub(crate) struct LineReader<R> {
    from: R,
    text: Vec<u8>,
    /// The number of the line that was read last.
    pub(crate) number: usize,
    /// The number of bytes in all complete lines so far.
    pub(crate) whole_bytes: u64,
    /// The offset of the last complete line.
    pub(crate) last_at: u64,
}

/// The result of reading a line.
pub(crate) enum LineRead<'a> {
    /// A complete line.
    Whole(&'a [u8]),
    /// The last line, without a line break.
    Torn,
    /// The end of the file.
    End,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, text: Vec::new(), number: 0, whole_bytes: 0, last_at: 0 }
    }

    pub(crate) fn next(&mut self) -> io::Result<LineRead<'_>> {
        self.text.clear();
        let bytes = self.from.read_until(b'\n', &mut self.text)?;
        if bytes == 0 {
            return Ok(LineRead::End);
        }
        self.number += 1;
        if self.text.last() != Some(&b'\n') {
            return Ok(LineRead::Torn);
        }
        self.last_at = self.whole_bytes;
        self.whole_bytes += bytes as u64;
        Ok(LineRead::Whole(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use windlass_contract::item::{Body, Raw};
    use windlass_fakes::clean;

    use super::*;

    fn written(record: &Record<'_>) -> String {
        let mut line = Vec::new();
        write(record, Timestamp::UNIX_EPOCH, LineHash::start(), &mut line).unwrap();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_line_is_the_time_what_it_follows_and_the_record() {
        let calls = [CallId::from("a")];
        assert_eq!(
            written(&Record::Outputs { calls: &calls }),
            "{\"timestamp\":\"1970-01-01T00:00:00.000Z\",\
             \"prev\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\
             \"type\":\"outputs\",\"payload\":{\"calls\":[\"a\"]},\"sum\":\"bcc7b6050fd8edab\"}\n"
        );
    }

    #[test]
    fn raw_json_with_line_breaks_stays_on_one_line() {
        let json = RawValue::from_string("{\n\"a\":\r\n\"x\\ny\"}".into()).unwrap();
        let item = Item { body: Body::Other, raw: Some(Raw { wire: "chat".into(), json }) };
        let line = written(&Record::Item(clean(&item)));
        assert_eq!(line.matches('\n').count(), 1);
        let read = SessionLine::parse(&LineEnvelope::parse(line.as_bytes()).unwrap());
        let Ok(SessionLine::Item(back)) = read else { panic!("{line}") };
        let value =
            |item: Item| serde_json::from_str::<serde_json::Value>(item.raw.unwrap().json.get()).unwrap();
        assert_eq!(value(back), value(item));
    }

    #[test]
    fn a_problem_names_the_column_and_no_second_line_number() {
        let Err(problem) = LineEnvelope::parse(b"{\"type\":\"item\"}\n") else { panic!("parsed") };
        assert_eq!(problem, "the line makes no sense, missing field `payload` at column 15");
    }
}

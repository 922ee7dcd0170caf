//! One line of a session file: how it is written and how it is read back.

use std::{
    borrow::Cow,
    io::{self, BufRead, Write},
};

use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use windlass_contract::{
    CallId, Content, Item, Outcome, Verdict,
    journal::{Record, SessionMeta, TurnContext},
    outcome::{Facts, Receipt, Status, View},
};

use crate::chain::{Link, seal};

/// What a line says, as far as a session is rebuilt from it.
pub(crate) enum Line {
    Meta(SessionMeta),
    Context(TurnContext),
    Item(Item),
    Intent(CallId),
    Outcome(CallId, Vec<Content>),
    Outputs(Vec<CallId>),
    /// Says nothing about the conversation.
    Aside,
}

/// A line around its payload.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    /// The link of the line before, in hexadecimal digits.
    #[serde(borrow)]
    pub(crate) prev: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    // Raw: items hold raw JSON themselves, which survives no other intermediate form.
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl<'a> Envelope<'a> {
    /// Reads a line, or says in a few words why it makes no sense.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| problem("line", &error))
    }
}

impl Line {
    /// Reads the payload of a line, or says in a few words why it makes no sense.
    pub(crate) fn open(line: &Envelope<'_>) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Intent {
            call: CallId,
        }
        #[derive(Deserialize)]
        struct Ended {
            call: CallId,
            outcome: Told,
        }
        #[derive(Deserialize)]
        struct Outputs {
            calls: Vec<CallId>,
        }

        let payload = line.payload;
        match line.kind.as_ref() {
            "session_meta" => read(payload).map(Self::Meta),
            "turn_context" => read(payload).map(Self::Context),
            "item" => read(payload).map(Self::Item),
            "intent" => read(payload).map(|Intent { call }| Self::Intent(call)),
            "outcome" => {
                read(payload).map(|Ended { call, outcome }| Self::Outcome(call, outcome.for_model()))
            }
            "outputs" => read(payload).map(|Outputs { calls }| Self::Outputs(calls)),
            "event" | "feedback" => Ok(Self::Aside),
            other => Err(format!("`{}` is no type of record this version knows", other.escape_debug())),
        }
    }
}

/// The part of an outcome that decides what the model is told. The rest is not read: a tool's data may be nested deeper
/// than a parser goes, and must not cost the result.
#[derive(Deserialize)]
struct Told {
    status: Status,
    content: Vec<Content>,
    #[serde(default)]
    view: View,
    #[serde(default)]
    facts: Facts,
    verdict: Verdict,
    #[serde(default)]
    receipt: Liberties,
}

/// The part of a receipt that the model is told.
#[derive(Default, Deserialize)]
struct Liberties {
    #[serde(default)]
    repairs: Vec<String>,
}

impl Told {
    fn for_model(self) -> Vec<Content> {
        let Self { status, content, view, facts, verdict, receipt } = self;
        Outcome {
            status,
            content,
            view,
            data: None,
            facts,
            insight: None,
            verdict,
            receipt: Receipt { repairs: receipt.repairs, ..Receipt::default() },
        }
        .for_model()
    }
}

fn read<T: DeserializeOwned>(payload: &RawValue) -> Result<T, String> {
    serde_json::from_str(payload.get()).map_err(|error| problem("payload", &error))
}

/// A parser's complaint without its line number, which is always 1 and would be taken for one of the file.
fn problem(what: &str, error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("the {what} makes no sense, {text} at column {}", error.column())
}

/// Replaces `line` by a record that follows another: one line with its checksum and its end.
/// Returns its link.
pub(crate) fn write(record: &Record<'_>, now: Timestamp, prev: Link, line: &mut Vec<u8>) -> io::Result<Link> {
    line.clear();
    write!(line, r#"{{"timestamp":"{now:.3}","prev":"{prev}""#)?;
    // A record is an object; its opening brace becomes the comma after the hash.
    let brace = line.len();
    serde_json::to_writer(&mut *line, record)?;
    line[brace] = b',';
    // A provider's raw JSON may be spread over lines. Inside JSON a bare line break is only ever white space.
    line[brace..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.pop();
    Ok(seal(line))
}

/// The lines of a file, one at a time, so that memory is needed for the longest only.
pub(crate) struct Lines<R> {
    from: R,
    text: Vec<u8>,
    /// The number of the line that was read last.
    pub(crate) number: usize,
    /// How many bytes the whole lines so far take.
    pub(crate) whole_bytes: u64,
    /// Where the last whole line begins.
    pub(crate) last_at: u64,
}

/// The next line of a file.
pub(crate) enum Next<'a> {
    /// A whole line.
    Whole(&'a [u8]),
    /// The last line, without its end.
    Torn,
    /// There is none.
    End,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, text: Vec::new(), number: 0, whole_bytes: 0, last_at: 0 }
    }

    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        self.text.clear();
        let bytes = self.from.read_until(b'\n', &mut self.text)?;
        if bytes == 0 {
            return Ok(Next::End);
        }
        self.number += 1;
        if self.text.last() != Some(&b'\n') {
            return Ok(Next::Torn);
        }
        self.last_at = self.whole_bytes;
        self.whole_bytes += bytes as u64;
        Ok(Next::Whole(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use windlass_contract::item::{Body, Raw};

    use super::*;

    fn written(record: &Record<'_>) -> String {
        let mut line = Vec::new();
        write(record, Timestamp::UNIX_EPOCH, Link::start(), &mut line).unwrap();
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
        let line = written(&Record::Item(&item));
        assert_eq!(line.matches('\n').count(), 1);
        let read = Line::open(&Envelope::parse(line.as_bytes()).unwrap());
        let Ok(Line::Item(back)) = read else { panic!("{line}") };
        let value =
            |item: Item| serde_json::from_str::<serde_json::Value>(item.raw.unwrap().json.get()).unwrap();
        assert_eq!(value(back), value(item));
    }

    #[test]
    fn a_problem_names_the_column_and_no_second_line_number() {
        let Err(problem) = Envelope::parse(b"{\"type\":\"item\"}\n") else { panic!("parsed") };
        assert_eq!(problem, "the line makes no sense, missing field `payload` at column 15");
    }
}

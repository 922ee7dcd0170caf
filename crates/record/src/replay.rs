//! From a session file back to the session it tells of.
//!
//! Every call ends up with exactly one output, whatever the file looks like: a conversation with an unanswered call is
//! refused by every provider and could never be continued.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use windlass_contract::{
    CallId, Content, Item,
    call::InputKind,
    item::Body,
    journal::{SessionMeta, TurnContext},
};

use crate::{
    Head, Repair, SessionError, Substitute, Why,
    error::cannot,
    line::{Envelope, Line, Lines, Next},
    place,
    verified::{Step, VerifiedLine, VerifiedLines},
};

/// A session as its file tells it.
#[derive(Debug)]
pub struct Session {
    /// Where it began.
    pub meta: SessionMeta,
    /// What held for its last turn; none if no turn was begun.
    pub context: Option<TurnContext>,
    /// The conversation. Every call has exactly one output.
    pub history: Vec<Item>,
    /// What was not as it should be, in the order of the file.
    pub repaired: Vec<Repair>,
}

/// Reads a session without changing its file.
pub fn load(path: &Path) -> Result<Session, SessionError> {
    let file = place::open_to_read(path)?;
    replay(path, BufReader::new(file)).map(|replayed| replayed.session)
}

/// A session, and what its file still lacks.
pub(crate) struct Replayed {
    pub(crate) session: Session,
    /// The end of what the session was rebuilt from. What follows is torn or damaged.
    pub(crate) end: Head,
    /// The calls that were given an output at the end, which the file does not have yet.
    pub(crate) settled: Vec<(CallId, Substitute)>,
}

/// Rebuilds a session from its lines, up to the first that is damaged: from there on nothing is
/// certain, not even which output belongs to which call.
pub(crate) fn replay(path: &Path, from: impl BufRead) -> Result<Replayed, SessionError> {
    let mut lines = VerifiedLines::new(from);
    let meta = verified_meta(lines.next().map_err(cannot("read", path))?);
    let meta = meta.map_err(|problem| no_meta(path, problem))?;
    let mut replay = Replay::default();
    loop {
        match lines.next().map_err(cannot("read", path))? {
            Step::Line(VerifiedLine { record: Ok(record), .. }) => replay.take(record),
            Step::Line(VerifiedLine { record: Err(problem), number, .. }) => replay.skip(number, problem),
            Step::Damaged { line, records, .. } => {
                replay.damaged = true;
                replay.repaired.push(Repair::CutOff { line, records, kept: None });
                break;
            }
            // Not damage: a record counts once its append has returned, and this one's never did.
            Step::Torn(line) => replay.repaired.push(Repair::TornLine { line }),
            Step::End => break,
        }
    }
    let settled = replay.settle();
    let Replay { context, history, repaired, .. } = replay;
    let session = Session { meta, context, history, repaired };
    Ok(Replayed { session, end: lines.end(), settled })
}

/// The beginning of a session, or why the first line is none.
fn verified_meta(first: Step) -> Result<SessionMeta, String> {
    match first {
        Step::Line(VerifiedLine { record, .. }) => as_meta(record),
        Step::Damaged { why: Why::Checksum, .. } => Err("its checksum does not match".to_owned()),
        Step::Damaged { why: Why::OtherBefore | Why::Unchained, .. } => {
            Err("it was changed, or lines next to it were removed, added or moved".to_owned())
        }
        Step::Torn(_) => Err("it was cut short".to_owned()),
        Step::End => Err("the file is empty".to_owned()),
    }
}

fn as_meta(record: Result<Line, String>) -> Result<SessionMeta, String> {
    match record? {
        Line::Meta(meta) => Ok(meta),
        _ => Err("its type is not `session_meta`".to_owned()),
    }
}

fn no_meta(path: &Path, problem: String) -> SessionError {
    SessionError::NoMeta { path: path.to_owned(), problem }
}

/// Reads the first line of a file, as far as it can be read: a list also shows what is damaged.
pub(crate) fn meta(path: &Path, from: impl BufRead) -> Result<SessionMeta, SessionError> {
    let mut lines = Lines::new(from);
    let meta = match lines.next().map_err(cannot("read", path))? {
        Next::Whole(text) => as_meta(Envelope::parse(text).and_then(|line| Line::open(&line))),
        Next::Torn => verified_meta(Step::Torn(1)),
        Next::End => verified_meta(Step::End),
    };
    meta.map_err(|problem| no_meta(path, problem))
}

#[derive(Default)]
struct Replay {
    context: Option<TurnContext>,
    history: Vec<Item>,
    /// Calls without an output so far, in call order. A list, because ids from outside need not be unique, and a sound
    /// file has no more than one answer's calls open at any time.
    open: Vec<Open>,
    repaired: Vec<Repair>,
    /// Whether lines are missing, so that what is not written down may still have happened.
    damaged: bool,
}

/// A call that waits for its output.
struct Open {
    call: CallId,
    input: InputKind,
    started: bool,
    result: Option<Vec<Content>>,
}

impl Replay {
    fn take(&mut self, line: Line) {
        match line {
            Line::Context(context) => {
                // Only a damaged file leaves a call open when the next turn begins. Its output belongs to that turn.
                self.settle();
                self.context = Some(context);
            }
            Line::Item(item) => self.item(item),
            Line::Intent(call) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == call && !open.started) {
                    open.started = true;
                }
            }
            Line::Outcome(call, content) => {
                if let Some(open) =
                    self.open.iter_mut().find(|open| open.call == call && open.result.is_none())
                {
                    open.result = Some(content);
                }
            }
            Line::Outputs(calls) => calls.iter().for_each(|call| self.output(call)),
            // A second beginning says nothing about the conversation.
            Line::Meta(_) | Line::Aside => {}
        }
    }

    fn skip(&mut self, line: usize, problem: String) {
        self.damaged = true;
        self.repaired.push(Repair::SkippedLine { line, problem });
    }

    fn item(&mut self, item: Item) {
        match &item.body {
            Body::Call(call) => self.open.push(Open {
                call: call.id.clone(),
                input: call.input.kind(),
                started: false,
                result: None,
            }),
            Body::Output { call, .. } => {
                if self.close(call).is_none() {
                    return;
                }
            }
            Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
        }
        self.history.push(item);
    }

    /// The output of a call entered the history here.
    fn output(&mut self, call: &CallId) {
        let Some(open) = self.close(call) else { return };
        let substitute = if open.result.is_some() { Substitute::Recorded } else { Substitute::Lost };
        if substitute != Substitute::Recorded {
            self.repaired.push(Repair::MissingOutput { call: call.clone(), substitute });
        }
        self.answer(open, substitute);
    }

    fn close(&mut self, call: &CallId) -> Option<Open> {
        let Some(at) = self.open.iter().position(|open| open.call == *call) else {
            self.repaired.push(Repair::StrayOutput { call: call.clone() });
            return None;
        };
        Some(self.open.remove(at))
    }

    /// Gives every open call an output.
    fn settle(&mut self) -> Vec<(CallId, Substitute)> {
        let mut settled = Vec::new();
        for open in std::mem::take(&mut self.open) {
            let substitute = match &open.result {
                Some(_) => Substitute::Recorded,
                None if open.started => Substitute::Unknown,
                None if self.damaged => Substitute::Lost,
                None => Substitute::NotStarted,
            };
            self.repaired.push(Repair::MissingOutput { call: open.call.clone(), substitute });
            settled.push((open.call.clone(), substitute));
            self.answer(open, substitute);
        }
        settled
    }

    fn answer(&mut self, open: Open, substitute: Substitute) {
        let Open { call, input, result, .. } = open;
        let content = result.or_else(|| substitute.outcome().map(|outcome| outcome.content));
        self.history.push(Body::Output { call, input, content: content.unwrap_or_default() }.into());
    }
}

#[cfg(test)]
mod tests;

//! From a session file back to the session it tells of.
//!
//! Every call ends up with exactly one output, whatever the file looks like: a conversation with an unanswered call is
//! refused by every provider and could never be continued.

use std::{
    io::{BufRead, BufReader},
    ops::Range,
    path::Path,
};

use windlass_contract::{Body, CallId, Content, InputKind, Item, SessionMeta, TurnContext};

use crate::{
    Repair, SessionError, Substitute,
    error::cannot,
    line::{Line, Lines, Next},
    place,
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
    /// Where the last whole line begins and ends.
    pub(crate) last_line: Range<u64>,
    /// The calls that were given an output at the end, which the file does not have yet.
    pub(crate) settled: Vec<(CallId, Substitute)>,
}

pub(crate) fn replay(path: &Path, from: impl BufRead) -> Result<Replayed, SessionError> {
    let mut lines = Lines::new(from);
    let meta = meta(path, &mut lines)?;
    let mut replay = Replay::default();
    loop {
        match lines.next().map_err(cannot("read", path))? {
            Next::Whole(text) => match Line::parse(text) {
                Ok(line) => replay.take(line),
                Err(problem) => replay.skip(lines.number, problem),
            },
            // Not damage: a record counts once its append has returned, and this one's never did.
            Next::Torn => replay.repaired.push(Repair::TornLine { line: lines.number }),
            Next::End => break,
        }
    }
    let settled = replay.settle();
    let Replay { context, history, repaired, .. } = replay;
    let session = Session { meta, context, history, repaired };
    Ok(Replayed { session, last_line: lines.last_at..lines.whole_bytes, settled })
}

/// The first line of a file.
pub(crate) fn meta(path: &Path, lines: &mut Lines<impl BufRead>) -> Result<SessionMeta, SessionError> {
    let problem = match lines.next().map_err(cannot("read", path))? {
        Next::Whole(text) => match Line::parse(text) {
            Ok(Line::Meta(meta)) => return Ok(meta),
            Ok(_) => "its type is not `session_meta`".to_owned(),
            Err(problem) => problem,
        },
        Next::Torn => "it was cut short".to_owned(),
        Next::End => "the file is empty".to_owned(),
    };
    Err(SessionError::NoMeta { path: path.to_owned(), problem })
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

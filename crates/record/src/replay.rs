//! Rebuilds a session from its file.
//!
//! Every call gets exactly one output, whatever the state of the file. Providers refuse a
//! conversation with an unanswered call, so it could never be continued.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use jiff::Timestamp;
use windlass_contract::{
    CallId, Content, Item,
    call::InputKind,
    item::{Body, Role},
    journal::{SessionMeta, TurnContext},
};

use crate::{
    BreakReason, ChainHead, OutputSubstitute, SessionError, SessionRepair,
    error::cannot,
    journal::READ_BYTES,
    session_line::{CallResult, LineEnvelope, LineRead, LineReader, SessionLine},
    session_paths,
    verified_lines::{VerifiedLine, VerifiedLines, VerifiedStep},
};

/// A session that was read from its file.
#[derive(Debug)]
pub struct LoadedSession {
    /// The first record of the file.
    pub meta: SessionMeta,
    /// The context of its last turn; none if no turn was started.
    pub context: Option<TurnContext>,
    /// The conversation. Every call has exactly one output.
    pub history: Vec<Item>,
    /// The turns of the conversation, without those that were taken back.
    pub turns: Vec<LoadedTurn>,
    /// The problems that were repaired, in the order of the file.
    pub repaired: Vec<SessionRepair>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedTurn {
    /// Its number among all turns of the file, from 1. It is not the position in
    /// [`LoadedSession::turns`] once turns were taken back.
    pub number: usize,
    /// The time of its beginning.
    pub begun: Option<Timestamp>,
    /// The settings of the turn.
    pub context: TurnContext,
    /// The message that began it; empty if it is not on record.
    pub message: String,
    /// The number of items in the history before it. None if they are no longer in the history as
    /// they were.
    pub items_before: Option<usize>,
}

/// Reads a session without changing its file.
pub fn load(path: &Path) -> Result<LoadedSession, SessionError> {
    let file = session_paths::open_to_read(path)?;
    let lines = BufReader::with_capacity(READ_BYTES, file);
    replay(path, lines).map(|replayed| replayed.session)
}

/// Reads a session as it was before the turn with this number, without changing its file.
pub fn load_before(path: &Path, turn: usize) -> Result<LoadedSession, SessionError> {
    let file = session_paths::open_to_read(path)?;
    let lines = BufReader::with_capacity(READ_BYTES, file);
    replay_before(path, lines, Some(turn)).map(|replayed| replayed.session)
}

/// A session, and the records that its file lacks.
pub(crate) struct ReplayedSession {
    pub(crate) session: LoadedSession,
    /// The end of the lines that the session was rebuilt from. The rest is torn or damaged.
    pub(crate) end: ChainHead,
    /// The calls that got an output at the end, which is not in the file yet.
    pub(crate) substituted: Vec<(CallId, OutputSubstitute)>,
}

/// Rebuilds a session from its lines, up to the first damaged one. After that nothing is certain,
/// not even which output belongs to which call.
pub(crate) fn replay(path: &Path, from: impl BufRead) -> Result<ReplayedSession, SessionError> {
    replay_before(path, from, None)
}

/// The same, as the session was before a turn.
fn replay_before(
    path: &Path,
    from: impl BufRead,
    before: Option<usize>,
) -> Result<ReplayedSession, SessionError> {
    let mut lines = VerifiedLines::new(from);
    let meta = verified_meta(lines.next().map_err(cannot("read", path))?);
    let meta = meta.map_err(|problem| no_meta(path, problem))?;
    let mut replay = SessionReplay::default();
    loop {
        match lines.next().map_err(cannot("read", path))? {
            VerifiedStep::Line(VerifiedLine { record: Ok(record), .. }) => replay.apply(record),
            VerifiedStep::Line(VerifiedLine { record: Err(problem), number, .. }) => {
                replay.skip(number, problem)
            }
            VerifiedStep::Damaged { line, records, .. } => {
                replay.damaged = true;
                replay.repaired.push(SessionRepair::CutOff { line, records, kept: None });
                break;
            }
            // Not damage: a record counts once its append has returned, and this one did not
            // return.
            VerifiedStep::Torn(line) => replay.repaired.push(SessionRepair::TornLine { line }),
            VerifiedStep::End => break,
        }
    }
    let substituted = replay.substitute_missing();
    if let Some(turn) = before {
        replay.rewind(turn);
    }
    let context = replay.turns.last().map(|turn| turn.context.clone());
    let SessionReplay { history, turns, repaired, .. } = replay;
    let session = LoadedSession { meta, context, history, turns, repaired };
    Ok(ReplayedSession { session, end: lines.end(), substituted })
}

/// Returns the metadata from the first line, or the reason why it has none.
fn verified_meta(first: VerifiedStep) -> Result<SessionMeta, String> {
    match first {
        VerifiedStep::Line(VerifiedLine { record, .. }) => as_meta(record),
        VerifiedStep::Damaged { why: BreakReason::Checksum, .. } => {
            Err("its checksum does not match".to_owned())
        }
        VerifiedStep::Damaged { why: BreakReason::WrongPrevious | BreakReason::Unchained, .. } => {
            Err("it was changed, or lines next to it were removed, added or moved".to_owned())
        }
        VerifiedStep::Torn(_) => Err("it was cut short".to_owned()),
        VerifiedStep::End => Err("the file is empty".to_owned()),
    }
}

fn as_meta(record: Result<SessionLine, String>) -> Result<SessionMeta, String> {
    match record? {
        SessionLine::Meta(meta) => Ok(meta),
        _ => Err("its type is not `session_meta`".to_owned()),
    }
}

fn no_meta(path: &Path, problem: String) -> SessionError {
    SessionError::NoMeta { path: path.to_owned(), problem }
}

/// Reads the metadata from the first line without verifying it, because lists also show damaged
/// sessions.
pub(crate) fn meta(path: &Path, from: impl BufRead) -> Result<SessionMeta, SessionError> {
    let mut lines = LineReader::new(from);
    let meta = match lines.next().map_err(cannot("read", path))? {
        LineRead::Whole(text) => {
            as_meta(LineEnvelope::parse(text).and_then(|line| SessionLine::parse(&line)))
        }
        LineRead::Torn => verified_meta(VerifiedStep::Torn(1)),
        LineRead::End => verified_meta(VerifiedStep::End),
    };
    meta.map_err(|problem| no_meta(path, problem))
}

#[derive(Default)]
struct SessionReplay {
    history: Vec<Item>,
    turns: Vec<LoadedTurn>,
    /// The number of turns in the file so far, with those that were taken back.
    begun_turns: usize,
    /// Calls without an output so far, in call order. A list, because the ids are not ours and need
    /// not be unique. An undamaged file has at most one answer's calls open at any time.
    open: Vec<OpenCall>,
    repaired: Vec<SessionRepair>,
    /// Set if lines are missing: then a call without a record may still have run.
    damaged: bool,
}

/// A call that waits for its output.
struct OpenCall {
    call: CallId,
    input: InputKind,
    started: bool,
    result: Option<CallResult>,
}

impl SessionReplay {
    fn apply(&mut self, line: SessionLine) {
        match line {
            SessionLine::Context(context, begun) => {
                // Only a damaged file leaves a call open when the next turn starts. Its output
                // belongs to that turn.
                self.substitute_missing();
                self.begun_turns += 1;
                let (number, items_before) = (self.begun_turns, Some(self.history.len()));
                let message = String::new();
                self.turns.push(LoadedTurn { number, begun, context, message, items_before });
            }
            SessionLine::Rewound(turn) => {
                self.substitute_missing();
                self.rewind(turn);
            }
            SessionLine::Item(item) => self.push_item(item),
            SessionLine::Intent(call) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == call && !open.started) {
                    open.started = true;
                }
            }
            SessionLine::Outcome(call, result) => {
                if let Some(open) =
                    self.open.iter_mut().find(|open| open.call == call && open.result.is_none())
                {
                    open.result = Some(result);
                }
            }
            SessionLine::Outputs(calls) => calls.iter().for_each(|call| self.push_output(call)),
            // A second metadata record does not belong to the conversation.
            SessionLine::Meta(_) | SessionLine::Aside => {}
        }
    }

    /// Takes the conversation back to the beginning of a turn. A turn that was taken back before
    /// changes nothing.
    fn rewind(&mut self, turn: usize) {
        let Some(at) = self.turns.iter().position(|each| each.number == turn) else { return };
        if let Some(items) = self.turns[at].items_before {
            self.history.truncate(items);
        }
        self.turns.truncate(at);
    }

    fn skip(&mut self, line: usize, problem: String) {
        self.damaged = true;
        self.repaired.push(SessionRepair::SkippedLine { line, problem });
    }

    fn push_item(&mut self, item: Item) {
        match &item.body {
            Body::Call(call) => self.open.push(OpenCall {
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
            Body::Message { role: Role::User, content } => {
                if let Some(turn) = self.turns.last_mut()
                    && turn.items_before == Some(self.history.len())
                {
                    turn.message = Content::join(content);
                }
            }
            Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
        }
        self.history.push(item);
    }

    /// Adds the output of a call to the history.
    fn push_output(&mut self, call: &CallId) {
        let Some(open) = self.close(call) else { return };
        let substitute =
            if open.result.is_some() { OutputSubstitute::Recorded } else { OutputSubstitute::Lost };
        if substitute != OutputSubstitute::Recorded {
            self.repaired.push(SessionRepair::MissingOutput { call: call.clone(), substitute });
        }
        self.push_answer(open, substitute);
    }

    fn close(&mut self, call: &CallId) -> Option<OpenCall> {
        let Some(at) = self.open.iter().position(|open| open.call == *call) else {
            self.repaired.push(SessionRepair::StrayOutput { call: call.clone() });
            return None;
        };
        Some(self.open.remove(at))
    }

    /// Gives every open call an output.
    fn substitute_missing(&mut self) -> Vec<(CallId, OutputSubstitute)> {
        let mut substituted = Vec::new();
        for open in std::mem::take(&mut self.open) {
            let substitute = match &open.result {
                Some(_) => OutputSubstitute::Recorded,
                None if open.started => OutputSubstitute::Unknown,
                None if self.damaged => OutputSubstitute::Lost,
                None => OutputSubstitute::NotStarted,
            };
            self.repaired.push(SessionRepair::MissingOutput { call: open.call.clone(), substitute });
            substituted.push((open.call.clone(), substitute));
            self.push_answer(open, substitute);
        }
        substituted
    }

    fn push_answer(&mut self, open: OpenCall, substitute: OutputSubstitute) {
        let OpenCall { call, input, result, .. } = open;
        let substituted = || {
            let outcome = substitute.outcome()?.into_inner();
            Some(CallResult { failed: !outcome.verdict.success, content: outcome.content })
        };
        let result = result.or_else(substituted);
        let CallResult { content, failed } = result.unwrap_or(CallResult { content: vec![], failed: true });
        self.history.push(Body::Output { call, input, content, failed }.into());
    }
}

#[cfg(test)]
mod tests;

//! Rebuilds a session from its file.
//!
//! Every call gets exactly one output, whatever the state of the file. Providers refuse a
//! conversation with an unanswered call, so it could never be continued.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use windlass_contract::{
    CallId, Content, Item, ToolName,
    call::InputKind,
    compaction::{CompactedHistory, OutputDigest, OutputDigests, WorkNotes},
    item::{Body, Role},
    journal::{SessionMeta, TurnContext},
    program_message::is_of_program,
};

use crate::{
    BreakReason, ChainHead, OutputSubstitute, SessionError, SessionRepair,
    error::cannot,
    journal::READ_BYTES,
    session_line::{CallResult, LineEnvelope, LineRead, LineReader, SessionLine, StartedCall},
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
    /// The conversation as the model is sent it, from the last compaction on. Every call has
    /// exactly one output.
    pub history: Vec<Item>,
    /// The turns of the conversation, without those that were taken back.
    pub turns: Vec<LoadedTurn>,
    /// The number of items at the beginning of the history, before the first request of a person.
    pub opening_items: usize,
    /// The items that compactions have replaced.
    pub replaced: Vec<Item>,
    /// The number of items at the beginning of the history that come from the last compaction.
    pub compacted_items: usize,
    /// Lines that can stand for the outputs in the history.
    pub digests: OutputDigests,
    /// The last plan, and the files that were used.
    pub notes: WorkNotes,
    /// Tools that the model had found before the last compaction.
    pub found_tools: Vec<ToolName>,
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

impl LoadedSession {
    /// Returns the whole conversation as it happened, without the texts of compactions.
    pub fn transcript(&self) -> impl Iterator<Item = &Item> {
        self.replaced.iter().chain(self.history.iter().skip(self.compacted_items))
    }
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
    let session = replay.into_session(meta);
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
        SessionLine::Meta(meta) => Ok(*meta),
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

/// Returns the number of items before the first request of the user.
fn opening_items(history: &[Item]) -> usize {
    let is_opening = |item: &&Item| match &item.body {
        Body::Message { role: Role::User, content } => is_of_program(&Content::join(content)),
        Body::Message { role: Role::System | Role::Developer, .. } => true,
        _ => false,
    };
    history.iter().take_while(is_opening).count()
}

#[derive(Default)]
struct SessionReplay {
    history: Vec<Item>,
    turns: Vec<LoadedTurn>,
    /// The beginnings of these turns.
    turn_starts: Vec<TurnBeginning>,
    /// The number of turns in the file so far, with those that were taken back.
    begun_turns: usize,
    /// The conversations that compactions have replaced, oldest first.
    earlier: Vec<EarlierHistory>,
    /// The number of items before the first request, according to the last compaction.
    opening_items: Option<usize>,
    replaced: Vec<Item>,
    compacted_items: usize,
    digests: OutputDigests,
    notes: WorkNotes,
    found_tools: Vec<ToolName>,
    /// Calls without an output so far, in call order. A list, because the ids are not ours and need
    /// not be unique. An undamaged file has at most one answer's calls open at any time.
    open: Vec<OpenCall>,
    repaired: Vec<SessionRepair>,
    /// Set if lines are missing: then a call without a record may still have run.
    damaged: bool,
}

/// The state of a conversation at the beginning of a turn.
struct TurnBeginning {
    /// The number of compactions before it.
    compactions: usize,
    /// The number of items in the history.
    items: usize,
    notes: WorkNotes,
}

/// A conversation before a compaction. Its other items are in [`SessionReplay::replaced`].
struct EarlierHistory {
    /// The items at its beginning that come from the compaction before.
    compacted: Vec<Item>,
    /// The number of replaced items before its own.
    replaced: usize,
    opening_items: Option<usize>,
    found_tools: Vec<ToolName>,
}

/// A call that waits for its output.
struct OpenCall {
    call: CallId,
    input: InputKind,
    started: bool,
    writes: Vec<PathBuf>,
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
                let (number, items) = (self.begun_turns, self.history.len());
                let (message, items_before) = (String::new(), Some(items));
                self.turns.push(LoadedTurn { number, begun, context, message, items_before });
                let (compactions, notes) = (self.earlier.len(), self.notes.clone());
                self.turn_starts.push(TurnBeginning { compactions, items, notes });
            }
            SessionLine::Rewound(turn) => {
                self.substitute_missing();
                self.rewind(turn);
            }
            SessionLine::Item(item) => self.push_item(item),
            SessionLine::Intent(StartedCall { call, effects }) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == call && !open.started) {
                    (open.started, open.writes) = (true, effects.writes);
                }
            }
            SessionLine::Outcome(call, result) => {
                if let Some(open) =
                    self.open.iter_mut().find(|open| open.call == call && open.result.is_none())
                {
                    if let Some(path) = &result.file_read {
                        self.notes.file_read(path);
                    }
                    if !result.failed {
                        open.writes.iter().for_each(|path| self.notes.file_changed(path));
                    }
                    open.result = Some(result);
                }
            }
            SessionLine::Outputs(calls) => calls.iter().for_each(|call| self.push_output(call)),
            SessionLine::Compacted(compacted) => self.compact(*compacted),
            SessionLine::Plan(plan) => self.notes.plan = Some(plan),
            // A second metadata record does not belong to the conversation.
            SessionLine::Meta(_) | SessionLine::Aside => {}
        }
    }

    /// Takes the conversation back to the beginning of a turn. A turn that was taken back before
    /// changes nothing.
    fn rewind(&mut self, turn: usize) {
        let Some(at) = self.turns.iter().position(|each| each.number == turn) else { return };
        let mut later = self.turn_starts.drain(at..);
        let Some(TurnBeginning { compactions, items, notes }) = later.next() else { return };
        drop(later);
        self.turns.truncate(at);
        self.take_back_compactions(compactions);
        self.history.truncate(items);
        self.notes = notes;
    }

    /// Takes back all compactions but the first ones.
    fn take_back_compactions(&mut self, kept: usize) {
        let Some(earlier) = self.earlier.drain(kept.min(self.earlier.len())..).next() else { return };
        let EarlierHistory { compacted, replaced, opening_items, found_tools } = earlier;
        self.compacted_items = compacted.len();
        self.history = compacted;
        // Items of later compactions come last, and go with the turns that are taken back.
        self.history.extend(self.replaced.split_off(replaced));
        (self.opening_items, self.found_tools) = (opening_items, found_tools);
        for (turn, start) in self.turns.iter_mut().zip(&self.turn_starts) {
            turn.items_before = (start.compactions == kept).then_some(start.items);
        }
    }

    /// Replaces the conversation so far. A compaction happens between two requests, when every call
    /// has its output.
    fn compact(&mut self, compacted: CompactedHistory) {
        let CompactedHistory { history, opening_items, notes, tools, .. } = compacted;
        self.open.clear();
        let replaced = self.replaced.len();
        self.replaced.extend(self.history.drain(self.compacted_items.min(self.history.len())..));
        self.earlier.push(EarlierHistory {
            compacted: std::mem::take(&mut self.history),
            replaced,
            opening_items: self.opening_items,
            found_tools: std::mem::take(&mut self.found_tools),
        });
        self.compacted_items = history.len();
        self.opening_items = Some(opening_items.min(history.len()));
        // The items before these turns are no longer there as they were.
        self.turns.iter_mut().for_each(|turn| turn.items_before = None);
        (self.history, self.notes, self.found_tools) = (history, notes, tools);
    }

    fn into_session(mut self, meta: SessionMeta) -> LoadedSession {
        let call = |item: &'_ Item| match &item.body {
            Body::Output { call, .. } => Some(call.clone()),
            _ => None,
        };
        let outputs: HashSet<_> = self.history.iter().filter_map(call).collect();
        self.digests.retain(|call, _| outputs.contains(call));
        LoadedSession {
            meta,
            context: self.turns.last().map(|turn| turn.context.clone()),
            opening_items: self.opening_items.unwrap_or_else(|| opening_items(&self.history)),
            history: self.history,
            turns: self.turns,
            replaced: self.replaced,
            compacted_items: self.compacted_items,
            digests: self.digests,
            notes: self.notes,
            found_tools: self.found_tools,
            repaired: self.repaired,
        }
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
                writes: Vec::new(),
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
            let (failed, digest) = (!outcome.verdict.success, OutputDigest::new(&outcome, None));
            Some(CallResult { content: outcome.content, failed, digest, file_read: None })
        };
        let result = result.or_else(substituted);
        let result = result.unwrap_or(CallResult { failed: true, ..CallResult::default() });
        let CallResult { content, failed, digest, .. } = result;
        self.digests.insert(call.clone(), digest);
        self.history.push(Body::Output { call, input, content, failed }.into());
    }
}

#[cfg(test)]
mod tests;

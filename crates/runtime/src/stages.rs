//! The stages of a call, as types. Each owns everything that is known by then, and each is needed
//! to make the next: [`PreparedCall`], [`JudgedCall`], [`RunnableCall`], [`AttemptReport`],
//! [`UnshapedCall`], [`FinishedCall`].

use std::fmt;

use serde_json::Value;
use windlass_contract::{
    Clean, Effects, Outcome, Output, ParsedCall, Ready, ToolCall, grant::Held, meta::Format,
    verdict::Criteria,
};
use windlass_shape::Failure;

use crate::{gate::CommandJudgement, schedule::CallPlace};

/// A call that was routed. It knows its effects, or why it cannot run.
pub struct PreparedCall {
    pub(crate) call: ToolCall,
    pub(crate) tool: CalledTool,
    pub(crate) arguments: Option<Value>,
    pub(crate) repairs: Vec<String>,
    /// Decides which calls it may run beside.
    pub(crate) place: CallPlace,
    pub(crate) judged: Result<JudgedCall, Failure>,
}

/// The traits of the tool that decide how its result is read.
pub(crate) struct CalledTool {
    /// There is no tool of that name.
    pub(crate) is_unknown: bool,
    pub(crate) format: Format,
    pub(crate) criteria: Criteria,
}

/// A call whose input made sense, with the gate's judgement of the command that it would run.
pub(crate) struct JudgedCall {
    pub(crate) parsed: ParsedCall,
    pub(crate) effects: Effects,
    pub(crate) judged: Option<CommandJudgement>,
}

/// A call that knows all its effects and needs nothing but a grant.
pub(crate) struct RunnableCall {
    pub(crate) ready: Box<dyn Ready>,
    pub(crate) effects: Effects,
    pub(crate) judged: Option<CommandJudgement>,
    /// The call may change something, as far as the gate can tell.
    pub(crate) may_change: bool,
}

/// The end of the attempts to run a call.
pub(crate) struct AttemptReport {
    pub(crate) result: Result<Output, Failure>,
    /// The decision and its reason; empty if the call was not admitted.
    pub(crate) decision: String,
    /// The confinement that was in force; absent if nothing was started.
    pub(crate) held: Option<Held>,
    /// Changes that cannot be undone.
    pub(crate) undo_limits: Vec<String>,
}

/// A call that is over, before its result is shaped.
pub(crate) struct UnshapedCall {
    pub(crate) effects: Effects,
    pub(crate) clean_effects: Clean<Effects>,
    pub(crate) may_change: bool,
    pub(crate) report: AttemptReport,
}

/// A call with its one outcome, which is on record and was announced.
#[derive(Debug, Clone)]
pub struct FinishedCall {
    /// The call, by the name of its tool.
    pub call: ToolCall,
    /// The arguments it ran with, after repairs and with defaults; absent if they made no sense or
    /// are plain text.
    pub arguments: Option<Value>,
    /// Its effects; none if its input made no sense.
    pub effects: Effects,
    /// The outcome of the call.
    pub outcome: Clean<Outcome>,
}

impl PreparedCall {
    /// The call, by the name of its tool.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Returns true if the call may run in parallel with others that change nothing.
    pub fn may_overlap(&self) -> bool {
        self.place.changes_nothing()
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedCall").field("call", &self.call).finish_non_exhaustive()
    }
}

impl JudgedCall {
    /// Returns true if the call does not know its effects yet.
    pub(crate) fn looks_first(&self) -> bool {
        matches!(self.parsed, ParsedCall::LooksFirst(_))
    }
}

impl RunnableCall {
    pub(crate) fn new(ready: Box<dyn Ready>, effects: Effects, judged: Option<CommandJudgement>) -> Self {
        let may_change =
            effects.may_change() && !judged.as_ref().is_some_and(CommandJudgement::changes_nothing);
        Self { ready, effects, judged, may_change }
    }
}

impl AttemptReport {
    /// The report of a call that was not started.
    pub(crate) fn not_started(failure: Failure) -> Self {
        Self { result: Err(failure), decision: String::new(), held: None, undo_limits: Vec::new() }
    }
}

impl UnshapedCall {
    /// The end of a call that was not started and so changed nothing.
    pub(crate) fn not_started(effects: Effects, clean_effects: Clean<Effects>, failure: Failure) -> Self {
        Self { effects, clean_effects, may_change: false, report: AttemptReport::not_started(failure) }
    }
}

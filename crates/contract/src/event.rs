//! Events that front ends and logs receive during a turn.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CallId, Clean, Effects, Outcome, ToolCall, ToolName,
    approval::{Answer, AnsweredBy, Beyond},
    compaction::{CompactionMethod, CompactionReason},
    edit::Changed,
    effects::OutwardEffect,
    grant::millis,
    hooks::HookRecord,
    id::ThreadId,
    model::Usage,
    outcome::Refusal,
    sub_agent::AgentStatus,
};

/// Receives events as they happen. Implemented by the cleaner, which passes them on to an
/// [`EventSink`], and by its callers. Called from anywhere.
pub trait EventEmitter: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);
}

/// Receives clean events. Implemented by front ends and recorders, called by the cleaner. An
/// implementation must not block and cannot influence the turn.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: &Clean<Event>);
}

/// Discards every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl EventSink for Silent {
    fn emit(&self, _event: &Clean<Event>) {}
}

impl EventEmitter for Silent {
    fn emit(&self, _event: Event) {}
}

/// Something that happened. Results are shaped before they get here. Pieces of a running command's
/// output ([`CallOutput`](Self::CallOutput)) are raw except for secrets, and only sent on request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A thread was started or resumed.
    ThreadStarted {
        /// Its id, for `exec resume`.
        thread: ThreadId,
    },
    /// Work on the user's request has begun.
    TurnStarted,
    /// A message that the user sent during the turn was added to the next request.
    UserMessage {
        /// Its text.
        text: String,
    },
    /// The model has answered a request.
    ContextUsed {
        /// Tokens of the request and the answer.
        tokens: u64,
        /// Tokens that the model can read; `None` if that is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
        /// Tokens of this request and its answer, as the server reports them.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Estimated tokens of the request by their part.
        parts: Box<ContextParts>,
    },
    /// The conversation is being made shorter.
    CompactionStarted {
        /// The reason for it.
        reason: CompactionReason,
        /// Estimated tokens of a request.
        tokens: u64,
        /// Tokens that the model can read; `None` if that is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// The conversation was made shorter, or cannot be.
    CompactionEnded {
        /// The reason for it.
        reason: CompactionReason,
        /// The way it was done.
        method: CompactionMethod,
        /// Estimated tokens of a request before.
        tokens_before: u64,
        /// Estimated tokens of a request after.
        tokens_after: u64,
        /// Tokens that the model can read; `None` if that is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// A piece of the model's answer.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// A complete message of the model.
    Message {
        /// Its text.
        text: String,
    },
    /// A complete piece of reasoning, or its summary.
    Reasoning {
        /// Its text.
        text: String,
    },
    /// The model's server searched the web on its own.
    WebSearch {
        /// Search query.
        query: String,
    },
    /// The user is asked about a call.
    ApprovalAsked {
        /// The call.
        id: CallId,
        /// Its tool.
        tool: ToolName,
        /// Reason for the question.
        reason: String,
        /// Effects it would have beyond this machine.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        outward: Vec<OutwardEffect>,
        /// Access that a yes grants in addition to the sandbox mode.
        beyond: Beyond,
    },
    /// The question about a call has its answer.
    ApprovalAnswered {
        /// The call.
        id: CallId,
        /// Its tool.
        tool: ToolName,
        /// The answer.
        answer: Answer,
        /// Source of the answer.
        by: AnsweredBy,
        /// The rule that the answer adds, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Time that the call waited for the answer.
        #[serde(rename = "waited_ms", with = "millis")]
        waited: Duration,
    },
    /// A hook has answered, or failed.
    HookEnded {
        /// The call that it was told about.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<CallId>,
        /// Its answer.
        run: HookRecord,
    },
    /// A call passed the gate and is about to run.
    CallStarted {
        /// The call.
        call: Clean<ToolCall>,
        /// Its declared effects.
        effects: Clean<Effects>,
    },
    /// A piece of a running call's output.
    CallOutput {
        /// The call.
        id: CallId,
        /// The piece, as text.
        text: String,
    },
    /// The output of a call with its colours (ECMA-48 SGR) and no other control, for a person. It
    /// comes before the end of the call, and only if there are colours and no secret was found.
    ColouredOutput {
        /// The call.
        id: CallId,
        /// The output.
        text: String,
    },
    /// The program of a running call waits for input.
    InputAwaited {
        /// The call.
        id: CallId,
    },
    /// A running call reports its progress.
    CallProgress {
        /// The call.
        id: CallId,
        /// Progress so far.
        progress: f64,
        /// Progress at the end, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// Message of the tool. Untrusted.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A call has its outcome; it may never have started.
    CallEnded {
        /// The call.
        call: Clean<ToolCall>,
        /// Its declared effects, as far as they are known.
        effects: Clean<Effects>,
        /// The outcome.
        outcome: Box<Clean<Outcome>>,
    },
    /// A call has decided which files to change, and how.
    EditStarted {
        /// The call.
        id: CallId,
        /// The files.
        files: Vec<FileEdit>,
    },
    /// A call has changed all of its files, or failed and changed none.
    EditEnded {
        /// The call.
        id: CallId,
        /// The files.
        files: Vec<FileEdit>,
        /// True if the files were changed.
        success: bool,
        /// The files before and after, with their secrets. Not serialized: too much for every
        /// event.
        #[serde(skip)]
        changed: Vec<Changed>,
    },
    /// All changes to files that tools made during the turn that ends.
    TurnDiff {
        /// The changes as a unified diff.
        diff: String,
    },
    /// The model changed its plan.
    PlanUpdated(Plan),
    /// A sub-agent has another state, or has begun a call.
    AgentUpdated {
        /// Its path, such as `root/worker-1`.
        agent: String,
        /// Its thread.
        thread: ThreadId,
        /// Its state.
        status: AgentStatus,
        /// The call that it has begun, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        activity: Option<String>,
    },
    /// A request to the model's server failed and is tried again.
    Retrying {
        /// The provider.
        provider: String,
        /// Number of the next try.
        attempt: u32,
        /// Maximum number of tries.
        of: u32,
        /// Delay before the next try.
        #[serde(rename = "delay_ms", with = "millis")]
        delay: Duration,
        /// Time that is left for further tries.
        #[serde(rename = "left_ms", with = "millis")]
        left: Duration,
        /// Cause of the failure.
        reason: String,
    },
    /// A warning for the user.
    Warning {
        /// Its text.
        message: String,
    },
    /// The model has answered.
    TurnCompleted {
        /// Tokens used.
        usage: Usage,
        /// True if the answer says that the request was not fulfilled.
        #[serde(default)]
        declined: bool,
        /// Calls that were refused.
        refusals: Vec<Refusal>,
    },
    /// The turn ended without an answer.
    TurnFailed {
        /// The cause, in one line.
        message: String,
        /// The cause for programs, from a closed list; empty in older records.
        #[serde(default)]
        reason: String,
        /// Tokens used.
        usage: Usage,
        /// Calls that were refused.
        refusals: Vec<Refusal>,
    },
}

impl Event {
    /// Returns true if the session file keeps the event. Pieces of texts that are recorded as a
    /// whole elsewhere are left out.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            Self::PlanUpdated(_)
                | Self::ContextUsed { .. }
                | Self::ApprovalAsked { .. }
                | Self::ApprovalAnswered { .. }
                | Self::HookEnded { .. }
                | Self::Retrying { .. }
                | Self::Warning { .. }
                | Self::TurnStarted
                | Self::TurnCompleted { .. }
                | Self::TurnFailed { .. }
        )
    }
}

/// Estimated tokens of a request by their part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextParts {
    /// Standing instructions, and the messages before the first request of the user.
    pub instructions: u64,
    /// Tools by MCP server; those of no server are `built-in`.
    #[serde(default)]
    pub tools: BTreeMap<String, u64>,
    /// Outputs that are parts of files.
    pub files: u64,
    /// Other outputs of calls.
    pub outputs: u64,
    /// Messages, reasoning and calls.
    pub conversation: u64,
}

impl ContextParts {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        let Self { instructions, tools, files, outputs, conversation } = self;
        let fixed = [instructions, files, outputs, conversation];
        fixed.into_iter().chain(tools.values()).fold(0, |sum, part| sum.saturating_add(*part))
    }
}

/// A file that is to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEdit {
    /// Path as the call names it.
    pub path: PathBuf,
    /// Planned change.
    pub kind: EditKind,
    /// Target path, if it is to be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_path: Option<PathBuf>,
}

/// Planned change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// It is created; an existing file is replaced.
    Add,
    /// It is removed.
    Delete,
    /// It is changed, moved, or both.
    Update,
}

/// The model's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Reason for the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The steps, in order.
    pub plan: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Description of the step.
    pub step: String,
    /// Progress of the step.
    pub status: PlanStatus,
}

/// Progress of a step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PlanStatus {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

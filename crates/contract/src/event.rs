//! Events: what front ends and logs are shown while work goes on.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CallId, Clean, Effects, Outcome, ToolCall, ToolName,
    approval::{Answer, AnsweredBy, Beyond},
    edit::Changed,
    effects::OutwardEffect,
    grant::millis,
    id::ThreadId,
    model::Usage,
    outcome::Refusal,
};

/// Takes events as they happen. Implemented by the cleaner, which passes them on to an [`EventSink`], and by what comes
/// before it; called from anywhere.
pub trait EventEmitter: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);
}

/// Takes clean events. Implemented by front ends and recorders; called by the cleaner. Must not block, and cannot steer.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: &Clean<Event>);
}

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl EventSink for Silent {
    fn emit(&self, _event: &Clean<Event>) {}
}

impl EventEmitter for Silent {
    fn emit(&self, _event: Event) {}
}

/// Something that happened. Results are shaped before they get here; pieces of a running command's output
/// ([`CallOutput`](Self::CallOutput)) are as it printed them but for secrets, and only for those who ask for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A thread was begun or taken up again.
    ThreadStarted {
        /// Its id, for `exec resume`.
        thread: ThreadId,
    },
    /// The user's request is being worked on.
    TurnStarted,
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
    /// The model's server searched the web by itself.
    WebSearch {
        /// What was looked for.
        query: String,
    },
    /// A person is asked about a call.
    ApprovalAsked {
        /// The call.
        id: CallId,
        /// Its tool.
        tool: ToolName,
        /// Why it is asked.
        reason: String,
        /// What it would do beyond this machine.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        outward: Vec<OutwardEffect>,
        /// What a yes would allow beyond what the sandbox mode does.
        beyond: Beyond,
    },
    /// The question about a call has its answer.
    ApprovalAnswered {
        /// The call.
        id: CallId,
        /// Its tool.
        tool: ToolName,
        /// What was said.
        answer: Answer,
        /// Who said so.
        by: AnsweredBy,
        /// The rule that the answer makes, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// How long the call waited for it.
        #[serde(rename = "waited_ms", with = "millis")]
        waited: Duration,
    },
    /// A call passed the gate and is about to run.
    CallStarted {
        /// The call.
        call: Clean<ToolCall>,
        /// What it will do.
        effects: Clean<Effects>,
    },
    /// A piece of a running call's output.
    CallOutput {
        /// The call.
        id: CallId,
        /// The piece, as text.
        text: String,
    },
    /// The program of a running call waits for someone to type.
    InputAwaited {
        /// The call.
        id: CallId,
    },
    /// A call has its outcome; it may never have started.
    CallEnded {
        /// The call.
        call: Clean<ToolCall>,
        /// What it would have done, where that much is known.
        effects: Clean<Effects>,
        /// How it ended.
        outcome: Box<Clean<Outcome>>,
    },
    /// A call has made up its mind which files to change, and how.
    EditStarted {
        /// The call.
        id: CallId,
        /// The files.
        files: Vec<FileEdit>,
    },
    /// A call has changed files, all of them, or failed and changed none.
    EditEnded {
        /// The call.
        id: CallId,
        /// The files.
        files: Vec<FileEdit>,
        /// Whether they are changed.
        success: bool,
        /// What they were and are, with their secrets. Too much to be written down with every event.
        #[serde(skip)]
        changed: Vec<Changed>,
    },
    /// Everything that tools have changed in files during the turn that ends.
    TurnDiff {
        /// As a unified diff.
        diff: String,
    },
    /// The model changed its plan.
    PlanUpdated(Plan),
    /// The model's server failed and is tried again.
    Retrying {
        /// The provider.
        provider: String,
        /// Which try comes next.
        attempt: u32,
        /// How many there are.
        of: u32,
        /// How long we wait first.
        #[serde(rename = "delay_ms", with = "millis")]
        delay: Duration,
        /// The time that is left for further tries.
        #[serde(rename = "left_ms", with = "millis")]
        left: Duration,
        /// What went wrong.
        reason: String,
    },
    /// Something a person should know.
    Warning {
        /// What.
        message: String,
    },
    /// The model has answered.
    TurnCompleted {
        /// What it cost.
        usage: Usage,
        /// Whether the answer says that what was asked for is not done.
        #[serde(default)]
        declined: bool,
        /// Calls nobody allowed.
        refusals: Vec<Refusal>,
    },
    /// The turn ended without an answer.
    TurnFailed {
        /// Why, in one line.
        message: String,
        /// What it cost.
        usage: Usage,
        /// Calls nobody allowed.
        refusals: Vec<Refusal>,
    },
}

impl Event {
    /// Whether the session file keeps it: pieces of what is kept whole elsewhere are left out.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            Self::PlanUpdated(_)
                | Self::ApprovalAsked { .. }
                | Self::ApprovalAnswered { .. }
                | Self::Retrying { .. }
                | Self::Warning { .. }
                | Self::TurnStarted
                | Self::TurnCompleted { .. }
                | Self::TurnFailed { .. }
        )
    }
}

/// A file that is to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileEdit {
    /// As the call names it.
    pub path: PathBuf,
    /// What is to become of it.
    pub kind: EditKind,
    /// Where it is to be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_path: Option<PathBuf>,
}

/// What is to become of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// It is made; one that exists is replaced.
    Add,
    /// It is removed.
    Delete,
    /// It is changed, moved, or both.
    Update,
}

/// The model's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Why it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The steps, in order.
    pub plan: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// What is to be done.
    pub step: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

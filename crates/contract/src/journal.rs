//! The journal: records written before and after each action.

use std::{future, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    BoxFuture, CallId, Clean, Effects, Event, Item, Outcome, ToolName, compaction::CompactedHistory,
    id::ThreadId,
};

/// Writes the records of a session. Implemented by `record`, called by the agent and the runtime.
/// When `append` returns, the record survives the death of this process. After one failure every
/// later append fails: a session that cannot be recorded must not continue.
pub trait Journal: Send + Sync {
    /// Appends one record.
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError>;

    /// Starts at once to flush every record so far to the disk, as far as this journal is
    /// configured to do so. The future is ready when that is done. The runtime waits for it before
    /// a call that may change something: its intent then survives the death of the machine.
    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        Box::pin(future::ready(Ok(())))
    }
}

/// Reason that a record could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot write the session file `{path}`: {kind}")]
pub struct JournalError {
    /// The session file.
    pub path: PathBuf,
    /// Kind of the system's error.
    pub kind: io::ErrorKind,
}

/// One line of a session file. Texts of tools, models and people are clean. The rest comes from the
/// program's own configuration.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "type", content = "payload")]
pub enum Record<'a> {
    /// The first line.
    SessionMeta(&'a SessionMeta),
    /// Settings of the turn that begins.
    TurnContext(&'a TurnContext),
    /// An item entered the history. Outputs of calls come as `Outcome` and `Outputs` instead.
    Item(Clean<&'a Item>),
    /// A call passed the gate and is about to act.
    Intent(Clean<&'a Intent>),
    /// A call ended.
    Outcome {
        /// The call.
        call: &'a CallId,
        /// Its outcome.
        outcome: Clean<&'a Outcome>,
    },
    /// The outputs of these calls entered the history, in this order.
    Outputs {
        /// The calls.
        calls: &'a [CallId],
    },
    /// The conversation was made shorter. Its history replaces all earlier items.
    Compacted(Clean<&'a CompactedHistory>),
    /// An event that is kept (see [`Event::is_kept`]).
    Event(Clean<&'a Event>),
    /// A person rated a call.
    Feedback(Clean<&'a Feedback>),
    /// An item of the history that comes from the parent session.
    Inherited(Clean<&'a Item>),
    /// The conversation was taken back to an earlier turn. Nothing is removed from the file.
    Rewound(&'a Rewind),
}

/// Origin of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The thread.
    pub id: ThreadId,
    /// Directory in which it was started.
    pub cwd: PathBuf,
    /// The version of Windlass that began it.
    pub version: String,
    /// The model's instructions. They are fixed for the thread so that its prompt stays the same.
    pub instructions: String,
    /// The session that this one comes from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentSession>,
}

/// The session that another one comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSession {
    /// Its thread.
    pub id: ThreadId,
    /// Reason that the other one was started.
    pub kind: ParentKind,
    /// For a fork, the number of the first message that was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_message: Option<usize>,
    /// For an agent, its path, such as `root/worker-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Reason that a session was started from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentKind {
    /// It goes on with the conversation of its parent, up to some message.
    Fork,
    /// The agent of the parent has started it as another agent.
    Agent,
    /// A reason that a later version added.
    #[serde(other)]
    Other,
}

impl ParentKind {
    /// Returns the name in the session file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Agent => "agent",
            Self::Other => "other",
        }
    }
}

/// A conversation that was taken back to an earlier turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// The first turn that was taken back, counted from 1 over all turns of the file.
    pub turn: usize,
    /// Calls whose changes to files were undone.
    #[serde(default)]
    pub undone: Vec<CallId>,
}

/// Settings of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnContext {
    /// Working directory.
    pub cwd: PathBuf,
    /// Provider of the model.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Sandbox and approval settings as configured, and whether anyone could be asked.
    pub policy: Value,
}

/// An action that is about to happen, written before it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// Its declared effects.
    pub effects: Effects,
    /// Reason that the call was allowed, such as `approved once`.
    pub decision: String,
}

/// A person's feedback on a call. The latest one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The call.
    pub call: CallId,
    /// Short name by which a person finds the call. A model may give two calls the same id.
    pub handle: String,
    /// `None` withdraws an earlier rating.
    pub rating: Option<Rating>,
    /// Reason, in the person's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Usefulness of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rating {
    /// It was useful.
    Good,
    /// It was not useful.
    Bad,
}

impl Rating {
    /// Returns the rating in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

//! The journal: what is written down before and after anything happens.

use std::{future, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, CallId, Clean, Effects, Event, Item, Outcome, ToolName, id::ThreadId};

/// Writes a session down. Implemented by `record`, called by the agent and the runtime. When `append` returns, the
/// record survives the death of this process. After one failure every later append fails: a session that cannot be
/// written down must not go on.
pub trait Journal: Send + Sync {
    /// Appends one record.
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError>;

    /// Starts at once to flush every record so far to the disk, as far as this journal is configured
    /// to do so. The future is ready when that is done. The runtime waits for it before a call that
    /// may change something: its intent then survives the death of the machine.
    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        Box::pin(future::ready(Ok(())))
    }
}

/// Why a record could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot write the session file `{path}`: {kind}")]
pub struct JournalError {
    /// The session file.
    pub path: PathBuf,
    /// What the system said.
    pub kind: io::ErrorKind,
}

/// One line of a session file. What tools, models and people say is clean; the rest is what the program was started with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "type", content = "payload")]
pub enum Record<'a> {
    /// The first line.
    SessionMeta(&'a SessionMeta),
    /// What holds for the turn that begins.
    TurnContext(&'a TurnContext),
    /// An item entered the history. Outputs of calls come as `Outcome` and `Outputs` instead.
    Item(Clean<&'a Item>),
    /// A call passed the gate and is about to act.
    Intent(Clean<&'a Intent>),
    /// A call ended.
    Outcome {
        /// The call.
        call: &'a CallId,
        /// How.
        outcome: Clean<&'a Outcome>,
    },
    /// The outputs of these calls entered the history, in this order.
    Outputs {
        /// The calls.
        calls: &'a [CallId],
    },
    /// Something happened (see [`Event::is_kept`]).
    Event(Clean<&'a Event>),
    /// A person said what they think of a call.
    Feedback(Clean<&'a Feedback>),
}

/// Where a session began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The thread.
    pub id: ThreadId,
    /// Where it was started.
    pub cwd: PathBuf,
    /// The version of Windlass that began it.
    pub version: String,
    /// The model's instructions, fixed for the thread so that its prompt stays the same.
    pub instructions: String,
}

/// What holds for one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnContext {
    /// Working directory.
    pub cwd: PathBuf,
    /// Provider of the model.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Sandbox and approval settings, as configured, and whether anyone could be asked.
    pub policy: Value,
}

/// What is about to happen, written before it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// What it will do.
    pub effects: Effects,
    /// Who let it.
    pub decision: String,
}

/// What a person thinks of a call. What they said last holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// The call.
    pub call: CallId,
    /// The short name by which a person finds it, because a model may give two calls the same.
    pub handle: String,
    /// None takes back what was said before.
    pub rating: Option<Rating>,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Whether a call was of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rating {
    /// It was.
    Good,
    /// It was not.
    Bad,
}

impl Rating {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

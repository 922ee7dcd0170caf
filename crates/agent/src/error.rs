//! Errors that end a turn without an answer.

use windlass_contract::{journal::JournalError, model::ModelError};
use windlass_runtime::Reason;

/// The error of a turn that ended without an answer. A failed tool is not an error: the model
/// handles its result.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not be recorded, so it must not continue.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The turn was stopped.
    #[error("{}", .0.message())]
    Stopped(Reason),
    /// A hook of the user has blocked the message.
    #[error("the message was blocked by a {reason}")]
    BlockedMessage {
        /// The hook and its reason.
        reason: String,
    },
    /// The answer does not fit its schema, even after a second request. It was announced anyway.
    #[error("the answer does not fit the output schema, also after it was asked for again: {problem}")]
    UnfitAnswer {
        /// The difference from the schema.
        problem: String,
    },
}

impl AgentError {
    /// Returns the name for programs, from a closed list.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Model(_) => "model_error",
            Self::Journal(_) => "journal_error",
            Self::Stopped(reason) => reason.name(),
            Self::BlockedMessage { .. } => "blocked_message",
            Self::UnfitAnswer { .. } => "unfit_answer",
        }
    }
}

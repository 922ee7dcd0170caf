//! Why a turn ended without an answer.

use windlass_contract::{journal::JournalError, model::ModelError};
use windlass_runtime::Reason;

/// Why a turn ended without an answer. A failed tool is not among them: that is a result the model deals with.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not be written down, so it must not go on.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The turn was stopped.
    #[error("{}", .0.message())]
    Stopped(Reason),
    /// The answer does not have the shape it must have, also when it was asked for again. It was announced all the same.
    #[error("the answer does not fit the output schema, also after it was asked for again: {problem}")]
    UnfitAnswer {
        /// In what it does not fit.
        problem: String,
    },
}

//! Asking a person.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CallId, Effects, ToolName};

/// Asks whoever may decide. Implemented by front ends, called by the gate only. A front end that cannot ask (no
/// terminal, a closed channel) answers [`Answer::Unavailable`], which counts as a no.
pub trait Approver: Send + Sync {
    /// Puts one question and waits for its answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// A question about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// What it would do.
    pub effects: Effects,
    /// Why it is asked.
    pub reason: String,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// No, with a word to the model.
    Deny(String),
    /// Nobody is there to answer.
    Unavailable,
}

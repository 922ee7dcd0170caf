//! Asking a person.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CallId, Effects, ToolName};

/// Asks whoever may decide. Implemented by front ends, called by the gate only. A front end that cannot ask (no
/// terminal, a closed channel) answers [`Answer::Unavailable`], which counts as a no.
pub trait Approver: Send + Sync {
    /// Puts one question and waits for its answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// A question about one call. Everything in it is shown, nothing is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// What it would do.
    pub effects: Effects,
    /// Where it would do it.
    pub cwd: PathBuf,
    /// Why it is asked.
    pub reason: String,
    /// What could not be told from the command's text.
    pub unclear: Vec<String>,
    /// Whether a yes lets it run without the sandbox.
    pub leaves_sandbox: bool,
    /// What a yes for the session would cover: the same again, to the letter.
    pub keys: Vec<String>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and the same again for the rest of the session.
    Session,
    /// No, with a word to the model.
    Deny(String),
    /// No, and stop the turn.
    Abort,
    /// Nobody is there to answer.
    Unavailable,
}

//! Questions to a person, and the answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CallId, Clean, Effects, ToolName};

/// Asks whoever may decide. Implemented by front ends, called by the gate only. A front end that cannot ask (no
/// terminal, a closed channel) answers [`Answer::Unavailable`], which counts as a no.
pub trait Approver: Send + Sync {
    /// Puts one question and waits for its answer.
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer>;
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
    /// What a yes allows beyond what the sandbox mode does.
    pub beyond: Beyond,
    /// What a yes for the session would cover: the same again, to the letter. Empty if there is none.
    pub keys: Vec<String>,
    /// The rule that would make this question unnecessary. Without one, there is no yes for longer than the session.
    pub rule: Option<Offer>,
}

/// What a yes allows beyond what the sandbox mode does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// Nothing.
    Nothing,
    /// The rules of the sandbox widened by this, and no further.
    Wider {
        /// What may be written as well.
        writable: Vec<PathBuf>,
        /// Whether the network may be reached as well.
        network: bool,
    },
    /// No sandbox at all.
    Everything,
}

/// A rule that an answer could make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The rule, as a file of rules has it.
    pub toml: String,
    /// What it would allow, in one line.
    pub allows: String,
}

/// Where a rule made by an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// In this project.
    Project,
    /// Everywhere.
    Everywhere,
}

/// Keeps the rules that answers make, for later sessions. Implemented by front ends that have a place for them, called by
/// the gate only.
pub trait Rulebook: Send + Sync {
    /// Keeps a rule. The error is one line for a person.
    fn keep(&self, reach: Reach, rule: &Offer) -> Result<(), String>;
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and the same again for the rest of the session.
    Session,
    /// Yes, and keep the rule of the question for this project.
    Project,
    /// Yes, and keep the rule of the question.
    Always,
    /// No, with a word to the model.
    Deny(String),
    /// No, and stop the turn.
    Abort,
    /// Nobody is there to answer.
    Unavailable,
}

/// Who answered a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// Whoever was asked.
    Person,
    /// An earlier answer for the session.
    Session,
    /// Nobody was there.
    Nobody,
}

impl Answer {
    /// The answer in one word, without what was said to the model.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Project => "project",
            Self::Always => "always",
            Self::Deny(_) => "deny",
            Self::Abort => "abort",
            Self::Unavailable => "unavailable",
        }
    }
}

impl AnsweredBy {
    /// The name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Session => "session",
            Self::Nobody => "nobody",
        }
    }
}

//! Questions to the user, and the answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, CallId, Clean, Effects, ToolName};

/// Asks the person who may decide. Implemented by front ends, called by the gate only. A front end
/// that cannot ask (no terminal, a closed channel) answers [`Answer::Unavailable`], which counts as
/// a no.
pub trait Approver: Send + Sync {
    /// Asks one question and waits for its answer.
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer>;
}

/// A question about one call. Front ends show all of it, without cutting anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// Effects the call would have.
    pub effects: Effects,
    /// Working directory of the call.
    pub cwd: PathBuf,
    /// Reason for the question.
    pub reason: String,
    /// Parts of the command that could not be analysed from its text.
    pub unclear: Vec<String>,
    /// Access that a yes grants in addition to the sandbox mode.
    pub beyond: Beyond,
    /// Keys that a yes for the session covers. They match the same request exactly. Empty if there
    /// can be no such yes.
    pub keys: Vec<String>,
    /// Rule that would make this question unnecessary. Without one, a yes cannot outlive the
    /// session.
    pub rule: Option<Offer>,
    /// Content of the call, as far as it is known.
    pub details: QuestionDetails,
}

/// Facts about a call that are known before it runs, beside its effects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct QuestionDetails {
    /// Arguments of a call without a program, one line each or in blocks of lines. Text to be
    /// removed from a file begins with `-` and text to be added with `+`; a patch is as written.
    pub change: String,
    /// Files the call would create. They do not exist yet.
    pub creates: Vec<PathBuf>,
    /// Words of the program in the command that is the reason for the question.
    pub cause: Vec<String>,
    /// Files that the redirections of the command would write, as written.
    pub writes: Vec<String>,
    /// Files that the command would delete, as written.
    pub deletes: Vec<String>,
}

/// Access that a yes grants in addition to the sandbox mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// Nothing.
    Nothing,
    /// The sandbox rules plus exactly these permissions.
    Wider {
        /// Additional paths that may be written.
        writable: Vec<PathBuf>,
        /// True if the call may also reach the network.
        network: bool,
    },
    /// No sandbox at all.
    Everything,
}

/// A rule that an answer could add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The rule, as it is written in a rules file.
    pub toml: String,
    /// One line that says what the rule would allow.
    pub allows: String,
}

/// Scope of a rule that an answer adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// In this project.
    Project,
    /// Everywhere.
    Everywhere,
}

/// Stores the rules that answers add, for later sessions. Implemented by front ends that can store
/// them, called by the gate only.
pub trait Rulebook: Send + Sync {
    /// Stores a rule. The error is one line for the user.
    fn keep(&self, reach: Reach, rule: &Offer) -> Result<(), String>;
}

/// The answer of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and the same again for the rest of the session.
    Session,
    /// Yes, and store the question's rule for this project.
    Project,
    /// Yes, and store the question's rule for all projects.
    Always,
    /// No, with a message for the model.
    Deny(String),
    /// No, and stop the turn.
    Abort,
    /// No one is available to answer.
    Unavailable,
}

/// Source of the answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The person who was asked.
    Person,
    /// An earlier answer for the session.
    Session,
    /// No one was available.
    Nobody,
}

impl Answer {
    /// Returns the answer in one word, without the message for the model.
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
    /// Returns the name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Session => "session",
            Self::Nobody => "nobody",
        }
    }
}

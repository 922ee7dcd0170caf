//! Input of a person: the questions of MCP servers and of the agent, and their answers.
//!
//! Permission to run a call is another matter: see [`approval`](crate::approval).

use std::sync::Arc;

use serde_json::Value;

use crate::{BoxFuture, CallId, remote::short_name};

/// Asks a person for input, for an MCP server or for the agent. Implemented by front ends, called
/// by `mcp` and by the tool `request_user_input`. A front end that cannot ask declines. Only the
/// person answers: no text of a tool, a server or a file may become an answer.
pub trait Elicitor: Send + Sync {
    /// Asks one question and waits for its answer. Dropping the future takes the question back.
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer>;

    /// Returns the one that asks during a call, for front ends with several people. The default has
    /// none: questions of all calls go to this one.
    fn for_call(&self, call: &CallId) -> Option<Arc<dyn Elicitor>> {
        let _ = call;
        None
    }
}

/// A question to the person. Its texts are untrusted, without control characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    /// The one who wants to know.
    pub asker: Asker,
    /// The question. Empty if the form says everything.
    pub message: String,
    /// The form of the answer.
    pub form: ElicitationForm,
}

/// The one who wants to know something of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// An MCP server, by its name in the configuration.
    Server(String),
    /// The agent: its model, or the gate about a call.
    Agent,
}

impl Asker {
    /// Returns the name for a person, as in `MCP server github`.
    pub fn title(&self) -> String {
        match self {
            Self::Server(name) => format!("MCP server `{}`", short_name(name)),
            Self::Agent => "the agent".to_owned(),
        }
    }
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationForm {
    /// An object of primitive fields.
    Fields {
        /// JSON Schema of the object.
        schema: Value,
    },
    /// The person opens a page and answers there.
    Url {
        /// Address of the page.
        url: String,
    },
    /// Questions with options. The person may give an answer of their own instead of an option.
    Choices {
        /// The questions, at least one.
        questions: Vec<ChoiceQuestion>,
    },
}

/// A question with options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceQuestion {
    /// Key of the answer.
    pub id: String,
    /// Title in a word or two.
    pub header: String,
    /// The question.
    pub question: String,
    /// The options, at least one.
    pub options: Vec<ChoiceOption>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// The answer, if it is chosen.
    pub label: String,
    /// Its meaning or its consequences.
    pub description: String,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    /// Accepted: the fields of the form, an empty object for a page, or for
    /// [`Choices`](ElicitationForm::Choices) the text of each answer by the id of its question.
    Accept(Value),
    /// Declined.
    Decline,
    /// Dismissed without an answer.
    Cancel,
}

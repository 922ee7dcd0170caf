//! A question as a dialogue of lines, for front ends that ask a person.
//!
//! It shows the question, takes one line after the other, checks each answer against the form, and
//! shows everything before it is sent. It neither reads nor writes by itself.

use serde_json::Value;
use windlass_contract::elicitation::{Asker, Elicitation, ElicitationAnswer, ElicitationForm};

mod choice_dialogue;
mod form_field;
mod server_dialogue;
#[cfg(test)]
mod tests;

use self::{choice_dialogue::ChoiceDialogue, server_dialogue::ServerDialogue};

/// Maximum number of lines of a text of the asker.
const MAX_TEXT_LINES: usize = 40;

/// The prefix of every line that the asker has written, so that none can pose as one of ours.
const QUOTED: &str = "  | ";

/// A question that is being answered.
#[derive(Debug)]
pub struct QuestionDialogue(DialogueKind);

#[derive(Debug)]
enum DialogueKind {
    Server(ServerDialogue),
    Choices(ChoiceDialogue),
}

/// The next thing to do in a dialogue.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogueStep {
    /// Show [`QuestionDialogue::lines`] and the prompt, and take a line.
    Continue,
    /// The line was not understood, for this reason. Show it, and take another line.
    Again(String),
    /// The answer.
    Answered(ElicitationAnswer),
}

impl QuestionDialogue {
    /// Begins a dialogue. Returns `None` if the question cannot be asked: its form has too many
    /// fields, or requires one of an unknown kind.
    pub fn new(question: &Elicitation) -> Option<Self> {
        let Elicitation { asker, message, form } = question;
        let kind = match form {
            ElicitationForm::Url { url } => {
                DialogueKind::Server(ServerDialogue::about_page(asker.title(), message, url)?)
            }
            ElicitationForm::Fields { schema } => {
                DialogueKind::Server(ServerDialogue::about_form(asker.title(), message, schema)?)
            }
            ElicitationForm::Choices { questions } => {
                DialogueKind::Choices(ChoiceDialogue::new(asker, questions)?)
            }
        };
        Some(Self(kind))
    }

    /// Returns the lines to show now. They are not wrapped.
    pub fn lines(&self) -> Vec<String> {
        match &self.0 {
            DialogueKind::Server(dialogue) => dialogue.lines(),
            DialogueKind::Choices(dialogue) => dialogue.lines(),
        }
    }

    /// Returns the text before the person's line, in one line.
    pub fn prompt(&self) -> String {
        match &self.0 {
            DialogueKind::Server(dialogue) => dialogue.prompt(),
            DialogueKind::Choices(dialogue) => dialogue.prompt(),
        }
    }

    /// Returns true while a line is a text, and not the key of a choice.
    pub fn takes_text(&self) -> bool {
        match &self.0 {
            DialogueKind::Server(dialogue) => dialogue.takes_text(),
            DialogueKind::Choices(dialogue) => dialogue.takes_text(),
        }
    }

    /// Takes a line of the person.
    pub fn on_line(&mut self, line: &str) -> DialogueStep {
        match &mut self.0 {
            DialogueKind::Server(dialogue) => dialogue.on_line(line),
            DialogueKind::Choices(dialogue) => dialogue.on_line(line),
        }
    }
}

/// Returns the asker at the beginning of a sentence.
fn opening_name(asker: &Asker) -> String {
    match asker {
        Asker::Server(_) => asker.title(),
        Asker::Agent => "The agent".to_owned(),
    }
}

/// Returns a text of the asker, each line marked, up to a number of lines.
fn quoted(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(|line| format!("{QUOTED}{line}")).collect();
    let more = lines.len().saturating_sub(MAX_TEXT_LINES);
    if more > 0 {
        lines.truncate(MAX_TEXT_LINES);
        lines.push(format!("({more} more lines)"));
    }
    lines
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

//! A question of a server as a dialogue of lines, for front ends that ask a person.
//!
//! It shows the question, takes one line after the other, checks each answer against the form, and
//! shows everything before it is sent. It neither reads nor writes by itself.

use serde_json::{Map, Value};
use windlass_contract::remote::{Elicitation, ElicitationAnswer, ElicitationForm, short_name};

mod form_field;
#[cfg(test)]
mod tests;

use self::form_field::FormField;

/// Maximum number of fields of a form; a longer one is declined.
const MAX_FIELDS: usize = 50;
/// Maximum number of lines of the text of a server.
const MAX_TEXT_LINES: usize = 40;

/// The prefix of every line that a server has written, so that none can pose as one of ours.
const QUOTED: &str = "  | ";

/// A question that is being answered.
#[derive(Debug)]
pub struct QuestionDialogue {
    server: String,
    opening: Vec<String>,
    is_page: bool,
    fields: Vec<FormField>,
    answers: Map<String, Value>,
    stage: DialogueStage,
}

/// The next thing to do in a dialogue.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogueStep {
    /// Show [`QuestionDialogue::lines`] and the prompt, and take a line.
    Continue,
    /// The line was not understood, for this reason. Show it, and take another line.
    Again(String),
    /// The answer to the server.
    Answered(ElicitationAnswer),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueStage {
    Offer,
    Field(usize),
    Review,
}

impl QuestionDialogue {
    /// Begins a dialogue. Returns `None` if the question cannot be asked: its form has too many
    /// fields, or requires one of an unknown kind.
    pub fn new(question: &Elicitation) -> Option<Self> {
        let server = short_name(&question.server);
        let (opening, fields) = match &question.form {
            ElicitationForm::Url { url } => (page_lines(&server, &question.message, url)?, Vec::new()),
            ElicitationForm::Fields { schema } => {
                let fields = form_fields(schema)?;
                (form_lines(&server, &question.message, &fields), fields)
            }
        };
        let is_page = matches!(question.form, ElicitationForm::Url { .. });
        let (answers, stage) = (Map::new(), DialogueStage::Offer);
        Some(Self { server, opening, is_page, fields, answers, stage })
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the lines to show now. They are not wrapped.
    pub fn lines(&self) -> Vec<String> {
        match self.stage {
            DialogueStage::Offer => self.opening.clone(),
            DialogueStage::Field(at) => {
                let title = format!("Field {} of {}:", at + 1, self.fields.len());
                let field = self.fields.get(at).map(FormField::lines).unwrap_or_default();
                [vec![title], field].concat()
            }
            DialogueStage::Review => self.review(),
        }
    }

    /// Returns the text before the person's line, in one line.
    pub fn prompt(&self) -> String {
        match self.stage {
            DialogueStage::Offer if self.is_page => "Go there? y, n or c: ".to_owned(),
            DialogueStage::Offer => "Answer it? y, n or c: ".to_owned(),
            DialogueStage::Field(_) => "Value (/decline and /cancel end it): ".to_owned(),
            DialogueStage::Review => "Send it? y, n, c, or e to start again: ".to_owned(),
        }
    }

    /// Returns true while a line is the value of a field, and not the letter of a choice.
    pub fn takes_text(&self) -> bool {
        matches!(self.stage, DialogueStage::Field(_))
    }

    /// Takes a line of the person.
    pub fn on_line(&mut self, line: &str) -> DialogueStep {
        let line = line.trim();
        if let DialogueStage::Field(at) = self.stage {
            return self.on_value(at, line);
        }
        match (self.stage, line.to_ascii_lowercase().as_str()) {
            (_, "n" | "no") => DialogueStep::Answered(ElicitationAnswer::Decline),
            (_, "c" | "cancel") => DialogueStep::Answered(ElicitationAnswer::Cancel),
            (DialogueStage::Offer, "y" | "yes") if !self.fields.is_empty() => self.go_to(0),
            (_, "y" | "yes") => {
                let answers = Value::Object(std::mem::take(&mut self.answers));
                DialogueStep::Answered(ElicitationAnswer::Accept(answers))
            }
            (DialogueStage::Review, "e" | "edit") => {
                self.answers.clear();
                self.go_to(0)
            }
            _ => DialogueStep::Again("answer with one of the letters".to_owned()),
        }
    }

    fn on_value(&mut self, at: usize, line: &str) -> DialogueStep {
        match line {
            "/decline" => return DialogueStep::Answered(ElicitationAnswer::Decline),
            "/cancel" => return DialogueStep::Answered(ElicitationAnswer::Cancel),
            _ => {}
        }
        let Some(field) = self.fields.get(at) else { return self.go_to(at) };
        match field.parse(line) {
            Ok(Some(value)) => drop(self.answers.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(problem) => return DialogueStep::Again(problem),
        }
        self.go_to(at + 1)
    }

    fn go_to(&mut self, field: usize) -> DialogueStep {
        let is_field = field < self.fields.len();
        self.stage = if is_field { DialogueStage::Field(field) } else { DialogueStage::Review };
        DialogueStep::Continue
    }

    fn review(&self) -> Vec<String> {
        let shown = self.fields.iter().map(|field| match self.answers.get(&field.name) {
            Some(value) => format!("  {}: {}", field.label(), shown_value(value)),
            None => format!("  {}: left out", field.label()),
        });
        let title = format!("This goes to MCP server `{}`:", self.server);
        [title].into_iter().chain(shown).collect()
    }
}

/// Returns the fields of a form that can be asked for. `None` if a required one cannot, or if there
/// are too many.
fn form_fields(schema: &Value) -> Option<Vec<FormField>> {
    let no_fields = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_fields);
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if properties.len() > MAX_FIELDS {
        return None;
    }
    let mut fields = Vec::new();
    for (name, schema) in properties {
        let is_required = required.iter().any(|required| required == name);
        match FormField::parse_schema(name, schema, is_required) {
            Some(field) => fields.push(field),
            None if is_required => return None,
            None => {}
        }
    }
    Some(fields)
}

fn form_lines(server: &str, message: &str, fields: &[FormField]) -> Vec<String> {
    let mut lines = vec![format!("MCP server `{server}` asks, in its own words:")];
    lines.extend(quoted(message));
    let names = fields.iter().map(|field| {
        let required = if field.is_required { " (required)" } else { "" };
        format!("{}{required}", field.label())
    });
    let names = names.collect::<Vec<_>>().join(", ");
    lines.push(if names.is_empty() {
        "It wants a yes or no".to_owned()
    } else {
        format!("It wants: {names}")
    });
    lines.push("The answer goes to this server, whatever the question says".to_owned());
    lines.push("  y  answer it".to_owned());
    lines.extend(refusals());
    lines
}

fn page_lines(server: &str, message: &str, url: &str) -> Option<Vec<String>> {
    let address = reqwest::Url::parse(url).ok()?;
    let host = address.host_str()?;
    let mut lines = vec![format!("MCP server `{server}` asks you to open a page, in its own words:")];
    lines.extend(quoted(message));
    lines.push(format!("host:    {host}"));
    lines.push(format!("address: {url}"));
    if host.split('.').any(|label| label.starts_with("xn--")) {
        lines.push("careful: the host has letters that can look like others".to_owned());
    }
    if !address.username().is_empty() || address.password().is_some() {
        lines.push("careful: the text before `@` in the address is not the host".to_owned());
    }
    if address.scheme() == "http" {
        lines.push("careful: the connection to the page is not encrypted".to_owned());
    }
    lines.push("Windlass does not open it. Open it yourself, if you trust the host".to_owned());
    lines.push("  y  tell the server that you agree".to_owned());
    lines.extend(refusals());
    Some(lines)
}

fn refusals() -> [String; 2] {
    ["  n  decline", "  c  dismiss it without an answer"].map(str::to_owned)
}

/// Returns a text of a server, each line marked, up to a number of lines.
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

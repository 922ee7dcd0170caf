//! The dialogue about a form or a page of a server.

use serde_json::{Map, Value};
use windlass_contract::elicitation::ElicitationAnswer;

use super::{DialogueStep, form_field::FormField, quoted, shown_value};

/// Maximum number of fields of a form; a longer one is declined.
const MAX_FIELDS: usize = 50;

/// A question that is being answered.
#[derive(Debug)]
pub(super) struct ServerDialogue {
    /// The server, as the person reads it.
    server: String,
    opening: Vec<String>,
    is_page: bool,
    fields: Vec<FormField>,
    answers: Map<String, Value>,
    stage: DialogueStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueStage {
    Offer,
    Field(usize),
    Review,
}

impl ServerDialogue {
    /// Begins a dialogue about a form. Returns `None` if it cannot be asked: it has too many
    /// fields, or requires one of an unknown kind.
    pub(super) fn about_form(server: String, message: &str, schema: &Value) -> Option<Self> {
        let fields = form_fields(schema)?;
        let opening = form_lines(&server, message, &fields);
        Some(Self::new(server, opening, fields, false))
    }

    /// Begins a dialogue about a page. Returns `None` if its address makes no sense.
    pub(super) fn about_page(server: String, message: &str, url: &str) -> Option<Self> {
        let opening = page_lines(&server, message, url)?;
        Some(Self::new(server, opening, Vec::new(), true))
    }

    fn new(server: String, opening: Vec<String>, fields: Vec<FormField>, is_page: bool) -> Self {
        Self { server, opening, is_page, fields, answers: Map::new(), stage: DialogueStage::Offer }
    }

    /// Returns the lines to show now. They are not wrapped.
    pub(super) fn lines(&self) -> Vec<String> {
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
    pub(super) fn prompt(&self) -> String {
        match self.stage {
            DialogueStage::Offer if self.is_page => "Go there? y, n or c: ".to_owned(),
            DialogueStage::Offer => "Answer it? y, n or c: ".to_owned(),
            DialogueStage::Field(_) => "Value (/decline and /cancel end it): ".to_owned(),
            DialogueStage::Review => "Send it? y, n, c, or e to start again: ".to_owned(),
        }
    }

    /// Returns true while a line is the value of a field, and not the letter of a choice.
    pub(super) fn takes_text(&self) -> bool {
        matches!(self.stage, DialogueStage::Field(_))
    }

    /// Takes a line of the person.
    pub(super) fn on_line(&mut self, line: &str) -> DialogueStep {
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
        let title = format!("This goes to {}:", self.server);
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
    let mut lines = vec![format!("{server} asks, in its own words:")];
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
    let mut lines = vec![format!("{server} asks you to open a page, in its own words:")];
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

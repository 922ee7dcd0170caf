//! A field of a form: its description for a person, and the check of an answer.

use serde_json::{Number, Value, json};
use windlass_schema::Schema;

use super::{quoted, shown_value};
use crate::untrusted_text::visible_line;

/// Maximum number of choices that are listed.
const MAX_LISTED_CHOICES: usize = 50;
/// Maximum length of the name of a field or choice.
const MAX_LABEL: usize = 100;

/// A field of a form.
#[derive(Debug)]
pub(super) struct FormField {
    pub(super) name: String,
    title: Option<String>,
    description: String,
    pub(super) is_required: bool,
    default: Option<Value>,
    kind: FieldKind,
    /// The schema of an object with this field as `value`.
    check: Schema,
}

#[derive(Debug)]
enum FieldKind {
    Text { min: Option<u64>, max: Option<u64>, format: Option<&'static str> },
    Number { is_integer: bool, min: Option<f64>, max: Option<f64> },
    Truth,
    One(Vec<FieldChoice>),
    Several { choices: Vec<FieldChoice>, min: Option<u64>, max: Option<u64> },
}

/// A value that can be chosen.
#[derive(Debug)]
struct FieldChoice {
    value: String,
    title: Option<String>,
}

impl FormField {
    /// Reads the schema of a field. Returns `None` for a kind that is not known.
    pub(super) fn parse_schema(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let kind = match schema.get("type").and_then(Value::as_str)? {
            "string" => match choices(schema) {
                Some(choices) => FieldKind::One(choices),
                None => FieldKind::Text {
                    min: count("minLength"),
                    max: count("maxLength"),
                    format: text("format").and_then(|format| format_in_words(&format)),
                },
            },
            number @ ("number" | "integer") => FieldKind::Number {
                is_integer: number == "integer",
                min: bound("minimum"),
                max: bound("maximum"),
            },
            "boolean" => FieldKind::Truth,
            "array" => FieldKind::Several {
                choices: choices(schema.get("items")?)?,
                min: count("minItems"),
                max: count("maxItems"),
            },
            _ => return None,
        };
        let object = json!({"type": "object", "properties": {"value": schema}, "required": ["value"]});
        let default = schema.get("default").filter(|default| !default.is_null()).cloned();
        let mut field = Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description").unwrap_or_default(),
            is_required,
            default: None,
            kind,
            check: Schema::new(&object).ok()?,
        };
        // A default that the form itself would refuse is none.
        field.default = default.filter(|default| field.allows(default));
        Some(field)
    }

    /// Returns the name of the field for a person, in one line.
    pub(super) fn label(&self) -> String {
        visible_line(self.title.as_deref().unwrap_or(&self.name), MAX_LABEL)
    }

    /// Describes the field.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = quoted(&self.label());
        lines.extend(quoted(&self.description));
        let choices = match &self.kind {
            FieldKind::One(choices) | FieldKind::Several { choices, .. } => choices.as_slice(),
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Truth => &[],
        };
        for (number, choice) in (1..).zip(choices).take(MAX_LISTED_CHOICES) {
            lines.push(format!("{number:>4}  {}", choice.label()));
        }
        if choices.len() > MAX_LISTED_CHOICES {
            lines.push(format!("      and {} more", choices.len() - MAX_LISTED_CHOICES));
        }
        let empty = match &self.default {
            Some(default) => format!("; Enter alone: {}", visible_line(&shown_value(default), MAX_LABEL)),
            None if self.is_required => "; required".to_owned(),
            None => "; Enter alone leaves it out".to_owned(),
        };
        lines.push(format!("  ({}{empty})", self.expected()));
        lines
    }

    /// Describes the values that are allowed.
    fn expected(&self) -> String {
        match &self.kind {
            FieldKind::Text { min, max, format } => {
                let format = format.unwrap_or("text");
                format!("{format}{}", range(*min, *max, "characters"))
            }
            FieldKind::Number { is_integer, min, max } => {
                let kind = if *is_integer { "a whole number" } else { "a number" };
                format!("{kind}{}", range(*min, *max, ""))
            }
            FieldKind::Truth => "yes or no".to_owned(),
            FieldKind::One(_) => "one of them, by number or name".to_owned(),
            FieldKind::Several { min, max, .. } => {
                format!("any of them, with commas between{}", range(*min, *max, "of them"))
            }
        }
    }

    /// Reads the answer of a person. `None` leaves the field out. The error is one line for the
    /// person.
    pub(super) fn parse(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match (&self.default, &self.kind) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, _) if !self.is_required => Ok(None),
                (None, FieldKind::Several { min: None | Some(0), .. }) => Ok(Some(Value::Array(Vec::new()))),
                (None, _) => Err("this field is required".to_owned()),
            };
        }
        let value = match &self.kind {
            // The only way to write an empty text.
            FieldKind::Text { .. } if line == "\"\"" => Value::from(""),
            FieldKind::Text { .. } => Value::from(line),
            FieldKind::Number { is_integer, .. } => parsed_number(line, *is_integer).unwrap_or_default(),
            FieldKind::Truth => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => Value::Null,
            },
            FieldKind::One(choices) => {
                chosen(choices, line).map_or(Value::Null, |choice| Value::from(choice.value.as_str()))
            }
            FieldKind::Several { choices, .. } => several(choices, line)?,
        };
        if self.allows(&value) { Ok(Some(value)) } else { Err(format!("expected: {}", self.expected())) }
    }

    /// Returns true if the form allows this value.
    fn allows(&self, value: &Value) -> bool {
        self.check.check(&json!({ "value": value })).is_empty()
    }
}

impl FieldChoice {
    fn label(&self) -> String {
        let value = visible_line(&self.value, MAX_LABEL);
        match &self.title {
            Some(title) if *title != self.value => {
                format!("{} ({value})", visible_line(title, MAX_LABEL))
            }
            _ => value,
        }
    }
}

/// Returns the choices of a schema, in each of the ways to write them.
fn choices(schema: &Value) -> Option<Vec<FieldChoice>> {
    if let Some(titled) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        let choice = |choice: &Value| {
            let title = choice.get("title").and_then(Value::as_str).map(str::to_owned);
            Some(FieldChoice { value: choice.get("const")?.as_str()?.to_owned(), title })
        };
        return titled.iter().map(choice).collect();
    }
    let values = schema.get("enum")?.as_array()?;
    let title = |at: usize| Some(schema.get("enumNames")?.get(at)?.as_str()?.to_owned());
    let choice = |(at, value): (usize, &Value)| {
        Some(FieldChoice { value: value.as_str()?.to_owned(), title: title(at) })
    };
    values.iter().enumerate().map(choice).collect()
}

/// Finds a choice by its value, its title or its number.
fn chosen<'a>(choices: &'a [FieldChoice], word: &str) -> Option<&'a FieldChoice> {
    let by_value = choices.iter().find(|choice| choice.value == word);
    let by_title = || choices.iter().find(|choice| choice.title.as_deref() == Some(word));
    let by_number = || word.parse::<usize>().ok()?.checked_sub(1).and_then(|at| choices.get(at));
    by_value.or_else(by_title).or_else(by_number)
}

fn several(choices: &[FieldChoice], line: &str) -> Result<Value, String> {
    let mut values: Vec<Value> = Vec::new();
    for word in line.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let choice = chosen(choices, word).ok_or_else(|| format!("`{word}` is none of them"))?;
        let value = Value::from(choice.value.as_str());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(Value::Array(values))
}

fn parsed_number(line: &str, is_integer: bool) -> Option<Value> {
    if let Ok(number) = line.parse::<i64>() {
        return Some(Value::from(number));
    }
    let number = line.parse::<f64>().ok().filter(|_| !is_integer)?;
    Number::from_f64(number).map(Value::Number)
}

fn range<T: ToString>(min: Option<T>, max: Option<T>, unit: &str) -> String {
    let (min, max) = (min.map(|min| min.to_string()), max.map(|max| max.to_string()));
    let range = match (min, max) {
        (None, None) => return String::new(),
        (Some(min), None) => format!(", at least {min} {unit}"),
        (None, Some(max)) => format!(", at most {max} {unit}"),
        (Some(min), Some(max)) => format!(", {min} to {max} {unit}"),
    };
    range.trim_end().to_owned()
}

/// Describes a format by its name in JSON Schema.
fn format_in_words(name: &str) -> Option<&'static str> {
    match name {
        "email" => Some("an e-mail address"),
        "uri" => Some("an address such as https://example.org"),
        "date" => Some("a date such as 2026-01-31"),
        "date-time" => Some("a time such as 2026-01-31T12:00:00Z"),
        _ => None,
    }
}

//! The places of a schema that want a value: its leaves, however deep.

use serde_json::{Map, Value};

use super::words;

/// More parameters than this nobody fills from a sentence.
const MAX_SLOTS: usize = 100;
const MAX_DEPTH: usize = 6;

/// A leaf of the schema.
#[derive(Debug, Clone)]
pub(super) struct ParameterSlot {
    /// The way to it; an empty step is the one item of a list.
    path: Vec<String>,
    pub(super) kind: SlotKind,
    /// A list of such values.
    pub(super) list: bool,
    pub(super) choices: Vec<Value>,
    pub(super) required: bool,
    /// What it is called, and what is said about it.
    pub(super) name: Vec<String>,
    pub(super) about: Vec<String>,
    pub(super) description: String,
    /// What it may be.
    pub(super) schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Text,
    Integer,
    Number,
    Boolean,
}

/// All leaves, required ones of an object first and in the order they are listed.
pub(super) fn slots(parameters: &Value) -> Vec<ParameterSlot> {
    let mut slots = Vec::new();
    collect(parameters, &mut Vec::new(), true, &mut slots);
    slots
}

fn collect(schema: &Value, path: &mut Vec<String>, required: bool, slots: &mut Vec<ParameterSlot>) {
    if path.len() > MAX_DEPTH {
        return;
    }
    let must = schema.get("required").and_then(Value::as_array);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    // Objects do not keep their order here, but the list of required names does, and its order is how people speak.
    let first: Vec<&str> = must.into_iter().flatten().filter_map(Value::as_str).collect();
    let rest = properties.keys().map(String::as_str).filter(|name| !first.contains(name));
    for name in first.iter().copied().chain(rest) {
        if slots.len() >= MAX_SLOTS {
            return;
        }
        let Some(property) = properties.get(name) else { continue };
        path.push(name.to_owned());
        place(property, path, required && first.contains(&name), slots);
        path.pop();
    }
}

fn place(schema: &Value, path: &mut Vec<String>, required: bool, slots: &mut Vec<ParameterSlot>) {
    let items = schema.get("items").unwrap_or(&Value::Null);
    match kind_name(schema) {
        Some("object") => collect(schema, path, required, slots),
        Some("array") if kind_name(items) == Some("object") => {
            path.push(String::new());
            collect(items, path, required, slots);
            path.pop();
        }
        Some("array") => slots.push(leaf(schema, items, path, required)),
        _ => slots.push(leaf(schema, schema, path, required)),
    }
}

fn leaf(schema: &Value, value: &Value, path: &[String], required: bool) -> ParameterSlot {
    let text =
        |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let description: String = text(schema).chars().take(300).collect();
    let name = path.iter().rev().find(|step| !step.is_empty()).cloned().unwrap_or_default();
    let choices = value.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
    let kind = match kind_name(value) {
        Some("integer") => SlotKind::Integer,
        Some("number") => SlotKind::Number,
        Some("boolean") => SlotKind::Boolean,
        _ => SlotKind::Text,
    };
    let mut about = words::content_words(&description);
    about.truncate(14);
    ParameterSlot {
        path: path.to_vec(),
        kind,
        list: !std::ptr::eq(schema, value),
        choices,
        required,
        name: words::words(&name),
        about,
        description,
        schema: schema.clone(),
    }
}

fn kind_name(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ if schema.get("properties").is_some() => Some("object"),
        _ => None,
    }
}

impl ParameterSlot {
    /// The first thing that is not there on the way to it.
    pub(super) fn missing_from(&self, args: &Map<String, Value>) -> Option<&str> {
        let (top, rest) = self.path.split_first()?;
        let mut at = args.get(top);
        if at.is_none() {
            return Some(top);
        }
        rest.iter().find_map(|step| {
            at = at.and_then(|value| if step.is_empty() { value.get(0) } else { value.get(step) });
            (at.is_none() && !step.is_empty()).then_some(step.as_str())
        })
    }

    /// The name as the schema has it.
    pub(super) fn own_name(&self) -> &str {
        self.path.iter().rev().find(|step| !step.is_empty()).map_or("", String::as_str)
    }

    /// Whether its name has one of these words.
    pub(super) fn is_about(&self, any: &[&str]) -> bool {
        let stems: Vec<String> = any.iter().map(|word| words::stem(word)).collect();
        self.name.iter().any(|word| stems.contains(word))
    }

    /// The same, looking at the description too.
    pub(super) fn describes(&self, any: &[&str]) -> bool {
        self.is_about(any) || any.iter().any(|word| self.about.contains(&words::stem(word)))
    }

    /// Puts a value where it belongs.
    pub(super) fn put(&self, args: &mut Map<String, Value>, value: Value) {
        let Some((first, rest)) = self.path.split_first() else { return };
        let Some((last, between)) = rest.split_last() else {
            args.insert(first.clone(), value);
            return;
        };
        let mut at = args.entry(first.clone()).or_insert(Value::Null);
        for step in between {
            at = child(at, step);
        }
        *child(at, last) = value;
    }
}

/// The member of an object, or the one item of a list, made if it is not there.
fn child<'a>(value: &'a mut Value, step: &str) -> &'a mut Value {
    if step.is_empty() {
        if !value.is_array() {
            *value = Value::Array(vec![Value::Null]);
        }
        return &mut value[0];
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    &mut value[step]
}

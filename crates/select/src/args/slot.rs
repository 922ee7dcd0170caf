//! The leaves of a schema, at any depth: the slots that take a value.

use serde_json::{Map, Value};

use super::words;

/// Maximum number of slots. A sentence does not fill more.
const MAX_SLOTS: usize = 100;
const MAX_DEPTH: usize = 6;

/// A leaf of the schema.
#[derive(Debug, Clone)]
pub(super) struct ParameterSlot {
    /// The path to the leaf. An empty step is the single item of a list.
    path: Vec<String>,
    pub(super) kind: SlotKind,
    /// True if the slot takes a list of such values.
    pub(super) list: bool,
    pub(super) choices: Vec<Value>,
    pub(super) required: bool,
    /// The stemmed words of the name, and of the description.
    pub(super) name: Vec<String>,
    pub(super) about: Vec<String>,
    pub(super) description: String,
    /// The schema of the leaf.
    pub(super) schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Text,
    Integer,
    Number,
    Boolean,
}

/// Returns all leaves. The required ones of an object come first, in the order in which they are
/// listed.
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
    // Objects lose their order here, but the list of required names keeps it. That order is how
    // people speak.
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
    /// Returns the first step of the path that is missing.
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

    /// Returns the name as written in the schema.
    pub(super) fn own_name(&self) -> &str {
        self.path.iter().rev().find(|step| !step.is_empty()).map_or("", String::as_str)
    }

    /// Returns true if the name has one of these words.
    pub(super) fn is_about(&self, any: &[&str]) -> bool {
        let stems: Vec<String> = any.iter().map(|word| words::stem(word)).collect();
        self.name.iter().any(|word| stems.contains(word))
    }

    /// Returns true if the name or the description has one of these words.
    pub(super) fn describes(&self, any: &[&str]) -> bool {
        self.is_about(any) || any.iter().any(|word| self.about.contains(&words::stem(word)))
    }

    /// Inserts a value at the path of the slot.
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

/// Returns the member of an object, or the single item of a list; creates it if it is missing.
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

//! Fits a value to a schema, one understood difference at a time.

use serde_json::{Map, Number, Value};
use windlass_contract::meta::ParameterAlias;
use windlass_schema::kind_of;

use super::{ArgumentRepair, RepairKind, RepairMode, ToolParameters, aliases, lenient, names};

/// Maximum depth and number of values. A repair is for arguments, not for documents.
const MAX_DEPTH: usize = 16;
const MAX_VALUES: usize = 10_000;

/// Maximum number of parameters that are listed if none is similar.
const MAX_NAMES: usize = 12;

/// Hints about unknown members, by path.
#[derive(Debug, Default)]
pub(super) struct NameHints(Vec<(String, String)>);

impl NameHints {
    pub(super) fn add(&mut self, path: String, hint: String) {
        if self.0.iter().all(|(known, _)| *known != path) {
            self.0.push((path, hint));
        }
    }

    /// Returns a problem with its hint, if there is one.
    pub(super) fn attach_to(&self, problem: &str) -> String {
        let hint = self.0.iter().find(|(path, _)| problem == format!("`{path}` is not known"));
        hint.map_or_else(|| problem.to_owned(), |(_, hint)| format!("{problem}; {hint}"))
    }
}

pub(super) struct SchemaFitter<'a> {
    root: Value,
    aliases: &'a [ParameterAlias],
    mode: RepairMode,
    repairs: &'a mut Vec<ArgumentRepair>,
    pub(super) hints: NameHints,
    left: usize,
}

impl<'a> SchemaFitter<'a> {
    pub(super) fn new(
        parameters: &ToolParameters<'a>,
        mode: RepairMode,
        repairs: &'a mut Vec<ArgumentRepair>,
    ) -> Self {
        let (root, aliases) = (parameters.schema.explicit(), parameters.aliases);
        Self { root, aliases, mode, repairs, hints: NameHints::default(), left: MAX_VALUES }
    }

    /// Fits the whole arguments.
    pub(super) fn root(&mut self, value: &mut Value) {
        let root = self.root.clone();
        let known = root.get("properties").and_then(Value::as_object);
        if let (Some(known), Value::Object(members)) = (known, &mut *value) {
            aliases::resolve(self.aliases, known, members, self.repairs, &mut self.hints);
        }
        self.value(&root, value, "arguments", 0);
    }

    fn value(&mut self, schema: &Value, value: &mut Value, path: &str, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        let schema = &self.resolved(schema);
        self.kind(schema, value, path);
        self.choice(schema, value, path);
        match value {
            Value::Object(members) => self.members(schema, members, path, depth),
            Value::Array(items) => {
                let Some(each) = schema.get("items") else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(each, item, &format!("{path}[{at}]"), depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns a schema without `$ref`, and with the only form of `anyOf` that is not `null`.
    fn resolved(&self, schema: &Value) -> Value {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| self.root.pointer(target.trim_start_matches('#')));
            let forms = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(union)?.as_array());
            let mut forms =
                forms.into_iter().flatten().filter(|form| form.get("type") != Some(&"null".into()));
            let only = forms.next().filter(|_| forms.next().is_none());
            match target.or(only) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema.clone()
    }

    /// Converts a value to the type of the schema.
    fn kind(&mut self, schema: &Value, value: &mut Value, path: &str) {
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let found = kind_of(value);
        let number = found == "integer" && kinds.contains(&"number");
        let null = value.is_null();
        if null || number || kinds.contains(&found) {
            return;
        }
        let read = kinds.iter().find_map(|kind| self.read_as(kind, value).map(|value| (*kind, value)));
        if let Some((kind, read)) = read {
            *value = read;
            self.note(RepairKind::Type, format!("`{path}`: {found} read as {kind}"));
        }
    }

    fn read_as(&self, kind: &str, value: &Value) -> Option<Value> {
        let likely = self.mode >= RepairMode::Likely;
        match (kind, value) {
            ("integer", Value::Number(number)) => whole(number),
            ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
            ("number", Value::String(text)) => {
                let number: Number = serde_json::from_str(text.trim()).ok()?;
                Some(Value::Number(number))
            }
            ("boolean", Value::String(text)) => match text.trim() {
                "true" | "True" => Some(Value::Bool(true)),
                "false" | "False" => Some(Value::Bool(false)),
                "yes" | "on" | "1" if likely => Some(Value::Bool(true)),
                "no" | "off" | "0" if likely => Some(Value::Bool(false)),
                _ => None,
            },
            ("boolean", Value::Number(number)) if likely => match number.as_u64()? {
                0 => Some(Value::Bool(false)),
                1 => Some(Value::Bool(true)),
                _ => None,
            },
            ("string", Value::Bool(yes)) => Some(Value::String(yes.to_string())),
            // Not 3.10, which would become 3.1.
            ("string", Value::Number(number)) if likely || !number.is_f64() => {
                Some(Value::String(number.to_string()))
            }
            ("string", Value::Array(items)) if likely => match items.as_slice() {
                [only @ Value::String(_)] => Some(only.clone()),
                _ => None,
            },
            ("array" | "object", Value::String(text)) if text.trim_start().starts_with(['[', '{']) => {
                let (inner, _) = lenient::read(text, self.mode).ok()?;
                (kind_of(&inner) == kind).then_some(inner)
            }
            // A single value for a list. For tools that run something this could change the
            // meaning: a command line is not a program name.
            ("array", Value::Null) => None,
            ("array", value) if likely => Some(Value::Array(vec![value.clone()])),
            _ => None,
        }
    }

    /// Finds the only enum value that differs just in case or separators.
    fn choice(&mut self, schema: &Value, value: &mut Value, path: &str) {
        let (Some(allowed), Value::String(text)) = (schema.get("enum").and_then(Value::as_array), &*value)
        else {
            return;
        };
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        if words.contains(&text.as_str()) {
            return;
        }
        if let Some(word) = names::only_match(text, &words, RepairMode::Exact) {
            *value = Value::String(word.to_owned());
            self.note(RepairKind::Type, format!("`{path}`: read as \"{word}\""));
        }
    }

    fn members(&mut self, schema: &Value, members: &mut Map<String, Value>, path: &str, depth: usize) {
        let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
        let required = schema.get("required").and_then(Value::as_array);
        let must_be = |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
        self.rename(known, members, path);
        members.retain(|name, value| {
            let Some(property) = known.get(name) else { return true };
            let keep = !value.is_null() || must_be(name) || takes_null(property);
            if !keep {
                let note = format!("`{path}.{name}`: null left out");
                self.repairs.push(ArgumentRepair::new(RepairKind::Null, note));
            }
            keep
        });
        for (name, value) in members.iter_mut() {
            if let Some(property) = known.get(name) {
                self.value(property, value, &format!("{path}.{name}"), depth + 1);
            }
        }
    }

    /// Renames members if exactly one free name can be meant.
    fn rename(&mut self, known: &Map<String, Value>, members: &mut Map<String, Value>, path: &str) {
        let strange: Vec<String> =
            members.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
        for name in strange {
            let free: Vec<&str> =
                known.keys().map(String::as_str).filter(|each| !members.contains_key(*each)).collect();
            let Some(right) = names::only_match(&name, &free, self.mode) else {
                self.hints.add(format!("{path}.{name}"), hint(&name, known));
                continue;
            };
            if let Some(value) = members.remove(&name) {
                members.insert(right.to_owned(), value);
                let shown = names::display_name(&name);
                self.note(RepairKind::Name, format!("`{path}.{shown}`: read as `{right}`"));
            }
        }
    }

    fn note(&mut self, kind: RepairKind, note: String) {
        self.repairs.push(ArgumentRepair::new(kind, note));
    }
}

/// Returns the parameter most similar to an unknown name, or the list of parameters.
fn hint(name: &str, known: &Map<String, Value>) -> String {
    let names = || known.keys().map(String::as_str);
    if let Some(near) = names::near(name, names()) {
        return format!("the nearest is `{near}`");
    }
    let listed: Vec<_> = names().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    let more = if known.len() > MAX_NAMES { ", …" } else { "" };
    if listed.is_empty() {
        return "nothing is taken here".to_owned();
    }
    format!("there are {}{more}", listed.join(", "))
}

fn takes_null(schema: &Value) -> bool {
    let kinds = schema.get("type");
    let listed =
        |value: &Value| value == "null" || value.as_array().is_some_and(|all| all.contains(&"null".into()));
    let forms = ["anyOf", "oneOf"].iter().filter_map(|union| schema.get(union)?.as_array()).flatten();
    kinds.is_none_or(listed) || forms.into_iter().any(|form| form.get("type").is_some_and(listed))
}

/// Converts 3.0 to 3.
fn whole(number: &Number) -> Option<Value> {
    let number = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
    format!("{number:.0}").parse::<i64>().ok().map(Value::from)
}

//! Whether a value fits a schema, as far as it decides whether a call makes sense.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, kind_of};

/// Everything in which a value does not fit.
pub(super) fn check(root: &Map<String, Value>, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    Check { root, problems: &mut problems }.object(root, value, "arguments", 0);
    problems
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    problems: &'a mut Vec<String>,
}

impl Check<'_> {
    fn any(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) {
        if let Some(schema) = schema.as_object() {
            self.object(schema, value, path, depth);
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, value: &Value, path: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.problems.push(format!("`{path}` is nested more than {MAX_DEPTH} deep"));
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            return self.object(&target, value, path, depth + 1);
        }
        if let Some(expected) = schema.get("type").filter(|kinds| !allows(kinds, value)) {
            let expected = expected.to_string().replace('"', "");
            return self.problems.push(format!("`{path}` must be {expected}, found {}", kind_of(value)));
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|all| !all.contains(value))
        {
            let allowed = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
            self.problems.push(format!("`{path}` must be one of {allowed}, found {value}"));
        }
        for union in ["anyOf", "oneOf"] {
            let choices = schema.get(union).and_then(Value::as_array);
            if choices.is_some_and(|choices| !choices.iter().any(|choice| self.fits(choice, value, depth))) {
                self.problems.push(format!("`{path}` fits none of the forms it may have"));
            }
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.any(part, value, path, depth + 1);
        }
        match value {
            Value::Object(members) => self.members(schema, members, path, depth),
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    items
                        .iter()
                        .enumerate()
                        .for_each(|(at, item)| self.any(schema, item, &format!("{path}[{at}]"), depth + 1));
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        for name in
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            if !members.contains_key(name) {
                self.problems.push(format!("`{path}.{name}` is missing"));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    self.any(schema, value, &format!("{path}.{name}"), depth + 1);
                }
                (None, Some(Value::Bool(false))) => {
                    self.problems.push(format!("`{path}.{name}` is not known"));
                }
                (None, _) => {}
            }
        }
    }

    fn fits(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut problems = Vec::new();
        Check { root: self.root, problems: &mut problems }.any(schema, value, "", depth + 1);
        problems.is_empty()
    }

    fn resolve(&self, target: &str) -> Option<Map<String, Value>> {
        if target == "#" {
            return Some(self.root.clone());
        }
        let name = target.strip_prefix("#/$defs/")?;
        self.root.get("$defs")?.get(name)?.as_object().cloned()
    }
}

fn allows(kinds: &Value, value: &Value) -> bool {
    let one = |kind: &Value| match kind.as_str() {
        Some("number") => value.is_number(),
        // 3.0 is an integer to JSON Schema, and models write it.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(kind) => kind == kind_of(value),
        None => true,
    };
    kinds.as_array().map_or_else(|| one(kinds), |kinds| kinds.iter().any(one))
}

//! Whether a value fits a schema, as far as it decides whether a call makes sense.

use std::{mem, slice};

use serde_json::{Map, Value};

use super::{MAX_DEPTH, kind_of};

mod bounds;

/// How many pairs of a schema and a value one check may look at: far more than honest arguments need, and done within
/// milliseconds. Without it a few references back to unions double the work with every level.
const MAX_VISITS: usize = 100_000;

/// Everything in which a value does not fit.
pub(super) fn check(root: &Map<String, Value>, value: &Value) -> Vec<String> {
    let mut check = Check { root, left: MAX_VISITS, problems: Vec::new() };
    match check.object(root, value, "arguments", 0) {
        Ok(()) => check.problems,
        Err(TooComplex) => vec!["`arguments` is too complex to check".to_owned()],
    }
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    /// Visits that are left.
    left: usize,
    problems: Vec<String>,
}

/// All visits are used up, and the check with them.
#[derive(Debug)]
struct TooComplex;

impl<'a> Check<'a> {
    fn any(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize) -> Result<(), TooComplex> {
        schema.as_object().map_or(Ok(()), |schema| self.object(schema, value, path, depth))
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        self.left = self.left.checked_sub(1).ok_or(TooComplex)?;
        if depth > MAX_DEPTH {
            self.problems.push(format!("`{path}` is nested more than {MAX_DEPTH} deep"));
            return Ok(());
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            return self.object(target, value, path, depth + 1);
        }
        if let Some(expected) = schema.get("type").filter(|kinds| !allows(kinds, value)) {
            let expected = expected.to_string().replace('"', "");
            self.problems.push(format!("`{path}` must be {expected}, found {}", kind_of(value)));
            return Ok(());
        }
        if let Some(allowed) = list(schema, "enum").filter(|all| !all.contains(value)) {
            let allowed = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
            self.problems.push(format!("`{path}` must be one of {allowed}, found {value}"));
        }
        self.problems.extend(bounds::broken(schema, value).map(|problem| format!("`{path}` {problem}")));
        if let Some(banned) = schema.get("not")
            && self.fits_one(slice::from_ref(banned), value, depth + 1)?
        {
            self.problems.push(format!("`{path}` has a form it must not have"));
        }
        for choices in ["anyOf", "oneOf"].into_iter().filter_map(|union| list(schema, union)) {
            if !self.fits_one(choices, value, depth + 1)? {
                self.problems.push(format!("`{path}` fits none of the forms it may have"));
            }
        }
        for part in list(schema, "allOf").into_iter().flatten() {
            self.any(part, value, path, depth + 1)?;
        }
        match value {
            Value::Object(members) => self.members(schema, members, path, depth),
            Value::Array(items) => self.items(schema, items, path, depth),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        let Some(schema) = schema.get("items") else { return Ok(()) };
        let mut each = items.iter().enumerate();
        each.try_for_each(|(at, item)| self.any(schema, item, &format!("{path}[{at}]"), depth + 1))
    }

    fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        for name in list(schema, "required").into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.problems.push(format!("`{path}.{name}` is missing"));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    self.any(schema, value, &format!("{path}.{name}"), depth + 1)?;
                }
                (None, Some(Value::Bool(false))) => {
                    self.problems.push(format!("`{path}.{name}` is not known"));
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn fits_one(&mut self, choices: &'a [Value], value: &Value, depth: usize) -> Result<bool, TooComplex> {
        let before = mem::take(&mut self.problems);
        let mut fits = false;
        for choice in choices {
            self.problems.clear();
            self.any(choice, value, "", depth)?;
            fits = self.problems.is_empty();
            if fits {
                break;
            }
        }
        self.problems = before;
        Ok(fits)
    }

    fn resolve(&self, target: &str) -> Option<&'a Map<String, Value>> {
        if target == "#" {
            return Some(self.root);
        }
        let name = target.strip_prefix("#/$defs/")?;
        self.root.get("$defs")?.get(name)?.as_object()
    }
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword).and_then(Value::as_array)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// How many visits a check takes, if it comes to its end.
    fn visits(schema: &Value, value: &Value) -> Option<usize> {
        let root = schema.as_object().unwrap();
        let mut check = Check { root, left: MAX_VISITS, problems: Vec::new() };
        check.object(root, value, "arguments", 0).ok()?;
        Some(MAX_VISITS - check.left)
    }

    #[test]
    fn references_that_multiply_end_the_check_and_not_the_session() {
        for union in ["anyOf", "oneOf", "allOf"] {
            let twice = json!({"type": "object", union: [{"$ref": "#"}, {"$ref": "#"}]});
            assert_eq!(visits(&twice, &json!({})), None, "{union}");
            assert_eq!(
                check(twice.as_object().unwrap(), &json!({})),
                ["`arguments` is too complex to check"]
            );
        }
    }

    #[test]
    fn honest_arguments_take_about_one_visit_per_value() {
        let tree =
            json!({"properties": {"children": {"items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}}});
        let leaves = |count: usize| json!({"children": vec!["leaf"; count]});
        assert_eq!(visits(&tree, &leaves(1000)), Some(2 + 2 * 1000));
        let twigs = json!({"children": vec![leaves(9); 100]});
        assert_eq!(visits(&tree, &twigs), Some(2 + 100 * (4 + 1 + 2 * 9)));
    }
}

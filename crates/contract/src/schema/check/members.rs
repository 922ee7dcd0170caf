//! What is inside of objects and lists.

use serde_json::{Map, Value};

use super::{Check, GLANCES, TooComplex, list, map, shown::clipped};

impl<'a> Check<'a> {
    pub(super) fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        (value, members): (&Value, &Map<String, Value>),
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        self.required(list(schema, "required"), members, path)?;
        for (name, needed) in self.dependent(schema, "dependentRequired")? {
            if members.contains_key(name) {
                self.required(needed.as_array(), members, path)?;
            }
        }
        for (name, dependent) in self.dependent(schema, "dependentSchemas")? {
            if members.contains_key(name) {
                self.any(dependent, value, path, depth + 1)?;
            }
        }
        for (name, value) in members {
            if let Some(names) = schema.get("propertyNames") {
                self.any(names, &Value::from(name.as_str()), &inside(path, name), depth + 1)?;
            }
            self.member(schema, name, value, path, depth)?;
        }
        Ok(())
    }

    fn dependent(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
    ) -> Result<impl Iterator<Item = (&'a String, &'a Value)> + use<'a>, TooComplex> {
        let all = map(schema, keyword);
        self.visits.spend(all.map_or(0, Map::len) / GLANCES)?;
        Ok(all.into_iter().flatten())
    }

    fn required(
        &mut self,
        names: Option<&'a Vec<Value>>,
        members: &Map<String, Value>,
        path: &str,
    ) -> Result<(), TooComplex> {
        self.visits.spend(names.map_or(0, Vec::len) / GLANCES)?;
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.problem(format_args!("{path}.{name}"), format_args!("is missing"));
            }
        }
        Ok(())
    }

    fn member(
        &mut self,
        schema: &'a Map<String, Value>,
        name: &str,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        let here = inside(path, name);
        let mut is_known = false;
        if let Some(schema) = map(schema, "properties").and_then(|known| known.get(name)) {
            is_known = true;
            self.any(schema, value, &here, depth + 1)?;
        }
        for (pattern, schema) in map(schema, "patternProperties").into_iter().flatten() {
            let matches = self.matches(pattern, name)?;
            is_known |= matches != Some(false);
            if matches == Some(true) {
                self.any(schema, value, &here, depth + 1)?;
            }
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if !is_known => self.problem(&here, format_args!("is not known")),
            Some(others @ Value::Object(_)) if !is_known => self.any(others, value, &here, depth + 1)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        let first = list(schema, "prefixItems").map_or(&[] as &[Value], Vec::as_slice);
        let rest = schema.get("items");
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or(rest) {
                self.any(schema, item, &format!("{path}[{at}]"), depth + 1)?;
            }
        }
        let Some(wanted) = schema.get("contains") else { return Ok(()) };
        let count = u64::try_from(self.count(wanted, items, depth)?).unwrap_or(u64::MAX);
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let least = bound("minContains").unwrap_or(1);
        if count < least {
            self.problem(path, format_args!("must have at least {least} items of the form it asks for"));
        }
        if let Some(most) = bound("maxContains").filter(|most| count > *most) {
            self.problem(path, format_args!("must have at most {most} items of the form it counts"));
        }
        Ok(())
    }
}

/// The path of a member. Its name comes from the model and may be anything.
fn inside(path: &str, name: &str) -> String {
    format!("{path}.{}", clipped(name))
}

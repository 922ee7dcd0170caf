//! What is inside of objects and lists.

use serde_json::{Map, Value};

use super::{Check, TooComplex, bounds, list, map, shown::clipped, unions::Count};

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
        for (at, (name, value)) in members.iter().enumerate() {
            if let Some(names) = schema.get("propertyNames") {
                self.inside(names, &Value::from(name.as_str()), &inside(path, name), depth)?;
            }
            if self.member(schema, name, value, path, depth)? {
                self.see(at);
            }
        }
        Ok(())
    }

    fn dependent(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
    ) -> Result<impl Iterator<Item = (&'a String, &'a Value)> + use<'a>, TooComplex> {
        let all = map(schema, keyword);
        self.budget.glance(all.map_or(0, Map::len))?;
        Ok(all.into_iter().flatten())
    }

    fn required(
        &mut self,
        names: Option<&'a Vec<Value>>,
        members: &Map<String, Value>,
        path: &str,
    ) -> Result<(), TooComplex> {
        self.budget.glance(names.map_or(0, Vec::len))?;
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.problem(format_args!("{path}.{}", clipped(name)), format_args!("is missing"))?;
            }
        }
        Ok(())
    }

    /// Whether the schema has something to say about a member, after it has said it.
    fn member(
        &mut self,
        schema: &'a Map<String, Value>,
        name: &str,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<bool, TooComplex> {
        let here = inside(path, name);
        let mut is_known = false;
        if let Some(schema) = map(schema, "properties").and_then(|known| known.get(name)) {
            is_known = true;
            self.inside(schema, value, &here, depth)?;
        }
        for (pattern, schema) in map(schema, "patternProperties").into_iter().flatten() {
            let matches = self.matches(pattern, name)?;
            is_known |= matches != Some(false);
            if matches == Some(true) {
                self.inside(schema, value, &here, depth)?;
            }
        }
        match schema.get("additionalProperties") {
            Some(others) if !is_known => self.other(others, value, &here, depth)?,
            others => return Ok(is_known || others.is_some()),
        }
        Ok(true)
    }

    /// Puts to a member what is said of those that are not known.
    pub(super) fn other(
        &mut self,
        schema: &'a Value,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        if *schema == Value::Bool(false) {
            self.problem(path, format_args!("is not known"))?;
        }
        self.inside(schema, value, path, depth)
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
                self.inside(schema, item, &format!("{path}[{at}]"), depth)?;
                self.see(at);
            }
        }
        let Some(wanted) = schema.get("contains") else { return Ok(()) };
        let Count { sure, unsure } = self.count(wanted, items, depth)?;
        let least = bounds::count(schema, "minContains").unwrap_or(1);
        if sure + unsure < least {
            self.problem(path, format_args!("must have at least {least} items of the form it asks for"))?;
        }
        if let Some(most) = bounds::count(schema, "maxContains").filter(|most| sure > *most) {
            self.problem(path, format_args!("must have at most {most} items of the form it counts"))?;
        }
        Ok(())
    }
}

/// The path of a member. Its name comes from strangers and may be anything.
pub(super) fn inside(path: &str, name: &str) -> String {
    format!("{path}.{}", clipped(name))
}

//! Members of objects and items of lists.

use serde_json::{Map, Value};

use super::{SchemaCheck, TooComplex, ValueAt, bounds, list, map, unions::FitCount};

impl<'a> SchemaCheck<'a> {
    pub(super) fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        at: ValueAt,
    ) -> Result<(), TooComplex> {
        self.required(list(schema, "required"), members, at)?;
        for (name, needed) in self.dependent(schema, "dependentRequired")? {
            if members.contains_key(name) {
                self.required(needed.as_array(), members, at)?;
            }
        }
        for (name, dependent) in self.dependent(schema, "dependentSchemas")? {
            if members.contains_key(name) {
                self.any(dependent, at.again())?;
            }
        }
        for (place, (name, value)) in members.iter().enumerate() {
            let path = at.member(name);
            if let Some(names) = schema.get("propertyNames") {
                self.inside(names, at.inner(&Value::from(name.as_str()), &path))?;
            }
            if self.member(schema, name, at.inner(value, &path))? {
                self.see(place);
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
        at: ValueAt,
    ) -> Result<(), TooComplex> {
        self.budget.glance(names.map_or(0, Vec::len))?;
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.problem(&at.member(name), format_args!("is missing"))?;
            }
        }
        Ok(())
    }

    /// Validates a member, and returns true if the schema says anything about it.
    fn member(
        &mut self,
        schema: &'a Map<String, Value>,
        name: &str,
        member: ValueAt,
    ) -> Result<bool, TooComplex> {
        let mut is_known = false;
        if let Some(schema) = map(schema, "properties").and_then(|known| known.get(name)) {
            is_known = true;
            self.inside(schema, member)?;
        }
        for (pattern, schema) in map(schema, "patternProperties").into_iter().flatten() {
            let matches = self.matches(pattern, name)?;
            is_known |= matches != Some(false);
            if matches == Some(true) {
                self.inside(schema, member)?;
            }
        }
        match schema.get("additionalProperties") {
            Some(others) if !is_known => self.other(others, member)?,
            others => return Ok(is_known || others.is_some()),
        }
        Ok(true)
    }

    /// Validates a member that the schema does not name.
    pub(super) fn other(&mut self, schema: &'a Value, member: ValueAt) -> Result<(), TooComplex> {
        if *schema == Value::Bool(false) {
            self.problem(member.path, format_args!("is not known"))?;
        }
        self.inside(schema, member)
    }

    pub(super) fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        at: ValueAt,
    ) -> Result<(), TooComplex> {
        let first = list(schema, "prefixItems").map_or(&[] as &[Value], Vec::as_slice);
        let rest = schema.get("items");
        for (place, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(place).or(rest) {
                self.inside(schema, at.inner(item, &at.item(place)))?;
                self.see(place);
            }
        }
        let Some(wanted) = schema.get("contains") else { return Ok(()) };
        let FitCount { sure, unsure } = self.count(wanted, items, at)?;
        let least = bounds::count(schema, "minContains").unwrap_or(1);
        if sure + unsure < least {
            self.problem(at.path, format_args!("must have at least {least} items that match `contains`"))?;
        }
        if let Some(most) = bounds::count(schema, "maxContains").filter(|most| sure > *most) {
            self.problem(at.path, format_args!("must have at most {most} items that match `contains`"))?;
        }
        Ok(())
    }
}

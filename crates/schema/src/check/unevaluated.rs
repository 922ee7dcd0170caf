//! `unevaluatedProperties` and `unevaluatedItems`: keywords about the members and items that no
//! other keyword has evaluated, in the same schema or in those it applies to the same value.

use std::mem;

use serde_json::{Map, Value};

use super::{SchemaCheck, TooComplex, ValueAt};

/// Returns true if a schema has such a keyword for this value.
pub(super) fn is_asked(schema: &Map<String, Value>, value: &Value) -> bool {
    rest(schema, value).is_some()
}

fn rest<'a>(schema: &'a Map<String, Value>, value: &Value) -> Option<&'a Value> {
    match value {
        Value::Object(_) => schema.get("unevaluatedProperties"),
        Value::Array(_) => schema.get("unevaluatedItems"),
        _ => None,
    }
}

impl<'a> SchemaCheck<'a> {
    /// Validates a value against a schema, including the members or items that are not evaluated
    /// otherwise.
    pub(super) fn with_the_rest(
        &mut self,
        schema: &'a Map<String, Value>,
        at: ValueAt,
    ) -> Result<(), TooComplex> {
        let value = at.value;
        let size = value.as_array().map_or(0, Vec::len).max(value.as_object().map_or(0, Map::len));
        // Start with none evaluated: a schema knows its own keywords, not those of its siblings.
        let outer = self.seen.replace(vec![false; size]);
        self.keywords(schema, at)?;
        let seen = mem::replace(&mut self.seen, outer).unwrap_or_default();
        let mut seen = seen.into_iter();
        let mut is_left = move || seen.next() == Some(false);
        let Some(rest) = rest(schema, value) else { return Ok(()) };
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|_| is_left()) {
                    self.other(rest, at.inner(member, &at.member(name)))?;
                }
            }
            Value::Array(items) => {
                for (place, item) in items.iter().enumerate().filter(|_| is_left()) {
                    self.inside(rest, at.inner(item, &at.item(place)))?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.see_all();
        Ok(())
    }

    /// Marks a member or an item as evaluated.
    pub(super) fn see(&mut self, place: usize) {
        if let Some(seen) = self.seen.as_mut().and_then(|seen| seen.get_mut(place)) {
            *seen = true;
        }
    }

    pub(super) fn see_all(&mut self) {
        self.seen.iter_mut().flatten().for_each(|seen| *seen = true);
    }

    /// Runs a check whose evaluated members and items do not count.
    pub(super) fn unseen<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, TooComplex>,
    ) -> Result<T, TooComplex> {
        let seen = self.seen.take();
        let done = act(self)?;
        self.seen = seen;
        Ok(done)
    }
}

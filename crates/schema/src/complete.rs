//! Completes a value with the defaults of its schema.

use serde_json::{Map, Value};

use super::{
    MAX_DEPTH,
    check::{self, kinds_include},
};

/// Completes a value that matches the root.
pub(super) fn complete(root: &Map<String, Value>, value: &mut Value) {
    ValueCompletion { root }.object(root, value, 0);
}

struct ValueCompletion<'a> {
    root: &'a Map<String, Value>,
}

impl<'a> ValueCompletion<'a> {
    fn any(&self, schema: &'a Value, value: &mut Value, depth: usize) {
        if let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH) {
            self.object(schema, value, depth);
        }
    }

    fn object(&self, schema: &'a Map<String, Value>, value: &mut Value, depth: usize) {
        if let Some(target) = self.target(schema).filter(|_| depth < MAX_DEPTH) {
            self.object(target, value, depth + 1);
        }
        match value {
            Value::Object(members) => self.members(schema, members, depth),
            Value::Array(items) => {
                if let Some(each) = schema.get("items") {
                    for item in items {
                        self.any(each, item, depth + 1);
                    }
                }
            }
            Value::Number(number) if number.is_f64() && kinds_include(schema, "integer") => {
                let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
                if let Some(whole) = whole.and_then(|number| format!("{number:.0}").parse::<i64>().ok()) {
                    *value = whole.into();
                }
            }
            _ => {}
        }
    }

    fn members(&self, schema: &'a Map<String, Value>, members: &mut Map<String, Value>, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if let Some(member) = members.get_mut(name) {
                self.any(property, member, depth + 1);
            } else if let Some(default) = self.default(property) {
                members.insert(name.clone(), default.clone());
            }
        }
    }

    /// Returns the default of a member if it matches the member's schema. Some schemas have `null`
    /// as the default of a member that cannot be `null`.
    fn default(&self, property: &'a Value) -> Option<&'a Value> {
        let own = property.get("default");
        let inherited = || self.target(property.as_object()?)?.get("default");
        own.or_else(inherited).filter(|default| check::fits(self.root, property, default))
    }

    fn target(&self, schema: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
        check::resolve(self.root, schema.get("$ref")?.as_str()?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;

    #[test]
    fn what_was_left_out_gets_its_default_where_that_fits() {
        let schema = Schema::new(&json!({
            "properties": {
                "unit": {"type": "string", "default": "celsius"},
                "days": {"type": "integer", "default": "three"},
                "city": {"type": "string", "default": null},
                "note": {"type": ["string", "null"], "default": null},
                "place": {"type": "object", "properties": {"zoom": {"type": "integer", "default": 4}}},
                "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
                "style": {"$ref": "#/$defs/style"},
            },
            "$defs": {
                "stop": {"type": "object", "properties": {"wait": {"type": "number", "default": 1.5}}},
                "style": {"type": "string", "default": "plain"},
            },
        }))
        .unwrap();
        let completed = |mut value| {
            schema.complete(&mut value);
            value
        };
        assert_eq!(completed(json!({})), json!({"unit": "celsius", "note": null, "style": "plain"}));
        let given =
            json!({"unit": "kelvin", "days": 2.0, "place": {}, "stops": [{}, {"wait": 2}], "style": "x"});
        assert_eq!(
            completed(given),
            json!({
                "unit": "kelvin", "days": 2, "note": null, "place": {"zoom": 4},
                "stops": [{"wait": 1.5}, {"wait": 2}], "style": "x",
            })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = Schema::new(&json!({
            "properties": {"next": {"$ref": "#"}, "depth": {"type": "integer", "default": 0}},
        }))
        .unwrap();
        let mut value = json!({"next": {"next": {}}});
        schema.complete(&mut value);
        assert_eq!(value, json!({"depth": 0, "next": {"depth": 0, "next": {"depth": 0}}}));
    }
}

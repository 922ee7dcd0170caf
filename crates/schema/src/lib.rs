//! JSON Schema for tool parameters: normalising, checking and completing.
//!
//! [`Schema::new`] brings a schema of any draft since 4 to a normal form in which every reference
//! leads to one of its own `$defs`. Nothing is ever fetched. Schemas and values are untrusted, so
//! normalising and checking take bounded time (`docs/decisions/0012-schemas-checked-here.md`).
//!
//! ```
//! use serde_json::json;
//! use windlass_schema::Schema;
//!
//! let schema = Schema::new(&json!({"properties": {"days": {"type": "integer", "default": 3}}}))?;
//! assert_eq!(schema.check(&json!({"days": "two"})), ["`arguments.days` must be integer, found string"]);
//! let mut value = json!({});
//! schema.complete(&mut value);
//! assert_eq!(value, json!({"days": 3}));
//! # Ok::<_, windlass_schema::SchemaError>(())
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value, json};

mod check;
mod complete;
mod document;
mod explicit;
mod keywords;
mod normal;
mod typed;

/// Maximum nesting depth of a schema, or of a value checked against one.
const MAX_DEPTH: usize = 64;

/// Maximum size of a schema: bytes of its contents and of their paths, including everything that
/// its references repeat. A prompt has room for a small part of that.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A valid parameter schema. Its root is an object, every reference leads to a place in it, and
/// nothing is nested without end. Keys are in alphabetical order, so the same schema is always the
/// same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(Map<String, Value>);

/// Reason that a schema cannot be used. Its tool is left out; the others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The root is not an object.
    #[error("parameters must be a JSON Schema of type `object`, found {found}")]
    NotAnObject {
        /// Its type.
        found: String,
    },
    /// A keyword has a value of the wrong type.
    #[error("`{keyword}` at `{path}` must be {expected}")]
    Keyword {
        /// The keyword.
        keyword: String,
        /// Place, as a JSON pointer.
        path: String,
        /// Expected type.
        expected: &'static str,
    },
    /// The target of a reference does not exist.
    #[error("`$ref` at `{path}` points to `{target}`, which is not in the schema")]
    Dangling {
        /// Place, as a JSON pointer.
        path: String,
        /// The reference.
        target: String,
    },
    /// It is nested too deep.
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// It is too long, or its nested references make it so.
    #[error("longer than {} MB, or made so by its references", MAX_BYTES / 1024 / 1024)]
    TooLarge,
}

impl Schema {
    /// Normalises a schema from outside, without losing any constraint.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        normal::root(schema).map(Self)
    }

    /// Returns the schema of a Rust type, without details that matter only to Rust, and the type's
    /// doc comment.
    pub fn of<T: schemars::JsonSchema>() -> Result<(Self, String), SchemaError> {
        let (schema, description) = typed::schema_of::<T>();
        Self::new(&schema).map(|schema| (schema, description))
    }

    /// Returns the keywords of the root, in normal form.
    pub fn keywords(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the form that models receive: the whole schema, with the types that other keywords
    /// imply written out.
    pub fn explicit(&self) -> Value {
        explicit::explicit(&self.0)
    }

    /// Lists the problems of a value, each with its path. Takes bounded time for any schema.
    /// Unknown formats, patterns that cannot be translated for `regex`, and long texts are left to
    /// the tool.
    pub fn check(&self, value: &Value) -> Vec<String> {
        check::check(&self.0, value)
    }

    /// Adds the defaults of missing members if they match, and writes 3.0 as 3 where an integer is
    /// required. The value must match the schema, and still does afterwards.
    pub fn complete(&self, value: &mut Value) {
        complete::complete(&self.0, value);
    }

    /// Returns the parameter names with their schemas, in order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Returns true if a parameter is required.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.0.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|each| each == name))
    }
}

impl Default for Schema {
    /// Returns the schema of an object without parameters.
    fn default() -> Self {
        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        Self(empty.as_object().cloned().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&Value::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// Infers the type of a schema without `type` from its other keywords.
pub fn infer_type(schema: &Map<String, Value>) -> Option<&'static str> {
    const HINTS: [(&str, &[&str]); 4] = [
        ("object", &["properties", "required", "additionalProperties", "patternProperties"]),
        ("array", &["items", "prefixItems", "minItems", "maxItems"]),
        ("string", &["enum", "const", "format", "pattern", "minLength", "maxLength"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    HINTS.iter().find(|(_, keys)| keys.iter().any(|key| schema.contains_key(*key))).map(|(kind, _)| *kind)
}

/// Returns the type of a JSON value, as a schema writes it.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;

//! JSON Schema for tool parameters: normalising, checking and completing.
//!
//! [`Schema::new`] brings a schema of any draft since 4 to a normal form in which every reference
//! leads to one of its own `$defs`. Nothing is ever fetched. Schemas and values come from
//! strangers, so normalising and checking end soon whatever both say
//! (`docs/decisions/0012-schemas-checked-here.md`).
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

/// The depth to which a schema, or a value checked against one, may be nested.
const MAX_DEPTH: usize = 64;

/// The length a schema may have, in bytes of what it says and of the paths where it says it, with
/// all that its references repeat. A prompt has room for a small part of that.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A parameter schema that is known to be understood: its root is an object, every reference leads
/// to a place in it, and nothing is nested without end. Keys are in alphabetical order, so the same
/// schema is always the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(Map<String, Value>);

/// Why a schema cannot be used. The tool that brought it is left out; the others go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The root is not an object.
    #[error("parameters must be a JSON Schema of type `object`, found {found}")]
    NotAnObject {
        /// The kind it is of.
        found: String,
    },
    /// A keyword has a value of the wrong kind.
    #[error("`{keyword}` at `{path}` must be {expected}")]
    Keyword {
        /// The keyword.
        keyword: String,
        /// Where, as a JSON pointer.
        path: String,
        /// The kind it must be of.
        expected: &'static str,
    },
    /// A reference leads nowhere.
    #[error("`$ref` at `{path}` points to `{target}`, which is not in the schema")]
    Dangling {
        /// Where, as a JSON pointer.
        path: String,
        /// The reference.
        target: String,
    },
    /// Nested beyond all reason.
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// Long, or made long by references to places within one another.
    #[error("longer than {} MB, or made so by its references", MAX_BYTES / 1024 / 1024)]
    TooLarge,
}

impl Schema {
    /// Takes a schema from outside, keeping all it says.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        normal::root(schema).map(Self)
    }

    /// The schema of a Rust type, without what only a Rust compiler cares about, and the type's doc
    /// comment.
    pub fn of<T: schemars::JsonSchema>() -> Result<(Self, String), SchemaError> {
        let (schema, description) = typed::schema_of::<T>();
        Self::new(&schema).map(|schema| (schema, description))
    }

    /// The keywords of the root, in normal form.
    pub fn keywords(&self) -> &Map<String, Value> {
        &self.0
    }

    /// All that the schema says, with the types that other keywords imply written out: the form
    /// models are told.
    pub fn explicit(&self) -> Value {
        explicit::explicit(&self.0)
    }

    /// Lists everything in which a value does not fit, each with the path it is about. Takes
    /// bounded time whatever the schema says. Left to the tool: unknown formats, patterns that
    /// cannot be rewritten for `regex`, and long texts.
    pub fn check(&self, value: &Value) -> Vec<String> {
        check::check(&self.0, value)
    }

    /// Fills in the defaults of what was left out, wherever they fit, and writes 3.0 as 3 where a
    /// whole number is asked for. For values that fit: they still do.
    pub fn complete(&self, value: &mut Value) {
        complete::complete(&self.0, value);
    }

    /// Parameter names with their schemas, in order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Tells whether a parameter must be given.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.0.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|each| each == name))
    }
}

impl Default for Schema {
    /// An object without parameters.
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

/// The type a schema without `type` must mean, judged by the other keywords it uses.
pub fn infer_type(schema: &Map<String, Value>) -> Option<&'static str> {
    const HINTS: [(&str, &[&str]); 4] = [
        ("object", &["properties", "required", "additionalProperties", "patternProperties"]),
        ("array", &["items", "prefixItems", "minItems", "maxItems"]),
        ("string", &["enum", "const", "format", "pattern", "minLength", "maxLength"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    HINTS.iter().find(|(_, keys)| keys.iter().any(|key| schema.contains_key(*key))).map(|(kind, _)| *kind)
}

/// The name of a JSON value's kind, as a schema writes it.
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

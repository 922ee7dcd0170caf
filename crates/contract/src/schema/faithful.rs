//! The faithful form: what a schema says, minus what no server needs, plus what every server demands.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::{MAX_BYTES, MAX_DEPTH, SchemaError, infer_type, kind_of};

/// Keywords whose value is one schema.
pub(super) const ONE: [&str; 8] =
    ["items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
pub(super) const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
pub(super) const MAPS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];
/// Keywords about the document, not about the value.
const DROPPED: [&str; 4] = ["$schema", "$id", "$comment", "title"];

/// Normalises a whole schema.
pub(super) fn root(schema: &Value) -> Result<Map<String, Value>, SchemaError> {
    let not_an_object = |found: String| SchemaError::NotAnObject { found };
    let given = schema.as_object().ok_or_else(|| not_an_object(kind_of(schema).to_owned()))?;
    match given.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {}
        Some(other) => return Err(not_an_object(format!("type {other}"))),
    }
    let mut walk = Walk {
        document: schema,
        definitions: definitions(given)?,
        adopted: HashMap::new(),
        used: BTreeSet::new(),
        waiting: Vec::new(),
        left: MAX_BYTES,
    };
    let mut out = walk.object(given, "", 0)?;
    out.insert("type".into(), json!("object"));
    out.entry("properties").or_insert_with(|| json!({}));
    walk.attach(&mut out)?;
    Ok(out)
}

/// The definitions of a schema under their modern name.
fn definitions(schema: &Map<String, Value>) -> Result<BTreeMap<String, &Value>, SchemaError> {
    let mut all = BTreeMap::new();
    for keyword in ["definitions", "$defs"] {
        let Some(value) = schema.get(keyword) else { continue };
        let map = value.as_object().ok_or_else(|| wrong(keyword, "", "an object"))?;
        all.extend(map.iter().map(|(name, schema)| (name.clone(), schema)));
    }
    Ok(all)
}

struct Walk<'a> {
    document: &'a Value,
    definitions: BTreeMap<String, &'a Value>,
    /// Other places that references lead to, by their pointers, and the definitions that were made of them.
    adopted: HashMap<&'a str, String>,
    /// Definitions some reference leads to; the others are left out.
    used: BTreeSet<String>,
    /// Those of them that are still to be walked.
    waiting: Vec<String>,
    /// Bytes that may still be written.
    left: usize,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<Value, SchemaError> {
        match schema {
            Value::Bool(true) => Ok(json!({})),
            Value::Bool(false) => Ok(json!({"not": {}})),
            Value::Object(map) => self.object(map, path, depth).map(Value::Object),
            _ => Err(wrong("schema", path, "an object or a boolean")),
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let mut out = Map::new();
        for (keyword, value) in schema {
            let here = format!("{path}/{keyword}");
            self.spend(here.len())?;
            match keyword.as_str() {
                "definitions" | "$defs" => {}
                name if DROPPED.contains(&name) => {}
                "const" => {
                    self.spend(bytes(value))?;
                    out.entry("enum").or_insert_with(|| json!([value]));
                }
                "$ref" => {
                    out.insert("$ref".into(), self.reference(value, path)?.into());
                }
                // Before 2020, a tuple was a list of `items`.
                "items" if value.is_array() => {
                    let list = value.as_array().into_iter().flatten();
                    let each = list.map(|schema| self.schema(schema, &here, depth + 1));
                    out.insert("prefixItems".into(), each.collect::<Result<Value, _>>()?);
                }
                "additionalItems" => {
                    if schema.get("items").is_some_and(Value::is_array) {
                        out.insert("items".into(), self.schema(value, &here, depth + 1)?);
                    }
                }
                "dependencies" => self.dependencies(value, path, depth, &mut out)?,
                name if ONE.contains(&name) && !(name == "additionalProperties" && value.is_boolean()) => {
                    out.insert(name.into(), self.schema(value, &here, depth + 1)?);
                }
                name if LIST.contains(&name) => {
                    let list = value.as_array().ok_or_else(|| wrong(name, path, "a list of schemas"))?;
                    let each = list.iter().map(|schema| self.schema(schema, &here, depth + 1));
                    out.insert(name.into(), each.collect::<Result<Value, _>>()?);
                }
                name if MAPS.contains(&name) => {
                    let map = value.as_object().ok_or_else(|| wrong(name, path, "an object"))?;
                    out.insert(name.into(), Value::Object(self.map(map, &here, depth + 1)?));
                }
                "required" | "enum" if !value.is_array() => return Err(wrong(keyword, path, "a list")),
                "type" if !is_type(value) => {
                    return Err(wrong("type", path, "the name of a JSON type, or a list of them"));
                }
                _ => {
                    self.spend(bytes(value))?;
                    out.insert(keyword.clone(), value.clone());
                }
            }
        }
        demands(&mut out);
        Ok(out)
    }

    fn map(
        &mut self,
        map: impl IntoIterator<Item = (&'a String, &'a Value)>,
        path: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, SchemaError> {
        let each = map.into_iter().map(|(name, schema)| {
            let here = format!("{path}/{name}");
            self.spend(here.len())?;
            Ok((name.clone(), self.schema(schema, &here, depth)?))
        });
        each.collect()
    }

    /// What `dependencies` held before 2019: names, or a schema, for each name.
    fn dependencies(
        &mut self,
        value: &'a Value,
        path: &str,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let all = value.as_object().ok_or_else(|| wrong("dependencies", path, "an object"))?;
        let (names, schemas): (Vec<_>, Vec<_>) = all.iter().partition(|(_, each)| each.is_array());
        if !names.is_empty() {
            self.spend(bytes(value))?;
            let names = names.into_iter().map(|(name, needed)| (name.clone(), needed.clone())).collect();
            out.entry("dependentRequired").or_insert(Value::Object(names));
        }
        if !schemas.is_empty() {
            let schemas = self.map(schemas, &format!("{path}/dependencies"), depth + 1)?;
            out.entry("dependentSchemas").or_insert(Value::Object(schemas));
        }
        Ok(())
    }

    /// Checks a reference and notes its target.
    fn reference(&mut self, value: &'a Value, path: &str) -> Result<String, SchemaError> {
        let target = value.as_str().ok_or_else(|| wrong("$ref", path, "a string"))?;
        if target == "#" {
            return Ok(target.to_owned());
        }
        let name = target.strip_prefix("#/$defs/").or_else(|| target.strip_prefix("#/definitions/"));
        let name = name.filter(|name| self.definitions.contains_key(*name)).map(str::to_owned);
        let dangling = || SchemaError::Dangling { path: path.to_owned(), target: target.to_owned() };
        let name = name.or_else(|| self.adopt(target)).ok_or_else(dangling)?;
        let reference = format!("#/$defs/{name}");
        self.spend(reference.len())?;
        if self.used.insert(name.clone()) {
            self.waiting.push(name);
        }
        Ok(reference)
    }

    /// Makes a definition of any other place in the document, which generators refer to instead of repeating it.
    fn adopt(&mut self, target: &'a str) -> Option<String> {
        let pointer = target.strip_prefix('#').filter(|pointer| pointer.starts_with('/'))?;
        if let Some(name) = self.adopted.get(pointer) {
            return Some(name.clone());
        }
        let schema = self.document.pointer(pointer).filter(|schema| schema.is_object())?;
        let mut name = pointer[1..].replace(['/', '~'], ".");
        while self.definitions.contains_key(&name) {
            name = format!("{name}_{}", self.definitions.len());
        }
        self.definitions.insert(name.clone(), schema);
        self.adopted.insert(pointer, name.clone());
        Some(name)
    }

    /// Adds the definitions that are used, and those they use in turn.
    fn attach(&mut self, out: &mut Map<String, Value>) -> Result<(), SchemaError> {
        let mut done = Map::new();
        while let Some(name) = self.waiting.pop() {
            let Some(schema) = self.definitions.get(&name).copied() else { continue };
            let schema = self.schema(schema, &format!("/$defs/{name}"), 1)?;
            done.insert(name, schema);
        }
        if !done.is_empty() {
            out.insert("$defs".into(), Value::Object(done));
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), SchemaError> {
        self.left = self.left.checked_sub(bytes).ok_or(SchemaError::TooLarge)?;
        Ok(())
    }
}

/// About how long a value is.
fn bytes(value: &Value) -> usize {
    let inside: usize = match value {
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + bytes(value)).sum(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    4 + inside
}

/// Adds what servers refuse to do without.
fn demands(schema: &mut Map<String, Value>) {
    if !schema.contains_key("type")
        && let Some(kind) = infer_type(schema).filter(|kind| matches!(*kind, "object" | "array"))
    {
        schema.insert("type".into(), json!(kind));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => schema.entry("properties").or_insert_with(|| json!({})),
        Some("array") if !schema.contains_key("prefixItems") => {
            schema.entry("items").or_insert_with(|| json!({}))
        }
        _ => return,
    };
}

fn is_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    known(value)
        || value
            .as_array()
            .is_some_and(|list| (1..=TYPES.len()).contains(&list.len()) && list.iter().all(known))
}

fn wrong(keyword: &str, path: &str, expected: &'static str) -> SchemaError {
    let path = if path.is_empty() { "/" } else { path };
    SchemaError::Keyword { keyword: keyword.to_owned(), path: path.to_owned(), expected }
}

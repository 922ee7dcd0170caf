//! The normal form: the constraints of a schema in the vocabulary of draft 2020-12, without
//! keywords about the document. Every reference in it leads to the root or to one of its `$defs`.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem, ptr,
};

use serde_json::{Map, Value, json};

use super::{
    MAX_BYTES, MAX_DEPTH, SchemaError,
    check::same,
    document::{SchemaDocument, SchemaPlace},
    keywords::{LIST, MAPS, ONE},
    kind_of,
};

/// Keywords about the document, not about the value.
const DROPPED: [&str; 9] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$schema",
    "$vocabulary",
    "definitions",
    "title",
];

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
    let mut walk = SchemaWalk {
        document: SchemaDocument::new(schema)?,
        scope: DynamicScope::default(),
        references: HashMap::new(),
        own: HashMap::new(),
        taken: HashSet::new(),
        waiting: Vec::new(),
        left: MAX_BYTES,
    };
    walk.names(given)?;
    let whole = SchemaPlace { schema, resource: 0 };
    walk.scope = walk.entered(whole.resource)?;
    walk.references.insert((whole.id(), walk.scope.clone()), "#".to_owned());
    let mut out = walk.object(given, "", 0)?;
    out.insert("type".into(), json!("object"));
    out.entry("properties").or_insert_with(|| json!({}));
    walk.attach(&mut out)?;
    Ok(out)
}

/// The scope in which references are resolved.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct DynamicScope<'a> {
    /// Resource that they are relative to.
    resource: usize,
    /// Targets of `$dynamicRef` for the names that more than one resource has: the one entered
    /// first.
    dynamic: BTreeMap<&'a str, SchemaPlace<'a>>,
}

struct SchemaWalk<'a> {
    document: SchemaDocument<'a>,
    scope: DynamicScope<'a>,
    /// References to a place in a scope, as they are written. A place in two scopes is written
    /// twice, so that no reference in the normal form depends on the path to it.
    references: HashMap<(*const Value, DynamicScope<'a>), String>,
    /// Names of the root's own definitions, which are kept.
    own: HashMap<*const Value, String>,
    taken: HashSet<String>,
    /// Definitions that are still to be walked. Those without a reference to them are left out.
    waiting: Vec<(String, &'a Value, DynamicScope<'a>)>,
    /// Number of bytes that may still be written.
    left: usize,
}

impl<'a> SchemaWalk<'a> {
    fn schema(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<Value, SchemaError> {
        match schema {
            Value::Bool(true) => Ok(json!({})),
            Value::Bool(false) => Ok(json!({"not": {}})),
            Value::Object(map) => {
                let inner = self.entered(self.document.resource_of(schema, self.scope.resource))?;
                let outer = mem::replace(&mut self.scope, inner);
                let object = self.object(map, path, depth).map(Value::Object);
                self.scope = outer;
                object
            }
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
        let is_older_tuple =
            schema.get("items").is_some_and(Value::is_array) && !schema.contains_key("prefixItems");
        for (keyword, value) in schema {
            let here = format!("{path}/{keyword}");
            self.spend(here.len())?;
            match keyword.as_str() {
                name if DROPPED.contains(&name) => {}
                "const" => {
                    self.spend(bytes(value))?;
                    // Beside an `enum`, as some generators write it, both must allow the value.
                    let others = schema.get("enum").and_then(Value::as_array);
                    let is_allowed = others.is_none_or(|list| list.iter().any(|each| same(each, value)));
                    out.insert("enum".into(), if is_allowed { json!([value]) } else { json!([]) });
                }
                "$ref" | "$dynamicRef" => {
                    let reference = json!(self.reference(keyword, value, path)?);
                    say(&mut out, "$ref", reference);
                }
                // Until draft 4, this was a flag that excludes the other bound from the range.
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {
                    let bound = schema.get(&keyword.replace("exclusiveM", "m"));
                    if let Some(bound) = bound.filter(|_| *value == json!(true)) {
                        out.insert(keyword.clone(), bound.clone());
                    }
                }
                "enum" if schema.contains_key("const") => {}
                // Before 2020, a tuple was a list of `items`. Beside `prefixItems`, it is for older
                // readers.
                "items" if value.is_array() => {
                    if is_older_tuple {
                        let list = value.as_array().into_iter().flatten();
                        let each = list.map(|schema| self.schema(schema, &here, depth + 1));
                        out.insert("prefixItems".into(), each.collect::<Result<Value, _>>()?);
                    }
                }
                "additionalItems" => {
                    if is_older_tuple {
                        out.insert("items".into(), self.schema(value, &here, depth + 1)?);
                    }
                }
                "dependencies" => self.dependencies(value, path, depth, &mut out)?,
                // `true` and `false` are kept: every server understands them.
                "additionalProperties" | "unevaluatedProperties" if value.is_boolean() => {
                    out.insert(keyword.clone(), value.clone());
                }
                name if ONE.contains(&name) => {
                    out.insert(name.into(), self.schema(value, &here, depth + 1)?);
                }
                name if LIST.contains(&name) => {
                    let list = value.as_array().ok_or_else(|| wrong(name, path, "a list of schemas"))?;
                    let each = list.iter().map(|schema| self.schema(schema, &here, depth + 1));
                    let each = each.collect::<Result<Vec<_>, _>>()?;
                    if let Value::Array(all) = out.entry(name).or_insert_with(|| json!([])) {
                        all.extend(each);
                    }
                }
                name if MAPS.contains(&name) => {
                    let map = value.as_object().ok_or_else(|| wrong(name, path, "an object"))?;
                    let map = self.map(map, &here, depth + 1)?;
                    say(&mut out, name, Value::Object(map));
                }
                "required" | "enum" if !value.is_array() => return Err(wrong(keyword, path, "a list")),
                "type" if !is_type(value) => {
                    return Err(wrong("type", path, "the name of a JSON type, or a list of them"));
                }
                _ => {
                    self.spend(bytes(value))?;
                    say(&mut out, keyword, value.clone());
                }
            }
        }
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

    /// Splits `dependencies`, used before 2019, which maps each name to names or to a schema.
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
            say(out, "dependentRequired", Value::Object(names));
        }
        if !schemas.is_empty() {
            let schemas = self.map(schemas, &format!("{path}/dependencies"), depth + 1)?;
            say(out, "dependentSchemas", Value::Object(schemas));
        }
        Ok(())
    }

    /// Resolves a reference, records a definition for its target, and returns the new reference.
    fn reference(&mut self, keyword: &str, value: &'a Value, path: &str) -> Result<String, SchemaError> {
        let target = value.as_str().ok_or_else(|| wrong(keyword, path, "a string"))?;
        let dangling = || SchemaError::Dangling { path: path.to_owned(), target: target.to_owned() };
        let (place, anchor) = self.document.find(self.scope.resource, target).ok_or_else(dangling)?;
        let anchor = anchor.filter(|_| keyword == "$dynamicRef");
        let place = anchor.and_then(|anchor| self.scope.dynamic.get(anchor)).copied().unwrap_or(place);
        if !place.schema.is_object() && !place.schema.is_boolean() {
            return Err(dangling());
        }
        let seen = (place.id(), self.entered(place.resource)?);
        let reference = if let Some(reference) = self.references.get(&seen) {
            reference.clone()
        } else {
            let name = self.own.remove(&seen.0).unwrap_or_else(|| self.unused(target));
            let reference = format!("#/$defs/{name}");
            self.waiting.push((name, place.schema, seen.1.clone()));
            self.references.insert(seen, reference.clone());
            reference
        };
        self.spend(reference.len())?;
        Ok(reference)
    }

    /// Records the names of the root's own definitions.
    fn names(&mut self, schema: &'a Map<String, Value>) -> Result<(), SchemaError> {
        for keyword in ["$defs", "definitions"] {
            let Some(value) = schema.get(keyword) else { continue };
            let map = value.as_object().ok_or_else(|| wrong(keyword, "", "an object"))?;
            for (name, schema) in map {
                let name = plain(name);
                if self.taken.insert(name.clone()) {
                    self.own.insert(ptr::from_ref(schema), name);
                }
            }
        }
        Ok(())
    }

    /// Returns a name for a target that is not a definition. Some generators refer to such places
    /// instead of repeating them.
    fn unused(&mut self, target: &str) -> String {
        let mut name = plain(target.trim_start_matches(['#', '/']));
        while !self.taken.insert(name.clone()) {
            name = format!("{name}_{}", self.taken.len());
        }
        name
    }

    /// Returns the scope inside a resource.
    fn entered(&mut self, resource: usize) -> Result<DynamicScope<'a>, SchemaError> {
        let mut scope = DynamicScope { resource, ..self.scope.clone() };
        for (name, place) in self.document.dynamic(resource) {
            scope.dynamic.entry(name).or_insert(place);
        }
        self.spend(scope.dynamic.len() * size_of::<(&str, SchemaPlace<'_>)>())?;
        Ok(scope)
    }

    /// Adds the definitions that are used, and those they use in turn.
    fn attach(&mut self, out: &mut Map<String, Value>) -> Result<(), SchemaError> {
        let mut done = Map::new();
        while let Some((name, schema, scope)) = self.waiting.pop() {
            self.scope = scope;
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

/// Adds a keyword. If it is already there, from this draft or an older one, both apply.
fn say(out: &mut Map<String, Value>, keyword: &str, value: Value) {
    if !out.contains_key(keyword) {
        out.insert(keyword.to_owned(), value);
    } else if let Value::Array(all) = out.entry("allOf").or_insert_with(|| json!([])) {
        all.push(json!({keyword: value}));
    }
}

/// Estimates the size of a value.
fn bytes(value: &Value) -> usize {
    let inside: usize = match value {
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + bytes(value)).sum(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    4 + inside
}

/// Returns a name that needs no escaping in a reference.
fn plain(name: &str) -> String {
    name.replace(['/', '~', '%', '#'], ".")
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

//! Validates a value against a schema.

use std::fmt;

use serde_json::{Map, Value};

use super::kind_of;

mod bounds;
mod budget;
mod format;
mod members;
mod patterns;
mod shown;
mod unevaluated;
mod unions;

use budget::{TooComplex, VisitBudget};
use patterns::PatternCache;
use shown::{ListedValues, ShownValue};

/// Maximum number of problems in the result; the rest are only counted.
const MAX_PROBLEMS: usize = 20;

/// Lists the problems of a value.
pub(super) fn check(root: &Map<String, Value>, value: &Value) -> Vec<String> {
    let mut check = SchemaCheck::new(root);
    if let Err(why) = check.object(root, ValueAt::root(value)) {
        return vec![format!("`arguments` {why}")];
    }
    let CheckProblems { mut told, more } = check.problems;
    told.extend((more > 0).then(|| format!("and {more} more problems")));
    told
}

/// Returns true if a value matches a schema inside the root.
pub(super) fn fits(root: &Map<String, Value>, schema: &Value, value: &Value) -> bool {
    let mut check = SchemaCheck::new(root);
    check.any(schema, ValueAt::root(value)).is_ok() && check.problems.count() == 0
}

/// The problems found: texts of the first ones, and the number of the rest.
#[derive(Debug, Default)]
struct CheckProblems {
    told: Vec<String>,
    more: usize,
}

impl CheckProblems {
    fn count(&self) -> usize {
        self.told.len() + self.more
    }
}

/// A value that is validated, and its place.
#[derive(Clone, Copy)]
struct ValueAt<'v> {
    value: &'v Value,
    path: &'v str,
    /// Depth in the arguments.
    depth: usize,
    /// Number of nested schemas on the way to this one.
    steps: usize,
}

impl<'v> ValueAt<'v> {
    fn root(value: &'v Value) -> Self {
        Self { value, path: "arguments", depth: 0, steps: 0 }
    }

    /// Returns the same value, for a schema inside the current one.
    fn again(self) -> Self {
        Self { steps: self.steps + 1, ..self }
    }

    /// Returns a value inside this one.
    fn inner<'i>(self, value: &'i Value, path: &'i str) -> ValueAt<'i> {
        ValueAt { value, path, depth: self.depth + 1, steps: self.steps + 1 }
    }

    fn member(self, name: &str) -> String {
        // The name is untrusted and may be anything.
        format!("{}.{}", self.path, shown::clipped(name))
    }

    fn item(self, place: usize) -> String {
        format!("{}[{place}]", self.path)
    }
}

struct SchemaCheck<'a> {
    root: &'a Map<String, Value>,
    budget: VisitBudget,
    problems: CheckProblems,
    patterns: PatternCache<'a>,
    /// True if something could not be checked and was accepted.
    is_unsure: bool,
    /// Members or items of the current value that some schema has evaluated. `None` if no schema
    /// asks for the unevaluated ones.
    seen: Option<Vec<bool>>,
}

impl<'a> SchemaCheck<'a> {
    fn new(root: &'a Map<String, Value>) -> Self {
        let (problems, patterns) = (CheckProblems::default(), PatternCache::default());
        Self { root, budget: VisitBudget::new(), problems, patterns, is_unsure: false, seen: None }
    }

    fn any(&mut self, schema: &'a Value, at: ValueAt) -> Result<(), TooComplex> {
        schema.as_object().map_or(Ok(()), |schema| self.object(schema, at))
    }

    fn object(&mut self, schema: &'a Map<String, Value>, at: ValueAt) -> Result<(), TooComplex> {
        self.budget.visit(at)?;
        if unevaluated::is_asked(schema, at.value) {
            return self.with_the_rest(schema, at);
        }
        self.keywords(schema, at)
    }

    /// Validates a value against a schema, except for `unevaluatedProperties` and
    /// `unevaluatedItems`.
    fn keywords(&mut self, schema: &'a Map<String, Value>, at: ValueAt) -> Result<(), TooComplex> {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            self.object(target, at.again())?;
        }
        let value = at.value;
        if let Some(expected) = schema.get("type").filter(|kinds| !allows(kinds, value)) {
            let expected = expected.to_string().replace('"', "");
            return self.problem(at.path, format_args!("must be {expected}, found {}", kind_of(value)));
        }
        if let Some(allowed) = list(schema, "enum") {
            self.budget.compare(value, allowed.len())?;
            if !allowed.iter().any(|each| same(each, value)) {
                let (allowed, found) = (ListedValues(allowed), ShownValue(value));
                self.problem(at.path, format_args!("must be one of {allowed}, found {found}"))?;
            }
        }
        if schema.contains_key("uniqueItems") {
            self.budget.copy(value)?;
        }
        for broken in bounds::broken(schema, value) {
            self.problem(at.path, format_args!("{broken}"))?;
        }
        self.unions(schema, at)?;
        match value {
            Value::Object(members) => self.members(schema, members, at),
            Value::Array(items) => self.items(schema, items, at),
            Value::String(text) => self.text(schema, text, at.path),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn text(&mut self, schema: &'a Map<String, Value>, text: &str, path: &str) -> Result<(), TooComplex> {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && self.matches(pattern, text)? == Some(false)
        {
            let (pattern, found) = (shown::clipped(pattern), shown::quoted(text));
            self.problem(path, format_args!("must match the pattern `{pattern}`, found {found}"))?;
        }
        if let Some(name) = schema.get("format").and_then(Value::as_str)
            && let Some(wanted) = format::broken(name, text)
        {
            self.problem(path, format_args!("must be {wanted}, found {}", shown::quoted(text)))?;
        }
        Ok(())
    }

    /// Returns true if a text matches a pattern, or `None` if that cannot be determined.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<Option<bool>, TooComplex> {
        self.budget.search(pattern)?;
        let found = self.patterns.find(pattern, text);
        self.is_unsure |= found.is_none();
        Ok(found)
    }

    /// Validates something inside the current value.
    fn inside(&mut self, schema: &'a Value, inner: ValueAt) -> Result<(), TooComplex> {
        self.unseen(|check| check.any(schema, inner))
    }

    fn problem(&mut self, path: &str, what: fmt::Arguments<'_>) -> Result<(), TooComplex> {
        if self.problems.told.len() < MAX_PROBLEMS {
            let problem = format!("`{path}` {what}");
            self.budget.tell(&problem)?;
            self.problems.told.push(problem);
        } else {
            self.problems.more += 1;
        }
        Ok(())
    }

    fn resolve(&self, target: &str) -> Option<&'a Map<String, Value>> {
        resolve(self.root, target)
    }
}

/// Returns the target of a reference.
pub(super) fn resolve<'a>(root: &'a Map<String, Value>, target: &str) -> Option<&'a Map<String, Value>> {
    if target == "#" {
        return Some(root);
    }
    let name = target.strip_prefix("#/$defs/")?;
    root.get("$defs")?.get(name)?.as_object()
}

/// Returns true if this type is among those that a schema allows.
pub(super) fn kinds_include(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        Some(kind) => kind == wanted,
        None => false,
    }
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword).and_then(Value::as_array)
}

fn map<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Map<String, Value>> {
    schema.get(keyword).and_then(Value::as_object)
}

fn allows(kinds: &Value, value: &Value) -> bool {
    let one = |kind: &Value| match kind.as_str() {
        Some("number") => value.is_number(),
        // JSON Schema counts 3.0 as an integer, and models write it.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(kind) => kind == kind_of(value),
        None => true,
    };
    kinds.as_array().map_or_else(|| one(kinds), |kinds| kinds.iter().any(one))
}

/// Returns true if two values are equal in JSON Schema, where 3 equals 3.0.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        // Integers are compared as such: from 2^53 on, several have the same `f64`.
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;

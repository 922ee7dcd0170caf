//! Whether a value fits a schema.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, kind_of};

mod bounds;
mod format;
mod members;
mod patterns;
mod unions;

use patterns::Patterns;

/// How many pairs of a schema and a value one check may look at: far more than honest arguments need, and done within
/// milliseconds. Without it a few references back to unions double the work with every level.
const MAX_VISITS: usize = 100_000;
/// Problems that are told; the rest are counted.
const MAX_PROBLEMS: usize = 20;

/// Everything in which a value does not fit.
pub(super) fn check(root: &Map<String, Value>, value: &Value) -> Vec<String> {
    let mut check = Check::new(root);
    if let Err(TooComplex) = check.object(root, value, "arguments", 0) {
        return vec!["`arguments` is too complex to check".to_owned()];
    }
    let left = check.problems.len().saturating_sub(MAX_PROBLEMS);
    check.problems.truncate(MAX_PROBLEMS);
    check.problems.extend((left > 0).then(|| format!("and {left} more problems")));
    check.problems
}

struct Check<'a> {
    root: &'a Map<String, Value>,
    /// Visits that are left.
    left: usize,
    problems: Vec<String>,
    patterns: Patterns<'a>,
    /// Something was met that cannot be checked, and was let pass.
    is_unsure: bool,
}

/// All visits are used up, and the check with them.
#[derive(Debug)]
struct TooComplex;

impl<'a> Check<'a> {
    fn new(root: &'a Map<String, Value>) -> Self {
        let (problems, patterns) = (Vec::new(), Patterns::default());
        Self { root, left: MAX_VISITS, problems, patterns, is_unsure: false }
    }

    fn any(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize) -> Result<(), TooComplex> {
        schema.as_object().map_or(Ok(()), |schema| self.object(schema, value, path, depth))
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<(), TooComplex> {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            self.problem(path, format_args!("is nested more than {MAX_DEPTH} deep"));
            return Ok(());
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.resolve(name)) {
            self.object(target, value, path, depth + 1)?;
        }
        if let Some(expected) = schema.get("type").filter(|kinds| !allows(kinds, value)) {
            let expected = expected.to_string().replace('"', "");
            self.problem(path, format_args!("must be {expected}, found {}", kind_of(value)));
            return Ok(());
        }
        if let Some(allowed) = list(schema, "enum").filter(|all| !all.iter().any(|each| same(each, value))) {
            let found = clipped(&value.to_string());
            self.problem(path, format_args!("must be one of {}, found {found}", listed(allowed)));
        }
        for broken in bounds::broken(schema, value) {
            self.problem(path, format_args!("{broken}"));
        }
        self.unions(schema, value, path, depth)?;
        match value {
            Value::Object(members) => self.members(schema, (value, members), path, depth),
            Value::Array(items) => self.items(schema, items, path, depth),
            Value::String(text) => self.text(schema, text, path),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn text(&mut self, schema: &'a Map<String, Value>, text: &str, path: &str) -> Result<(), TooComplex> {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && self.matches(pattern, text)? == Some(false)
        {
            let found = clipped(&Value::from(text).to_string());
            self.problem(path, format_args!("must match the pattern `{}`, found {found}", clipped(pattern)));
        }
        if let Some(name) = schema.get("format").and_then(Value::as_str)
            && let Some(wanted) = format::broken(name, text)
        {
            let found = clipped(&Value::from(text).to_string());
            self.problem(path, format_args!("must be {wanted}, found {found}"));
        }
        Ok(())
    }

    /// Whether a text matches a pattern. None if nobody can tell.
    fn matches(&mut self, pattern: &'a str, text: &str) -> Result<Option<bool>, TooComplex> {
        self.spend(self.patterns.cost(pattern, text))?;
        let found = self.patterns.find(pattern, text);
        self.is_unsure |= found.is_none();
        Ok(found)
    }

    fn spend(&mut self, visits: usize) -> Result<(), TooComplex> {
        self.left = self.left.checked_sub(visits).ok_or(TooComplex)?;
        Ok(())
    }

    fn problem(&mut self, path: &str, what: std::fmt::Arguments<'_>) {
        self.problems.push(format!("`{path}` {what}"));
    }

    fn resolve(&self, target: &str) -> Option<&'a Map<String, Value>> {
        if target == "#" {
            return Some(self.root);
        }
        let name = target.strip_prefix("#/$defs/")?;
        self.root.get("$defs")?.get(name)?.as_object()
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
        // 3.0 is an integer to JSON Schema, and models write it.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(kind) => kind == kind_of(value),
        None => true,
    };
    kinds.as_array().map_or_else(|| one(kinds), |kinds| kinds.iter().any(one))
}

/// Whether two values are the same to JSON Schema, to which 3 and 3.0 are.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && other.is_number() && one.as_f64() == other.as_f64()
}

/// The values of an enum, as many as help.
fn listed(values: &[Value]) -> String {
    const MOST: usize = 30;
    let mut shown: Vec<_> = values.iter().take(MOST).map(|value| clipped(&value.to_string())).collect();
    shown.extend((values.len() > MOST).then(|| format!("{} more", values.len() - MOST)));
    shown.join(", ")
}

/// Text that may be long, as much of it as helps.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;

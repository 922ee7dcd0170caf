//! Bounds on the size, length or number of values.

use std::cmp::Ordering::{self, Greater, Less};

use serde_json::{Map, Number, Value};

/// Lists the bounds that a value violates.
pub(super) fn broken(schema: &Map<String, Value>, value: &Value) -> impl Iterator<Item = String> {
    let wanted = |keyword: &str| schema.get(keyword).map(Value::to_string).unwrap_or_default();
    let number =
        number(schema, value).map(move |(keyword, words)| format!("must be {words} {}", wanted(keyword)));
    let size = size(schema, value).map(move |(keyword, words, unit)| {
        format!("must have {words} {} {unit}", schema.get(keyword).map(Value::to_string).unwrap_or_default())
    });
    let twice =
        value.as_array().filter(|items| schema.get("uniqueItems") == Some(&true.into()) && repeats(items));
    let twice = twice.map(|_| "must not have the same item twice".to_owned());
    number.chain(size).chain(twice)
}

type Rule = (&'static str, &'static str, fn(&Number, &Number) -> bool);

fn number(schema: &Map<String, Value>, value: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    const RULES: [Rule; 5] = [
        ("minimum", "at least", |value, least| order(value, least) != Some(Less)),
        ("maximum", "at most", |value, most| order(value, most) != Some(Greater)),
        ("exclusiveMinimum", "more than", |value, bound| order(value, bound) == Some(Greater)),
        ("exclusiveMaximum", "less than", |value, bound| order(value, bound) == Some(Less)),
        ("multipleOf", "a multiple of", is_multiple),
    ];
    let value = value.as_number();
    let broken = RULES.into_iter().filter(move |(keyword, _, keeps)| {
        let bound = schema.get(*keyword).and_then(Value::as_number);
        value.zip(bound).is_some_and(|(value, bound)| !keeps(value, bound))
    });
    broken.map(|(keyword, words, _)| (keyword, words))
}

/// Compares two numbers. Integers are compared as such: from 2^53 on, several have the same `f64`.
fn order(one: &Number, other: &Number) -> Option<Ordering> {
    match one.as_i128().zip(other.as_i128()) {
        Some((one, other)) => Some(one.cmp(&other)),
        None => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn is_multiple(value: &Number, step: &Number) -> bool {
    if let Some((value, step)) = value.as_i128().zip(step.as_i128()) {
        return step <= 0 || value % step == 0;
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64()) else { return true };
    // 0.3 is a multiple of 0.1, although binary fractions do not show it.
    let times = value / step;
    step <= 0.0 || (times - times.round()).abs() < 1e-9
}

/// Returns keyword, words and unit of each violated bound on a length.
fn size(
    schema: &Map<String, Value>,
    value: &Value,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let (size, least, most, unit) = match value {
        Value::String(text) => (text.chars().count(), "minLength", "maxLength", "characters"),
        Value::Array(items) => (items.len(), "minItems", "maxItems", "items"),
        Value::Object(members) => (members.len(), "minProperties", "maxProperties", "members"),
        Value::Null | Value::Bool(_) | Value::Number(_) => (0, "", "", ""),
    };
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let bound = |keyword: &str| count(schema, keyword);
    let few = bound(least).filter(|least| size < *least).map(|_| (least, "at least", unit));
    let many = bound(most).filter(|most| size > *most).map(|_| (most, "at most", unit));
    few.into_iter().chain(many)
}

/// Returns a bound that is a count, which may be written as 2.0.
pub(super) fn count(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    let bound = schema.get(keyword)?;
    let whole = |bound: f64| bound.fract() == 0.0 && (0.0..1e15).contains(&bound);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and in the range")]
    bound.as_u64().or_else(|| bound.as_f64().filter(|bound| whole(*bound)).map(|bound| bound as u64))
}

/// Returns true if two items are equal. They are compared as text, so that long lists stay cheap.
fn repeats(items: &[Value]) -> bool {
    let mut seen = std::collections::HashSet::new();
    !items.iter().all(|item| seen.insert(plain(item).to_string()))
}

/// Returns a value with its integers written as such.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).map(|number| format!("{number}"));
            let whole = whole.and_then(|number| number.parse::<i64>().ok());
            whole.map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_kept_to() {
        let cases = [
            (json!({"minimum": 1, "maximum": 9}), json!(0), "must be at least 1"),
            (json!({"minimum": 1, "maximum": 9}), json!(10), "must be at most 9"),
            (json!({"exclusiveMinimum": 0}), json!(0), "must be more than 0"),
            (json!({"exclusiveMaximum": 1.5}), json!(1.5), "must be less than 1.5"),
            (json!({"multipleOf": 0.1}), json!(0.25), "must be a multiple of 0.1"),
            (json!({"multipleOf": 0.1, "minimum": 0}), json!(0.3), ""),
            (
                json!({"maximum": 9_007_199_254_740_992_u64}),
                json!(9_007_199_254_740_993_u64),
                "must be at most 9007199254740992",
            ),
            (json!({"minimum": i64::MIN}), json!(u64::MAX), ""),
            (json!({"exclusiveMaximum": u64::MAX}), json!(u64::MAX - 1), ""),
            (json!({"multipleOf": 3}), json!(9_007_199_254_740_993_u64), ""),
            (json!({"multipleOf": 2}), json!(9_007_199_254_740_993_u64), "must be a multiple of 2"),
            (json!({"minimum": 0.5}), json!(1), ""),
            (json!({"minLength": 2}), json!("é"), "must have at least 2 characters"),
            (json!({"maxLength": 1}), json!("é"), ""),
            (
                json!({"maxItems": 1, "uniqueItems": true}),
                json!([1, 1]),
                "must have at most 1 items; must not have the same item twice",
            ),
            (json!({"minProperties": 1}), json!({}), "must have at least 1 members"),
            (json!({"minLength": 2, "maximum": -1}), json!(null), ""),
        ];
        for (schema, value, expected) in cases {
            let problems: Vec<_> = broken(schema.as_object().unwrap(), &value).collect();
            assert_eq!(problems.join("; "), expected, "{schema} {value}");
        }
    }
}

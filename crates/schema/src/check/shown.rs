//! Values in the texts of problems. They are cut, and no work is done for the part that is cut off.

use std::fmt;

use serde_json::Value;

/// Maximum number of characters of a value.
const MAX_CHARS: usize = 100;
/// Maximum number of values of an enum.
const MAX_VALUES: usize = 30;

/// A value, cut if it is long.
pub(super) struct ShownValue<'a>(pub(super) &'a Value);

impl fmt::Display for ShownValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        write(self.0, &mut out);
        f.write_str(&clipped(&out))
    }
}

/// The values of an enum, cut if there are many.
pub(super) struct ListedValues<'a>(pub(super) &'a [Value]);

impl fmt::Display for ListedValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no values");
        }
        for (at, value) in self.0.iter().take(MAX_VALUES).enumerate() {
            write!(f, "{}{}", if at > 0 { ", " } else { "" }, ShownValue(value))?;
        }
        let more = self.0.len().saturating_sub(MAX_VALUES);
        if more > 0 { write!(f, ", {more} more") } else { Ok(()) }
    }
}

/// Returns a text in quotation marks, cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_text(text, &mut out);
    clipped(&out)
}

/// Returns a text, cut if it is long.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Writes a value as JSON, and stops soon after the maximum length.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            write_each(items, out, write);
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            write_each(members, out, |(name, value), out| {
                write_text(name, out);
                out.push(':');
                write(value, out);
            });
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn write_each<T>(all: impl IntoIterator<Item = T>, out: &mut String, write: impl Fn(T, &mut String)) {
    for (at, each) in all.into_iter().enumerate() {
        if out.chars().count() > MAX_CHARS {
            return;
        }
        out.push_str(if at > 0 { "," } else { "" });
        write(each, out);
    }
}

fn write_text(text: &str, out: &mut String) {
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    out.push_str(&Value::from(&text[..end]).to_string());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_is_the_beginning_of_the_json() {
        let long = "é\"".repeat(200);
        for value in [
            json!("a"),
            json!(null),
            json!([1, {"a": "b", "c": [true, 1.5]}, "é"]),
            json!({"a": vec![1; 1000], "b": long}),
            json!([[long], long]),
            json!(long),
        ] {
            assert_eq!(ShownValue(&value).to_string(), clipped(&value.to_string()));
        }
    }

    #[test]
    fn no_more_is_written_than_is_shown() {
        let deep = (0..100).fold(json!("x".repeat(1_000_000)), |inside, _| json!([inside, inside.as_str()]));
        for value in [json!("x".repeat(1_000_000)), json!(vec!["x"; 100_000]), deep] {
            let mut out = String::new();
            write(&value, &mut out);
            assert!(out.len() < 500, "{}", out.len());
        }
    }
}

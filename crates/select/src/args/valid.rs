//! Validates values from a request against the schema of a slot.

use serde_json::{Value, json};
use windlass_schema::Schema;

use super::{
    mention::is_cjk,
    slot::{ParameterSlot, SlotKind},
};

/// Limits that descriptions state but schemas leave out: the words, the keyword and its value.
const DESCRIBED_LIMITS: [(&[&str], &str, &str); 5] = [
    (&["yyyy-mm-dd"], "format", "date"),
    (&["uuid"], "format", "uuid"),
    (&["only contain letters and spaces", "只包含字母和空格"], "pattern", r"^[\p{L}\s]+$"),
    (&["only contain digits", "numeric string", "只包含数字"], "pattern", r"^\d+$"),
    (&["只包含汉字"], "pattern", r"^\p{Han}+$"),
];
/// Keywords that limit a value. Without one of them there is nothing to check, as values already
/// have the right type.
const LIMITING_KEYWORDS: [&str; 12] = [
    "pattern",
    "format",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "items",
    "maxItems",
];
/// Quotes that descriptions put around examples.
const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('“', '”'), ('‘', '’'), ('`', '`')];
/// Words that show that a date has a time of day too.
const CLOCK: [&str; 3] = ["hh", "时间戳", "timestamp"];

/// Returns true if the schema of a slot, and the limits in its description, allow a value.
///
/// A value that the description gives as an example is always allowed. So is Chinese text for an
/// English pattern, because it must be translated first.
pub(super) fn fits(slot: &ParameterSlot, value: &Value) -> bool {
    if let Some(text) = value.as_str() {
        let is_foreign = text.contains(is_cjk) && slot.schema.get("pattern").is_some_and(is_english);
        let quoted = |(open, close): (char, char)| slot.description.contains(&format!("{open}{text}{close}"));
        if is_foreign || QUOTES.into_iter().any(quoted) {
            return true;
        }
    }
    let mut schema = slot.schema.clone();
    if let Some(keywords) = schema.as_object_mut().filter(|_| slot.kind == SlotKind::Text && !slot.list) {
        let about = slot.description.to_lowercase();
        let is_clear = !CLOCK.iter().any(|word| about.contains(word));
        for (words, keyword, meaning) in DESCRIBED_LIMITS.iter().filter(|_| is_clear) {
            if words.iter().any(|word| about.contains(word)) {
                keywords.entry(*keyword).or_insert_with(|| json!(meaning));
            }
        }
    }
    if !LIMITING_KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some()) {
        return true;
    }
    // An invalid schema forbids nothing.
    let Ok(schema) = Schema::new(&json!({"properties": {"x": schema}})) else { return true };
    schema.check(&json!({"x": value})).is_empty()
}

fn is_english(pattern: &Value) -> bool {
    let pattern = pattern.as_str().unwrap_or_default();
    pattern.contains(|c: char| c.is_ascii_alphabetic())
        && !pattern.contains(is_cjk)
        && !pattern.contains(r"\u")
        && !pattern.contains(r"\p")
}

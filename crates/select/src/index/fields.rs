//! The searched fields of a card and their weights.

use serde_json::Value;

use crate::{Card, text};

/// Maximum length of a field. A usual description has a few hundred bytes.
const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Maximum depth and number of parameters, and number of examples, that are read.
const MAX_DEPTH: usize = 8;
const MAX_PARAMETERS: usize = 200;
pub(super) const MAX_EXAMPLES: usize = 20;

/// BM25 length normalisation of a field. Names and lists of names are hardly penalised.
const SHORT_FIELD_B: f32 = 0.4;
const LONG_FIELD_B: f32 = 0.55;

/// A text of a card with its weights.
#[derive(Debug)]
pub(crate) struct CardField {
    pub(crate) text: String,
    /// Weight of a word in the word search.
    pub(crate) weight: f32,
    /// Strength of the length normalisation, the `b` of BM25.
    pub(crate) b: f32,
    /// The usual length, in words. It is a constant and not an average, so that the weight of a
    /// word does not depend on other tools. A tool can then be added or removed without changing
    /// the rest.
    pub(crate) usual: f32,
    /// Weight of a word in the meaning of the tool.
    pub(crate) meaning: f32,
}

/// Returns the fields of a card. The weights were chosen on public data; see `docs/selection.md`.
pub(crate) fn fields(card: &Card) -> [CardField; 6] {
    let field = |text, weight, b, usual, meaning| CardField { text, weight, b, usual, meaning };
    let (names, prose) = schema_text(&card.parameters);
    let about = format!("{} {}", cut(&card.category), cut(&card.server));
    let examples: Vec<_> = card.examples.iter().take(MAX_EXAMPLES).map(|example| cut(example)).collect();
    [
        field(cut(&card.name).to_owned(), 2.0, SHORT_FIELD_B, 3.0, 1.0),
        field(cut(&card.description).to_owned(), 1.0, LONG_FIELD_B, 16.0, 1.0),
        field(about, 1.0, SHORT_FIELD_B, 3.0, 0.0),
        field(names, 0.5, SHORT_FIELD_B, 6.0, 1.0),
        field(prose, 0.5, LONG_FIELD_B, 40.0, 0.0),
        field(examples.join(" "), 1.0, LONG_FIELD_B, 12.0, 1.0),
    ]
}

fn cut(text: &str) -> &str {
    text::cut(text, MAX_FIELD_BYTES)
}

/// Returns the names of parameters, and their descriptions and enum values.
fn schema_text(schema: &Value) -> (String, String) {
    let (mut names, mut prose) = (String::new(), String::new());
    let mut left = MAX_PARAMETERS;
    walk(schema, MAX_DEPTH, &mut left, &mut |name, property| {
        let about = property.get("description").and_then(Value::as_str);
        let values = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        push(&mut names, name);
        about.into_iter().chain(values.filter_map(Value::as_str)).for_each(|text| push(&mut prose, text));
    });
    (names, prose)
}

fn push(to: &mut String, text: &str) {
    if to.len() < MAX_FIELD_BYTES {
        to.push_str(cut(text));
        to.push(' ');
    }
}

/// Visits every parameter, and the members of objects and of lists of objects.
fn walk(schema: &Value, depth: usize, left: &mut usize, each: &mut impl FnMut(&str, &Value)) {
    if depth == 0 {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        each(name, property);
        walk(property, depth - 1, left, each);
    }
    if let Some(items) = schema.get("items") {
        walk(items, depth - 1, left, each);
    }
}

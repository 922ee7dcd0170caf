//! Environment variables in the texts of a project's configuration: `${NAME}` and
//! `${NAME:-default}`.

use std::collections::BTreeSet;

/// Returns a text with its variables replaced. The error names a variable that is not set.
pub(super) fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            TextPiece::Plain(plain) => result.push_str(plain),
            TextPiece::Variable { name, default } => match (variable(name), default) {
                (Some(value), _) if !value.is_empty() || default.is_none() => result.push_str(&value),
                (_, Some(default)) => result.push_str(default),
                (_, None) => return Err(format!("the variable `{name}` is not set")),
            },
        }
    }
    Ok(result)
}

/// Adds the variables of a text.
pub(super) fn collect(text: &str, names: &mut BTreeSet<String>) {
    names.extend(pieces(text).into_iter().filter_map(|piece| match piece {
        TextPiece::Plain(_) => None,
        TextPiece::Variable { name, .. } => Some(name.to_owned()),
    }));
}

enum TextPiece<'a> {
    Plain(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

/// Splits a text. A `${` that begins no variable is plain text.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}').map(|length| at + length) else { break };
        let inner = &rest[at + 2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            found.push(TextPiece::Plain(&rest[..at]));
            found.push(TextPiece::Variable { name, default });
        } else {
            found.push(TextPiece::Plain(&rest[..=end]));
        }
        rest = &rest[end + 1..];
    }
    found.push(TextPiece::Plain(rest));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_one(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "ONE" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expanded(text, &variable)
    }

    #[test]
    fn variables_are_replaced_and_the_rest_stays() {
        for (text, expected) in [
            ("a${ONE}b", "a1b"),
            ("${ONE}${ONE}", "11"),
            ("${NONE:-x y}", "x y"),
            ("${NONE:-}", ""),
            ("${EMPTY:-x}", "x"),
            ("${EMPTY}", ""),
            ("$ONE ${a b} ${", "$ONE ${a b} ${"),
            ("ü${ONE}ü", "ü1ü"),
        ] {
            assert_eq!(with_one(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(with_one("${NONE}"), Err("the variable `NONE` is not set".to_owned()));
    }

    #[test]
    fn the_variables_of_a_text_are_known_before_they_are_read() {
        let mut names = BTreeSet::new();
        collect("a${B}${A:-x}${B} ${no name}", &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    }
}

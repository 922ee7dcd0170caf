//! Calls written as JSON objects. Only the outer shape is parsed: the router validates the
//! arguments, and repairs common mistakes.

use std::borrow::Cow;

use super::{TextCall, nesting::BracketNesting};

/// Members that models use for the tool name and for the arguments.
const NAME: [&str; 3] = ["name", "tool", "tool_name"];
const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "args", "input"];
/// Maximum number of objects around a call, as in `{"tool_calls": [{"function": {…}}]}`.
const MAX_WRAPPER_DEPTH: usize = 4;

/// Returns the calls of an object or a list, which may be truncated. Returns `None` if any part of
/// it is something else.
pub(super) fn calls(text: &str, needs_arguments: bool) -> Option<Vec<TextCall>> {
    let mut found = Vec::new();
    collect(text, needs_arguments, MAX_WRAPPER_DEPTH, &mut found)?;
    Some(found).filter(|found| !found.is_empty())
}

fn collect(text: &str, needs_arguments: bool, layers: usize, found: &mut Vec<TextCall>) -> Option<()> {
    let layers = layers.checked_sub(1)?;
    let mut rest = text.trim_start();
    if let Some(inner) = rest.strip_prefix('[') {
        rest = between(inner);
        while !rest.is_empty() && !rest.starts_with(']') {
            let element = value(rest);
            collect(element.text, needs_arguments, layers, found)?;
            rest = between(&rest[element.text.len()..]);
        }
        return Some(());
    }
    let ObjectMembers { all, is_whole } = members(rest.strip_prefix('{')?)?;
    let given = |names: &[&str]| all.iter().find(|(name, _)| names.contains(&name.as_ref()));
    for layer in ["function", "tool_calls"] {
        if let Some((_, inner)) = given(&[layer]).filter(|(_, inner)| inner.text.starts_with(['{', '['])) {
            return collect(inner.text, needs_arguments, layers, found);
        }
    }
    let (_, name) = given(&NAME).or_else(|| given(&["function"]))?;
    let arguments = match given(&ARGUMENTS) {
        Some((_, arguments)) => arguments.arguments(),
        None if needs_arguments => return None,
        None if is_whole => "{}".to_owned(),
        None => "{".to_owned(),
    };
    found.push(TextCall { name: name.string().filter(|name| !name.is_empty())?.into_owned(), arguments });
    Some(())
}

/// The source text of a value.
#[derive(Clone, Copy)]
struct WrittenValue<'a> {
    text: &'a str,
    is_whole: bool,
}

impl<'a> WrittenValue<'a> {
    /// Returns the content of a complete string.
    fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix(['"', '\''])?;
        let inner = inner.get(..inner.len().checked_sub(1)?).filter(|_| self.is_whole)?;
        if inner.contains('\\') { serde_json::from_str(self.text).ok() } else { Some(inner.into()) }
    }

    /// Returns the JSON text of arguments. Some models write it inside a string.
    fn arguments(self) -> String {
        match self.string() {
            Some(inner) => inner.into_owned(),
            None if self.text == "null" && self.is_whole => "{}".to_owned(),
            None => self.text.trim_end().to_owned(),
        }
    }
}

/// The members of an object.
struct ObjectMembers<'a> {
    all: Vec<(Cow<'a, str>, WrittenValue<'a>)>,
    /// True if the closing brace is present.
    is_whole: bool,
}

/// Parses the members of an object after its opening brace. Returns `None` if it is no object.
fn members(text: &str) -> Option<ObjectMembers<'_>> {
    let (mut all, mut rest) = (Vec::new(), between(text));
    while !rest.is_empty() {
        if rest.starts_with('}') {
            return Some(ObjectMembers { all, is_whole: true });
        }
        let name = if rest.starts_with(['"', '\'']) {
            value(rest)
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            WrittenValue { text: &rest[..end], is_whole: true }
        };
        let after = rest[name.text.len()..].trim_start();
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix(':')?.trim_start();
        if rest.is_empty() {
            break;
        }
        let value = value(rest);
        all.push((name.string().unwrap_or(name.text.into()), value));
        if value.text.is_empty() {
            return None;
        }
        rest = between(&rest[value.text.len()..]);
    }
    Some(ObjectMembers { all, is_whole: false })
}

/// Returns the value at the start of a text, truncated if the text ends first.
fn value(text: &str) -> WrittenValue<'_> {
    let end = match text.as_bytes().first() {
        Some(b'{' | b'[' | b'(') => BracketNesting::length_of(text),
        Some(quote @ (b'"' | b'\'')) => quoted(text, *quote),
        _ => text.find([',', '}', ']', '\n']),
    };
    WrittenValue { text: &text[..end.unwrap_or(text.len())], is_whole: end.is_some() }
}

fn quoted(text: &str, quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == quote && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map(|at| at + 2)
}

fn between(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || c == ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let found = calls(text, false).unwrap_or_default();
        found.into_iter().map(|found| (found.name, found.arguments)).collect()
    }

    fn one(name: &str, arguments: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), arguments.to_owned())]
    }

    #[test]
    fn a_call_is_read_whatever_its_members_are_called() {
        assert_eq!(read(r#"{"name": "f", "arguments": {"a": "}"}}"#), one("f", r#"{"a": "}"}"#));
        assert_eq!(read(r#"{"parameters": {"a":1}, "name": "f", "id": 7}"#), one("f", r#"{"a":1}"#));
        assert_eq!(read("{'name': 'f', 'arguments': {'a': None,}}"), one("f", "{'a': None,}"));
        assert_eq!(read(r#"{"name": "f", "arguments": "{\"a\": 1}"}"#), one("f", r#"{"a": 1}"#));
        assert_eq!(read(r#"{"name": "f"}"#), one("f", "{}"));
        assert_eq!(read(r#"{"name": "f", "arguments": null}"#), one("f", "{}"));
        let wrapped = r#"{"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}"#;
        assert_eq!(read(wrapped), one("f", "{}"));
        let two = r#"[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"x": [1]}}]"#;
        assert_eq!(read(two).len(), 2);
    }

    #[test]
    fn what_is_cut_off_keeps_its_cut() {
        assert_eq!(read(r#"{"name": "f", "arguments": {"a": "x"#), one("f", r#"{"a": "x"#));
        assert_eq!(read(r#"{"name": "f", "arg"#), one("f", "{"));
        assert_eq!(read(r#"{"name": "f", "arguments": {"a": 1}"#), one("f", r#"{"a": 1}"#));
        assert_eq!(read(r#"{"name": "f"#), []);
    }

    #[test]
    fn other_objects_are_no_calls() {
        for text in ["{}", "[]", "[1, 2]", r#"{"a": 1}"#, "{x", "{:1}", r#"{"name": ""}"#, r#"{"name": {}}"#]
        {
            assert_eq!(read(text), [], "{text}");
        }
        assert_eq!(calls(r#"{"name": "f"}"#, true), None);
        assert_eq!(calls(r#"[{"name": "f", "arguments": {}}, {"x": 1}]"#, false), None);
    }
}

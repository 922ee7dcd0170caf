//! Joins continued lines, as a shell does before it splits a script into words.

use std::borrow::Cow;

/// Returns the script without continuations (`\` at the end of a line). In single quotes and
/// comments there are none. A script with an expansion or a here-document stays as it is: those
/// have quoting rules of their own. There, a continuation inside a word makes the script unclear.
pub(super) fn join_lines(source: &str) -> Cow<'_, str> {
    if source.contains("\\\n") { joined(source).map_or(source.into(), Cow::Owned) } else { source.into() }
}

/// Returns the text from a continuation on that is inside a word or an operator.
pub(super) fn split_word(source: &str) -> Option<&str> {
    let is_operator = |c: char| ";&|()<>".contains(c);
    source.match_indices("\\\n").find_map(|(at, mark)| {
        let before = source.get(..at)?.chars().next_back().filter(|c| !c.is_whitespace())?;
        let after = source.get(at + mark.len()..)?.chars().next().filter(|c| !c.is_whitespace())?;
        (!is_operator(before) || is_operator(after)).then(|| source.get(at..)).flatten()
    })
}

fn joined(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut quote = None;
    let mut is_comment = false;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let begins_word = out.is_empty() || out.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        match c {
            '\n' => is_comment = false,
            _ if is_comment => {}
            '\'' | '"' if quote == Some(c) => quote = None,
            _ if quote == Some('\'') => {}
            '\\' if next == Some('\n') => {
                chars.next();
                continue;
            }
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            '`' => return None,
            '$' if matches!(next, Some('(' | '{' | '[' | '\'')) => return None,
            '<' if next == Some('<') => return None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            '#' if quote.is_none() && begins_word => is_comment = true,
            _ => {}
        }
        out.push(c);
    }
    Some(out)
}

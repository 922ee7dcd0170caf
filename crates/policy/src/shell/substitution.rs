//! Substitutions in texts that the grammar does not look into: `${x:-`…`}` and here-documents.

/// Returns the position of the first substitution in a text. A backslash protects the next
/// character. In quotes, `<(` is literal.
pub(super) fn first(text: &str, in_quotes: bool) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let opens = chars.peek().is_some_and(|(_, next)| *next == '(');
        match c {
            '\\' => drop(chars.next()),
            '`' => return Some(at),
            '$' if opens => return Some(at),
            '<' | '>' if opens && !in_quotes => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the commands between backquotes. `None` if a backquote is not closed, or if there are
/// other substitutions outside of them.
pub(super) fn backquoted(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut outside = String::new();
    let mut inside: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, inside.as_mut()) {
            ('`', Some(_)) => found.extend(inside.take()),
            ('`', None) => inside = Some(String::new()),
            ('\\', Some(command)) => match chars.next()? {
                escaped @ ('`' | '\\' | '$') => command.push(escaped),
                other => command.extend([c, other]),
            },
            ('\\', None) => drop(chars.next()),
            (_, Some(command)) => command.push(c),
            (_, None) => outside.push(c),
        }
    }
    (inside.is_none() && first(&outside, false).is_none()).then_some(found)
}

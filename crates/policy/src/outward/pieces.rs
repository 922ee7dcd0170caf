//! Texts with their pieces put together: values of variables, and literals next to each other.

/// Maximum number of variables whose values are put in.
const MAX_VARIABLES: usize = 16;

/// Texts between two literals that a language joins.
const JOINTS: &[&str] =
    &["\" \"", "\".\"", "\"+\"", "\" . \"", "\" + \"", "' '", "'.'", "'+'", "' . '", "' + '"];

/// Returns a text with the values of its variables in their places, and without the joints of its
/// literals: `a=np; ${a}m` holds `npm`, and so does `"n" + "pm"`. None if it has neither.
pub(super) fn put_together(text: &str) -> Option<String> {
    let joined = JOINTS.iter().fold(text.to_owned(), |text, joint| text.replace(joint, ""));
    let joined = assignments(text).into_iter().take(MAX_VARIABLES).fold(joined, |joined, (name, value)| {
        joined.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
    });
    (joined != text).then_some(joined)
}

/// Returns the variables that a text sets to plain values; the longest names first, because others
/// may be their beginnings.
fn assignments(text: &str) -> Vec<(&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| c.is_whitespace() || ";&|(){}".contains(c));
    let pairs = words.filter_map(|word| word.split_once('='));
    let pairs = pairs.map(|(name, value)| (name, value.trim_matches(['"', '\''])));
    let mut found: Vec<_> = pairs
        .filter(|(name, value)| {
            !name.is_empty() && name.chars().all(is_name) && !value.contains(['$', '`', '"', '\''])
        })
        .collect();
    found.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        for (text, whole) in [
            ("a=np b=m; $a$b x", Some("a=np b=m; npm x")),
            ("a='np'; ${a}m", Some("a='np'; npm")),
            ("ab=x; a=y; $ab$a", Some("ab=x; a=y; xy")),
            (r#"system("n" "pm" + " x")"#, Some(r#"system("npm x")"#)),
            (r#"system("n"+"pm")"#, Some(r#"system("npm")"#)),
            ("echo $a", None),
        ] {
            assert_eq!(put_together(text).as_deref(), whole, "{text}");
        }
    }
}

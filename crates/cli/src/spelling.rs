//! Names with similar spelling, for suggestions.

use crate::screen::visible;

/// Returns the edit distance of a name from a known one; none if it is more than one letter in
/// three, which is not a typo.
pub(crate) fn nearness(name: &str, known: &str) -> Option<usize> {
    let letters = distance(name, known);
    let longest = name.chars().count().max(known.chars().count());
    (letters * 3 <= longest).then_some(letters)
}

/// Asks whether the nearest known name was meant, if any is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{}`?", visible(near)))
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.filter_map(|known| Some((nearness(name, known)?, known)));
    near.min_by_key(|(letters, _)| *letters).map(|(_, known)| known)
}

/// Returns the edit distance of two names, with a transposition counting as one.
fn distance(one: &str, other: &str) -> usize {
    let fold = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (one, other) = (fold(one), fold(other));
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let same = one[i - 1] == other[j - 1];
            let mut cost = (row[j - 1] + usize::from(!same)).min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slip_is_near() {
        for (name, known) in
            [("modle", "model"), ("exce", "exec"), ("sesions", "sessions"), ("sandbox-mode", "sandbox_mode")]
        {
            assert!(nearness(name, known).is_some(), "{name} {known}");
        }
        for (name, known) in [
            ("foo", "undo"),
            ("e", "exec"),
            ("resume", "e"),
            ("version", "sessions"),
            ("mcp_servers", "features"),
        ] {
            assert_eq!(nearness(name, known), None, "{name} {known}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested_or_none() {
        let known = || ["undo", "exec", "resume", "tools"].into_iter();
        assert_eq!(did_you_mean("tolos", known()).as_deref(), Some("did you mean `tools`?"));
        assert_eq!(did_you_mean("foo", known()), None);
    }

    #[test]
    fn distances_count_letters() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("modle", "model", 1),
            ("kitten", "sitting", 3),
            ("MODEL", "model", 0),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }
}

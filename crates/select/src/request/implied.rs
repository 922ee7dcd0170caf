//! Words that a request implies: a request to find news asks for a web search.
//!
//! A general tool describes its function and not the subjects people use it for. Without implied
//! words the subject would lead to a special tool that happens to share a word.

use crate::text;

/// Weight of an implied word, relative to a word of the request.
pub(super) const WEIGHT: f32 = 0.5;

/// Words, and the word that they imply.
const IMPLIED: [(&[&str], &str); 2] = [
    (&["find", "locate", "lookup"], "search"),
    (&["news", "headlines", "articles", "information", "latest", "online", "internet"], "web"),
];

/// Returns the implied words that do not occur themselves.
pub(super) fn implied<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let stems: Vec<_> = words.map(text::stem).collect();
    let is_said = |word: &str| stems.contains(&text::stem(word));
    let implied = IMPLIED.iter().filter(|(by, word)| by.iter().any(|each| is_said(each)) && !is_said(word));
    implied.map(|(_, word)| *word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&'static str> {
        implied(text.split(' '))
    }

    #[test]
    fn what_is_looked_for_implies_a_search() {
        assert_eq!(of("find restaurants"), ["search"]);
        assert_eq!(of("finding an article"), ["search", "web"]);
        assert_eq!(of("send the report"), Vec::<&str>::new());
    }

    #[test]
    fn what_was_said_is_not_implied_as_well() {
        assert_eq!(of("find by searching"), Vec::<&str>::new());
    }
}

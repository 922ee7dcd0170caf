//! Splits text into stemmed words and measures shared Chinese text.

/// Words that do not describe a parameter.
const IDLE: &str = " a an the of for to in on by with and or from is are be this that it its as at given using use used based which what \
whether if e.g eg i.e example such optional default defaults value name string integer number list array boolean true false parameter specify \
specified provided desired want your their can should must not set get include included including user type format ";

/// Returns the lower-case, stemmed words of a name or a text. Identifiers are split.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    for c in text.chars().chain([' ']) {
        let breaks =
            !c.is_alphanumeric() || (c.is_uppercase() && lower) || !c.is_ascii() && !c.is_alphabetic();
        if breaks && !word.is_empty() {
            words.push(stem(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    words
}

/// Returns the words without those that describe nothing.
pub(super) fn content_words(text: &str) -> Vec<String> {
    let mut words = words(text);
    words.retain(|word| !IDLE.contains(&format!(" {word} ")) && word.len() > 1);
    words
}

/// Removes the ending of a word, crudely.
pub(super) fn stem(word: &str) -> String {
    let endings =
        ["ations", "ation", "ities", "ings", "ing", "ies", "ers", "es", "ed", "er", "ity", "s", "y", "e"];
    let cut = endings.iter().find_map(|end| word.strip_suffix(end).filter(|stem| stem.chars().count() >= 3));
    cut.unwrap_or(word).to_owned()
}

/// Returns the length of the longest common substring, in characters. Only Chinese characters
/// count.
pub(super) fn shared(a: &str, b: &str) -> usize {
    let (a, b) = (chinese(a), chinese(b));
    let mut row = vec![0_usize; b.len() + 1];
    let mut best = 0;
    for x in &a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y && *x != ' ' { diagonal + 1 } else { 0 };
            best = best.max(row[j + 1]);
            diagonal = above;
        }
    }
    best
}

fn chinese(text: &str) -> Vec<char> {
    let keep =
        |c: char| if super::mention::is_cjk(c) && !"的是为和在了请".contains(c) { c } else { ' ' };
    text.chars().take(120).map(keep).collect()
}

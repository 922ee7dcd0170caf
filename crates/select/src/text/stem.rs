//! Reduces English words to their stems, with the rules of Snowball's English stemmer (Porter2).
//!
//! The tests compare words with the stems that Snowball returns. A word that is not only lower-case
//! ASCII letters is left unchanged.

/// Returns the stem of a lower-case word.
pub(crate) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    if let Some((_, stem)) = SPECIAL.iter().find(|(each, _)| *each == word) {
        return (*stem).to_owned();
    }
    let mut word = StemmedWord::new(word);
    word.plural();
    if !AFTER_PLURAL.contains(&word.text.as_str()) {
        word.past_and_progressive();
        word.final_y();
        word.replace(&STEP_2, |word| word.r1);
        word.replace(&STEP_3, |word| word.r1);
        word.remove_endings();
        word.final_e_and_l();
    }
    word.text.make_ascii_lowercase();
    word.text
}

const SPECIAL: [(&str, &str); 20] = [
    ("skis", "ski"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("evening", "evening"),
    ("evenings", "evening"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Prefixes after which the first region begins, so that `university` and `universe` stay distinct.
const WHOLE: [&str; 8] = ["gener", "commun", "arsen", "univers", "later", "emerg", "organ", "inter"];

const AFTER_PLURAL: [&str; 8] =
    ["inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"];

/// Suffixes, their replacements, and the letters that must come before them. The longest match
/// counts.
type SuffixRules<const N: usize> = [(&'static str, &'static str, &'static str); N];

const STEP_2: SuffixRules<25> = [
    ("ization", "ize", ""),
    ("ational", "ate", ""),
    ("fulness", "ful", ""),
    ("ousness", "ous", ""),
    ("iveness", "ive", ""),
    ("tional", "tion", ""),
    ("biliti", "ble", ""),
    ("lessli", "less", ""),
    ("entli", "ent", ""),
    ("ogist", "og", "l"),
    ("ation", "ate", ""),
    ("alism", "al", ""),
    ("aliti", "al", ""),
    ("ousli", "ous", ""),
    ("iviti", "ive", ""),
    ("fulli", "ful", ""),
    ("enci", "ence", ""),
    ("anci", "ance", ""),
    ("abli", "able", ""),
    ("izer", "ize", ""),
    ("ator", "ate", ""),
    ("alli", "al", ""),
    ("bli", "ble", ""),
    ("ogi", "og", "l"),
    ("li", "", "cdeghkmnrt"),
];

const STEP_3: SuffixRules<8> = [
    ("ational", "ate", ""),
    ("tional", "tion", ""),
    ("alize", "al", ""),
    ("icate", "ic", ""),
    ("iciti", "ic", ""),
    ("ical", "ic", ""),
    ("ness", "", ""),
    ("ful", "", ""),
];

const STEP_4: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
    "ion", "al", "er", "ic",
];

/// A word during stemming. A `y` that is a consonant is a capital, and the two regions are offsets.
struct StemmedWord {
    text: String,
    r1: usize,
    r2: usize,
}

impl StemmedWord {
    fn new(word: &str) -> Self {
        let mut text = word.as_bytes().to_vec();
        for at in 0..text.len() {
            if text[at] == b'y' && (at == 0 || is_vowel(text[at - 1])) {
                text[at] = b'Y';
            }
        }
        let prefix = WHOLE.iter().find(|prefix| word.starts_with(**prefix));
        let r1 = prefix.map_or_else(|| region(&text, 0), |prefix| prefix.len());
        let r2 = region(&text, r1);
        Self { text: text.into_iter().map(char::from).collect(), r1, r2 }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn ends(&self, suffix: &str) -> bool {
        self.text.ends_with(suffix)
    }

    /// Returns the position of a suffix of this length.
    fn before(&self, suffix: &str) -> usize {
        self.text.len() - suffix.len()
    }

    fn swap(&mut self, suffix: &str, with: &str) {
        self.text.truncate(self.before(suffix));
        self.text.push_str(with);
    }

    fn has_vowel(&self, until: usize) -> bool {
        self.bytes()[..until].iter().any(|byte| is_vowel(*byte))
    }

    fn plural(&mut self) {
        if self.ends("sses") {
            self.swap("sses", "ss");
        } else if self.ends("ied") || self.ends("ies") {
            let with = if self.text.len() > 4 { "i" } else { "ie" };
            self.swap("ies", with);
        } else if self.ends("s")
            && !self.ends("us")
            && !self.ends("ss")
            && self.has_vowel(self.text.len().saturating_sub(2))
        {
            self.swap("s", "");
        }
    }

    fn past_and_progressive(&mut self) {
        if let Some(suffix) = ["eedly", "eed"].iter().find(|suffix| self.ends(suffix)) {
            if self.before(suffix) >= self.r1 {
                self.swap(suffix, "ee");
            }
            return;
        }
        let Some(suffix) = ["ingly", "edly", "ing", "ed"].iter().find(|suffix| self.ends(suffix)) else {
            return;
        };
        if !self.has_vowel(self.before(suffix)) {
            return;
        }
        self.swap(suffix, "");
        let doubled = ["bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"];
        if ["at", "bl", "iz"].iter().any(|end| self.ends(end)) {
            self.text.push('e');
        } else if doubled.iter().any(|end| self.ends(end)) {
            let is_whole = self.text.len() == 3 && matches!(self.bytes()[0], b'a' | b'e' | b'o');
            self.text.truncate(self.text.len() - usize::from(!is_whole));
        } else if self.r1 >= self.text.len() && is_short_syllable(self.bytes()) {
            self.text.push('e');
        }
    }

    fn final_y(&mut self) {
        let length = self.text.len();
        if length > 2 && (self.ends("y") || self.ends("Y")) && !is_vowel(self.bytes()[length - 2]) {
            self.swap("y", "i");
        }
    }

    fn replace<const N: usize>(&mut self, endings: &SuffixRules<N>, region: impl Fn(&Self) -> usize) {
        let found = endings.iter().find(|(suffix, _, _)| self.ends(suffix));
        let ative = self.ends("ative") && N == STEP_3.len();
        if let Some((suffix, with, after)) = found {
            let at = self.before(suffix);
            let fits = at.checked_sub(1).is_some_and(|at| after.as_bytes().contains(&self.bytes()[at]));
            if at >= region(self) && (after.is_empty() || fits) {
                self.swap(suffix, with);
            }
        } else if ative && self.before("ative") >= self.r2 {
            self.swap("ative", "");
        }
    }

    fn remove_endings(&mut self) {
        let Some(suffix) = STEP_4.iter().find(|suffix| self.ends(suffix)) else { return };
        let at = self.before(suffix);
        let fits = *suffix != "ion" || matches!(self.bytes().get(at.wrapping_sub(1)), Some(b's' | b't'));
        if at >= self.r2 && fits {
            self.swap(suffix, "");
        }
    }

    fn final_e_and_l(&mut self) {
        let at = self.text.len() - 1;
        let drop_e =
            self.ends("e") && (at >= self.r2 || (at >= self.r1 && !is_short_syllable(&self.bytes()[..at])));
        if drop_e || (self.ends("ll") && at >= self.r2) {
            self.text.pop();
        }
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Returns the start of the region after the first consonant that follows a vowel.
fn region(word: &[u8], from: usize) -> usize {
    let pairs = word.get(from..).unwrap_or_default().windows(2);
    let at = pairs.into_iter().position(|pair| is_vowel(pair[0]) && !is_vowel(pair[1]));
    at.map_or(word.len(), |at| from + at + 2)
}

/// Returns true if the word ends in a consonant, a vowel and a consonant other than `w`, `x`, `Y`,
/// or is a vowel and a consonant.
fn is_short_syllable(word: &[u8]) -> bool {
    match word {
        [vowel, last] => is_vowel(*vowel) && !is_vowel(*last),
        [.., before, vowel, last] => {
            !is_vowel(*before) && is_vowel(*vowel) && !is_vowel(*last) && !matches!(last, b'w' | b'x' | b'Y')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_the_stems_snowball_gives_them() {
        let cases = CASES.split_whitespace().collect::<Vec<_>>();
        for pair in cases.chunks(2) {
            assert_eq!(stem(pair[0]), pair[1], "{}", pair[0]);
        }
    }

    #[test]
    fn other_scripts_and_mixed_words_are_left_alone() {
        for word in ["", "a", "mp3", "naïve", "файлы", "天气", "x_y"] {
            assert_eq!(stem(word), word);
        }
    }

    const CASES: &str = include_str!("stem/cases.txt");
}

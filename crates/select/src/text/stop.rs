//! Stop words: words that do not help to choose a tool.

/// Returns true if a lower-case word, or a single Chinese character, is a stop word.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP.binary_search(&word).is_ok() || (word.chars().count() == 1 && GLYPHS.contains(word))
}

/// Sorted alphabetically.
const STOP: [&str; 134] = [
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but",
    "by", "can", "could", "d", "did", "do", "does", "doing", "don", "for", "from", "get", "give", "given",
    "had", "has", "have", "having", "he", "hello", "her", "here", "hey", "hi", "him", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "just", "kindly", "know", "let", "like", "ll", "m", "make", "may",
    "me", "might", "more", "my", "need", "needs", "no", "not", "now", "of", "off", "on", "one", "only", "or",
    "other", "our", "out", "over", "please", "re", "s", "same", "she", "should", "so", "some", "such", "t",
    "tell", "than", "thank", "thanks", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "through", "to", "too", "under", "up", "us", "use", "used", "using", "ve", "very",
    "via", "want", "wants", "was", "we", "were", "what", "when", "where", "whether", "which", "while", "who",
    "whom", "whose", "why", "will", "with", "would", "yes", "you", "your",
];

/// Pronouns, particles and politeness.
const GLYPHS: &str =
    "的了是我你您他她它们吗呢吧啊呀和与或在有这那个请帮想要能会可就也都还把被给对于之其一下么";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_searched() {
        assert!(STOP.is_sorted());
        assert!(is_stop("the") && is_stop("的") && !is_stop("file") && !is_stop("的了") && !is_stop(""));
    }
}

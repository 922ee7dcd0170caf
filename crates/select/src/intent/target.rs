//! The targets of a request: objects that it names exactly.

use serde::Serialize;

/// Maximum number of targets.
const MAX_TARGETS: usize = 32;

/// An object that a request names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestTarget {
    /// The apparent kind.
    pub kind: TargetKind,
    /// The text as written.
    pub text: String,
}

/// The apparent kind of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file, a directory or a pattern for them.
    Path,
    /// An address on the network.
    Address,
    /// A quotation.
    Quotation,
}

/// Returns the targets of a text, in order.
pub(crate) fn targets(text: &str) -> Vec<RequestTarget> {
    let spans = crate::request::spans(text);
    let target = |part: &str, is_quoted: bool| {
        let word = part.trim().trim_end_matches(['.', ',', ';', '?', '!', '。', '，', '？', '！', ')']);
        let kind = if word.contains("://") || (word.contains('@') && word.contains('.')) {
            TargetKind::Address
        } else if is_path(word) {
            TargetKind::Path
        } else if is_quoted && !word.is_empty() {
            TargetKind::Quotation
        } else {
            return None;
        };
        Some(RequestTarget { kind, text: word.to_owned() })
    };
    spans.into_iter().filter_map(|span| target(span.text, span.is_quoted)).take(MAX_TARGETS).collect()
}

/// Returns true if a word looks like a path: it has a slash or a star, or a file extension.
pub(crate) fn is_path(word: &str) -> bool {
    let has_ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        let is_ending =
            (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_number = stem.bytes().last().is_some_and(|byte| byte.is_ascii_digit())
            && ending.bytes().all(|byte| byte.is_ascii_digit());
        is_ending && !stem.is_empty() && !is_number
    });
    !word.contains(char::is_whitespace)
        && (word.starts_with(['/', '~', '.']) && word.len() > 1
            || word.contains("**")
            || word.starts_with("*.")
            || has_ending
            || word.split('/').filter(|part| !part.is_empty()).count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_exactly_is_found() {
        let found =
            targets("Replace \"foo bar\" in ./src/main.rs, *.toml and https://a.b/c?d=1. It costs 3.50!");
        let found: Vec<_> = found.iter().map(|target| (target.kind, target.text.as_str())).collect();
        assert_eq!(
            found,
            [
                (TargetKind::Quotation, "foo bar"),
                (TargetKind::Path, "./src/main.rs"),
                (TargetKind::Path, "*.toml"),
                (TargetKind::Address, "https://a.b/c?d=1"),
            ]
        );
    }
}

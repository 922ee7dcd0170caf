//! Shorter forms of outputs and messages. The whole text stays readable with `read_output`.

use std::{io, path::PathBuf};

use windlass_contract::{
    Content, Item,
    compaction::{OutputDigest, OutputDigests},
    host::Whole,
    item::{Body, Role},
};
use windlass_record::StoredOutputs;
use windlass_runtime::Budget;

use crate::spending::item_tokens;

/// Outputs up to this size stay: a line in their place would hardly be shorter.
const MIN_TOKENS: u64 = 100;

/// Makes outputs and messages shorter.
pub(super) struct OutputShortener<'a> {
    pub(super) digests: &'a OutputDigests,
    /// The place of whole outputs; none if the session is not recorded.
    pub(super) stored: Option<&'a StoredOutputs>,
}

impl OutputShortener<'_> {
    /// Replaces outputs by one line each, except for the newest ones, up to `keep_tokens`. An
    /// output that is larger than half of that is cut.
    pub(super) fn shorten_old(&self, items: &mut [Item], keep_tokens: u64) {
        let mut kept = 0_u64;
        for item in items.iter_mut().rev().filter(|item| is_shortenable(item)) {
            let tokens = item_tokens(item).min(keep_tokens / 2);
            if kept.saturating_add(tokens) > keep_tokens {
                self.replace(item);
            } else {
                self.limit(item, tokens);
                kept += tokens;
            }
        }
    }

    /// Cuts the middle of an output or a message that is larger than this, and drops its images.
    pub(super) fn limit(&self, item: &mut Item, tokens: u64) {
        if item_tokens(item) <= tokens.max(MIN_TOKENS) || holds_tools(item) {
            return;
        }
        let whole = match &item.body {
            Body::Output { call, .. } => self.digests.get(call).and_then(|digest| digest.whole.clone()),
            _ => None,
        };
        let (Body::Output { content, .. } | Body::Message { role: Role::User, content }) = &mut item.body
        else {
            return;
        };
        let text = Content::join(content);
        let place = self.place(whole, &text);
        let note = place.map(|place| format!("[whole text: {place}]")).unwrap_or_default();
        let budget = Budget::Tokens(usize::try_from(tokens.max(MIN_TOKENS)).unwrap_or(usize::MAX));
        let images = content.iter().filter(|part| matches!(part, Content::Image(_))).count();
        let mut cut = budget.cut(&text, &note).unwrap_or(text);
        if images > 0 {
            cut.push_str("\n[an image was left out to save space]");
        }
        *content = vec![Content::Text(cut)];
        item.raw = None;
    }

    /// Replaces an output by one line.
    fn replace(&self, item: &mut Item) {
        let Body::Output { call, content, .. } = &mut item.body else { return };
        let digest = self.digests.get(call).cloned().unwrap_or_else(|| OutputDigest {
            summary: "an earlier result".to_owned(),
            ..OutputDigest::default()
        });
        let place = self.place(digest.whole, &Content::join(content));
        let place = place.map(|place| format!("; whole output: {place}")).unwrap_or_default();
        let line = format!("[output left out to save space: {}{place}]", digest.summary);
        *content = vec![Content::Text(line)];
        item.raw = None;
    }

    /// Returns where the whole text is. It is written to a file if it is in none yet.
    fn place(&self, whole: Option<PathBuf>, text: &str) -> Option<String> {
        let path = whole.or_else(|| {
            let written = self.stored?.write(text);
            let is_lost = |error: &io::Error| tracing::warn!(%error, "an output is not kept");
            written.inspect_err(is_lost).ok()
        })?;
        Some(Whole::place(&path))
    }
}

/// Returns true for an output that is large enough. Found tools stay: the model calls them by their
/// description.
fn is_shortenable(item: &Item) -> bool {
    matches!(item.body, Body::Output { .. }) && !holds_tools(item) && item_tokens(item) > MIN_TOKENS
}

fn holds_tools(item: &Item) -> bool {
    let Body::Output { content, .. } = &item.body else { return false };
    content.iter().any(|part| matches!(part, Content::Tool(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{call, output};

    fn text(item: &Item) -> String {
        let Body::Output { content, .. } = &item.body else { panic!("{item:?}") };
        Content::join(content)
    }

    #[test]
    fn old_outputs_become_their_digest_with_the_id_of_the_whole() {
        let place = tempfile::tempdir().unwrap();
        let stored = StoredOutputs::new(place.path().join("o"));
        let digest = |summary: &str, whole| OutputDigest { summary: summary.into(), whole, is_file: false };
        let digests = OutputDigests::from([
            ("a".into(), digest("12 errors", Some("/o/7.txt".into()))),
            ("b".into(), digest("1 file", None)),
        ]);
        let mut items = vec![
            call("a"),
            output("a", &"first ".repeat(200)),
            call("b"),
            output("b", &"second ".repeat(200)),
            call("c"),
            output("c", "short"),
            call("d"),
            output("d", &"fourth ".repeat(140)),
            call("e"),
            output("e", &"last ".repeat(200)),
        ];
        let shortener = OutputShortener { digests: &digests, stored: Some(&stored) };
        shortener.shorten_old(&mut items, 600);
        let line = "[output left out to save space: 12 errors; whole output: read_output id 7, or /o/7.txt]";
        assert_eq!(text(&items[1]), line);
        let second = text(&items[3]);
        assert!(second.contains("1 file; whole output: read_output id 1, or "), "{second}");
        assert_eq!(std::fs::read_to_string(place.path().join("o/1.txt")).unwrap(), "second ".repeat(200));
        assert_eq!(text(&items[5]), "short");
        assert_eq!(text(&items[9]), "last ".repeat(200));
    }

    #[test]
    fn an_output_that_is_too_large_alone_keeps_both_ends() {
        let digests = OutputDigests::default();
        let shortener = OutputShortener { digests: &digests, stored: None };
        let mut items = vec![call("a"), output("a", &format!("begin{}end", "x".repeat(40_000)))];
        shortener.shorten_old(&mut items, 1000);
        let cut = text(&items[1]);
        assert!(cut.starts_with("begin") && cut.ends_with("end") && cut.len() < 2100, "{}", cut.len());
    }
}

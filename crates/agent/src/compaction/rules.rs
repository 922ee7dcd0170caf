//! A summary without a model: what was asked, called and answered, one line each.

use windlass_contract::{
    Content, Item,
    compaction::OutputDigests,
    item::{Body, Role},
    wording::{first_line, shortened},
};
use windlass_runtime::Budget;

use super::division::{HistoryDivision, is_of_user, message_text};

/// Maximum length of a line about a message or a call.
const MAX_LINE_CHARS: usize = 240;

/// Maximum length of the arguments of a call in its line.
const MAX_ARGUMENT_CHARS: usize = 120;

/// Summarizes the head of a history. The newest lines are kept, as many as fit.
pub(super) fn summarize(division: &HistoryDivision<'_>, digests: &OutputDigests, tokens: u64) -> String {
    let bytes = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let earlier = division.earlier_summary().map(|text| inner(&text).to_owned()).unwrap_or_default();
    let earlier = Budget::Bytes(bytes / 3).cut(&earlier, "").unwrap_or(earlier);
    let lines: Vec<String> = division.head.iter().filter_map(|item| line(item, digests)).collect();
    let mut left = bytes.saturating_sub(earlier.len());
    let fits = |line: &&String| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    };
    let mut kept: Vec<_> = lines.iter().rev().take_while(fits).cloned().collect();
    kept.reverse();
    let omitted = lines.len() - kept.len();
    let note = (omitted > 0).then(|| format!("({omitted} earlier steps are left out)"));
    let parts = [earlier].into_iter().filter(|part| !part.is_empty()).chain(note).chain(kept);
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the text of an earlier summary without its frame.
fn inner(text: &str) -> &str {
    text.split_once(super::SUMMARY_INTRODUCTION)
        .map_or(text, |(_, rest)| rest)
        .split(super::NOTES_TITLE)
        .next()
        .unwrap_or_default()
        .trim()
        .trim_end_matches(super::SUMMARY_END)
        .trim()
}

/// Returns the line about an item.
fn line(item: &Item, digests: &OutputDigests) -> Option<String> {
    let one = |text: &str| shortened(&first_line(text), MAX_LINE_CHARS);
    match &item.body {
        Body::Message { role: Role::User, .. } if is_of_user(item) => {
            Some(format!("- the user: {}", one(&message_text(item))))
        }
        Body::Message { role: Role::Assistant, content } => {
            let text = Content::join(content);
            (!text.trim().is_empty()).then(|| format!("- you: {}", one(&text)))
        }
        Body::Call(call) => {
            let arguments = call.input.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
            let arguments = shortened(&arguments, MAX_ARGUMENT_CHARS);
            let result = digests.get(&call.id).map(|digest| one(&digest.summary)).unwrap_or_default();
            Some(format!("- {} {arguments} -> {result}", call.name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::compaction::OutputDigest;

    use super::*;
    use crate::compaction::tests::{assistant, call, output, user};

    #[test]
    fn each_step_has_a_line_and_the_newest_are_kept() {
        let mut history = vec![user("env"), user("fix the parser\nplease")];
        for number in 0..50 {
            history.extend([call(&format!("c{number}")), output(&format!("c{number}"), "text")]);
        }
        history.push(assistant("Done."));
        let digest = OutputDigest { summary: "3 tests failed".into(), ..OutputDigest::default() };
        let digests = OutputDigests::from([("c49".into(), digest)]);
        let division = HistoryDivision::new(&history, 1, 0);
        let whole = summarize(&division, &digests, 10_000);
        assert!(whole.starts_with("- the user: fix the parser"), "{whole}");
        assert!(whole.ends_with("- shell {} -> 3 tests failed\n- you: Done."), "{whole}");
        let short = summarize(&division, &digests, 50);
        assert!(short.len() <= 240 && short.starts_with('(') && short.ends_with("- you: Done."), "{short}");
    }
}

//! Questions that the history of the project answers.

use super::Goal;
use crate::plan::{pieces::Piece, reading::Reading, words::Word};

/// How many commits are shown where the request does not say how many.
const COMMITS: u64 = 10;

/// From when on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) enum Since {
    /// A commit, a branch or a tag.
    Revision(String),
    /// A time in words that git understands.
    Time(String),
}

pub(super) fn blame(reading: &Reading) -> Option<Goal> {
    let file = (*reading.names().first()?).to_owned();
    reading.has(Word::Who).then(|| Goal::Blame { file, line: reading.number() })
}

pub(super) fn status(reading: &Reading) -> Option<Goal> {
    (reading.has(Word::Status) && reading.names().is_empty()).then_some(Goal::Status)
}

pub(super) fn log(reading: &Reading) -> Option<Goal> {
    let recent = reading.has(Word::Newest) && reading.has(Word::Change) && !reading.has(Word::File);
    if !(reading.has(Word::Commit) || recent) || reading.has_any(&[Word::Since, Word::Search]) {
        return None;
    }
    let last = reading.number().or_else(|| only_one(reading).then_some(1));
    let path = reading.names().first().map(|name| (*name).to_owned());
    Some(Goal::Log { count: last.unwrap_or(COMMITS), path })
}

/// `the last commit`, 最后一次提交.
fn only_one(reading: &Reading) -> bool {
    let one = reading.words().any(|word| word == "commit") && !reading.words().any(|word| word == "commits");
    one && reading.has_any(&[Word::Last, Word::Newest])
}

pub(super) fn changes(reading: &Reading) -> Option<Goal> {
    if !reading.has(Word::Change) && !reading.has(Word::Commit) {
        return None;
    }
    if reading.has(Word::Since) {
        return since(reading).map(Goal::ChangesSince);
    }
    let mine = reading.has_any(&[Word::Mine, Word::Git, Word::Status]) && reading.has(Word::Change);
    (mine && reading.names().is_empty()).then_some(Goal::Diff)
}

fn since(reading: &Reading) -> Option<Since> {
    const TIMES: [(&str, &str); 8] = [
        ("yesterday", "yesterday"),
        ("last week", "1 week ago"),
        ("last month", "1 month ago"),
        ("today", "midnight"),
        ("昨天", "yesterday"),
        ("上周", "1 week ago"),
        ("上个月", "1 month ago"),
        ("今天", "midnight"),
    ];
    let lower = reading.text.to_lowercase();
    if let Some((_, time)) = TIMES.iter().find(|(words, _)| lower.contains(words)) {
        return Some(Since::Time((*time).to_owned()));
    }
    let words = reading
        .after(&["since", "after"])
        .or_else(|| reading.terms().first().copied())
        .or_else(|| reading.words().find(|word| *word == "HEAD" || *word == "main" || *word == "master"));
    let named = words.map(str::to_owned).or_else(|| {
        // A date: 2026-02-01 is no number, and no name either.
        reading.pieces.iter().find_map(|piece| match piece {
            Piece::Name(name) => Some(name.clone()),
            _ => None,
        })
    })?;
    let is_date = named.len() == 10 && named.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Some(if is_date { Since::Time(named) } else { Since::Revision(named) })
}

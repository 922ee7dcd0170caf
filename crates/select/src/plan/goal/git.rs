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

/// Which commits are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::plan) struct Commits {
    pub(in crate::plan) count: u64,
    pub(in crate::plan) path: Option<String>,
    pub(in crate::plan) author: Option<String>,
}

/// Who changed a line, a file or the project.
pub(super) fn blame(reading: &Reading) -> Option<Goal> {
    if !reading.has(Word::Who) {
        return None;
    }
    let last = reading.has_any(&[Word::Last, Word::Newest]) && !reading.has(Word::Line);
    match reading.names().first() {
        Some(file) if last => {
            Some(Goal::Log(Commits { count: 1, path: Some((*file).to_owned()), author: None }))
        }
        // `the last line` has no number.
        Some(_) if reading.has(Word::Line) && reading.number().is_none() => None,
        Some(file) => Some(Goal::Blame { file: (*file).to_owned(), line: reading.number() }),
        None => reading.has_any(&[Word::Project, Word::Commit]).then_some(Goal::Authors),
    }
}

pub(super) fn branches(reading: &Reading) -> Option<Goal> {
    let changes = [Word::Create, Word::Delete, Word::Rename, Word::Replace, Word::Compare];
    (reading.has(Word::Branch) && !reading.has_any(&changes)).then_some(Goal::Branches)
}

pub(super) fn status(reading: &Reading) -> Option<Goal> {
    let other = [Word::Search, Word::Newest, Word::Oldest, Word::Since, Word::Commit];
    let changed = reading.has(Word::Change) && reading.has(Word::File) && !reading.has_any(&other);
    ((reading.has(Word::Status) || changed) && reading.names().is_empty()).then_some(Goal::Status)
}

pub(super) fn log(reading: &Reading) -> Option<Goal> {
    let path = reading.names().first().map(|name| (*name).to_owned());
    let recent = reading.has(Word::Newest) && reading.has(Word::Change) && !reading.has(Word::File);
    let when = reading.has(Word::When) && path.is_some();
    if !(reading.has(Word::Commit) || recent || when)
        || reading.has_any(&[Word::Since, Word::Search, Word::Compare])
    {
        return None;
    }
    if reading.has(Word::Count) {
        return Some(Goal::CountCommits { path });
    }
    // Who that is, git would have to be asked.
    if reading.after(&["by"]).is_some_and(|name| ["me", "us", "myself"].contains(&name)) {
        return None;
    }
    let count = reading.number().or_else(|| (when || only_one(reading)).then_some(1)).unwrap_or(COMMITS);
    // Of one commit its files are shown; the subjects of several do not say what they changed.
    if reading.has(Word::Commit) && reading.has(Word::Change) && path.is_none() && count > 1 {
        return None;
    }
    Some(Goal::Log(Commits { count, path, author: author(reading) }))
}

/// `the last commit`, 最后一次提交.
fn only_one(reading: &Reading) -> bool {
    let one = reading.words().any(|word| word == "commit") && !reading.words().any(|word| word == "commits");
    one && reading.has_any(&[Word::Last, Word::Newest]) || reading.text.contains("上次提交")
}

/// `commits by Bob`, Bob 的提交.
fn author(reading: &Reading) -> Option<String> {
    let chinese = reading.pieces.windows(2).find_map(|pair| match pair {
        [Piece::Word(name), Piece::Glyphs(text)]
            if text.starts_with('的') && Word::Git.place(&format!(" {name} ")).is_none() =>
        {
            Some(name.as_str())
        }
        _ => None,
    });
    reading.after(&["by"]).or(chinese).map(str::to_owned)
}

pub(super) fn changes(reading: &Reading) -> Option<Goal> {
    if !reading.has(Word::Change) && !reading.has(Word::Commit) {
        return None;
    }
    if reading.has(Word::Since) {
        return since(reading).map(Goal::ChangesSince);
    }
    let path = reading.names().first().map(|name| (*name).to_owned());
    let said = reading.words().any(|word| ["diff", "changes"].contains(&word.to_lowercase().as_str()));
    let mine =
        reading.has_any(&[Word::Mine, Word::Git, Word::Status, Word::Commit]) && reading.has(Word::Change);
    (said || mine).then_some(Goal::Diff { path })
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
    let named = reading.after(&["since", "after"]).or_else(|| reading.terms().first().copied());
    let named = named.or_else(|| reading.words().find(|word| ["HEAD", "main", "master"].contains(word)))?;
    let is_date = named.len() == 10 && named.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Some(if is_date { Since::Time(named.to_owned()) } else { Since::Revision(named.to_owned()) })
}

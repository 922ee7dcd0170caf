//! Questions that the history of the project answers.

use super::PlanGoal;
use crate::plan::{pieces::RequestToken, reading::ParsedRequest, words::WordClass};

/// How many commits are shown where the request does not say how many.
const COMMITS: u64 = 10;

/// From when on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) enum HistoryStart {
    /// A commit, a branch or a tag.
    Revision(String),
    /// A time in words that git understands.
    Time(String),
}

/// Which commits are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::plan) struct CommitQuery {
    pub(in crate::plan) count: u64,
    pub(in crate::plan) path: Option<String>,
    pub(in crate::plan) author: Option<String>,
}

/// Who changed a line, a file or the project.
pub(super) fn blame(reading: &ParsedRequest) -> Option<PlanGoal> {
    if !reading.has(WordClass::Who) {
        return None;
    }
    let last = reading.has_any(&[WordClass::Last, WordClass::Newest]) && !reading.has(WordClass::Line);
    match reading.names().first() {
        Some(file) if last => {
            Some(PlanGoal::Log(CommitQuery { count: 1, path: Some((*file).to_owned()), author: None }))
        }
        // `the last line` has no number.
        Some(_) if reading.has(WordClass::Line) && reading.number().is_none() => None,
        Some(file) => Some(PlanGoal::Blame { file: (*file).to_owned(), line: reading.number() }),
        None => reading.has_any(&[WordClass::Project, WordClass::Commit]).then_some(PlanGoal::Authors),
    }
}

pub(super) fn branches(reading: &ParsedRequest) -> Option<PlanGoal> {
    let changes =
        [WordClass::Create, WordClass::Delete, WordClass::Rename, WordClass::Replace, WordClass::Compare];
    (reading.has(WordClass::Branch) && !reading.has_any(&changes)).then_some(PlanGoal::Branches)
}

pub(super) fn status(reading: &ParsedRequest) -> Option<PlanGoal> {
    let other =
        [WordClass::Search, WordClass::Newest, WordClass::Oldest, WordClass::Since, WordClass::Commit];
    let changed = reading.has(WordClass::Change) && reading.has(WordClass::File) && !reading.has_any(&other);
    ((reading.has(WordClass::Status) || changed) && reading.names().is_empty()).then_some(PlanGoal::Status)
}

pub(super) fn log(reading: &ParsedRequest) -> Option<PlanGoal> {
    let path = reading.names().first().map(|name| (*name).to_owned());
    let recent =
        reading.has(WordClass::Newest) && reading.has(WordClass::Change) && !reading.has(WordClass::File);
    let when = reading.has(WordClass::When) && path.is_some();
    if !(reading.has(WordClass::Commit) || recent || when)
        || reading.has_any(&[WordClass::Since, WordClass::Search, WordClass::Compare])
    {
        return None;
    }
    if reading.has(WordClass::Count) {
        return Some(PlanGoal::CountCommits { path });
    }
    // Who that is, git would have to be asked.
    if reading.after(&["by"]).is_some_and(|name| ["me", "us", "myself"].contains(&name)) {
        return None;
    }
    let count = reading.number().or_else(|| (when || only_one(reading)).then_some(1)).unwrap_or(COMMITS);
    // Of one commit its files are shown; the subjects of several do not say what they changed.
    if reading.has(WordClass::Commit) && reading.has(WordClass::Change) && path.is_none() && count > 1 {
        return None;
    }
    Some(PlanGoal::Log(CommitQuery { count, path, author: author(reading) }))
}

/// `the last commit`, 最后一次提交.
fn only_one(reading: &ParsedRequest) -> bool {
    let one = reading.words().any(|word| word == "commit") && !reading.words().any(|word| word == "commits");
    one && reading.has_any(&[WordClass::Last, WordClass::Newest]) || reading.text.contains("上次提交")
}

/// `commits by Bob`, Bob 的提交.
fn author(reading: &ParsedRequest) -> Option<String> {
    let chinese = reading.pieces.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(name), RequestToken::Glyphs(text)]
            if text.starts_with('的') && WordClass::Git.place(&format!(" {name} ")).is_none() =>
        {
            Some(name.as_str())
        }
        _ => None,
    });
    reading.after(&["by"]).or(chinese).map(str::to_owned)
}

pub(super) fn changes(reading: &ParsedRequest) -> Option<PlanGoal> {
    if !reading.has(WordClass::Change) && !reading.has(WordClass::Commit) {
        return None;
    }
    if reading.has(WordClass::Since) {
        return since(reading).map(PlanGoal::ChangesSince);
    }
    let path = reading.names().first().map(|name| (*name).to_owned());
    let said = reading.words().any(|word| ["diff", "changes"].contains(&word.to_lowercase().as_str()));
    let mine = reading.has_any(&[WordClass::Mine, WordClass::Git, WordClass::Status, WordClass::Commit])
        && reading.has(WordClass::Change);
    (said || mine).then_some(PlanGoal::Diff { path })
}

fn since(reading: &ParsedRequest) -> Option<HistoryStart> {
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
        return Some(HistoryStart::Time((*time).to_owned()));
    }
    let named = reading.after(&["since", "after"]).or_else(|| reading.terms().first().copied());
    let named = named.or_else(|| reading.words().find(|word| ["HEAD", "main", "master"].contains(word)))?;
    let is_date = named.len() == 10 && named.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Some(if is_date {
        HistoryStart::Time(named.to_owned())
    } else {
        HistoryStart::Revision(named.to_owned())
    })
}

//! Questions about the git history of the project.

use super::PlanGoal;
use crate::plan::{parsed_request::ParsedRequest, tokens::RequestToken, words::WordClass};

/// Default number of commits.
const DEFAULT_COMMITS: u64 = 10;

/// The start of a period in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) enum HistoryStart {
    /// A commit, a branch or a tag.
    Revision(String),
    /// A time that git understands.
    Time(String),
}

/// The requested commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::plan) struct CommitQuery {
    pub(in crate::plan) count: u64,
    pub(in crate::plan) path: Option<String>,
    pub(in crate::plan) author: Option<String>,
}

/// Recognises questions about the author of a line, a file or the project.
pub(super) fn blame(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.has(WordClass::Who) {
        return None;
    }
    let last = request.has_any(&[WordClass::Last, WordClass::Newest]) && !request.has(WordClass::Line);
    match request.names().first() {
        Some(file) if last => {
            Some(PlanGoal::Log(CommitQuery { count: 1, path: Some((*file).to_owned()), author: None }))
        }
        // `the last line` has no number.
        Some(_) if request.has(WordClass::Line) && request.number().is_none() => None,
        Some(file) => Some(PlanGoal::Blame { file: (*file).to_owned(), line: request.number() }),
        None => request.has_any(&[WordClass::Project, WordClass::Commit]).then_some(PlanGoal::Authors),
    }
}

pub(super) fn branches(request: &ParsedRequest) -> Option<PlanGoal> {
    let changes =
        [WordClass::Create, WordClass::Delete, WordClass::Rename, WordClass::Replace, WordClass::Compare];
    (request.has(WordClass::Branch) && !request.has_any(&changes)).then_some(PlanGoal::Branches)
}

pub(super) fn status(request: &ParsedRequest) -> Option<PlanGoal> {
    let other =
        [WordClass::Search, WordClass::Newest, WordClass::Oldest, WordClass::Since, WordClass::Commit];
    let changed = request.has(WordClass::Change) && request.has(WordClass::File) && !request.has_any(&other);
    ((request.has(WordClass::Status) || changed) && request.names().is_empty()).then_some(PlanGoal::Status)
}

pub(super) fn log(request: &ParsedRequest) -> Option<PlanGoal> {
    let path = request.names().first().map(|name| (*name).to_owned());
    let recent =
        request.has(WordClass::Newest) && request.has(WordClass::Change) && !request.has(WordClass::File);
    let when = request.has(WordClass::When) && path.is_some();
    if !(request.has(WordClass::Commit) || recent || when)
        || request.has_any(&[WordClass::Since, WordClass::Search, WordClass::Compare])
    {
        return None;
    }
    if request.has(WordClass::Count) {
        return Some(PlanGoal::CountCommits { path });
    }
    // The name of the user would have to be asked from git.
    if request.after(&["by"]).is_some_and(|name| ["me", "us", "myself"].contains(&name)) {
        return None;
    }
    let count =
        request.number().or_else(|| (when || only_one(request)).then_some(1)).unwrap_or(DEFAULT_COMMITS);
    // One commit is shown with its files. The subjects of several do not tell what they changed.
    if request.has(WordClass::Commit) && request.has(WordClass::Change) && path.is_none() && count > 1 {
        return None;
    }
    Some(PlanGoal::Log(CommitQuery { count, path, author: author(request) }))
}

/// Returns true for `the last commit`, 最后一次提交.
fn only_one(request: &ParsedRequest) -> bool {
    let one = request.words().any(|word| word == "commit") && !request.words().any(|word| word == "commits");
    one && request.has_any(&[WordClass::Last, WordClass::Newest]) || request.text.contains("上次提交")
}

/// Returns the author in `commits by Bob`, Bob 的提交.
fn author(request: &ParsedRequest) -> Option<String> {
    let chinese = request.tokens.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(name), RequestToken::Glyphs(text)]
            if text.starts_with('的') && WordClass::Git.place(&format!(" {name} ")).is_none() =>
        {
            Some(name.as_str())
        }
        _ => None,
    });
    request.after(&["by"]).or(chinese).map(str::to_owned)
}

pub(super) fn changes(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.has(WordClass::Change) && !request.has(WordClass::Commit) {
        return None;
    }
    if request.has(WordClass::Since) {
        return since(request).map(PlanGoal::ChangesSince);
    }
    let path = request.names().first().map(|name| (*name).to_owned());
    let says_diff = request.words().any(|word| ["diff", "changes"].contains(&word.to_lowercase().as_str()));
    let mine = request.has_any(&[WordClass::Mine, WordClass::Git, WordClass::Status, WordClass::Commit])
        && request.has(WordClass::Change);
    (says_diff || mine).then_some(PlanGoal::Diff { path })
}

fn since(request: &ParsedRequest) -> Option<HistoryStart> {
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
    let lower = request.text.to_lowercase();
    if let Some((_, time)) = TIMES.iter().find(|(words, _)| lower.contains(words)) {
        return Some(HistoryStart::Time((*time).to_owned()));
    }
    let named = request.after(&["since", "after"]).or_else(|| request.terms().first().copied());
    let named = named.or_else(|| request.words().find(|word| ["HEAD", "main", "master"].contains(word)))?;
    let is_date = named.len() == 10 && named.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    Some(if is_date {
        HistoryStart::Time(named.to_owned())
    } else {
        HistoryStart::Revision(named.to_owned())
    })
}

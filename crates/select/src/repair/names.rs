//! Finds the parameter that an unknown name was meant for.

use super::RepairMode;
use crate::text::distance;

/// Names that models confuse. A name may stand for any other of its row.
const SYNONYMS: [&[&str]; 9] = [
    &["path", "file", "filepath", "filename", "targetfile", "absolutepath"],
    &["path", "dir", "directory", "dirpath", "folder"],
    &["command", "cmd", "commandline", "script"],
    &["pattern", "query", "regex", "regexp", "search", "searchterm"],
    &["content", "contents", "text", "body"],
    &["cwd", "workdir", "workingdirectory", "workingdir"],
    &["limit", "maxresults", "maxcount", "count", "topk"],
    &["url", "uri", "link"],
    &["include", "glob", "filepattern"],
];

/// Returns the only candidate that a name can mean, if there is one.
pub(super) fn only_match<'a>(name: &str, candidates: &[&'a str], mode: RepairMode) -> Option<&'a str> {
    let plain = normalize(name);
    let exact = only(candidates, |candidate| normalize(candidate) == plain);
    if exact.is_some() || mode == RepairMode::Exact {
        return exact;
    }
    only(candidates, |candidate| is_same_word(&plain, &normalize(candidate)))
        .or_else(|| only(candidates, |candidate| is_typo(&plain, &normalize(candidate))))
}

/// Returns the candidates, ordered by similarity to a name.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let plain = normalize(name);
    let rank = |candidate: &str| {
        let other = normalize(candidate);
        let apart = distance(&plain, &other);
        (!is_same_word(&plain, &other), !is_near(&plain, &other), apart)
    };
    let mut all: Vec<&str> = candidates.into_iter().collect();
    all.sort_by_cached_key(|candidate| rank(candidate));
    all
}

/// Returns the most similar candidate, if it is similar enough.
pub(super) fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(name, candidates).into_iter().next().filter(|first| is_alike(name, first))
}

/// Returns true if two names are similar enough to be confused.
pub fn is_alike(name: &str, other: &str) -> bool {
    let (name, other) = (normalize(name), normalize(other));
    is_same_word(&name, &other) || is_near(&name, &other)
}

/// Returns true if two names of tools differ only in case, separators and namespace.
pub fn same_name(one: &str, other: &str) -> bool {
    let plain = |name: &str| normalize(without_namespace(name.trim()));
    let (one, other) = (plain(one), plain(other));
    !one.is_empty() && one == other
}

/// Namespaces that models put before the names of tools.
const NAMESPACES: [&str; 6] = ["functions", "function", "tools", "tool", "default_api", "multi_tool_use"];

fn without_namespace(name: &str) -> &str {
    let split = name.split_once(['.', ':', '/']);
    split
        .filter(|(space, _)| NAMESPACES.contains(space))
        .map_or(name, |(_, name)| name.trim_start_matches(':'))
}

/// Returns an untrusted name, shortened and on one line.
pub(super) fn display_name(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

fn is_same_word(a: &str, b: &str) -> bool {
    a == b || SYNONYMS.iter().any(|row| row.contains(&a) && row.contains(&b))
}

/// Returns true if one name contains the other, or the edit distance is small.
fn is_near(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let holds = short.chars().count() >= 3 && long.contains(short);
    holds || distance(a, b) <= short.chars().count().div_ceil(3)
}

/// Returns a name without case and separators.
pub(super) fn normalize(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.take(64).flat_map(char::to_lowercase).collect()
}

fn only<'a>(candidates: &[&'a str], fits: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut fitting = candidates.iter().filter(|candidate| fits(candidate));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

/// Returns true if two names differ by a typing error or by an ending.
fn is_typo(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let ending = short.chars().count() >= 4 && (long.starts_with(short) || long.ends_with(short));
    ending || (short.chars().count() >= 4 && distance(a, b) <= short.chars().count() / 4)
}

//! Which parameter a name that is none was meant for.

use super::Latitude;
use crate::text::distance;

/// Words that models use for one another. A name of one row may stand for any other of it.
const SAME: [&[&str]; 9] = [
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

/// The one candidate a name must mean, if there is one.
pub(super) fn meant<'a>(name: &str, candidates: &[&'a str], latitude: Latitude) -> Option<&'a str> {
    let plain = letters(name);
    let exact = only(candidates, |candidate| letters(candidate) == plain);
    if exact.is_some() || latitude == Latitude::Exact {
        return exact;
    }
    let same = |a: &str, b: &str| SAME.iter().any(|row| row.contains(&a) && row.contains(&b));
    only(candidates, |candidate| same(&plain, &letters(candidate)))
        .or_else(|| only(candidates, |candidate| is_slip(&plain, &letters(candidate))))
}

/// A name without what people disagree about: case and separators.
pub(super) fn letters(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.take(64).flat_map(char::to_lowercase).collect()
}

fn only<'a>(candidates: &[&'a str], fits: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut fitting = candidates.iter().filter(|candidate| fits(candidate));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first)
}

/// Whether two names differ by a slip of the keyboard, or by an ending.
fn is_slip(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let ending = short.chars().count() >= 4 && (long.starts_with(short) || long.ends_with(short));
    ending || (short.chars().count() >= 4 && distance(a, b) <= short.chars().count() / 4)
}

//! Lists of patterns, indexed for frequent matching.

use super::wildcard::PathComponent;

/// Patterns for the end of a path: one name or several, each perhaps a wildcard.
pub(super) struct PathPatterns {
    all: Vec<Vec<String>>,
    /// Candidate patterns by the first byte of the last name of a path.
    by_start: Vec<Vec<PatternEnds>>,
}

/// A pattern, with the last byte of its last name.
struct PatternEnds {
    /// None if the pattern ends in a wildcard.
    last: Option<u8>,
    pattern: usize,
}

impl PathPatterns {
    /// Creates patterns in lower case, because paths are compared in lower case.
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let names = |pattern: &str| pattern.split('/').map(str::to_ascii_lowercase).collect();
        let all: Vec<Vec<_>> = patterns.into_iter().map(names).collect();
        let plain = |byte: Option<&u8>| byte.copied().filter(|byte| !matches!(byte, b'*' | b'?'));
        let fitting = |start: u8| {
            let own = all.iter().enumerate().filter_map(move |(pattern, names)| {
                let name = names.last()?.as_bytes();
                let starts = plain(name.first()).is_none_or(|first| first == start);
                starts.then(|| PatternEnds { last: plain(name.last()), pattern })
            });
            own.collect()
        };
        let by_start = (0..=u8::MAX).map(fitting).collect();
        Self { all, by_start }
    }

    /// Returns true if a path ends in one of them.
    pub(super) fn fit_the_end_of(&self, names: &[PathComponent<'_>]) -> bool {
        self.fit(names, |_| true)
    }

    /// Returns true if a path begins with one of them, or is one.
    pub(super) fn fit_the_start_of(&self, names: &[PathComponent<'_>]) -> bool {
        (1..=names.len()).any(|end| self.fit(&names[..end], |length| length == end))
    }

    /// Returns true if a path ends in one of them that has an acceptable number of names.
    fn fit(&self, names: &[PathComponent<'_>], accepts: impl Fn(usize) -> bool) -> bool {
        let Some(last) = names.last() else { return false };
        let fits = |pattern: &Vec<String>| {
            let from = names.len().checked_sub(pattern.len()).filter(|_| accepts(pattern.len()));
            // Compare from the end: most paths differ there.
            from.is_some_and(|from| {
                names[from..].iter().zip(pattern).rev().all(|(name, each)| name.fits(each))
            })
        };
        let (Some(start), Some(end)) = (last.text().bytes().next(), last.text().bytes().next_back()) else {
            return false;
        };
        if last.is_wild() {
            return self.all.iter().any(fits);
        }
        // Most names are ruled out by their first and last byte.
        let likely = self.by_start[usize::from(start)].iter();
        let mut likely = likely.filter(|ends| ends.last.is_none_or(|last| last == end));
        likely.any(|ends| fits(&self.all[ends.pattern]))
    }

    /// Returns true if one of them is anywhere in a path.
    pub(super) fn fit_a_part_of(&self, names: &[PathComponent<'_>]) -> bool {
        (1..=names.len()).any(|end| self.fit_the_end_of(&names[..end]))
    }
}

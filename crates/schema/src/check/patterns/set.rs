//! Which characters fit in a place of a pattern.

pub(super) const DIGITS: [(char, char); 1] = [('0', '9')];
pub(super) const LETTERS: [(char, char); 4] = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
pub(super) const SPACES: [(char, char); 10] = [
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
pub(super) const LINE_ENDS: [(char, char); 3] = [('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];

/// One character of several: those in the ranges, or all others.
#[derive(Debug, Clone, Default)]
pub(super) struct Set {
    pub(super) ranges: Vec<(char, char)>,
    pub(super) others: bool,
}

impl Set {
    pub(super) fn of(ranges: &[(char, char)], others: bool) -> Self {
        Self { ranges: ranges.to_vec(), others }
    }

    pub(super) fn only(c: char) -> Self {
        Self { ranges: vec![(c, c)], others: false }
    }

    pub(super) fn has(&self, c: char) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= c);
        let within = after.checked_sub(1).is_some_and(|at| c <= self.ranges[at].1);
        within != self.others
    }

    /// Adds all that another one has.
    pub(super) fn add(&mut self, other: Self) {
        if !other.others {
            self.ranges.extend(other.ranges);
            return;
        }
        let mut from = Some('\0');
        for (first, last) in other.ranges {
            if let Some(from) = from.filter(|from| *from < first) {
                self.ranges.extend(before(first).map(|end| (from, end)));
            }
            from = after(last);
        }
        self.ranges.extend(from.map(|from| (from, char::MAX)));
    }

    /// Puts the ranges in order, each beginning after the one before ends.
    pub(super) fn sort(&mut self) {
        self.ranges.sort_unstable();
        let mut sorted: Vec<(char, char)> = Vec::with_capacity(self.ranges.len());
        for (first, last) in self.ranges.drain(..) {
            match sorted.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                _ => sorted.push((first, last)),
            }
        }
        self.ranges = sorted;
    }
}

fn before(c: char) -> Option<char> {
    ('\0'..c).next_back()
}

fn after(c: char) -> Option<char> {
    (c..=char::MAX).nth(1)
}

pub(super) fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

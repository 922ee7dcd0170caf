//! Lists of patterns, made for being asked often.

use std::collections::HashMap;

use super::wildcard::Name;

/// Patterns for the end of a path: one name or several, each perhaps a wildcard.
pub(super) struct Patterns {
    /// By their last name, where that is plain.
    plain: HashMap<&'static str, Vec<Vec<&'static str>>>,
    /// The last bytes of those names: most names can be sent away without a look into the map.
    ends: [bool; 256],
    wild: Vec<Vec<&'static str>>,
}

impl Patterns {
    pub(super) fn new(patterns: &[&'static str]) -> Self {
        let mut made = Self { plain: HashMap::new(), ends: [false; 256], wild: Vec::new() };
        for pattern in patterns {
            let names: Vec<_> = pattern.split('/').collect();
            match names.last() {
                Some(last) if !last.contains(['*', '?']) => {
                    made.ends[end(last)] = true;
                    made.plain.entry(last).or_default().push(names);
                }
                _ => made.wild.push(names),
            }
        }
        made
    }

    /// Whether a path ends in one of them.
    pub(super) fn fit_the_end_of(&self, names: &[Name<'_>]) -> bool {
        let Some(last) = names.last() else { return false };
        let fits = |pattern: &Vec<&str>| {
            let from = names.len().checked_sub(pattern.len());
            // From the end: most paths differ there.
            from.is_some_and(|from| {
                names[from..].iter().zip(pattern).rev().all(|(name, each)| name.fits(each))
            })
        };
        let plain = if last.is_wild() {
            self.plain.values().flatten().any(fits)
        } else {
            self.ends[end(last.text())]
                && self.plain.get(last.text()).is_some_and(|patterns| patterns.iter().any(fits))
        };
        plain || self.wild.iter().any(fits)
    }

    /// Whether one of them is somewhere in a path.
    pub(super) fn fit_a_part_of(&self, names: &[Name<'_>]) -> bool {
        (1..=names.len()).any(|end| self.fit_the_end_of(&names[..end]))
    }
}

/// The last byte of a name, as a place in a table.
fn end(name: &str) -> usize {
    name.bytes().next_back().map_or(0, usize::from)
}

//! Matches a file name, or a wildcard for file names, against a pattern.

use std::borrow::Cow;

/// A component of a path, or a wildcard for one. Case is ignored, because some file systems ignore
/// it.
#[derive(Debug)]
pub(super) struct PathComponent<'a> {
    text: Cow<'a, str>,
    wild: bool,
}

impl<'a> PathComponent<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let upper = text.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii());
        let wild = text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        Self { wild, text: if upper { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) } }
    }

    /// Returns true if it is a wildcard.
    pub(super) fn is_wild(&self) -> bool {
        self.wild
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns the text in lower case.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the part after the last dot.
    pub(super) fn extension(&self) -> Option<PathComponent<'_>> {
        self.text.rsplit_once('.').map(|(_, extension)| PathComponent::new(extension))
    }

    /// Returns true if some name matches both. A lone `*` in a command does not search for anything
    /// in particular, and a wildcard at the start of a name does not match a dot.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        let (name, wanted) = (self.text.as_bytes(), pattern.as_bytes());
        // Most names differ in their first or last byte already.
        let open = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b']');
        let same = |own: Option<&u8>, wanted: Option<&u8>| match (own, wanted) {
            (_, None) => true,
            (_, Some(wanted)) if open(wanted) => true,
            (Some(own), Some(wanted)) => own == wanted || (self.wild && open(own)),
            (None, Some(_)) => false,
        };
        if !same(name.first(), wanted.first()) || !same(name.last(), wanted.last()) {
            return false;
        }
        if !self.wild {
            return fits(name, wanted);
        }
        let only_stars = self.text.bytes().all(|byte| byte == b'*');
        let dot_needed = pattern.starts_with('.') && self.text.starts_with(['*', '?', '[']);
        !only_stars && !dot_needed && meet(&atoms(&self.text), &atoms(pattern))
    }
}

/// Returns true if a plain name matches a pattern: proceeds, and after a mismatch lets the last `*`
/// take one more byte.
fn fits(name: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut on) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(on) {
            Some(b'*') => {
                star = Some((at, on));
                on += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[at] => {
                at += 1;
                on += 1;
            }
            _ => match &mut star {
                Some((from, star_on)) => {
                    *from += 1;
                    at = *from;
                    on = *star_on + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(on..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// An element of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobAtom {
    Exactly(char),
    One,
    Any,
}

fn atoms(pattern: &str) -> Vec<GlobAtom> {
    let mut atoms = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let atom = match c {
            '*' => GlobAtom::Any,
            '?' => GlobAtom::One,
            '[' => {
                let rest = chars.as_str();
                // The end of a bracket expression is ambiguous: `[[:alpha:]]`, `[^]x]`. Everything
                // up to the last possible end may stand for anything.
                match rest.rfind(']') {
                    Some(close) => {
                        chars = rest.get(close + 1..).unwrap_or_default().chars();
                        GlobAtom::Any
                    }
                    None => GlobAtom::Exactly(c),
                }
            }
            c => GlobAtom::Exactly(c),
        };
        atoms.push(atom);
    }
    atoms
}

/// Returns true if two patterns have a name in common. Tracks the positions in `b` that are
/// possible after each atom of `a`.
fn meet(a: &[GlobAtom], b: &[GlobAtom]) -> bool {
    let pass_stars = |reached: &mut [bool]| {
        for at in 0..b.len() {
            reached[at + 1] |= reached[at] && b[at] == GlobAtom::Any;
        }
    };
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    pass_stars(&mut reached);
    for atom in a {
        let mut next = vec![false; b.len() + 1];
        for at in (0..=b.len()).filter(|at| reached[*at]) {
            match (atom, b.get(at)) {
                (GlobAtom::Any, _) => next[at..].fill(true),
                (_, Some(GlobAtom::Any)) => next[at] = true,
                (GlobAtom::Exactly(x), Some(GlobAtom::Exactly(y))) if x != y => {}
                (_, Some(_)) => next[at + 1] = true,
                (_, None) => {}
            }
        }
        pass_stars(&mut next);
        reached = next;
    }
    reached[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_meets_what_it_could_find() {
        for (part, pattern) in [
            (".ssh", ".ssh"),
            (".s*", ".ssh"),
            (".[rs]sh", ".ssh"),
            (".ss[[:alpha:]]", ".ssh"),
            (".en[^]x]", ".env"),
            (".[[.s.]]s[[=h=]]", ".ssh"),
            ("id_[]r]sa", "id_rsa"),
            ("id_*", "id_rsa"),
            ("*rsa", "id_rsa"),
            ("?d_r?a", "id_rsa"),
            (".env.local", ".env.*"),
            (".e*", ".env.*"),
            ("p?m", "pem"),
        ] {
            assert!(PathComponent::new(part).fits(pattern), "{part} {pattern}");
        }
        for (part, pattern) in [
            ("*", "id_rsa"),
            ("**", ".ssh"),
            ("*ssh", ".ssh"),
            ("id_*x", "id_rsa"),
            ("idx", "id_rsa"),
            (".envx", ".env.*"),
            ("", ".env"),
        ] {
            assert!(!PathComponent::new(part).fits(pattern), "{part} {pattern}");
        }
    }
}

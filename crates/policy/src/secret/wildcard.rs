//! Whether a name, or a wildcard for names, could be one of ours.

use std::borrow::Cow;

/// A name in a path, or a wildcard for names. Upper and lower case are the same: some systems do not tell them apart.
#[derive(Debug)]
pub(super) struct Name<'a> {
    text: Cow<'a, str>,
    wild: bool,
}

impl<'a> Name<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let upper = text.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii());
        let wild = text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        Self { wild, text: if upper { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) } }
    }

    /// Whether it is a wildcard.
    pub(super) fn is_wild(&self) -> bool {
        self.wild
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// In lower case.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What follows the last dot.
    pub(super) fn extension(&self) -> Option<Name<'_>> {
        self.text.rsplit_once('.').map(|(_, extension)| Name::new(extension))
    }

    /// Whether some name fits both. A lone `*` in a command is no search for anything in particular, and a wildcard at
    /// the start of a name finds none that begins with a dot.
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

/// Whether a plain name fits a pattern: go on, and after a mismatch let the last `*` take one more.
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

/// A pattern, one atom for each character it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    Exactly(char),
    One,
    Any,
}

fn atoms(pattern: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let atom = match c {
            '*' => Atom::Any,
            '?' => Atom::One,
            '[' => {
                let rest = chars.as_str();
                // Where a set ends is not plain: `[[:alpha:]]`, `[^]x]`. Whatever is up to the last that could end one may
                // stand for anything.
                match rest.rfind(']') {
                    Some(close) => {
                        chars = rest.get(close + 1..).unwrap_or_default().chars();
                        Atom::Any
                    }
                    None => Atom::Exactly(c),
                }
            }
            c => Atom::Exactly(c),
        };
        atoms.push(atom);
    }
    atoms
}

/// Whether two patterns have a name in common: where in `b` one can be after each atom of `a`.
fn meet(a: &[Atom], b: &[Atom]) -> bool {
    let pass_stars = |reached: &mut [bool]| {
        for at in 0..b.len() {
            reached[at + 1] |= reached[at] && b[at] == Atom::Any;
        }
    };
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    pass_stars(&mut reached);
    for atom in a {
        let mut next = vec![false; b.len() + 1];
        for at in (0..=b.len()).filter(|at| reached[*at]) {
            match (atom, b.get(at)) {
                (Atom::Any, _) => next[at..].fill(true),
                (_, Some(Atom::Any)) => next[at] = true,
                (Atom::Exactly(x), Some(Atom::Exactly(y))) if x != y => {}
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
            assert!(Name::new(part).fits(pattern), "{part} {pattern}");
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
            assert!(!Name::new(part).fits(pattern), "{part} {pattern}");
        }
    }
}

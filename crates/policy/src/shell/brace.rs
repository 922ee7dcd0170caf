//! Brace expansion: `{a,b}` becomes several words.

use super::{ShellDialect, UnclearKind};

/// Maximum number of words from one. A few braces could expand to millions.
const MAX_WORDS: usize = 64;

/// Maximum number of groups in one word; it bounds the recursion.
const MAX_GROUPS: usize = 16;

/// A character, with a flag for those that quotes or a backslash make literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShellChar {
    pub(super) c: char,
    quoted: bool,
}

impl ShellChar {
    pub(super) fn plain(c: char) -> Self {
        Self { c, quoted: false }
    }

    pub(super) fn quoted(c: char) -> Self {
        Self { c, quoted: true }
    }

    /// Returns true if it is this character and not quoted.
    pub(super) fn is(self, c: char) -> bool {
        self.c == c && !self.quoted
    }
}

/// Returns all words that a word expands to.
pub(super) fn expand(
    chars: Vec<ShellChar>,
    dialect: ShellDialect,
) -> Result<Vec<Vec<ShellChar>>, UnclearKind> {
    let groups = chars.iter().filter(|char| char.is('{')).count();
    if groups == 0 && !chars.iter().any(|char| char.is('}')) {
        return Ok(vec![chars]);
    }
    if groups > MAX_GROUPS {
        return Err(UnclearKind::Brace);
    }
    let words = split(&chars)?;
    // The dialects agree only if there is no expansion.
    if words.len() > 1 && dialect == ShellDialect::Posix { Err(UnclearKind::Brace) } else { Ok(words) }
}

fn split(chars: &[ShellChar]) -> Result<Vec<Vec<ShellChar>>, UnclearKind> {
    let Some(open) = chars.iter().position(|char| char.is('{') || char.is('}')) else {
        return Ok(vec![chars.to_vec()]);
    };
    let close = matching(chars, open).ok_or(UnclearKind::Brace)?;
    let (before, inside, after) = (&chars[..open], &chars[open + 1..close], &chars[close + 1..]);
    let after = split(after)?;
    let mut words = Vec::new();
    for choice in choices(inside)? {
        for rest in &after {
            words.push([before, &choice, rest].concat());
            if words.len() > MAX_WORDS {
                return Err(UnclearKind::Brace);
            }
        }
    }
    Ok(words)
}

/// Returns the position at which the group that opens at `open` closes; none if it never does.
fn matching(chars: &[ShellChar], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, char) in chars.iter().enumerate().skip(open) {
        if char.is('{') {
            depth += 1;
        } else if char.is('}') {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// Returns the alternatives of a group.
fn choices(inside: &[ShellChar]) -> Result<Vec<Vec<ShellChar>>, UnclearKind> {
    let parts = at_commas(inside);
    if parts.len() > 1 {
        let nested = parts.into_iter().map(split).collect::<Result<Vec<_>, _>>()?;
        return Ok(nested.into_iter().flatten().collect());
    }
    if inside.iter().any(|char| char.is('{')) {
        return Err(UnclearKind::Brace);
    }
    let text: String = inside.iter().map(|char| char.c).collect();
    match text.split_once("..") {
        Some((first, last)) => range(first, last),
        // `{}` and `@{1}` are not lists: they stay as they are.
        None => Ok(vec![[&[ShellChar::plain('{')], inside, &[ShellChar::plain('}')]].concat()]),
    }
}

/// Splits at commas, except those of inner groups.
fn at_commas(inside: &[ShellChar]) -> Vec<&[ShellChar]> {
    let mut depth = 0_usize;
    inside
        .split(|char| {
            if char.is('{') {
                depth += 1;
            } else if char.is('}') {
                depth = depth.saturating_sub(1);
            }
            depth == 0 && char.is(',')
        })
        .collect()
}

/// Expands `{1..5}`, in its simplest form.
fn range(first: &str, last: &str) -> Result<Vec<Vec<ShellChar>>, UnclearKind> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<usize>().ok().filter(|number| plain && number.to_string() == text);
        number.ok_or(UnclearKind::Brace)
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last || last - first >= MAX_WORDS {
        return Err(UnclearKind::Brace);
    }
    Ok((first..=last).map(|number| number.to_string().chars().map(ShellChar::plain).collect()).collect())
}

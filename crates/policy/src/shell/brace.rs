//! `{a,b}`: one word that becomes several.

use super::{Dialect, What};

/// More words than a person writes this way; beyond them a few braces could become millions.
const MAX_WORDS: usize = 64;

/// More groups than a person writes into one word; it bounds how deep this goes.
const MAX_GROUPS: usize = 16;

/// A character, and whether quotes or a backslash keep it from meaning anything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Char {
    pub(super) c: char,
    quoted: bool,
}

impl Char {
    pub(super) fn plain(c: char) -> Self {
        Self { c, quoted: false }
    }

    pub(super) fn quoted(c: char) -> Self {
        Self { c, quoted: true }
    }

    /// Whether it is this character and means what the shell makes of it.
    pub(super) fn is(self, c: char) -> bool {
        self.c == c && !self.quoted
    }
}

/// All words a word stands for.
pub(super) fn expand(chars: Vec<Char>, dialect: Dialect) -> Result<Vec<Vec<Char>>, What> {
    let groups = chars.iter().filter(|char| char.is('{')).count();
    if groups == 0 && !chars.iter().any(|char| char.is('}')) {
        return Ok(vec![chars]);
    }
    if groups > MAX_GROUPS {
        return Err(What::Brace);
    }
    let words = split(&chars)?;
    // The dialects agree only where nothing becomes several.
    if words.len() > 1 && dialect == Dialect::Posix { Err(What::Brace) } else { Ok(words) }
}

fn split(chars: &[Char]) -> Result<Vec<Vec<Char>>, What> {
    let Some(open) = chars.iter().position(|char| char.is('{') || char.is('}')) else {
        return Ok(vec![chars.to_vec()]);
    };
    let close = matching(chars, open).ok_or(What::Brace)?;
    let (before, inside, after) = (&chars[..open], &chars[open + 1..close], &chars[close + 1..]);
    let after = split(after)?;
    let mut words = Vec::new();
    for choice in choices(inside)? {
        for rest in &after {
            words.push([before, &choice, rest].concat());
            if words.len() > MAX_WORDS {
                return Err(What::Brace);
            }
        }
    }
    Ok(words)
}

/// Where the group that opens at `open` closes; none if it closes before it opens, or never.
fn matching(chars: &[Char], open: usize) -> Option<usize> {
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

/// What a group may be replaced by.
fn choices(inside: &[Char]) -> Result<Vec<Vec<Char>>, What> {
    let parts = at_commas(inside);
    if parts.len() > 1 {
        let nested = parts.into_iter().map(split).collect::<Result<Vec<_>, _>>()?;
        return Ok(nested.into_iter().flatten().collect());
    }
    if inside.iter().any(|char| char.is('{')) {
        return Err(What::Brace);
    }
    let text: String = inside.iter().map(|char| char.c).collect();
    match text.split_once("..") {
        Some((first, last)) => range(first, last),
        // `{}` and `@{1}` are no lists: they stay as they are.
        None => Ok(vec![[&[Char::plain('{')], inside, &[Char::plain('}')]].concat()]),
    }
}

/// The parts between commas, but not those of inner groups.
fn at_commas(inside: &[Char]) -> Vec<&[Char]> {
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

/// `{1..5}`, in its plainest form.
fn range(first: &str, last: &str) -> Result<Vec<Vec<Char>>, What> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<usize>().ok().filter(|number| plain && number.to_string() == text);
        number.ok_or(What::Brace)
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last || last - first >= MAX_WORDS {
        return Err(What::Brace);
    }
    Ok((first..=last).map(|number| number.to_string().chars().map(Char::plain).collect()).collect())
}

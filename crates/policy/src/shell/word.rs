//! One word of a script, decoded as a shell would.

use std::{iter::Peekable, str::Chars};

use super::{
    Dialect, What,
    brace::{self, Char},
};

/// A word as the program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its text. Of an unclear word, the source without quotes: good for suspecting, never for trusting.
    pub(crate) text: String,
    /// It begins with the user's home directory, written `~`.
    pub(crate) home: bool,
    /// It stands for the names that match, or for itself if there are none.
    pub(crate) glob: bool,
    /// Why it is not known.
    pub(crate) unclear: Option<What>,
}

impl Word {
    /// A word that is what it is.
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Whether it could be any name, and so also an option.
    pub(crate) fn could_be_an_option(&self) -> bool {
        self.glob && self.text.starts_with(['*', '?', '['])
    }
}

/// Decodes the source of one word. It becomes several if it has braces, and none if it comes out empty.
pub(super) fn decode(source: &str, dialect: Dialect, into: &mut Vec<Word>) {
    match plain(source) {
        Some(text) => into.push(Word::literal(text)),
        None => match every(source, dialect) {
            Ok(words) => into.extend(words),
            Err(what) => {
                into.push(Word { text: loosely(source), unclear: Some(what), ..Word::default() });
            }
        },
    }
}

/// What most words are: themselves, or all of it in quotes.
fn plain(source: &str) -> Option<&str> {
    let literal = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/' | b',' | b'+' | b'%' | b':' | b'@' | b'=')
    };
    // One that begins with `=` is something else to some shells.
    if !source.is_empty() && !source.starts_with('=') && source.bytes().all(literal) {
        return Some(source);
    }
    let within = |quote: char| source.strip_prefix(quote)?.strip_suffix(quote);
    let single = within('\'').filter(|text| !text.contains('\''));
    single.or_else(|| within('"').filter(|text| !text.contains(['"', '$', '`', '\\'])))
}

/// All words that one becomes.
fn every(source: &str, dialect: Dialect) -> Result<Vec<Word>, What> {
    let words = brace::expand(scan(source)?, dialect)?;
    let quoted = source.contains(['\'', '"']);
    // An empty word stays if it was quoted, and a list does not remember which of its words were.
    if quoted && words.len() > 1 && words.iter().any(Vec::is_empty) {
        return Err(What::Brace);
    }
    words.into_iter().filter(|word| quoted || !word.is_empty()).map(|word| finish(&word)).collect()
}

/// Takes quotes and backslashes away and remembers what they protected. Whatever is not listed is not understood.
fn scan(source: &str) -> Result<Vec<Char>, What> {
    let mut chars = source.chars().peekable();
    let mut out = Vec::with_capacity(source.len());
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next() {
                    Some('\'') => break,
                    Some(inner) => out.push(Char::quoted(inner)),
                    None => return Err(What::Syntax),
                }
            },
            '"' => double_quoted(&mut chars, &mut out)?,
            '\\' => match chars.next() {
                Some('\n') => return Err(What::Continuation),
                Some(escaped) => out.push(Char::quoted(escaped)),
                None => return Err(What::Syntax),
            },
            // At the end of a word it begins nothing.
            '$' if chars.peek().is_none() && !out.is_empty() => out.push(Char::quoted(c)),
            '$' => return Err(dollar(&mut chars)),
            '`' => return Err(What::Substitution),
            '<' | '>' if chars.peek() == Some(&'(') => return Err(What::Substitution),
            '#' if out.is_empty() => return Err(What::Syntax),
            '=' if out.is_empty() && !matches!(source, "=" | "==") => return Err(What::Equals),
            c if is_plain(c) => out.push(Char::plain(c)),
            c if c.is_ascii() => return Err(What::Syntax),
            _ => return Err(What::Lookalike),
        }
    }
    Ok(out)
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, out: &mut Vec<Char>) -> Result<(), What> {
    loop {
        match chars.next() {
            Some('"') => return Ok(()),
            // Before these it begins nothing, in any shell.
            Some('$') if matches!(chars.peek(), Some('"' | ' ' | '/' | '|' | ')' | '.' | ',')) => {
                out.push(Char::quoted('$'));
            }
            Some('$') => return Err(What::Expansion),
            Some('`') => return Err(What::Substitution),
            Some('\\') => match chars.next() {
                Some('\n') => return Err(What::Continuation),
                Some(escaped @ ('$' | '`' | '"' | '\\')) => out.push(Char::quoted(escaped)),
                Some(other) => out.extend([Char::quoted('\\'), Char::quoted(other)]),
                None => return Err(What::Syntax),
            },
            Some(inner) => out.push(Char::quoted(inner)),
            None => return Err(What::Syntax),
        }
    }
}

/// What follows a `$`.
fn dollar(chars: &mut impl Iterator<Item = char>) -> What {
    match chars.next() {
        Some('\'' | '"') => What::Quoting,
        Some('(') if chars.next() == Some('(') => What::Arithmetic,
        Some('(') => What::Substitution,
        Some('[') => What::Arithmetic,
        _ => What::Expansion,
    }
}

/// Characters that mean themselves outside quotes, or that later steps look at.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./,:+@%^!#=~{}*?[]".contains(c)
}

/// Home directory and wildcards.
fn finish(chars: &[Char]) -> Result<Word, What> {
    let text: String = chars.iter().map(|char| char.c).collect();
    let home = match chars {
        [first, rest @ ..] if first.is('~') => match rest.first() {
            None => true,
            Some(next) if next.is('/') => true,
            Some(_) => return Err(What::Tilde),
        },
        _ => false,
    };
    // Where a word looks like an assignment, shells differ on whether a `~` after `=` or `:` is a home directory.
    let later = chars.windows(2).any(|pair| (pair[0].is('=') || pair[0].is(':')) && pair[1].is('~'));
    if later {
        return Err(What::Tilde);
    }
    // `[` alone is the program.
    let glob = text != "[" && chars.iter().any(|char| char.is('*') || char.is('?') || char.is('['));
    Ok(Word { text, home, glob, unclear: None })
}

/// A guess at the text of a word that cannot be decoded, for finding what looks dangerous.
fn loosely(source: &str) -> String {
    let bare: String = source.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    if bare.contains('{') { bare.replace("${HOME}", "$HOME").replace("${HOME:?}", "$HOME") } else { bare }
}

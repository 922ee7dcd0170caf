//! One word of a script, decoded as a shell would.

use std::{iter::Peekable, str::Chars};

use super::{
    ShellDialect, UnclearKind,
    brace::{self, ShellChar},
    escape,
};

/// A word as the program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// Its text. For an unclear word, the source without quotes: enough to find dangers, never to
    /// trust.
    pub(crate) text: String,
    /// It begins with the user's home directory, written `~`.
    pub(crate) home: bool,
    /// It stands for the matching names, or for itself if there are none.
    pub(crate) glob: bool,
    /// The reason why it is not certain.
    pub(crate) unclear: Option<UnclearKind>,
}

impl ShellWord {
    /// Creates a word that stands for exactly its text.
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Returns true if it could be any name, and so also an option.
    pub(crate) fn could_be_an_option(&self) -> bool {
        self.glob && self.text.starts_with(['*', '?', '['])
    }
}

/// Decodes the source of one word. It becomes several if it has braces, and none if it comes out
/// empty.
pub(super) fn decode(source: &str, dialect: ShellDialect, into: &mut Vec<ShellWord>) {
    match plain(source) {
        Some(text) => into.push(ShellWord::literal(text)),
        None => match every(source, dialect) {
            Ok(words) => into.extend(words),
            Err(what) => {
                into.push(ShellWord { text: loosely(source), unclear: Some(what), ..ShellWord::default() });
            }
        },
    }
}

/// Returns the text of a plain word, or of one that is entirely in quotes. Most words are.
fn plain(source: &str) -> Option<&str> {
    let literal = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/' | b',' | b'+' | b'%' | b':' | b'@' | b'=')
    };
    // Some shells expand a word that begins with `=`.
    if !source.is_empty() && !source.starts_with('=') && source.bytes().all(literal) {
        return Some(source);
    }
    let within = |quote: char| source.strip_prefix(quote)?.strip_suffix(quote);
    let single = within('\'').filter(|text| !text.contains('\''));
    single.or_else(|| within('"').filter(|text| !text.contains(['"', '$', '`', '\\'])))
}

/// Returns all words that one expands to.
fn every(source: &str, dialect: ShellDialect) -> Result<Vec<ShellWord>, UnclearKind> {
    let words = brace::expand(scan(source)?, dialect)?;
    let quoted = source.contains(['\'', '"']);
    // An empty word stays if it was quoted, and a list does not record which of its words were.
    if quoted && words.len() > 1 && words.iter().any(Vec::is_empty) {
        return Err(UnclearKind::Brace);
    }
    words.into_iter().filter(|word| quoted || !word.is_empty()).map(|word| finish(&word)).collect()
}

/// Removes quotes and backslashes and marks the characters that they protected. A character that is
/// not listed is an error.
fn scan(source: &str) -> Result<Vec<ShellChar>, UnclearKind> {
    let mut chars = source.chars().peekable();
    let mut out = Vec::with_capacity(source.len());
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next() {
                    Some('\'') => break,
                    Some(inner) => out.push(ShellChar::quoted(inner)),
                    None => return Err(UnclearKind::Syntax),
                }
            },
            '"' => double_quoted(&mut chars, &mut out)?,
            '\\' => match chars.next() {
                Some('\n') => return Err(UnclearKind::Continuation),
                Some(escaped) => out.push(ShellChar::quoted(escaped)),
                None => return Err(UnclearKind::Syntax),
            },
            // At the end of a word it expands nothing.
            '$' if chars.peek().is_none() && !out.is_empty() => out.push(ShellChar::quoted(c)),
            '$' => return Err(dollar(&mut chars)),
            '`' => return Err(UnclearKind::Substitution),
            '<' | '>' if chars.peek() == Some(&'(') => return Err(UnclearKind::Substitution),
            '#' if out.is_empty() => return Err(UnclearKind::Syntax),
            '=' if out.is_empty() && !matches!(source, "=" | "==") => return Err(UnclearKind::Equals),
            c if is_plain(c) => out.push(ShellChar::plain(c)),
            c if c.is_ascii() => return Err(UnclearKind::Syntax),
            _ => return Err(UnclearKind::Lookalike),
        }
    }
    Ok(out)
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, out: &mut Vec<ShellChar>) -> Result<(), UnclearKind> {
    loop {
        match chars.next() {
            Some('"') => return Ok(()),
            // Before these it expands nothing, in any shell.
            Some('$') if matches!(chars.peek(), Some('"' | ' ' | '/' | '|' | ')' | '.' | ',')) => {
                out.push(ShellChar::quoted('$'));
            }
            Some('$') => return Err(UnclearKind::Expansion),
            Some('`') => return Err(UnclearKind::Substitution),
            Some('\\') => match chars.next() {
                Some('\n') => return Err(UnclearKind::Continuation),
                Some(escaped @ ('$' | '`' | '"' | '\\')) => out.push(ShellChar::quoted(escaped)),
                Some(other) => out.extend([ShellChar::quoted('\\'), ShellChar::quoted(other)]),
                None => return Err(UnclearKind::Syntax),
            },
            Some(inner) => out.push(ShellChar::quoted(inner)),
            None => return Err(UnclearKind::Syntax),
        }
    }
}

/// Returns the kind of expansion after a `$`.
fn dollar(chars: &mut impl Iterator<Item = char>) -> UnclearKind {
    match chars.next() {
        Some('\'' | '"') => UnclearKind::Quoting,
        Some('(') if chars.next() == Some('(') => UnclearKind::Arithmetic,
        Some('(') => UnclearKind::Substitution,
        Some('[') => UnclearKind::Arithmetic,
        _ => UnclearKind::Expansion,
    }
}

/// Returns true for characters that are literal outside quotes, or that later steps check.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./,:+@%^!#=~{}*?[]".contains(c)
}

/// Resolves the home directory and wildcards.
fn finish(chars: &[ShellChar]) -> Result<ShellWord, UnclearKind> {
    let text: String = chars.iter().map(|char| char.c).collect();
    let home = match chars {
        [first, rest @ ..] if first.is('~') => match rest.first() {
            None => true,
            Some(next) if next.is('/') => true,
            Some(_) => return Err(UnclearKind::Tilde),
        },
        _ => false,
    };
    // If a word looks like an assignment, shells differ on whether a `~` after `=` or `:` is a home
    // directory.
    let later = chars.windows(2).any(|pair| (pair[0].is('=') || pair[0].is(':')) && pair[1].is('~'));
    if later {
        return Err(UnclearKind::Tilde);
    }
    // `[` alone is the program, and `[[` begins a test.
    let glob = !matches!(text.as_str(), "[" | "[[")
        && chars.iter().any(|char| char.is('*') || char.is('?') || char.is('['));
    Ok(ShellWord { text, home, glob, unclear: None })
}

/// Guesses the text of a word that cannot be decoded, to find what looks dangerous.
fn loosely(source: &str) -> String {
    let source = if source.contains("$'") {
        escape::decode(&source.replace("$'", "'")).replace(r"\n", "\n").replace(r"\t", "\t")
    } else {
        source.to_owned()
    };
    let bare: String = source.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    if bare.contains('{') { bare.replace("${HOME}", "$HOME").replace("${HOME:?}", "$HOME") } else { bare }
}

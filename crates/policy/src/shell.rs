//! A shell script, read as far as it can be read for certain: simple commands with the words their programs would get.
//!
//! The grammar only cuts the script into tokens and names what it sees. Every word is then decoded from its own text,
//! and every byte between two tokens must be white space: where grammar and decoder disagree, the script is unclear.

mod brace;
mod draft;
mod kind;
mod parser;
mod tree;
mod unclear;
mod word;

use std::ops::Range;

pub use unclear::{Unclear, What};
pub(crate) use word::Word;

/// The longest script that is read. Linux starts no program with a longer argument (`MAX_ARG_STRLEN`).
const MAX_BYTES: usize = 128 * 1024;

/// Which shell reads a script: they agree on almost everything that is literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// bash and zsh, as far as they agree.
    Bash,
    /// sh and dash: no braces, no `&>`.
    Posix,
}

/// A script in parts.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, also those inside what is unclear. A command in a substitution comes before its outer one.
    pub(crate) commands: Vec<Simple>,
    /// What is not literal. Empty means: exactly these commands are run, with exactly these words.
    pub(crate) unclear: Vec<Unclear>,
}

/// A simple command.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) joined: Joined,
    /// The text of its here-document.
    pub(crate) here: Option<String>,
    /// Which commands are in its substitutions.
    pub(crate) inner: Range<usize>,
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Joined {
    /// First, or after `;`, `&&`, `||`, a new line.
    #[default]
    Apart,
    /// It reads what the one before prints.
    Piped,
}

/// A variable set for one command, or for the shell if there is no command.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Word,
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    pub(crate) target: Word,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// Reads a file.
    Read,
    /// Writes a file from its start.
    Write,
    /// Writes at the end of a file.
    Append,
    /// Copies or closes a descriptor.
    Descriptor,
    /// Reads the word itself.
    Text,
}

impl Script {
    /// Reads a script. Never fails: what cannot be read is unclear.
    pub(crate) fn parse(source: &str, dialect: Dialect) -> Self {
        if source.len() > MAX_BYTES {
            let text = format!("{} bytes", source.len());
            return Self { commands: Vec::new(), unclear: vec![Unclear { what: What::TooLong, text }] };
        }
        let mut script = tree::read(source, dialect);
        script.unclear.extend(Unclear::hidden(source));
        script
    }

    /// Whether exactly these commands are run, with exactly these words.
    pub(crate) fn is_clear(&self) -> bool {
        self.unclear.is_empty()
    }
}

impl Simple {
    /// A command whose words are given, not read.
    pub(crate) fn of(words: Vec<Word>) -> Self {
        Self { words, ..Self::default() }
    }

    /// Which of its words are unclear.
    pub(crate) fn unclear(&self) -> impl Iterator<Item = Unclear> {
        let values = self.assignments.iter().map(|assignment| &assignment.value);
        let targets = self.redirects.iter().map(|redirect| &redirect.target);
        let words = self.words.iter().chain(values).chain(targets);
        words.filter_map(|word| Some(Unclear::new(word.unclear?, &word.text)))
    }

    /// The program's name, if it has one.
    pub(crate) fn program(&self) -> Option<&str> {
        self.words.first().map(|word| word.text.as_str())
    }
}

#[cfg(test)]
mod tests;

//! A shell script, parsed as far as its meaning is certain: simple commands with the words that
//! their programs would get.
//!
//! The grammar only splits the script into tokens and names them. Every word is then decoded from
//! its own text, and every byte between two tokens must be white space. If grammar and decoder
//! disagree, the script is unclear, and its text is unread: it is read again, loosely, for every
//! command that it names (`docs/decisions/0048-what-is-not-understood-counts-as-all-it-names.md`).

mod brace;
mod continuation;
mod draft;
mod escape;
mod evaluation;
mod here;
mod kind;
mod loose;
mod parser;
mod substitution;
mod tree;
mod unclear;
mod word;

use std::ops::Range;

pub(crate) use loose::{bare_text, read_loosely, without_prefix};
pub use unclear::{UnclearKind, UnclearText};
pub(crate) use word::ShellWord;

/// Maximum size of a script that is parsed. Linux starts no program with a longer argument
/// (`MAX_ARG_STRLEN`).
const MAX_BYTES: usize = 128 * 1024;

/// The shell that reads a script. All agree on almost everything that is literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellDialect {
    /// bash and zsh, as far as they agree.
    Bash,
    /// sh and dash: no braces, no `&>`.
    Posix,
}

/// A script, split into commands.
#[derive(Debug, Default)]
pub(crate) struct ShellScript {
    /// Every simple command, also those inside unclear texts. A command in a substitution comes
    /// before its outer one.
    pub(crate) commands: Vec<SimpleCommand>,
    /// Texts that are not literal. Empty means: exactly these commands are run, with exactly these
    /// words.
    pub(crate) unclear: Vec<UnclearText>,
    /// Texts that a shell may run and that were not understood. Every command that they name
    /// counts. If there are any, the script is unclear.
    pub(crate) unread: Vec<String>,
}

/// A simple command.
#[derive(Debug, Default)]
pub(crate) struct SimpleCommand {
    pub(crate) assignments: Vec<VariableAssignment>,
    pub(crate) words: Vec<ShellWord>,
    pub(crate) redirects: Vec<ShellRedirect>,
    pub(crate) joined: CommandSeparator,
    /// The text of its here-document.
    pub(crate) here: Option<String>,
    /// The indices of the commands in its substitutions.
    pub(crate) inner: Range<usize>,
}

/// The operator between a command and the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CommandSeparator {
    /// First, or after `;`, `&&`, `||`, a newline.
    #[default]
    Apart,
    /// A pipe: it reads the output of the one before.
    Piped,
}

/// A variable set for one command, or for the shell if there is no command.
#[derive(Debug)]
pub(crate) struct VariableAssignment {
    pub(crate) name: String,
    pub(crate) value: ShellWord,
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct ShellRedirect {
    pub(crate) kind: RedirectKind,
    pub(crate) target: ShellWord,
}

/// The kind of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// Reads a file.
    Read,
    /// Writes a file from its start.
    Write,
    /// Writes at the end of a file.
    Append,
    /// Duplicates or closes a file descriptor.
    Descriptor,
    /// Reads the word itself: a here-string.
    Text,
}

impl ShellScript {
    /// Parses a script. Never fails: a script that cannot be parsed is unclear.
    pub(crate) fn parse(source: &str, dialect: ShellDialect) -> Self {
        if source.len() > MAX_BYTES {
            let text = format!("{} bytes", source.len());
            return Self {
                unclear: vec![UnclearText { what: UnclearKind::TooLong, text }],
                unread: vec![source.to_owned()],
                ..Self::default()
            };
        }
        let joined = continuation::join_lines(source);
        let mut script = tree::read(&joined, dialect);
        // A shell reads one word there, and a person two.
        let split = (*joined != *source).then(|| continuation::split_word(source)).flatten();
        script.unclear.extend(split.map(|text| UnclearText::new(UnclearKind::Continuation, text)));
        script.unclear.extend(UnclearText::hidden(source));
        // Not every shell knows `$'…'`; the others end it at the quote after the backslash.
        let ends_twice = source.contains("$'") && source.contains(r"\'");
        if ends_twice || script.unclear.iter().any(|unclear| unclear.what.is_unread()) {
            script.unread = vec![source.to_owned()];
        }
        script
    }

    /// Returns true if exactly these commands are run, with exactly these words.
    pub(crate) fn is_clear(&self) -> bool {
        self.unclear.is_empty()
    }
}

impl SimpleCommand {
    /// Creates a command from words that need no parsing.
    pub(crate) fn from_words(words: Vec<ShellWord>) -> Self {
        Self { words, ..Self::default() }
    }

    /// Returns the unclear ones of its words.
    pub(crate) fn unclear(&self) -> impl Iterator<Item = UnclearText> {
        let values = self.assignments.iter().map(|assignment| &assignment.value);
        let targets = self.redirects.iter().map(|redirect| &redirect.target);
        let words = self.words.iter().chain(values).chain(targets);
        words.filter_map(|word| Some(UnclearText::new(word.unclear?, &word.text)))
    }

    /// Returns the name of the program, if there is one.
    pub(crate) fn program(&self) -> Option<&str> {
        self.words.first().map(|word| word.text.as_str())
    }
}

#[cfg(test)]
mod tests;

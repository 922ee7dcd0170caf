//! Reads a text for every command that it may name, without a grammar: quotes are left out, and
//! every operator begins a new command. For texts that were not understood. Never to trust.

use std::borrow::Cow;

use super::{
    CommandSeparator, RedirectKind, ShellRedirect, ShellScript, ShellWord, SimpleCommand, UnclearKind,
    UnclearText, escape,
};

/// Words that a command may follow.
const BEFORE_COMMANDS: &[&str] = &[
    "!", "{", "}", "do", "then", "else", "elif", "if", "while", "until", "time", "coproc", "function", "in",
    "[[",
];

/// Characters after which another command may begin.
const OPERATORS: &[char] = &[';', '&', '|', '\n', '(', ')', '`'];

/// Characters after which the name of a program may begin in another language.
const PREFIX_ENDS: &[char] = &['!', ':', '=', ',', '{', '[', '@'];

/// Returns a text without quotes, backslashes and continuations, and with numbered characters
/// decoded.
pub(crate) fn bare_text(text: &str) -> String {
    let text = text.replace("\\\n", "").replace("$'", "'").replace("$\"", "\"");
    escape::decode(&text).replace(['\'', '"', '\\'], "")
}

/// Returns every command that a text may name.
pub(crate) fn read_loosely(text: &str) -> ShellScript {
    // A here-string may be a command.
    let text = bare_text(text).replace("<<<", ";").replace('>', " > ").replace('<', " < ");
    let mut commands = Vec::new();
    let mut joined = CommandSeparator::Apart;
    for segment in text.split_inclusive(OPERATORS) {
        let simple = SimpleCommand { joined, ..command(segment.trim_end_matches(OPERATORS)) };
        // In `a || b` the second pipe follows nothing.
        let is_empty = simple.words.is_empty() && simple.redirects.is_empty();
        let is_piped = segment.ends_with('|') && !is_empty || is_empty && joined == CommandSeparator::Piped;
        joined = if is_piped { CommandSeparator::Piped } else { CommandSeparator::Apart };
        commands.extend((!is_empty).then_some(simple));
    }
    let unclear = vec![UnclearText::new(UnclearKind::Syntax, &text)];
    ShellScript { commands, unclear, unread: Vec::new() }
}

/// Returns the words of a command without a text of another language before its program: `!rm`,
/// `key:rm`, `--option=rm`.
pub(crate) fn without_prefix(words: &[ShellWord]) -> Cow<'_, [ShellWord]> {
    match words.split_first() {
        Some((program, rest)) if program.text.contains(PREFIX_ENDS) => {
            let name = program.text.rsplit(PREFIX_ENDS).next().unwrap_or_default();
            // `${x:-rm …}`.
            let name = name.trim_start_matches(['-', '+']);
            [&[word(name)], rest].concat().into()
        }
        _ => words.into(),
    }
}

fn command(segment: &str) -> SimpleCommand {
    let mut simple = SimpleCommand::default();
    let mut tokens = segment.split_whitespace().peekable();
    while let Some(token) = tokens.next() {
        let kind = match token {
            ">" => RedirectKind::Write,
            "<" => RedirectKind::Read,
            _ if simple.words.is_empty() && BEFORE_COMMANDS.contains(&token) => continue,
            _ => {
                simple.words.push(word(token));
                continue;
            }
        };
        while tokens.next_if(|next| matches!(*next, ">" | "<")).is_some() {}
        let target = tokens.next().map(word).unwrap_or_default();
        simple.redirects.push(ShellRedirect { kind, target });
    }
    simple
}

fn word(text: &str) -> ShellWord {
    ShellWord {
        text: text.to_owned(),
        home: text == "~" || text.starts_with("~/"),
        glob: text.contains(['*', '?', '[']),
        unclear: text.contains('$').then_some(UnclearKind::Expansion),
    }
}

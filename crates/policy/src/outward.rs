//! Commands with effects beyond this machine: they push, publish, deploy, send, act on another
//! machine, or install from elsewhere. No sandbox can undo that, so the approval policy can ask
//! about it even without one.
//!
//! The search is suspicious, as for dangers. If the deciding word is not literal, every effect that
//! it could stand for counts.

mod code;
mod git;
mod hidden;
mod name;
mod network;
mod pieces;
mod table;

pub(crate) use hidden::hides_program;

use std::{cell::OnceCell, collections::BTreeSet};

use windlass_contract::effects::OutwardEffect;

use crate::{
    shell::{self, ShellDialect, ShellScript, ShellWord, SimpleCommand, UnclearKind},
    wrapper::{self, InnerCommand},
};

/// Maximum depth of programs that run programs; the judge follows wrappers by itself.
const MAX_DEPTH: usize = 3;

/// Maximum size of a nested script that is parsed; a longer one is only searched for names of
/// commands.
const MAX_SCRIPT_BYTES: usize = 4096;

/// Programs that add words to their command which are in no text.
const FEEDERS: &[&str] = &["xargs", "parallel", "find", "fd", "fdfind"];

/// A command and its position in the script.
#[derive(Clone, Copy)]
pub(crate) struct CommandContext<'a> {
    pub(crate) script: &'a ShellScript,
    /// The index of the command in its script.
    pub(crate) at: usize,
    /// The programs that run it, outermost first.
    pub(crate) via: &'a [String],
    pub(crate) source: &'a SourceText,
}

/// The whole text that the outermost shell reads.
#[derive(Default)]
pub(crate) struct SourceText {
    text: String,
    /// The effects of all commands that the text names, computed on first use.
    named: OnceCell<BTreeSet<OutwardEffect>>,
    is_searched: bool,
}

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Returns the text the first time, and nothing later: one search finds everything.
    pub(crate) fn take_unread(&mut self) -> String {
        if std::mem::replace(&mut self.is_searched, true) { String::new() } else { self.text.clone() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn named(&self) -> &BTreeSet<OutwardEffect> {
        self.named.get_or_init(|| code_effects(&self.text))
    }
}

/// Returns the effects that a command has or may have, apart from those of the programs that it
/// runs.
pub(crate) fn command_effects(context: CommandContext<'_>) -> BTreeSet<OutwardEffect> {
    let Some(simple) = context.script.commands.get(context.at) else { return BTreeSet::new() };
    let words = with_further_words(simple, context.via);
    let source = &context.source.text;
    let mut found = word_effects(&words, source, 0);
    found.extend(git::configured(simple));
    found.extend(network::redirected(simple));
    found.extend(network::derived(&words, context.script));
    if hidden::is_hidden(context, &words) {
        found.extend(context.source.named());
        found.extend(words.get(1).and_then(|verb| hidden::verb_effect(&verb.text)));
    }
    found.extend(replaced_effects(&words, source));
    found
}

/// Returns the effects of every command that a text names, as written and without its quotes.
pub(crate) fn text_effects(text: &str) -> BTreeSet<OutwardEffect> {
    let mut found = hidden::named_in(text);
    found.extend(hidden::named_in(&shell::bare_text(text)));
    found
}

/// Returns the effects of every command that a text names, or whose words it holds: it may be put
/// together from them.
pub(crate) fn code_effects(text: &str) -> BTreeSet<OutwardEffect> {
    let mut found = text_effects(text);
    found.extend(hidden::scattered_in(&shell::bare_text(text)));
    // In the languages of other programs these are blanks.
    let blanks = [r"\n", r"\t", r"\_", r"\0"];
    let spaced = blanks.iter().fold(text.to_owned(), |text, blank| text.replace(blank, " "));
    found.extend(hidden::scattered_in(&shell::bare_text(&spaced)));
    if let Some(whole) = pieces::put_together(text) {
        found.extend(text_effects(&whole));
        found.extend(hidden::scattered_in(&shell::bare_text(&whole)));
    }
    found
}

/// Returns the words of a command, with an unclear word for those that `xargs` and the like add.
fn with_further_words(simple: &SimpleCommand, via: &[String]) -> Vec<ShellWord> {
    let mut words = simple.words.clone();
    let Some(feeder) = via.iter().rfind(|program| FEEDERS.contains(&program.as_str())) else { return words };
    for word in &mut words {
        // `{}`, or the replacement string of `-I`.
        let stands_for_another = word.text.contains("{}") || !word.text.contains(char::is_alphanumeric);
        if stands_for_another && !matches!(word.text.as_str(), "." | ".." | "/" | "-" | "--" | ";" | "+") {
            word.unclear = word.unclear.or(Some(UnclearKind::Expansion));
        }
    }
    if matches!(feeder.as_str(), "xargs" | "parallel") {
        words.push(ShellWord { unclear: Some(UnclearKind::Expansion), ..ShellWord::default() });
    }
    words
}

/// Returns the effects of a command that `xargs -I NAME` runs, where NAME is a word that is
/// replaced.
fn replaced_effects(words: &[ShellWord], source: &str) -> BTreeSet<OutwardEffect> {
    let is_feeder = words.first().is_some_and(|word| matches!(word.text.as_str(), "xargs" | "parallel"));
    let name = words.iter().enumerate().find_map(|(at, word)| {
        let name = word.text.strip_prefix("-I").or_else(|| word.text.strip_prefix("--replace="))?;
        if name.is_empty() { words.get(at + 1).map(|next| next.text.as_str()) } else { Some(name) }
    });
    let Some((name, range)) = name.filter(|_| is_feeder).zip(wrapper::command(words)) else {
        return BTreeSet::new();
    };
    let mut inner = words.get(range).unwrap_or_default().to_vec();
    for word in inner.iter_mut().filter(|word| word.text.contains(name)) {
        word.unclear = word.unclear.or(Some(UnclearKind::Expansion));
    }
    nested_effects(&inner, source, 0)
}

/// Returns the effects of a command by its words.
fn word_effects(words: &[ShellWord], source: &str, depth: usize) -> BTreeSet<OutwardEffect> {
    let Some(call) = name::ToolCommand::new(words).filter(|_| depth <= MAX_DEPTH) else {
        return BTreeSet::new();
    };
    if call.only_shows() {
        return BTreeSet::new();
    }
    let mut found = table::effects(&call);
    found.extend(code::effects(&call, source));
    found.extend(git::alias(&call));
    for words in table::runs(&call).into_iter().chain(code::runs(&call)) {
        found.extend(nested_effects(&words, source, depth + 1));
    }
    found
}

/// Returns the effects of a command, and of the command that a wrapper or a shell among its words
/// runs.
fn nested_effects(words: &[ShellWord], source: &str, depth: usize) -> BTreeSet<OutwardEffect> {
    let mut found = word_effects(words, source, depth);
    if depth > MAX_DEPTH {
        return found;
    }
    for inner in wrapper::open(words) {
        match inner {
            InnerCommand::Words { range, .. } => {
                let words = words.get(range).unwrap_or_default();
                found.extend(nested_effects(words, source, depth + 1));
            }
            InnerCommand::Text(text) => found.extend(code_effects(&text)),
            InnerCommand::Line => found.extend(code_effects(source)),
            // Otherwise every path through such programs would parse it again.
            InnerCommand::Script { text, .. } if text.len() > MAX_SCRIPT_BYTES => {
                found.extend(text_effects(&text))
            }
            InnerCommand::Script { text, .. } => {
                let script = ShellScript::parse(&text, ShellDialect::Bash);
                found.extend(script.unread.iter().flat_map(|text| text_effects(text)));
                let commands = script.commands.iter();
                found.extend(commands.flat_map(|simple| nested_effects(&simple.words, source, depth + 1)));
            }
        }
    }
    found
}

/// Returns true if a word stands for exactly its text.
fn is_literal(word: &ShellWord) -> bool {
    word.unclear.is_none() && !word.glob
}

#[cfg(test)]
mod tests;

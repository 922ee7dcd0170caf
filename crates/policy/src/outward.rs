//! Commands with effects beyond this machine: what is pushed, published, deployed, sent, done on another machine, or
//! installed from elsewhere. No sandbox can take that back, so the approval policy can ask about it where there is none.
//!
//! Found by suspicion, as dangers are. Where the word that decides is not literal, every effect it could stand for
//! counts.

mod code;
mod git;
mod hidden;
mod name;
mod network;
mod table;

use std::{cell::OnceCell, collections::BTreeSet};

use windlass_contract::effects::OutwardEffect;

use crate::{
    shell::{Dialect, Script, Simple, What, Word},
    wrapper::{self, Inner},
};

/// How deep programs that run programs are followed here; the judge follows wrappers by itself.
const MAX_DEPTH: usize = 3;

/// The longest script behind such programs that is read as one; of a longer one it counts what it names.
const MAX_SCRIPT_BYTES: usize = 4096;

/// Programs that give their command further words, which are in no text.
const FEEDERS: &[&str] = &["xargs", "parallel", "find", "fd", "fdfind"];

/// A command and what surrounds it.
#[derive(Clone, Copy)]
pub(crate) struct CommandContext<'a> {
    pub(crate) script: &'a Script,
    /// The number of the command in its script.
    pub(crate) at: usize,
    /// The programs that run it, outermost first.
    pub(crate) via: &'a [String],
    pub(crate) source: &'a SourceText,
}

/// The whole text that the outermost shell reads.
#[derive(Default)]
pub(crate) struct SourceText {
    text: String,
    /// The effects of all commands that it names, found when they are first asked for.
    named: OnceCell<BTreeSet<OutwardEffect>>,
}

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), named: OnceCell::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn named(&self) -> &BTreeSet<OutwardEffect> {
        self.named.get_or_init(|| hidden::named_in(&self.text))
    }
}

/// The effects that a command has or may have, apart from those of the programs that it runs.
pub(crate) fn of_command(context: CommandContext<'_>) -> BTreeSet<OutwardEffect> {
    let Some(simple) = context.script.commands.get(context.at) else { return BTreeSet::new() };
    let words = with_further_words(simple, context.via);
    let source = &context.source.text;
    let mut found = of_words(&words, source, 0);
    found.extend(git::configured(simple));
    found.extend(network::redirected(simple));
    found.extend(network::derived(&words, context.script));
    if hidden::is_hidden(context, &words) {
        found.extend(context.source.named());
        found.extend(words.get(1).and_then(|verb| hidden::by_verb(&verb.text)));
    }
    found.extend(hidden::in_code(simple));
    found.extend(of_replaced(&words, source));
    found
}

/// The words of a command, and one nobody can read for those that `xargs` and the like add.
fn with_further_words(simple: &Simple, via: &[String]) -> Vec<Word> {
    let mut words = simple.words.clone();
    let Some(feeder) = via.iter().rfind(|program| FEEDERS.contains(&program.as_str())) else { return words };
    for word in &mut words {
        // `{}`, or whatever `-I` names instead.
        let stands_for_another = word.text.contains("{}") || !word.text.contains(char::is_alphanumeric);
        if stands_for_another && !matches!(word.text.as_str(), "." | ".." | "/" | "-" | "--" | ";" | "+") {
            word.unclear = word.unclear.or(Some(What::Expansion));
        }
    }
    if matches!(feeder.as_str(), "xargs" | "parallel") {
        words.push(Word { unclear: Some(What::Expansion), ..Word::default() });
    }
    words
}

/// The effects of what `xargs -I NAME` runs, where NAME is a word that is replaced.
fn of_replaced(words: &[Word], source: &str) -> BTreeSet<OutwardEffect> {
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
        word.unclear = word.unclear.or(Some(What::Expansion));
    }
    of_words_and_inner(&inner, source, 0)
}

/// The effects of a command by its words.
fn of_words(words: &[Word], source: &str, depth: usize) -> BTreeSet<OutwardEffect> {
    let Some(call) = name::ToolCall::new(words).filter(|_| depth <= MAX_DEPTH) else {
        return BTreeSet::new();
    };
    if call.only_shows() {
        return BTreeSet::new();
    }
    let mut found = table::effects(&call);
    found.extend(code::effects(&call, source));
    found.extend(git::alias(&call));
    for words in table::runs(&call).into_iter().chain(code::runs(&call)) {
        found.extend(of_words_and_inner(&words, source, depth + 1));
    }
    found
}

/// The effects of a command, and of what a wrapper or a shell among its words runs.
fn of_words_and_inner(words: &[Word], source: &str, depth: usize) -> BTreeSet<OutwardEffect> {
    let mut found = of_words(words, source, depth);
    if depth > MAX_DEPTH {
        return found;
    }
    for inner in wrapper::open(words) {
        match inner {
            Inner::Words { range, .. } => {
                let words = words.get(range).unwrap_or_default();
                found.extend(of_words_and_inner(words, source, depth + 1));
            }
            // Every path through such programs would read it again.
            Inner::Script { text, .. } if text.len() > MAX_SCRIPT_BYTES => {
                found.extend(hidden::named_in(&text))
            }
            Inner::Script { text, .. } => {
                let script = Script::parse(&text, Dialect::Bash);
                let commands = script.commands.iter();
                found
                    .extend(commands.flat_map(|simple| of_words_and_inner(&simple.words, source, depth + 1)));
            }
        }
    }
    found
}

/// Whether a word is exactly what it says.
fn is_literal(word: &Word) -> bool {
    word.unclear.is_none() && !word.glob
}

#[cfg(test)]
mod tests;

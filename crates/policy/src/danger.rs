//! Commands that destroy, give away or take over. Found by suspicion: words that are unclear count as what they look like.

mod files;
mod git;
mod network;
mod system;
mod table;

use serde::Serialize;

use crate::{
    path::Places,
    shell::{Script, Word},
    wrapper::base_name,
};

/// Why a command is dangerous.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Danger {
    /// How bad it is.
    pub severity: Severity,
    /// What it does, for a person.
    pub what: String,
    /// A safer way to the same end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// How bad a danger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A person has to say yes.
    Ask,
    /// No agent does this; who wants it does it by hand.
    Never,
}

impl Danger {
    fn ask(what: impl Into<String>) -> Self {
        Self { severity: Severity::Ask, what: what.into(), instead: None }
    }

    fn never(what: impl Into<String>) -> Self {
        Self { severity: Severity::Never, what: what.into(), instead: None }
    }

    fn instead(self, way: &str) -> Self {
        Self { instead: Some(way.to_owned()), ..self }
    }
}

/// The worst that can be said about one command by its own words.
pub(crate) fn of_command(words: &[Word], places: &Places) -> Option<Danger> {
    let call = Call::new(words, places)?;
    let found =
        [table::find(&call), git::find(&call), files::find(&call), system::find(&call), network::find(&call)];
    worst(found.into_iter().flatten())
}

/// The worst that can be said about one command by where it stands in its script: what it is fed, where it writes.
pub(crate) fn of_place(script: &Script, at: usize, places: &Places) -> Option<Danger> {
    let simple = script.commands.get(at)?;
    let targets = simple.redirects.iter().filter_map(|redirect| files::redirection(redirect, places));
    worst(targets.chain(network::in_place(script, at, places)).chain(system::fork_bomb(script, at)))
}

fn worst(dangers: impl Iterator<Item = Danger>) -> Option<Danger> {
    // The first of the worst: what comes first is said in the plainest words.
    dangers.reduce(|worst, next| if next.severity > worst.severity { next } else { worst })
}

/// A command as this crate suspects it.
pub(crate) struct Call<'a> {
    pub(crate) program: &'a str,
    arguments: &'a [Word],
    places: &'a Places,
}

impl<'a> Call<'a> {
    pub(crate) fn new(words: &'a [Word], places: &'a Places) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program: base_name(&program.text), arguments, places })
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.arguments.iter().map(|word| word.text.as_str())
    }

    /// Arguments that are no options.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &'a str> {
        let mut options = true;
        self.texts().filter(move |text| {
            if *text == "--" && options {
                options = false;
                return false;
            }
            !options || !text.starts_with('-') || *text == "-"
        })
    }

    /// Whether an option is given: a word, `--long` or a beginning of it or with a value, `-x` in a bundle.
    pub(crate) fn has(&self, option: &str) -> bool {
        let mut options = self.texts().take_while(|text| *text != "--" || option == "--");
        if let Some(letter) = option.strip_prefix('-').filter(|name| name.len() == 1 && *name != "-") {
            let bundles = options.filter_map(|text| text.strip_prefix('-'));
            return bundles.into_iter().any(|bundle| !bundle.starts_with('-') && bundle.contains(letter));
        }
        options.any(|text| {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            let abbreviated = name.len() > 3 && name.starts_with("--") && option.starts_with(name);
            name == option || abbreviated
        })
    }

    pub(crate) fn has_any(&self, options: &[&str]) -> bool {
        options.iter().any(|option| self.has(option))
    }
}

#[cfg(test)]
mod tests;

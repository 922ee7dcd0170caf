//! Commands that destroy data, give it away or take over the machine. The search is suspicious: an
//! unclear word counts as whatever it looks like.

mod download;
mod files;
mod git;
mod network;
mod system;
mod table;

use serde::Serialize;

use crate::{
    path::WorkingDirectories,
    shell::{ShellScript, ShellWord},
    wrapper::base_name,
};

/// The reason why a command is dangerous.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandDanger {
    /// Decides whether a person can allow it.
    pub severity: DangerSeverity,
    /// Describes for a person what the command does.
    pub what: String,
    /// A safer command for the same purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The severity of a danger, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerSeverity {
    /// A person has to approve it.
    Ask,
    /// No agent may do this; a person can do it by hand.
    Never,
}

impl CommandDanger {
    fn ask(what: impl Into<String>) -> Self {
        Self { severity: DangerSeverity::Ask, what: what.into(), instead: None }
    }

    fn never(what: impl Into<String>) -> Self {
        Self { severity: DangerSeverity::Never, what: what.into(), instead: None }
    }

    /// Returns the danger as one that a person can allow.
    pub(crate) fn softened(self) -> Self {
        Self { severity: DangerSeverity::Ask, ..self }
    }

    fn instead(self, way: &str) -> Self {
        Self { instead: Some(way.to_owned()), ..self }
    }
}

/// Returns the worst danger of one command by its own words.
pub(crate) fn command_danger(words: &[ShellWord], places: &WorkingDirectories) -> Option<CommandDanger> {
    let call = SuspectCommand::new(words, places)?;
    let found =
        [table::find(&call), git::find(&call), files::find(&call), system::find(&call), network::find(&call)];
    worst(found.into_iter().flatten())
}

/// Returns the worst danger of one command by its position in the script: its input and its output
/// files.
pub(crate) fn context_danger(
    script: &ShellScript,
    at: usize,
    places: &WorkingDirectories,
) -> Option<CommandDanger> {
    let simple = script.commands.get(at)?;
    let targets = simple.redirects.iter().filter_map(|redirect| files::redirection(redirect, places));
    worst(
        targets
            .chain(network::in_place(script, at, places))
            .chain(download::find(script, at))
            .chain(system::fork_bomb(script, at)),
    )
}

fn worst(dangers: impl Iterator<Item = CommandDanger>) -> Option<CommandDanger> {
    // Of equal severities the first one wins, because earlier checks have the plainest messages.
    dangers.reduce(|worst, next| if next.severity > worst.severity { next } else { worst })
}

/// A command that is searched for dangers.
pub(crate) struct SuspectCommand<'a> {
    pub(crate) program: &'a str,
    arguments: &'a [ShellWord],
    places: &'a WorkingDirectories,
}

impl<'a> SuspectCommand<'a> {
    pub(crate) fn new(words: &'a [ShellWord], places: &'a WorkingDirectories) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program: base_name(&program.text), arguments, places })
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.arguments.iter().map(|word| word.text.as_str())
    }

    /// Returns the arguments that are not options.
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

    /// Returns true if an option is given: as a word, as `--long` (abbreviated or with a value), or
    /// as `-x` in a bundle.
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

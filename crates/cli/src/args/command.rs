//! The definition of the command line as a whole. An option of all commands that a command does not
//! use is neither shown nor accepted there, and every command has an example.

use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, error::ErrorKind};

use super::{CliArgs, CommonOptions, examples::EXAMPLES};

/// Options of all commands that decide what tools may do.
const CHECKS: [&str; 3] = ["sandbox", "approval", "bypass"];
const ALL: [&str; 5] = ["config", "sandbox", "approval", "bypass", "cd"];

/// Commands with the options that they do not use. A command has those of its parent, too.
const UNUSED: [(&[&str], &[&str]); 43] = [
    (&["apply-patch"], &["approval"]),
    (&["sandbox"], &["approval"]),
    (&["undo"], &["approval", "bypass"]),
    (&["redo"], &["approval", "bypass"]),
    (&["fork"], &CHECKS),
    (&["rewind"], &["approval", "bypass"]),
    (&["tools", "bench"], &ALL),
    (&["models"], &CHECKS),
    (&["init"], &["sandbox", "approval", "bypass", "cd"]),
    (&["login"], &["sandbox", "approval", "bypass", "cd"]),
    (&["logout"], &["sandbox", "approval", "bypass", "cd"]),
    (&["doctor"], &CHECKS),
    (&["config", "set"], &ALL),
    (&["config", "unset"], &ALL),
    (&["config", "edit"], &ALL),
    (&["config", "schema"], &ALL),
    (&["config", "path"], &ALL),
    (&["mcp", "list"], &CHECKS),
    (&["mcp", "get"], &CHECKS),
    (&["mcp", "test"], &CHECKS),
    (&["mcp", "login"], &CHECKS),
    (&["mcp", "logout"], &CHECKS),
    (&["mcp", "prompts"], &CHECKS),
    (&["mcp", "pins"], &CHECKS),
    (&["mcp", "add"], &["config", "approval", "bypass", "cd"]),
    (&["mcp", "remove"], &ALL),
    (&["instructions"], &CHECKS),
    (&["skills"], &CHECKS),
    (&["prompts"], &CHECKS),
    (&["trust"], &["config", "sandbox", "approval", "bypass"]),
    (&["policy", "suggest"], &CHECKS),
    (&["policy", "rules"], &CHECKS),
    (&["policy", "revoke"], &CHECKS),
    (&["stats"], &CHECKS),
    (&["history"], &CHECKS),
    (&["show"], &CHECKS),
    (&["sessions"], &CHECKS),
    (&["feedback"], &CHECKS),
    (&["audit"], &CHECKS),
    (&["redact"], &["config", "sandbox", "approval", "bypass"]),
    (&["completions"], &ALL),
    (&["man"], &ALL),
    (&["version"], &ALL),
];

/// Returns the definition of the command line.
pub(crate) fn command() -> Command {
    let root = CliArgs::command();
    let common: Vec<_> = root.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let hide = |command: Command, names: &[&str]| {
        let hidden = common.iter().filter(|arg| names.contains(&arg.get_id().as_str()));
        // An option that a command has itself is not added to it.
        command.args(hidden.map(|arg| arg.clone().hide(true)))
    };
    let root = UNUSED.iter().fold(root, |root, (path, names)| at(root, path, &|inner| hide(inner, names)));
    EXAMPLES.iter().fold(root, |root, (path, lines)| at(root, path, &|inner| with_example(inner, lines)))
}

/// Changes the command at a path.
fn at(command: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        [name, rest @ ..] => {
            let name = (*name).to_owned();
            command.mut_subcommand(name, |inner| at(inner, rest, change))
        }
    }
}

/// Adds examples at the end of the help, unless the definition of the command has some.
fn with_example(command: Command, lines: &[&str]) -> Command {
    let before = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if before.contains("Example") {
        return command;
    }
    let heading = if lines.len() == 1 { "Example" } else { "Examples" };
    let lines: String =
        lines.iter().map(|line| format!("\n  windlass {line}").trim_end().to_owned()).collect();
    let gap = if before.is_empty() { "" } else { "\n\n" };
    command.after_help(format!("{before}{gap}{heading}:{lines}"))
}

impl CliArgs {
    /// Parses a command line; the first word is the name of the program.
    pub(crate) fn parse_words(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = command();
        let mut matches = command.try_get_matches_from_mut(words)?;
        let path = path_of(&matches);
        let parsed = Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
        match parsed.common.first_unused(&path) {
            None => Ok(parsed),
            Some(option) => {
                let message = format!("{option} has no effect on `windlass {}`", path.join(" "));
                Err(command.error(ErrorKind::ArgumentConflict, message))
            }
        }
    }
}

fn path_of(matches: &ArgMatches) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = matches;
    while let Some((name, inner)) = at.subcommand() {
        path.push(name.to_owned());
        at = inner;
    }
    path
}

impl CommonOptions {
    /// Returns an option that is set, but that the command does not use.
    fn first_unused(&self, path: &[String]) -> Option<&'static str> {
        let set = [
            ("config", "--config", !self.config.is_empty()),
            ("sandbox", "--sandbox", self.sandbox.is_some()),
            ("approval", "--ask-for-approval", self.approval.is_some()),
            ("bypass", "--dangerously-bypass-approvals-and-sandbox", self.bypass),
            ("cd", "--cd", self.cd.is_some()),
        ];
        let is_unused = |id: &str| {
            UNUSED.iter().any(|(command, names)| {
                path.iter().zip(*command).all(|(one, other)| one == other)
                    && path.len() >= command.len()
                    && names.contains(&id)
            })
        };
        set.into_iter().find(|(id, _, is_set)| *is_set && is_unused(id)).map(|(_, name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every command with its path, without `help`.
    fn all() -> Vec<(String, Command)> {
        let mut root = command();
        root.build();
        let (mut found, mut open) = (Vec::new(), vec![(String::new(), root)]);
        while let Some((path, command)) = open.pop() {
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                open.push((format!("{path} {}", inner.get_name()), inner.clone()));
            }
            found.push((path.trim_start().to_owned(), command));
        }
        found
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        for (path, command) in all() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.split_once("Example").map_or("", |(_, rest)| rest).lines().skip(1);
            let examples: Vec<_> = examples.filter(|line| line.contains("windlass")).collect();
            assert!(!examples.is_empty() || command.is_hide_set(), "`windlass {path}` has no example");
        }
    }

    #[test]
    fn an_option_without_effect_is_neither_shown_nor_accepted() {
        for (path, names) in UNUSED {
            let (_, command) = all().into_iter().find(|(each, _)| *each == path.join(" ")).unwrap();
            for arg in command.get_arguments().filter(|arg| names.contains(&arg.get_id().as_str())) {
                assert!(arg.is_hide_set(), "{path:?} shows {}", arg.get_id());
            }
        }
        for words in
            ["redact -s read-only", "-s read-only redact", "history --yolo", "man -C /", "config path -c a=b"]
        {
            let error =
                CliArgs::parse_words(std::iter::once("windlass").chain(words.split(' '))).unwrap_err();
            assert!(error.to_string().contains("has no effect on `windlass "), "{words}: {error}");
        }
        for words in ["redact -C /", "exec -s read-only x", "config get model -s read-only"] {
            CliArgs::parse_words(std::iter::once("windlass").chain(words.split(' '))).unwrap();
        }
    }
}

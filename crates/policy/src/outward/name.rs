//! Programs by the names that the table knows: without directory, version and ending, as one of several of a kind.

use crate::{shell::Word, wrapper::base_name};

use super::{is_literal, table};

/// Words of the command line by which nothing happens elsewhere.
const ONLY_SHOWS: &[&str] =
    &["--dry-run", "--dryrun", "--help", "--version", "--just-print", "--whatif", "--no-push"];

/// Programs that pass most of their words on, so that only the first is certain to be their own.
const PASS_WORDS_ON: &[&str] =
    &["npx", "bunx", "pnpx", "uvx", "pipx", "nix", "go", "ssh", "autossh", "plink", "curl", "wget", "mosh"];

/// Endings of program files.
const ENDINGS: &[&str] = &[".exe", ".cmd", ".bat", ".phar", "-cli.js"];

/// Programs whose subcommands may be programs of their own: `git-push`, `docker-compose`.
const SPLIT: &[&str] = &["git", "docker", "cargo", "kubectl"];

/// A command with the name of its program as the table has it.
pub(super) struct ToolCall<'a> {
    pub(super) tool: String,
    /// Its arguments, with the subcommand that was part of the name.
    pub(super) arguments: Vec<Argument<'a>>,
    /// The subcommand was part of the name, so that it cannot be an alias.
    pub(super) is_split: bool,
}

/// An argument.
#[derive(Clone)]
pub(super) struct Argument<'a> {
    pub(super) text: String,
    pub(super) is_literal: bool,
    /// The word itself; none if it was part of the program's name.
    pub(super) word: Option<&'a Word>,
}

impl<'a> ToolCall<'a> {
    pub(super) fn new(words: &'a [Word]) -> Option<Self> {
        let (program, rest) = words.split_first()?;
        let (tool, subcommand) = tool_name(&program.text);
        let is_split = subcommand.is_some();
        let of_name = subcommand.map(|text| Argument { text, is_literal: true, word: None });
        let of_words = rest.iter().map(|word| Argument {
            text: word.text.clone(),
            is_literal: is_literal(word),
            word: Some(word),
        });
        Some(Self { tool, arguments: of_name.into_iter().chain(of_words).collect(), is_split })
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.arguments.iter().map(|argument| argument.text.as_str())
    }

    /// Whether an option says that nothing is to happen.
    pub(super) fn only_shows(&self) -> bool {
        let own = if PASS_WORDS_ON.contains(&self.tool.as_str()) { 1 } else { usize::MAX };
        let mut own = self.arguments.iter().take(own).take_while(|argument| argument.text != "--");
        own.any(|Argument { text, is_literal, .. }| {
            let shows = ONLY_SHOWS.contains(&text.as_str());
            *is_literal && (shows || text.starts_with("--dry-run=") && text != "--dry-run=none")
        })
    }

    /// Whether an option is given: a word, `--long` or a beginning of it or with a value, `-x` in a bundle.
    pub(super) fn has(&self, option: &str) -> bool {
        let mut options = self.texts().take_while(|text| *text != "--");
        if let Some(letter) = option.strip_prefix('-').filter(|name| name.len() == 1 && *name != "-") {
            let mut bundles = options.filter_map(|text| text.strip_prefix('-'));
            return bundles.any(|bundle| !bundle.starts_with('-') && bundle.contains(letter));
        }
        options.any(|text| {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            let abbreviated = name.len() > 3 && name.starts_with("--") && option.starts_with(name);
            name == option || abbreviated
        })
    }

    /// The words from an argument on.
    pub(super) fn words_from(&self, at: usize) -> Vec<Word> {
        self.arguments.iter().skip(at).filter_map(|argument| argument.word.cloned()).collect()
    }
}

/// The name of a program in the table, and a subcommand if that is part of its name.
pub(super) fn tool_name(program: &str) -> (String, Option<String>) {
    let name = base_name(program).to_ascii_lowercase();
    let name = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    if let Some(tool) = table::same_kind(name) {
        return (tool.to_owned(), None);
    }
    let split = name.split_once('-').filter(|(tool, _)| SPLIT.contains(tool));
    if let Some((tool, subcommand)) = split {
        return (tool.to_owned(), Some(subcommand.to_owned()));
    }
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    (table::same_kind(bare).unwrap_or(name).to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_any_of_its_names() {
        for (program, tool, subcommand) in [
            ("git", "git", None),
            ("/usr/bin/git", "git", None),
            ("git.exe", "git", None),
            ("/usr/lib/git-core/git-push", "git", Some("push")),
            ("pip3.11", "pip", None),
            ("python3.12", "python", None),
            ("docker-compose", "docker", Some("compose")),
            ("nerdctl", "docker", None),
            ("./mvnw", "mvn", None),
            ("./gradlew", "gradle", None),
            ("p4", "p4", None),
            ("s3cmd", "s3cmd", None),
            ("unheard-of9", "unheard-of9", None),
        ] {
            assert_eq!(tool_name(program), (tool.to_owned(), subcommand.map(str::to_owned)), "{program}");
        }
    }
}

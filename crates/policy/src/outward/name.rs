//! Program names as in the table: without directory, version and extension, and with aliases
//! resolved.

use crate::{shell::ShellWord, wrapper::base_name};

use super::{is_literal, table};

/// Options that prevent any effect elsewhere.
const ONLY_SHOWS: &[&str] = &["--dry-run", "--dryrun", "--help", "--just-print", "--whatif"];

/// Values that turn these options off.
const TAKES_BACK: &[&str] = &["none", "false", "no", "off", "0"];

/// Tools that take any word as the value of an option, even one that looks like an option.
const TAKE_ANY_VALUE: &[&str] = &["kubectl", "helm", "docker", "gh", "glab", "argocd", "flux", "fly"];

/// Options of `git push` with a value.
const PUSH_VALUES: &[&str] = &["-o", "--push-option", "--repo", "--receive-pack", "--exec"];

/// Programs that pass most of their words on, so that only the first is certainly their own.
const PASS_WORDS_ON: &[&str] =
    &["npx", "bunx", "pnpx", "uvx", "pipx", "nix", "go", "ssh", "autossh", "plink", "curl", "wget", "mosh"];

/// Maximum number of words that are checked of a command that another passes on. Its verb comes
/// long before.
const MAX_WORDS_PASSED_ON: usize = 64;

/// Extensions of program files.
const ENDINGS: &[&str] = &[".exe", ".cmd", ".bat", ".phar", "-cli.js"];

/// Programs whose subcommands may be programs of their own: `git-push`, `docker-compose`.
const SPLIT: &[&str] = &["git", "docker", "cargo", "kubectl"];

/// A command with the name of its program as in the table.
pub(super) struct ToolCommand<'a> {
    pub(super) tool: String,
    /// Its arguments, with the subcommand that was part of the name.
    pub(super) arguments: Vec<ToolArgument<'a>>,
    /// The subcommand was part of the name, so that it cannot be an alias.
    pub(super) is_split: bool,
}

/// An argument of a tool.
#[derive(Clone)]
pub(super) struct ToolArgument<'a> {
    pub(super) text: String,
    pub(super) is_literal: bool,
    /// The word itself; none if it was part of the program's name.
    pub(super) word: Option<&'a ShellWord>,
}

impl<'a> ToolCommand<'a> {
    pub(super) fn new(words: &'a [ShellWord]) -> Option<Self> {
        let (program, rest) = words.split_first()?;
        let (tool, subcommand) = tool_name(&program.text);
        let is_split = subcommand.is_some();
        let of_name = subcommand.map(|text| ToolArgument { text, is_literal: true, word: None });
        let word_effects = rest.iter().map(|word| ToolArgument {
            text: word.text.clone(),
            is_literal: is_literal(word),
            word: Some(word),
        });
        Some(Self { tool, arguments: of_name.into_iter().chain(word_effects).collect(), is_split })
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.arguments.iter().map(|argument| argument.text.as_str())
    }

    /// Returns true if an option prevents any effect.
    pub(super) fn only_shows(&self) -> bool {
        let own = if PASS_WORDS_ON.contains(&self.tool.as_str()) { 1 } else { self.arguments.len() };
        let end = self.arguments.iter().position(|argument| argument.text == "--");
        let own = own.min(end.unwrap_or(own));
        // Before other arguments it is the version of something they name.
        let version = self.arguments.last().is_some_and(|last| last.text == "--version");
        if self.tool == "ssh" {
            return matches!(&self.arguments[..], [only] if matches!(only.text.as_str(), "-V" | "--version"));
        }
        let is_taken_back = self.texts().any(|text| text == "--no-dry-run");
        version && own == self.arguments.len() || !is_taken_back && (0..own).any(|at| self.only_shows_by(at))
    }

    fn only_shows_by(&self, at: usize) -> bool {
        let Some(argument) = self.arguments.get(at).filter(|argument| argument.is_literal) else {
            return false;
        };
        let before = at.checked_sub(1).and_then(|before| self.arguments.get(before));
        let is_value = before.is_some_and(|before| {
            let takes_any = TAKE_ANY_VALUE.contains(&self.tool.as_str());
            let is_option = before.text.starts_with('-') && !before.text.contains('=');
            takes_any && is_option || self.tool == "git" && PUSH_VALUES.contains(&before.text.as_str())
        });
        let (name, attached) = argument
            .text
            .split_once('=')
            .map_or((argument.text.as_str(), None), |(name, value)| (name, Some(value)));
        let next = self.arguments.get(at + 1).map(|next| next.text.as_str());
        let value = attached.or(next).unwrap_or_default();
        let is_off = TAKES_BACK.contains(&value) || attached.is_some_and(|value| value.contains(['$', '`']));
        let holds_back =
            name == "--no-push" && matches!(self.tool.as_str(), "kaniko" | "skaffold" | "ghp-import");
        !is_value && !is_off && (ONLY_SHOWS.contains(&name) || holds_back)
    }

    /// Returns true if an option is given: as a word, as `--long` (abbreviated or with a value), or
    /// as `-x` in a bundle.
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

    /// Returns the words from an argument on.
    pub(super) fn words_from(&self, at: usize) -> Vec<ShellWord> {
        let words = self.arguments.iter().skip(at).take(MAX_WORDS_PASSED_ON);
        words.filter_map(|argument| argument.word.cloned()).collect()
    }
}

/// Returns the name of a program in the table, and a subcommand if that is part of its name.
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

//! Rules in TOML by which a person decides about commands beforehand, by the first words of a
//! command.

mod fault;
mod file;
mod wide;

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use windlass_contract::effects::{CommandLine, OutwardEffect};

pub use fault::{RuleError, RuleFault, RuleProblem};

use crate::{
    known::{self, system_name},
    shell::ShellWord,
    wrapper::base_name,
};

/// Rules from any number of files.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    all: Vec<CommandRule>,
    /// The programs that the rules name: most commands run none of them.
    programs: HashSet<String>,
    notes: Vec<String>,
}

/// A file with rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleFile<'a> {
    /// The name for messages.
    pub name: &'a str,
    /// The contents.
    pub text: &'a str,
    /// The owner of the file.
    pub trust: Trust,
}

/// The owner of a rule file, who determines what its rules may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user's: it may allow.
    User,
    /// The project's, which anyone may have written: it may only forbid and ask.
    Project,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandRule {
    /// The commands that it matches.
    #[serde(flatten)]
    pub matches: RuleMatch,
    /// The decision for these commands.
    pub decision: RuleDecision,
    /// The reason, shown to the person who is asked and to the model that is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The allowed commands may also run outside the sandbox.
    pub escape_sandbox: bool,
    /// The time, in UTC, at which a person created it by an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The file that contains it.
    pub file: String,
    /// The line in that file.
    pub line: usize,
}

/// The commands that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleMatch {
    /// Commands that begin with these words, each with its alternatives. Any words may follow.
    Prefix(Vec<Vec<String>>),
    /// Commands of exactly these words. If the program is an absolute path, the file counts, not
    /// the name.
    Argv(Vec<String>),
    /// Commands with this effect beyond the machine.
    Effect(OutwardEffect),
}

/// The decision of a rule about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// It runs without a question.
    Allow,
    /// It is asked about under every approval policy.
    Ask,
    /// It is refused.
    Forbid,
}

impl Rules {
    /// Loads rule files. A malformed file is an error that lists all faults in all files, so that a
    /// person never relies on a rule that is not in force.
    pub fn load(files: &[RuleFile<'_>]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        let faults: Vec<_> = files.iter().flat_map(|file| file::read(file, &mut rules)).collect();
        if !faults.is_empty() {
            return Err(RuleError { faults });
        }
        rules.programs = rules.all.iter().flat_map(CommandRule::program_names).collect();
        Ok(rules)
    }

    /// Adds the rules of another load.
    pub fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.programs.extend(other.programs);
        self.notes.extend(other.notes);
    }

    /// Returns notes about rules that are ignored and why, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns every rule in force.
    pub fn iter(&self) -> impl Iterator<Item = &CommandRule> {
        self.all.iter()
    }

    /// Returns the strictest rule for the words of a command; of several, the most specific one. A
    /// rule that lets any words follow outside the sandbox counts only if there is no other.
    pub(crate) fn find(&self, words: &[ShellWord], surroundings: &Surroundings<'_>) -> Option<&CommandRule> {
        let (program, rest) = words.split_first()?;
        let program = ProgramNames::from_word(program);
        let known = |name: &str| self.programs.contains(name);
        // Most programs are called by their bare name, and no rule names them.
        if !known(program.base)
            && program.literal.is_none_or(|literal| literal == program.base || !known(literal))
        {
            return None;
        }
        let fitting = self.all.iter().filter(|rule| rule.fits_words(&program, rest, surroundings));
        fitting.max_by_key(|rule| {
            (!rule.leaves_with_any_words(), rule.decision, rule.argv().is_some(), rule.length())
        })
    }

    /// Returns the strictest rule for an effect beyond the machine.
    pub(crate) fn find_effect(&self, effect: OutwardEffect) -> Option<&CommandRule> {
        let fitting = self.all.iter().filter(|rule| rule.matches == RuleMatch::Effect(effect));
        fitting.max_by_key(|rule| rule.decision)
    }
}

/// The facts about the machine that rules need. Without them, rules that leave the sandbox match
/// nothing.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The directory that the user works in. A rule that leaves the sandbox holds for commands that
    /// start there.
    pub workspace: Option<&'a Path>,
    /// Finds the file that a program's name stands for, if no command in the sandbox can write it.
    pub programs: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Returns true if an earlier command may have written the file of a program. Such a name is
    /// not known to be harmless. Present only if nothing holds the files of programs.
    pub replaceable: Option<&'a dyn Fn(&str) -> bool>,
}

impl Surroundings<'_> {
    /// Returns surroundings without any facts.
    pub fn unknown() -> Self {
        Self { workspace: None, programs: &|_| None, replaceable: None }
    }
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The names of a program.
struct ProgramNames<'a> {
    /// As it is called; none if that is unclear.
    literal: Option<&'a str>,
    /// Without the directory, if that is a directory of the system.
    system: Option<&'a str>,
    /// Without any directory.
    base: &'a str,
}

impl<'a> ProgramNames<'a> {
    fn from_word(word: &'a ShellWord) -> Self {
        let literal = is_literal(word).then_some(word.text.as_str());
        Self { literal, system: system_name(word), base: base_name(&word.text) }
    }
}

fn is_literal(word: &ShellWord) -> bool {
    word.unclear.is_none() && !word.glob
}

impl CommandRule {
    /// Returns true if the rule matches a command, by its words alone.
    pub(crate) fn fits(&self, words: &[ShellWord]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let found = |name: &str| {
            self.argv()
                .and_then(|argv| argv.first())
                .filter(|own| base_name(own) == base_name(name))
                .map(PathBuf::from)
        };
        let surroundings = Surroundings { programs: &found, ..Surroundings::unknown() };
        self.fits_words(&ProgramNames::from_word(program), rest, &surroundings)
    }

    fn fits_words(
        &self,
        program: &ProgramNames<'_>,
        rest: &[ShellWord],
        surroundings: &Surroundings<'_>,
    ) -> bool {
        match &self.matches {
            RuleMatch::Prefix(prefix) => self.fits_program(prefix, program) && fits_rest(prefix, rest),
            RuleMatch::Argv(argv) => self.fits_argv(argv, program, rest, surroundings),
            RuleMatch::Effect(_) => false,
        }
    }

    /// Returns true if the rule matches the program. An allowing rule needs a program of the
    /// system, or the exact path; a forbidding rule matches behind any path.
    fn fits_program(&self, prefix: &[Vec<String>], program: &ProgramNames<'_>) -> bool {
        let Some(names) = prefix.first() else { return false };
        let by_name = match self.decision {
            RuleDecision::Allow => program.system,
            RuleDecision::Ask | RuleDecision::Forbid => Some(program.base),
        };
        names.iter().any(|name| by_name == Some(name) || program.literal == Some(name))
    }

    /// Returns true for the same words, or for words that differ only in options known to be
    /// harmless.
    fn fits_argv(
        &self,
        argv: &[String],
        program: &ProgramNames<'_>,
        rest: &[ShellWord],
        surroundings: &Surroundings<'_>,
    ) -> bool {
        let Some((own, wanted)) = argv.split_first() else { return false };
        let same_program = match program.literal {
            Some(name) if own.starts_with('/') => {
                let file = (surroundings.programs)(name);
                // The rule may name the file through a link to its directory, such as `/bin`.
                let is_named = |file: &PathBuf| {
                    file == Path::new(own) || (surroundings.programs)(own).as_ref() == Some(file)
                };
                file.as_ref().is_some_and(is_named)
            }
            _ => self.fits_program(&[vec![own.clone()]], program),
        };
        let same = rest.len() == wanted.len()
            && rest.iter().zip(wanted).all(|(word, wanted)| is_literal(word) && word.text == *wanted);
        let literal = || rest.iter().all(is_literal);
        same_program && (same || literal() && known::differ_in_harmless_options(base_name(own), wanted, rest))
    }

    /// Returns true if the rule lets any words follow outside the sandbox. Such rules are not
    /// obeyed; the commands they match are asked about.
    pub fn leaves_with_any_words(&self) -> bool {
        self.escape_sandbox && matches!(self.matches, RuleMatch::Prefix(_))
    }

    /// Returns the whole command, if the rule is for exactly one.
    fn argv(&self) -> Option<&[String]> {
        match &self.matches {
            RuleMatch::Argv(argv) => Some(argv),
            RuleMatch::Prefix(_) | RuleMatch::Effect(_) => None,
        }
    }

    /// Returns the number of words that it names.
    pub(crate) fn length(&self) -> usize {
        match &self.matches {
            RuleMatch::Prefix(prefix) => prefix.len(),
            RuleMatch::Argv(argv) => argv.len(),
            RuleMatch::Effect(_) => 0,
        }
    }

    /// Returns the program names of the commands that it matches.
    fn program_names(&self) -> Vec<String> {
        match &self.matches {
            RuleMatch::Prefix(prefix) => prefix.first().cloned().unwrap_or_default(),
            RuleMatch::Argv(argv) => {
                argv.first().into_iter().flat_map(|own| [own.clone(), base_name(own).to_owned()]).collect()
            }
            RuleMatch::Effect(_) => Vec::new(),
        }
    }

    /// Returns the commands as a person would write them.
    pub fn shown(&self) -> String {
        let part = |names: &Vec<String>| match &names[..] {
            [name] => name.clone(),
            names => format!("({})", names.join("|")),
        };
        match &self.matches {
            RuleMatch::Prefix(prefix) => prefix.iter().map(part).collect::<Vec<_>>().join(" "),
            RuleMatch::Argv(argv) => CommandLine { argv: argv.clone(), cwd: None }.display(),
            RuleMatch::Effect(effect) => format!("effect {}", effect.name()),
        }
    }
}

fn fits_rest(prefix: &[Vec<String>], words: &[ShellWord]) -> bool {
    let wanted = prefix.get(1..).unwrap_or_default();
    let fits = |(names, word): (&Vec<String>, &ShellWord)| is_literal(word) && names.contains(&word.text);
    words.len() >= wanted.len() && wanted.iter().zip(words).all(fits)
}

/// Returns true if an allowing rule with these words would be far too general.
pub(crate) fn is_too_wide(prefix: &[String]) -> bool {
    let prefix: Vec<_> = prefix.iter().map(|word| vec![word.clone()]).collect();
    wide::find(&prefix).is_some()
}

#[cfg(test)]
mod tests;

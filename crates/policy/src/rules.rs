//! What a person has settled about commands beforehand: rules in TOML, by the words a command begins with.

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
    shell::Word,
    wrapper::base_name,
};

/// Rules from any number of files.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    all: Vec<Rule>,
    /// The programs they are about: most commands are of none.
    programs: HashSet<String>,
    notes: Vec<String>,
}

/// A file with rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleFile<'a> {
    /// What to call it in messages.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
    /// Whose it is.
    pub trust: Trust,
}

/// Whose word a file of rules is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user's: it may allow.
    User,
    /// The project's, which anyone may have written: it may only forbid and ask.
    Project,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The commands it is about.
    #[serde(flatten)]
    pub matches: RuleMatch,
    /// What it says.
    pub decision: Action,
    /// Why, for whoever is asked or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Whether what it allows may also run outside the sandbox.
    pub escape_sandbox: bool,
    /// When a person made it by an answer, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The file it is from.
    pub file: String,
    /// Its line there.
    pub line: usize,
}

/// The commands a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleMatch {
    /// Those that begin with these words, each with its alternatives. Any words may follow.
    Prefix(Vec<Vec<String>>),
    /// Those of exactly these words. Where the program is an absolute path, it is the file that counts, not the name.
    Argv(Vec<String>),
    /// Those with this effect beyond the machine.
    Effect(OutwardEffect),
}

/// What a rule says about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It runs without a question.
    Allow,
    /// It is asked about, whatever the approval policy says.
    Ask,
    /// It is refused.
    Forbid,
}

impl Rules {
    /// Reads files of rules. A file that makes no sense is an error, with all that is wrong in any of them: nobody shall
    /// believe in a rule that is not in force.
    pub fn load(files: &[RuleFile<'_>]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        let faults: Vec<_> = files.iter().flat_map(|file| file::read(file, &mut rules)).collect();
        if !faults.is_empty() {
            return Err(RuleError { faults });
        }
        rules.programs = rules.all.iter().flat_map(Rule::program_names).collect();
        Ok(rules)
    }

    /// Adds the rules of another reading.
    pub fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.programs.extend(other.programs);
        self.notes.extend(other.notes);
    }

    /// What was left out and why, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Every rule in force.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter()
    }

    /// The strictest rule for the words of a command; of several, the one that says the most about it. One that lets any
    /// words follow outside the sandbox counts only where there is no other.
    pub(crate) fn find(&self, words: &[Word], surroundings: &Surroundings<'_>) -> Option<&Rule> {
        let (program, rest) = words.split_first()?;
        let program = Program::of(program);
        let known = |name: &str| self.programs.contains(name);
        // Most are called by their bare name, and no rule is about them.
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

    /// The strictest rule for an effect beyond the machine.
    pub(crate) fn find_effect(&self, effect: OutwardEffect) -> Option<&Rule> {
        let fitting = self.all.iter().filter(|rule| rule.matches == RuleMatch::Effect(effect));
        fitting.max_by_key(|rule| rule.decision)
    }
}

/// What of the machine a rule needs to know. Rules that leave the sandbox fit nothing where it is not known.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where the user works. A rule that leaves the sandbox holds for commands that start there.
    pub workspace: Option<&'a Path>,
    /// Finds the file that a program's name stands for, if no command in the sandbox can write it.
    pub programs: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Tells whether an earlier command may have written the file that a program's name stands for. Such a name is not known
    /// to be harmless. Only told where nothing holds what runs.
    pub replaceable: Option<&'a dyn Fn(&str) -> bool>,
}

impl Surroundings<'_> {
    /// Knows nothing of the machine.
    pub fn unknown() -> Self {
        Self { workspace: None, programs: &|_| None, replaceable: None }
    }
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The names a program goes by.
struct Program<'a> {
    /// As it is called; none if that is unclear.
    literal: Option<&'a str>,
    /// Without the directory, if that is one of the system's.
    system: Option<&'a str>,
    /// Without any directory.
    base: &'a str,
}

impl<'a> Program<'a> {
    fn of(word: &'a Word) -> Self {
        let literal = is_literal(word).then_some(word.text.as_str());
        Self { literal, system: system_name(word), base: base_name(&word.text) }
    }
}

fn is_literal(word: &Word) -> bool {
    word.unclear.is_none() && !word.glob
}

impl Rule {
    /// Whether a command is one that the rule is about, by its words alone.
    pub(crate) fn fits(&self, words: &[Word]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        let found = |name: &str| {
            self.argv()
                .and_then(|argv| argv.first())
                .filter(|own| base_name(own) == base_name(name))
                .map(PathBuf::from)
        };
        let surroundings = Surroundings { programs: &found, ..Surroundings::unknown() };
        self.fits_words(&Program::of(program), rest, &surroundings)
    }

    fn fits_words(&self, program: &Program<'_>, rest: &[Word], surroundings: &Surroundings<'_>) -> bool {
        match &self.matches {
            RuleMatch::Prefix(prefix) => self.fits_program(prefix, program) && fits_rest(prefix, rest),
            RuleMatch::Argv(argv) => self.fits_argv(argv, program, rest, surroundings),
            RuleMatch::Effect(_) => false,
        }
    }

    /// What allows wants a program of the system, or the very path it names; what forbids sees it behind any path.
    fn fits_program(&self, prefix: &[Vec<String>], program: &Program<'_>) -> bool {
        let Some(names) = prefix.first() else { return false };
        let by_name = match self.decision {
            Action::Allow => program.system,
            Action::Ask | Action::Forbid => Some(program.base),
        };
        names.iter().any(|name| by_name == Some(name) || program.literal == Some(name))
    }

    /// The same words, or the same but for options of a program whose options are all known to be harmless.
    fn fits_argv(
        &self,
        argv: &[String],
        program: &Program<'_>,
        rest: &[Word],
        surroundings: &Surroundings<'_>,
    ) -> bool {
        let Some((own, wanted)) = argv.split_first() else { return false };
        let same_program = match program.literal {
            Some(name) if own.starts_with('/') => {
                (surroundings.programs)(name).as_deref() == Some(Path::new(own))
            }
            _ => self.fits_program(&[vec![own.clone()]], program),
        };
        let same = rest.len() == wanted.len()
            && rest.iter().zip(wanted).all(|(word, wanted)| is_literal(word) && word.text == *wanted);
        let literal = || rest.iter().all(is_literal);
        same_program && (same || literal() && known::differ_in_harmless_options(base_name(own), wanted, rest))
    }

    /// Whether it lets any words follow outside the sandbox. Such rules are not obeyed; what they fit is asked about.
    pub fn leaves_with_any_words(&self) -> bool {
        self.escape_sandbox && matches!(self.matches, RuleMatch::Prefix(_))
    }

    /// The whole command it is about, if it is about one.
    fn argv(&self) -> Option<&[String]> {
        match &self.matches {
            RuleMatch::Argv(argv) => Some(argv),
            RuleMatch::Prefix(_) | RuleMatch::Effect(_) => None,
        }
    }

    /// How many words it names.
    pub(crate) fn length(&self) -> usize {
        match &self.matches {
            RuleMatch::Prefix(prefix) => prefix.len(),
            RuleMatch::Argv(argv) => argv.len(),
            RuleMatch::Effect(_) => 0,
        }
    }

    /// The names by which commands it is about may be called.
    fn program_names(&self) -> Vec<String> {
        match &self.matches {
            RuleMatch::Prefix(prefix) => prefix.first().cloned().unwrap_or_default(),
            RuleMatch::Argv(argv) => {
                argv.first().into_iter().flat_map(|own| [own.clone(), base_name(own).to_owned()]).collect()
            }
            RuleMatch::Effect(_) => Vec::new(),
        }
    }

    /// The commands as a person would write them.
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

fn fits_rest(prefix: &[Vec<String>], words: &[Word]) -> bool {
    let wanted = prefix.get(1..).unwrap_or_default();
    let fits = |(names, word): (&Vec<String>, &Word)| is_literal(word) && names.contains(&word.text);
    words.len() >= wanted.len() && wanted.iter().zip(words).all(fits)
}

/// Whether nobody could mean to allow everything that begins with these words.
pub(crate) fn is_too_wide(prefix: &[String]) -> bool {
    let prefix: Vec<_> = prefix.iter().map(|word| vec![word.clone()]).collect();
    wide::find(&prefix).is_some()
}

#[cfg(test)]
mod tests;

//! What a person has settled about commands beforehand: rules in TOML, by the words a command begins with.

mod file;
mod wide;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use file::RuleError;

use crate::{known::system_name, shell::Word, wrapper::base_name};

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
    /// The words a command must begin with, each with its alternatives.
    pub prefix: Vec<Vec<String>>,
    /// What it says.
    pub decision: Action,
    /// Why, for whoever is asked or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Whether what it allows may also run outside the sandbox.
    pub escape_sandbox: bool,
    /// The file it is from.
    pub file: String,
    /// Its line there.
    pub line: usize,
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
    /// Reads files of rules. A file that makes no sense is an error: nobody shall believe in a rule that is not in force.
    pub fn load(files: &[RuleFile<'_>]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for file in files {
            file::read(file, &mut rules)?;
        }
        rules.programs = rules.all.iter().filter_map(|rule| rule.prefix.first()).flatten().cloned().collect();
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

    /// The strictest rule for a command; of several, the one with the longest prefix.
    pub(crate) fn find(&self, words: &[Word]) -> Option<&Rule> {
        let (program, rest) = words.split_first()?;
        let program = Program::of(program);
        let known = |name: &str| self.programs.contains(name);
        // Most are called by their bare name, and no rule is about them.
        if !known(program.base)
            && program.literal.is_none_or(|literal| literal == program.base || !known(literal))
        {
            return None;
        }
        let fitting = self.all.iter().filter(|rule| rule.fits_program(&program) && rule.fits_rest(rest));
        fitting.max_by_key(|rule| (rule.decision, rule.prefix.len()))
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
    /// Whether a command begins as the rule wants.
    pub(crate) fn fits(&self, words: &[Word]) -> bool {
        let Some((program, rest)) = words.split_first() else { return false };
        self.fits_program(&Program::of(program)) && self.fits_rest(rest)
    }

    /// What allows wants a program of the system, or the very path it names; what forbids sees it behind any path.
    fn fits_program(&self, program: &Program<'_>) -> bool {
        let Some(names) = self.prefix.first() else { return false };
        let by_name = match self.decision {
            Action::Allow => program.system,
            Action::Ask | Action::Forbid => Some(program.base),
        };
        names.iter().any(|name| by_name == Some(name) || program.literal == Some(name))
    }

    fn fits_rest(&self, words: &[Word]) -> bool {
        let wanted = self.prefix.get(1..).unwrap_or_default();
        let fits = |(names, word): (&Vec<String>, &Word)| is_literal(word) && names.contains(&word.text);
        words.len() >= wanted.len() && wanted.iter().zip(words).all(fits)
    }

    /// The prefix as a person would write it.
    pub fn shown(&self) -> String {
        let part = |names: &Vec<String>| match &names[..] {
            [name] => name.clone(),
            names => format!("({})", names.join("|")),
        };
        self.prefix.iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// Whether nobody could mean to allow everything that begins with these words.
pub(crate) fn is_too_wide(prefix: &[String]) -> bool {
    let prefix: Vec<_> = prefix.iter().map(|word| vec![word.clone()]).collect();
    wide::find(&prefix).is_some()
}

#[cfg(test)]
mod tests;

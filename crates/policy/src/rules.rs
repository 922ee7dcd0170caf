//! What a person has settled about commands beforehand: rules in TOML, by the words a command begins with.

mod file;
mod wide;

use serde::{Deserialize, Serialize};

pub use file::RuleError;

use crate::{known::system_name, shell::Word, wrapper::base_name};

/// Rules from any number of files.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
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
    pub decision: Ruling,
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
pub enum Ruling {
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
        Ok(rules)
    }

    /// What was left out and why, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Every rule in force.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The strictest rule for a command; of several, the one with the longest prefix.
    pub(crate) fn find(&self, words: &[Word]) -> Option<&Rule> {
        let fitting = self.rules.iter().filter(|rule| rule.fits(words));
        fitting.max_by_key(|rule| (rule.decision, rule.prefix.len()))
    }
}

impl Rule {
    /// Whether a command begins as the rule wants. What forbids also sees a program behind a path.
    pub(crate) fn fits(&self, words: &[Word]) -> bool {
        let is_one_of = |names: &[String], text: &str| names.iter().any(|name| name == text);
        let Some((program, rest)) = self.prefix.split_first() else { return false };
        let Some((own, words)) = words.split_first() else { return false };
        let called = match self.decision {
            Ruling::Allow => system_name(own).is_some_and(|name| is_one_of(program, name)),
            Ruling::Ask | Ruling::Forbid => is_one_of(program, base_name(&own.text)),
        };
        let literal = |word: &Word| word.unclear.is_none() && !word.glob;
        let exactly = literal(own) && is_one_of(program, &own.text);
        (called || exactly)
            && words.len() >= rest.len()
            && rest.iter().zip(words).all(|(names, word)| literal(word) && is_one_of(names, &word.text))
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

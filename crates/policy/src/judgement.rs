//! What is known about a command before it runs. Plain data; whoever decides combines it with what a person has settled.

use std::fmt;

use serde::Serialize;
use windlass_contract::effects::OutwardEffect;

use crate::{Action, Danger, Rule, Unclear};

/// What is known about a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest of its parts, and of what is unclear.
    pub class: Class,
    /// Why, in one line.
    pub why: String,
    /// Every program it would run, as far as can be seen.
    pub parts: Vec<Part>,
    /// What its text does not settle. Not empty means: it may do more than the parts say.
    pub unclear: Vec<Unclear>,
    /// Files its redirections touch.
    pub files: Vec<FileUse>,
    /// What it would do beyond this machine, as far as can be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outward: Vec<OutwardEffect>,
    /// Whether it is known to change nothing, so that it may run beside others.
    pub changes_nothing: bool,
    /// Whether a rule lets it leave the sandbox.
    pub escape_sandbox: bool,
    /// The file of its program and its words, if it may leave: that is what runs, with no shell in between.
    #[serde(skip)]
    pub direct_argv: Option<Vec<String>>,
    /// Whether a rule of an earlier version let all of it leave the sandbox, with any words behind it. A person is asked
    /// again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_to_leave_again: bool,
}

/// What kind of command it is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Known to be harmless, or allowed by a rule: no question.
    Safe,
    /// Anything else: whether to ask is up to the approval policy.
    Ordinary,
    /// Destroys, publishes or gives away, or a rule wants it asked about: always a question.
    Dangerous,
    /// Refused, by a rule or because no agent should ever do it.
    Forbidden,
}

/// One program that would be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its words: where nothing is unclear, exactly those it would get. A wildcard is shown as it is written.
    pub argv: Vec<String>,
    /// The programs around it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// What kind of command it is.
    pub class: Class,
    /// Why.
    pub reason: Reason,
    /// What else was seen: variables, redirections, wildcards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
}

/// Why a part is of its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Reason {
    /// It is on the list of harmless commands.
    Known,
    /// It only runs the part after it, which settles the matter.
    Wrapper,
    /// A rule says so.
    Rule(Rule),
    /// It does harm.
    Danger(Danger),
    /// It is not known to be harmless.
    NotKnown {
        /// What stands in the way.
        why: String,
    },
}

/// A file that a redirection touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileUse {
    /// Its path, as written.
    pub path: String,
    /// What is done to it.
    pub access: Access,
    /// Whether the path is certain.
    pub clear: bool,
}

/// What a redirection does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It is read.
    Read,
    /// It is created or overwritten.
    Write,
    /// It is created or grows.
    Append,
}

impl Class {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Ordinary => "ordinary",
            Self::Dangerous => "dangerous",
            Self::Forbidden => "forbidden",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known => f.write_str("on the list of harmless commands"),
            Self::Wrapper => f.write_str("as what it runs"),
            Self::Rule(rule) if rule.leaves_with_any_words() => write!(
                f,
                "the rule `{}` (`{}`, line {}) let any words follow outside the sandbox, so it is asked about again",
                rule.shown(),
                rule.file,
                rule.line
            ),
            Self::Rule(rule) => {
                let says = match rule.decision {
                    Action::Allow => "allowed",
                    Action::Ask => "to be asked about",
                    Action::Forbid => "forbidden",
                };
                write!(f, "{says} by the rule `{}` (`{}`, line {})", rule.shown(), rule.file, rule.line)?;
                rule.justification.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            Self::Danger(danger) => {
                f.write_str(&danger.what)?;
                danger.instead.as_ref().map_or(Ok(()), |way| write!(f, "; safer: {way}"))
            }
            Self::NotKnown { why } => f.write_str(why),
        }
    }
}

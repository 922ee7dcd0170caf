//! What is wrong with files of rules, where, and what is allowed there.

use std::{error::Error, fmt};

/// Why files of rules cannot be used: everything that is wrong in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Never empty.
    pub faults: Vec<RuleFault>,
}

impl Error for RuleError {}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            let line_break = if at == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`, line {line}: {problem}")]
pub struct RuleFault {
    /// The file.
    pub file: String,
    /// Where.
    pub line: usize,
    /// What.
    pub problem: RuleProblem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// It is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// There is no such key.
    #[error("unknown key `{key}`; allowed: {allowed}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those there are.
        allowed: String,
    },
    /// A key has a value that it cannot have.
    #[error("`{key}` must be {expected}; found {found}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// A key is missing.
    #[error("the rule has no `{key}`; write {example}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// A rule says twice what it is about.
    #[error("a rule has one of `prefix`, `argv` and `effect`, not several")]
    SeveralMatches,
    /// A rule would fit every command, or none.
    #[error("`prefix` needs at least one word, and every word at least one alternative")]
    EmptyPrefix,
    /// A rule would allow more than anyone can mean.
    #[error("`{prefix}` may not be allowed: {reason}; add the words that follow it")]
    TooWide {
        /// The words.
        prefix: String,
        /// What it would allow.
        reason: &'static str,
    },
    /// A whole class of effects cannot be allowed.
    #[error(
        "`effect` is for rules with `decision = \"ask\"` or `\"forbid\"`; to be asked less, set `ask_before` in config.toml"
    )]
    AllowedEffect,
    /// Only what is allowed can leave the sandbox.
    #[error("`escape_sandbox` is for rules with `decision = \"allow\"`")]
    Escape,
    /// What leaves the sandbox is known by its file.
    #[error(
        "`{program}` is not an absolute path; a rule with `escape_sandbox` names the file of its program, as in `argv = [\"/usr/bin/make\", \"test\"]`"
    )]
    RelativeProgram {
        /// The program.
        program: String,
    },
    /// An example is not one command.
    #[error("the example `{example}` is not one plain command")]
    Example {
        /// The example.
        example: String,
    },
    /// An example that must match does not.
    #[error("the rule `{rule}` does not match its example `{example}`")]
    Misses {
        /// The rule.
        rule: String,
        /// The example.
        example: String,
    },
    /// An example that must not match does.
    #[error("the rule `{rule}` matches `{example}`, which it must not")]
    Hits {
        /// The rule.
        rule: String,
        /// The example.
        example: String,
    },
}

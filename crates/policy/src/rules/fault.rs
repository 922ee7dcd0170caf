//! Faults in rule files: their positions, and the values allowed there.

use std::{error::Error, fmt};

/// The error that rule files cannot be used, with all their faults.
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

/// One fault in a rule file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`, line {line}: {problem}")]
pub struct RuleFault {
    /// The file.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The problem.
    pub problem: RuleProblem,
}

/// The problem with a rule file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// It is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The key does not exist.
    #[error("unknown key `{key}`; allowed: {allowed}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The existing keys.
        allowed: String,
    },
    /// A key has a value that is not allowed.
    #[error("`{key}` must be {expected}; found {found}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// A key is missing.
    #[error("the rule has no `{key}`; write {example}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// An example of the syntax.
        example: &'static str,
    },
    /// A rule has several keys that select commands.
    #[error("a rule has one of `prefix`, `argv` and `effect`, not several")]
    SeveralMatches,
    /// A rule would match every command, or none.
    #[error("`prefix` needs at least one word, and every word at least one alternative")]
    EmptyPrefix,
    /// A rule would allow far too much.
    #[error("`{prefix}` may not be allowed: {reason}; add the words that follow it")]
    TooWide {
        /// The words.
        prefix: String,
        /// The commands that it would allow.
        reason: &'static str,
    },
    /// A whole class of effects cannot be allowed.
    #[error(
        "`effect` is for rules with `decision = \"ask\"` or `\"forbid\"`; to be asked less, set `ask_before` in config.toml"
    )]
    AllowedEffect,
    /// Only allowed commands can leave the sandbox.
    #[error("`escape_sandbox` is for rules with `decision = \"allow\"`")]
    Escape,
    /// A command that leaves the sandbox is identified by its file.
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

//! From the text of a file to its rules, checked.

use serde::Deserialize;
use toml::Spanned;

use super::{Action, Rule, RuleFile, Rules, Trust, wide};
use crate::shell::{Dialect, Script, Word};

/// Why a file of rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is not TOML, or not of this shape.
    #[error("`{file}`, line {line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// Where.
        line: usize,
        /// What the parser said.
        problem: String,
    },
    /// A rule would fit every command, or none.
    #[error(
        "`{file}`, line {line}: `prefix` needs at least one word, and every word at least one alternative"
    )]
    EmptyPrefix {
        /// The file.
        file: String,
        /// Where.
        line: usize,
    },
    /// A rule would allow more than anyone can mean.
    #[error("`{file}`, line {line}: `{prefix}` may not be allowed: {reason}; add the words that follow it")]
    TooWide {
        /// The file.
        file: String,
        /// Where.
        line: usize,
        /// The words.
        prefix: String,
        /// What it would allow.
        reason: &'static str,
    },
    /// Only what is allowed can leave the sandbox.
    #[error("`{file}`, line {line}: `escape_sandbox` is for rules with `decision = \"allow\"`")]
    Escape {
        /// The file.
        file: String,
        /// Where.
        line: usize,
    },
    /// An example is not one command.
    #[error("`{file}`, line {line}: the example `{example}` is not one plain command")]
    Example {
        /// The file.
        file: String,
        /// Where.
        line: usize,
        /// The example.
        example: String,
    },
    /// An example that must match does not.
    #[error("`{file}`, line {line}: the rule `{prefix}` does not match its example `{example}`")]
    Misses {
        /// The file.
        file: String,
        /// Where.
        line: usize,
        /// The rule.
        prefix: String,
        /// The example.
        example: String,
    },
    /// An example that must not match does.
    #[error("`{file}`, line {line}: the rule `{prefix}` matches `{example}`, which it must not")]
    Hits {
        /// The file.
        file: String,
        /// Where.
        line: usize,
        /// The rule.
        prefix: String,
        /// The example.
        example: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    prefix: Vec<OneOrMore>,
    decision: Action,
    justification: Option<String>,
    #[serde(default, rename = "match")]
    matches: Vec<OneOrMore>,
    #[serde(default)]
    not_match: Vec<OneOrMore>,
    #[serde(default)]
    escape_sandbox: bool,
}

/// A word or its alternatives; an example as a line or as its words.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Adds the rules of a file.
pub(super) fn read(file: &RuleFile<'_>, into: &mut Rules) -> Result<(), RuleError> {
    let raw: Raw = toml::from_str(file.text).map_err(|error| RuleError::Syntax {
        file: file.name.to_owned(),
        line: line_of(file.text, error.span().map_or(0, |span| span.start)),
        problem: error.message().lines().next().unwrap_or_default().to_owned(),
    })?;
    for raw in raw.rule {
        let line = line_of(file.text, raw.span().start);
        let rule = rule(file.name, line, raw.into_inner())?;
        if file.trust == Trust::Project && rule.decision == Action::Allow {
            let prefix = rule.shown();
            into.notes.push(format!(
                "`{}`, line {line}: the rule for `{prefix}` is ignored: a project may ask and forbid, only the user may allow",
                file.name
            ));
        } else {
            into.all.push(rule);
        }
    }
    Ok(())
}

fn rule(file: &str, line: usize, raw: RawRule) -> Result<Rule, RuleError> {
    let at = || file.to_owned();
    let alternatives = |word| match word {
        OneOrMore::One(name) => vec![name],
        OneOrMore::More(names) => names,
    };
    let prefix: Vec<_> = raw.prefix.into_iter().map(alternatives).collect();
    let rule = Rule {
        prefix,
        decision: raw.decision,
        justification: raw.justification,
        escape_sandbox: raw.escape_sandbox,
        file: at(),
        line,
    };
    if rule.prefix.is_empty() || rule.prefix.iter().any(Vec::is_empty) {
        return Err(RuleError::EmptyPrefix { file: at(), line });
    }
    if rule.escape_sandbox && rule.decision != Action::Allow {
        return Err(RuleError::Escape { file: at(), line });
    }
    if rule.decision == Action::Allow
        && let Some((prefix, reason)) = wide::find(&rule.prefix)
    {
        return Err(RuleError::TooWide { file: at(), line, prefix, reason });
    }
    examples(&rule, raw.matches, true)?;
    examples(&rule, raw.not_match, false)?;
    Ok(rule)
}

/// Checks examples; `wanted`: whether the rule is to match them.
fn examples(rule: &Rule, examples: Vec<OneOrMore>, wanted: bool) -> Result<(), RuleError> {
    let (file, line, prefix) = (rule.file.clone(), rule.line, rule.shown());
    for example in examples {
        let (words, example) = match example {
            OneOrMore::More(words) => {
                (Some(words.iter().map(|word| Word::literal(word)).collect()), words.join(" "))
            }
            OneOrMore::One(line) => (one_command(&line), line),
        };
        let Some(words) = words else { return Err(RuleError::Example { file, line, example }) };
        let fits = rule.fits(&words);
        if wanted && !fits {
            return Err(RuleError::Misses { file, line, prefix, example });
        }
        if !wanted && fits {
            return Err(RuleError::Hits { file, line, prefix, example });
        }
    }
    Ok(())
}

/// The words of a line that is one plain command.
fn one_command(line: &str) -> Option<Vec<Word>> {
    let mut script = Script::parse(line, Dialect::Bash);
    let one = script.is_clear() && script.commands.len() == 1;
    script.commands.pop().filter(|_| one).map(|simple| simple.words)
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

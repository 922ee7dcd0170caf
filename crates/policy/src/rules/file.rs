//! Parses a rule file and checks its rules. All faults are found in one pass.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};
use windlass_contract::effects::OutwardEffect;

use super::{CommandRule, RuleDecision, RuleFault, RuleFile, RuleMatch, RuleProblem, Rules, Trust, wide};
use crate::shell::{ShellDialect, ShellScript, ShellWord};

/// The keys of a rule, in the order they are documented in.
const KEYS: &str = "`prefix`, `argv`, `effect`, `decision`, `justification`, `match`, `not_match`, `escape_sandbox`, `answered`";

const WORDS: &str = "a list of words in quotes";
const ALTERNATIVES: &str = "a list of words in quotes, or of lists of alternatives";
const TEXT: &str = "text in quotes";
const DECISIONS: &str = r#"one of "allow", "ask", "forbid""#;
const EFFECTS: &str = r#"one of "install", "send", "push", "remote", "publish", "deploy""#;
const EXAMPLES: &str = "a list of commands, each a line in quotes or a list of words";

/// Adds the rules of a file, and returns its faults.
pub(super) fn read(file: &RuleFile<'_>, into: &mut Rules) -> Vec<RuleFault> {
    let mut reader = RuleFileReader { file, faults: Vec::new() };
    let rules = match DeTable::parse(file.text) {
        Ok(table) => reader.document(table.get_ref()),
        Err(error) => {
            let problem = error.message().lines().next().unwrap_or_default().to_owned();
            reader.fault(error.span().map_or(0, |span| span.start), RuleProblem::Syntax(problem));
            Vec::new()
        }
    };
    let RuleFileReader { mut faults, .. } = reader;
    faults.sort_by_key(|fault| fault.line);
    if faults.is_empty() {
        for rule in rules {
            add(file, rule, into);
        }
    }
    faults
}

/// Adds a rule, if its file may contain it.
fn add(file: &RuleFile<'_>, rule: CommandRule, into: &mut Rules) {
    let (name, line, shown) = (file.name, rule.line, rule.shown());
    if file.trust == Trust::Project && rule.decision == RuleDecision::Allow {
        into.notes.push(format!(
            "`{name}`, line {line}: the rule for `{shown}` is ignored: a project may ask and forbid, only the user may allow"
        ));
        return;
    }
    if rule.leaves_with_any_words() {
        into.notes.push(format!(
            "`{name}`, line {line}: the rule `{shown}` would let any words follow outside the sandbox; what it fits is asked \
             about again, and the answer makes a rule for exactly that command"
        ));
    }
    into.all.push(rule);
}

struct RuleFileReader<'a> {
    file: &'a RuleFile<'a>,
    faults: Vec<RuleFault>,
}

/// The fields of a rule, as far as they could be parsed.
#[derive(Default)]
struct RuleFields {
    prefix: Option<Vec<Vec<String>>>,
    argv: Option<Vec<String>>,
    effect: Option<OutwardEffect>,
    decision: Option<RuleDecision>,
    justification: Option<String>,
    matches: Vec<RuleExample>,
    not_match: Vec<RuleExample>,
    escape_sandbox: bool,
    answered: Option<String>,
    /// A key was present but malformed, so that it is not reported as missing.
    has_faults: bool,
}

/// An example as a line, or as its words.
enum RuleExample {
    Line(String),
    Words(Vec<String>),
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl RuleFileReader<'_> {
    fn fault(&mut self, at: usize, problem: RuleProblem) {
        let (file, line) = (self.file.name.to_owned(), line_of(self.file.text, at));
        self.faults.push(RuleFault { file, line, problem });
    }

    fn document(&mut self, table: &DeTable<'_>) -> Vec<CommandRule> {
        let mut rules = Vec::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match value.get_ref() {
                _ if name != "rule" => {
                    let allowed = "`[[rule]]`".to_owned();
                    self.fault(key.span().start, RuleProblem::UnknownKey { key: name.to_owned(), allowed });
                }
                DeValue::Array(entries) => rules.extend(entries.iter().filter_map(|entry| self.entry(entry))),
                _ => self.wrong("rule", "a list of tables, each written as `[[rule]]`", value),
            }
        }
        rules
    }

    fn entry(&mut self, entry: &TomlValue<'_>) -> Option<CommandRule> {
        let DeValue::Table(table) = entry.get_ref() else {
            self.wrong("rule", "a list of tables, each written as `[[rule]]`", entry);
            return None;
        };
        let before = self.faults.len();
        let mut parts = RuleFields::default();
        for (key, value) in table {
            self.part(key.get_ref().as_ref(), key.span().start, value, &mut parts);
        }
        parts.has_faults = self.faults.len() > before;
        let at = entry.span().start;
        match self.rule(at, parts) {
            Ok(rule) => rule,
            Err(problem) => {
                self.fault(at, problem);
                None
            }
        }
    }

    /// Parses one key of a rule.
    fn part(&mut self, key: &str, at: usize, value: &TomlValue<'_>, into: &mut RuleFields) {
        match key {
            "prefix" => into.prefix = self.expect("prefix", ALTERNATIVES, value, alternatives(value)),
            "argv" => into.argv = self.expect("argv", WORDS, value, words(value)),
            "effect" => {
                let effect = text(value).and_then(|name| OutwardEffect::from_name(&name));
                into.effect = self.expect("effect", EFFECTS, value, effect);
            }
            "decision" => into.decision = self.expect("decision", DECISIONS, value, decision(value)),
            "justification" => into.justification = self.expect("justification", TEXT, value, text(value)),
            "answered" => into.answered = self.expect("answered", TEXT, value, text(value)),
            "match" => {
                into.matches = self.expect("match", EXAMPLES, value, examples(value)).unwrap_or_default();
            }
            "not_match" => {
                into.not_match =
                    self.expect("not_match", EXAMPLES, value, examples(value)).unwrap_or_default();
            }
            "escape_sandbox" => {
                let escape = match value.get_ref() {
                    DeValue::Boolean(escape) => Some(*escape),
                    _ => None,
                };
                into.escape_sandbox =
                    self.expect("escape_sandbox", "true or false", value, escape).unwrap_or_default();
            }
            other => {
                let (key, allowed) = (other.to_owned(), KEYS.to_owned());
                self.fault(at, RuleProblem::UnknownKey { key, allowed });
            }
        }
    }

    /// Returns the parsed value, or records a fault.
    fn expect<T>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        value: &TomlValue<'_>,
        understood: Option<T>,
    ) -> Option<T> {
        if understood.is_none() {
            self.wrong(key, expected, value);
        }
        understood
    }

    fn wrong(&mut self, key: &'static str, expected: &'static str, value: &TomlValue<'_>) {
        /// Maximum length of a value that a message repeats.
        const MAX_SHOWN_CHARS: usize = 60;
        let raw = self.file.text.get(value.span()).unwrap_or_default();
        let kind = value.get_ref().type_str();
        let is_short = raw.chars().count() <= MAX_SHOWN_CHARS && !raw.contains('\n');
        let found = if is_short { format!("{kind} {raw}") } else { kind.to_owned() };
        self.fault(value.span().start, RuleProblem::WrongValue { key, expected, found });
    }

    /// Builds a rule; returns `None` if its faults are already recorded.
    fn rule(&self, at: usize, parts: RuleFields) -> Result<Option<CommandRule>, RuleProblem> {
        let matches = match (parts.prefix, parts.argv, parts.effect) {
            (Some(prefix), None, None) => RuleMatch::Prefix(prefix),
            (None, Some(argv), None) => RuleMatch::Argv(argv),
            (None, None, Some(effect)) => RuleMatch::Effect(effect),
            _ if parts.has_faults => return Ok(None),
            (None, None, None) => {
                let example = r#"the words its commands begin with, as in `prefix = ["cargo", "test"]`"#;
                return Err(RuleProblem::MissingKey { key: "prefix", example });
            }
            _ => return Err(RuleProblem::SeveralMatches),
        };
        let Some(decision) = parts.decision else {
            let example = r#"`decision = "allow"`, `"ask"` or `"forbid"`"#;
            let missing = RuleProblem::MissingKey { key: "decision", example };
            return if parts.has_faults { Ok(None) } else { Err(missing) };
        };
        let rule = CommandRule {
            matches,
            decision,
            justification: parts.justification,
            escape_sandbox: parts.escape_sandbox,
            answered: parts.answered,
            file: self.file.name.to_owned(),
            line: line_of(self.file.text, at),
        };
        check(&rule)?;
        check_examples(&rule, &parts.matches, true)?;
        check_examples(&rule, &parts.not_match, false)?;
        Ok(Some(rule))
    }
}

/// Refuses rules that cannot be intended.
fn check(rule: &CommandRule) -> Result<(), RuleProblem> {
    if rule.escape_sandbox && rule.decision != RuleDecision::Allow {
        return Err(RuleProblem::Escape);
    }
    match &rule.matches {
        RuleMatch::Prefix(prefix) if prefix.is_empty() || prefix.iter().any(Vec::is_empty) => {
            Err(RuleProblem::EmptyPrefix)
        }
        RuleMatch::Prefix(prefix) if rule.decision == RuleDecision::Allow => match wide::find(prefix) {
            Some((prefix, reason)) => Err(RuleProblem::TooWide { prefix, reason }),
            None => Ok(()),
        },
        RuleMatch::Argv(argv) => match argv.first() {
            None => Err(RuleProblem::EmptyPrefix),
            Some(program) if rule.escape_sandbox && !program.starts_with('/') => {
                Err(RuleProblem::RelativeProgram { program: program.clone() })
            }
            Some(_) => Ok(()),
        },
        RuleMatch::Effect(_) if rule.decision == RuleDecision::Allow => Err(RuleProblem::AllowedEffect),
        RuleMatch::Prefix(_) | RuleMatch::Effect(_) => Ok(()),
    }
}

/// Checks examples. If `wanted`, the rule must match them, otherwise it must not.
fn check_examples(rule: &CommandRule, examples: &[RuleExample], wanted: bool) -> Result<(), RuleProblem> {
    for example in examples {
        let (words, example) = match example {
            RuleExample::Words(words) => {
                (Some(words.iter().map(|word| ShellWord::literal(word)).collect()), words.join(" "))
            }
            RuleExample::Line(line) => (one_command(line), line.clone()),
        };
        let Some(words) = words else { return Err(RuleProblem::Example { example }) };
        let (fits, rule) = (rule.fits(&words), rule.shown());
        if wanted && !fits {
            return Err(RuleProblem::Misses { rule, example });
        }
        if !wanted && fits {
            return Err(RuleProblem::Hits { rule, example });
        }
    }
    Ok(())
}

fn text(value: &TomlValue<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.clone().into_owned()),
        _ => None,
    }
}

fn list<T>(value: &TomlValue<'_>, entry: impl Fn(&TomlValue<'_>) -> Option<T>) -> Option<Vec<T>> {
    match value.get_ref() {
        DeValue::Array(entries) => entries.iter().map(entry).collect(),
        _ => None,
    }
}

fn words(value: &TomlValue<'_>) -> Option<Vec<String>> {
    list(value, text)
}

fn alternatives(value: &TomlValue<'_>) -> Option<Vec<Vec<String>>> {
    list(value, |entry| text(entry).map(|word| vec![word]).or_else(|| words(entry)))
}

fn examples(value: &TomlValue<'_>) -> Option<Vec<RuleExample>> {
    list(value, |entry| text(entry).map(RuleExample::Line).or_else(|| words(entry).map(RuleExample::Words)))
}

fn decision(value: &TomlValue<'_>) -> Option<RuleDecision> {
    match text(value)?.as_str() {
        "allow" => Some(RuleDecision::Allow),
        "ask" => Some(RuleDecision::Ask),
        "forbid" => Some(RuleDecision::Forbid),
        _ => None,
    }
}

/// Returns the words of a line that is one plain command.
fn one_command(line: &str) -> Option<Vec<ShellWord>> {
    let mut script = ShellScript::parse(line, ShellDialect::Bash);
    let one = script.is_clear() && script.commands.len() == 1;
    script.commands.pop().filter(|_| one).map(|simple| simple.words)
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

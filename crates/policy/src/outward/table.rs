//! The table of commands with effects, by tool: the words that decide, and their positions.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use windlass_contract::effects::OutwardEffect;

use super::name::ToolCommand;
use crate::shell::ShellWord;

/// Maximum number of words after a runner that may be the program it runs; those before it are
/// values of options.
const MAX_BEFORE_PROGRAM: usize = 8;

/// Maximum number of option values before a verb. More can hide it.
const MAX_VALUES: usize = 16;

/// Minimum length of an abbreviated verb, for tools that take any unique abbreviation.
const MIN_ABBREVIATION: usize = 3;

/// Minimum length of a program name that is distinctive in a text.
const MIN_NAME: usize = 3;

/// All lines of the table.
#[derive(Default)]
pub(super) struct EffectTable {
    tools: HashMap<&'static str, OutwardTool>,
    /// Names of programs that are used like another one.
    same: HashMap<&'static str, &'static str>,
}

/// The lines of one tool.
#[derive(Default)]
struct OutwardTool {
    entries: Vec<ToolEntry>,
    /// Options with a value. The list is empty for tools where any option may have one.
    values: Vec<&'static str>,
    /// Words that may come before a command of the tool.
    prefixes: Vec<Vec<&'static str>>,
    abbreviates: bool,
}

/// A command and its consequence.
struct ToolEntry {
    /// Each with its alternatives.
    words: Vec<Vec<&'static str>>,
    /// One of these must be present as well.
    needs: Vec<&'static str>,
    /// The word may be anywhere among the operands.
    anywhere: bool,
    consequence: ToolConsequence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolConsequence {
    Has(OutwardEffect),
    /// Runs the command in its further words.
    Runs,
}

/// The result of matching an entry against a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryFit {
    No,
    /// A word that is not literal may be the missing one.
    Perhaps,
    /// It matches; this is the index of the argument after its words.
    Yes(usize),
}

/// An argument that is not an option.
struct ToolOperand<'a> {
    at: usize,
    text: &'a str,
    is_literal: bool,
    /// It follows an option and may be its value.
    may_be_value: bool,
}

static TABLE: LazyLock<EffectTable> = LazyLock::new(|| EffectTable::read(include_str!("commands.txt")));

/// Returns the name of the tool in the table that a program is used like.
pub(super) fn same_kind(name: &str) -> Option<&'static str> {
    let same = TABLE.same.get(name).copied();
    same.or_else(|| TABLE.tools.get_key_value(name).map(|(name, _)| *name))
}

/// Returns the effects that a command has or may have.
pub(super) fn effects(call: &ToolCommand<'_>) -> BTreeSet<OutwardEffect> {
    let Some(tool) = TABLE.tools.get(call.tool.as_str()) else { return BTreeSet::new() };
    let operands = tool.operands(call);
    let entries = tool.entries.iter().filter(|entry| tool.fit(entry, call, &operands) > EntryFit::No);
    entries.filter_map(ToolEntry::effect).collect()
}

/// Returns the effects that a command has by its words. The program alone counts only if its name
/// is distinctive.
pub(super) fn effects_of_phrase(call: &ToolCommand<'_>) -> BTreeSet<OutwardEffect> {
    let by_program = TABLE.tools.get(call.tool.as_str()).is_some_and(|tool| {
        tool.entries.iter().any(|entry| entry.words.is_empty() && entry.needs.is_empty())
    });
    let is_known_by_name = call.tool.len() >= MIN_NAME && !call.arguments.is_empty();
    if by_program && !is_known_by_name { BTreeSet::new() } else { effects(call) }
}

/// Returns the effects of the commands whose words all occur, in any order.
pub(super) fn effects_of_scattered(words: &BTreeSet<&str>) -> BTreeSet<OutwardEffect> {
    let tools = words.iter().filter_map(|word| TABLE.tools.get(same_kind(word)?));
    // Shorter words are in every text.
    let is_named = |any: &Vec<&str>| any.iter().any(|word| word.len() >= MIN_NAME && words.contains(word));
    let entries = tools.flat_map(|tool| &tool.entries).filter(|entry| {
        !entry.words.is_empty() && entry.needs.is_empty() && entry.words.iter().all(is_named)
    });
    entries.filter_map(ToolEntry::effect).collect()
}

/// Returns the commands that a command may run.
pub(super) fn runs(call: &ToolCommand<'_>) -> Vec<Vec<ShellWord>> {
    let Some(tool) = TABLE.tools.get(call.tool.as_str()) else { return Vec::new() };
    let operands = tool.operands(call);
    let runners = tool.entries.iter().filter(|entry| entry.consequence == ToolConsequence::Runs);
    let ends = runners.filter_map(|entry| match tool.fit(entry, call, &operands) {
        EntryFit::Yes(end) => Some(end),
        EntryFit::No | EntryFit::Perhaps => None,
    });
    let starts = ends.flat_map(|end| {
        operands.iter().map(|operand| operand.at).filter(move |at| *at >= end).take(MAX_BEFORE_PROGRAM)
    });
    starts.map(|start| call.words_from(start)).collect()
}

/// Returns the first word of a command that decides what the tool does, and true if it is literal.
pub(super) fn verb<'a>(call: &'a ToolCommand<'_>) -> Option<(&'a str, bool)> {
    let tool = TABLE.tools.get(call.tool.as_str())?;
    tool.operands(call).first().map(|operand| (operand.text, operand.is_literal))
}

/// Returns the operands of a command without the values of listed options.
pub(super) fn operands<'a>(call: &'a ToolCommand<'_>) -> Vec<&'a str> {
    let none = OutwardTool::default();
    let tool = TABLE.tools.get(call.tool.as_str()).unwrap_or(&none);
    tool.operands(call).into_iter().map(|operand| operand.text).collect()
}

impl ToolEntry {
    fn effect(&self) -> Option<OutwardEffect> {
        match self.consequence {
            ToolConsequence::Has(effect) => Some(effect),
            ToolConsequence::Runs => None,
        }
    }
}

impl OutwardTool {
    fn operands<'a>(&self, call: &'a ToolCommand<'_>) -> Vec<ToolOperand<'a>> {
        let mut operands = Vec::new();
        let (mut only_operands, mut after_option) = (false, false);
        let mut arguments = call.arguments.iter().enumerate();
        while let Some((at, argument)) = arguments.next() {
            let text = argument.text.as_str();
            if only_operands || text.len() < 2 || !text.starts_with('-') {
                let is_literal = argument.is_literal;
                operands.push(ToolOperand { at, text, is_literal, may_be_value: after_option });
                after_option = false;
            } else if text == "--" {
                (only_operands, after_option) = (true, false);
            } else if self.values.contains(&text) {
                arguments.next();
                after_option = false;
            } else {
                after_option = !text.contains('=');
            }
        }
        self.without_prefix(operands)
    }

    /// Removes a prefix: `yarn workspace NAME add x` is `yarn add x` in another directory.
    fn without_prefix<'a>(&self, operands: Vec<ToolOperand<'a>>) -> Vec<ToolOperand<'a>> {
        let is_there = |prefix: &&Vec<&str>| {
            operands.len() >= prefix.len()
                && prefix.iter().zip(&operands).all(|(word, operand)| matches(word, operand.text))
        };
        let length = self.prefixes.iter().find(is_there).map_or(0, Vec::len);
        operands.into_iter().skip(length).collect()
    }

    fn fit(&self, entry: &ToolEntry, call: &ToolCommand<'_>, operands: &[ToolOperand<'_>]) -> EntryFit {
        let needs = entry.needs.iter().any(|need| {
            if need.contains('*') { call.texts().any(|text| matches(need, text)) } else { call.has(need) }
        });
        if !needs && !entry.needs.is_empty() {
            return EntryFit::No;
        }
        if !entry.anywhere {
            return self.fit_from(&entry.words, operands, 0);
        }
        let all = operands.iter().map(|operand| match entry.words.first() {
            Some(_) if self.is_open(operand) => EntryFit::Perhaps,
            Some(any) if self.is_any(any, operand.text) => EntryFit::Yes(operand.at + 1),
            _ => EntryFit::No,
        });
        all.max().unwrap_or(EntryFit::No)
    }

    /// Matches words against operands in order. An operand that may be a value can be skipped.
    fn fit_from(&self, words: &[Vec<&str>], operands: &[ToolOperand<'_>], end: usize) -> EntryFit {
        let Some((any, following)) = words.split_first() else { return EntryFit::Yes(end) };
        let mut best = EntryFit::No;
        for (passed, operand) in operands.iter().enumerate() {
            let rest = operands.get(passed + 1..).unwrap_or_default();
            let here = if !operand.is_literal {
                // Without a list of options with values, it is a value if another word can be the
                // verb.
                let is_value = operand.may_be_value && self.values.is_empty() && !rest.is_empty();
                if is_value { EntryFit::No } else { EntryFit::Perhaps }
            } else if self.is_any(any, operand.text) {
                self.fit_from(following, rest, operand.at + 1)
            } else {
                EntryFit::No
            };
            best = best.max(here);
            if !operand.may_be_value {
                break;
            }
            if passed >= MAX_VALUES {
                return EntryFit::Perhaps;
            }
        }
        best
    }

    /// Returns true if an operand could be any task: it is not literal, and neither is its last
    /// part, such as `test` of `:$module:test`.
    fn is_open(&self, operand: &ToolOperand<'_>) -> bool {
        let last = operand.text.rsplit(':').next().unwrap_or_default();
        let is_value = operand.may_be_value && self.values.is_empty();
        let is_part = last.is_empty() || last.contains(['$', '`', '*', '?', '[', '{', ')']);
        !operand.is_literal && !is_value && is_part
    }

    fn is_any(&self, any: &[&str], text: &str) -> bool {
        let abbreviated =
            |word: &&str| self.abbreviates && text.len() >= MIN_ABBREVIATION && word.starts_with(text);
        let is_left_out = |word: &&str| word.strip_prefix('!').is_some_and(|word| matches(word, text));
        any.iter().any(|word| matches(word, text) || abbreviated(word)) && !any.iter().any(is_left_out)
    }
}

/// Returns true if a text matches a word of the table, which may begin or end with `*`.
fn matches(word: &str, text: &str) -> bool {
    match (word.strip_prefix('*'), word.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(middle), Some(_)) => text.contains(middle.trim_end_matches('*')),
        (Some(end), None) => text.ends_with(end),
        (None, Some(start)) => text.starts_with(start),
        (None, None) => word == text,
    }
}

impl EffectTable {
    pub(super) fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            table.add(line);
        }
        table
    }

    /// Adds a line; returns `None` if it is malformed.
    pub(super) fn add(&mut self, line: &'static str) -> Option<()> {
        if let Some((names, tool)) = line.split_once(" = ") {
            self.tools.entry(tool.trim()).or_default();
            self.same.extend(names.split_whitespace().map(|name| (name, tool.trim())));
        } else if let Some((tool, options)) = line.split_once(" : ") {
            self.tools.entry(tool.trim()).or_default().values.extend(options.split_whitespace());
        } else if let Some((tool, prefix)) = line.split_once(" ~ ") {
            let tool = self.tools.entry(tool.trim()).or_default();
            tool.prefixes.push(prefix.split_whitespace().collect());
        } else if let Some(tools) = line.strip_prefix("abbreviated: ") {
            for tool in tools.split_whitespace() {
                self.tools.entry(tool).or_default().abbreviates = true;
            }
        } else {
            let (tool, entry) = entry(line)?;
            self.tools.entry(tool).or_default().entries.push(entry);
        }
        Some(())
    }
}

fn entry(line: &'static str) -> Option<(&'static str, ToolEntry)> {
    let (command, consequence) = line.split_once(" | ")?;
    let consequence = match consequence.trim() {
        "runs" => ToolConsequence::Runs,
        effect => ToolConsequence::Has(OutwardEffect::from_name(effect)?),
    };
    let (command, needs) = command.split_once(" +").unwrap_or((command, ""));
    let needs = needs.trim().split(',').filter(|need| !need.is_empty()).collect();
    let mut words = command.split_whitespace().peekable();
    let tool = words.next()?;
    let anywhere = words.next_if_eq(&"...").is_some();
    let words = words.map(|word| word.split('/').collect()).collect();
    Some((tool, ToolEntry { words, needs, anywhere, consequence }))
}

//! The table of known commands, read once.

use std::{collections::HashMap, sync::LazyLock};

use super::grammar::{
    DirectoryRecursion, FileDisclosure, OperandRules, OperandTrait, OptionArgument, OptionGrammar,
};

/// Returns the grammar of a command; for git, by its subcommand: `git log`.
pub(super) fn find(name: &str) -> Option<&'static OptionGrammar> {
    static TABLE: LazyLock<HashMap<&str, OptionGrammar>> =
        LazyLock::new(|| read(include_str!("commands.txt")));
    TABLE.get(name)
}

/// Options that several lines share.
type OptionGroups = HashMap<&'static str, (&'static str, &'static str)>;

/// Parses the table. A malformed line is left out, so that its command is not safe; a test checks
/// that every line is parsed.
fn read(text: &'static str) -> HashMap<&'static str, OptionGrammar> {
    let mut groups = OptionGroups::new();
    let mut table = HashMap::new();
    for line in lines(text) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, short, long, operands, left_out] = cells[..] else { continue };
        if name.starts_with('@') {
            groups.insert(name, (short, long));
        } else if let Some(operands) = self::operands(operands) {
            let mut grammar = OptionGrammar { operands, ..OptionGrammar::default() };
            options(&groups, short, long, &mut grammar);
            grammar.left_out = if left_out == "-" { "" } else { left_out };
            table.insert(name, grammar);
        }
    }
    table
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn options(groups: &OptionGroups, short: &'static str, long: &'static str, into: &mut OptionGrammar) {
    for word in short.split_whitespace() {
        match groups.get(word) {
            Some((short, long)) => options(groups, short, long, into),
            None => letters(word, into),
        }
    }
    for word in long.split_whitespace().filter(|word| *word != "-") {
        let name = word.trim_end_matches(['=', '#', '?', '*']);
        into.long.push((name, takes(word.chars().last())));
    }
}

/// Parses letters of options: `abc` are three, `d:` is one with a value.
fn letters(word: &str, into: &mut OptionGrammar) {
    let sign = word.chars().last();
    match takes(sign) {
        OptionArgument::Nothing => {
            into.short.extend(word.chars().map(|letter| (letter, OptionArgument::Nothing)))
        }
        takes => into.short.extend(word.chars().next().map(|letter| (letter, takes))),
    }
}

fn takes(sign: Option<char>) -> OptionArgument {
    match sign {
        Some(':' | '=') => OptionArgument::Value,
        Some('#') => OptionArgument::Number,
        Some('?') => OptionArgument::Attached,
        Some('*') => OptionArgument::UnlessLast,
        _ => OptionArgument::Nothing,
    }
}

fn operands(cell: &'static str) -> Option<OperandRules> {
    let mut operands = OperandRules::default();
    for word in cell.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("files", _) => operands.shows = FileDisclosure::Contents,
            ("list", _) => operands.shows = FileDisclosure::Names,
            ("names", _) => operands.shows = FileDisclosure::Nothing,
            ("words", _) => {
                operands.shows = FileDisclosure::Nothing;
                operands.traits.push(OperandTrait::Words);
            }
            ("none", _) => operands.max = Some(0),
            ("max", number) => operands.max = Some(number.parse().ok()?),
            ("pattern", _) => operands.pattern = true,
            ("sweep", "") => operands.sweep = DirectoryRecursion::Always,
            ("sweep", options) => operands.sweep = DirectoryRecursion::With(options.split(',').collect()),
            ("digits", _) => operands.traits.push(OperandTrait::Digits),
            ("harmless", _) => operands.traits.push(OperandTrait::Harmless),
            ("no-at", _) => operands.traits.push(OperandTrait::NoAt),
            ("plus", _) => operands.traits.push(OperandTrait::Plus),
            ("check", _) => operands.traits.push(OperandTrait::Check),
            _ => return None,
        }
    }
    Some(operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_makes_sense() {
        let text = include_str!("commands.txt");
        let table = read(text);
        for line in lines(text).filter(|line| !line.starts_with('@')) {
            let name = line.split('|').next().unwrap().trim();
            let grammar = table.get(name).unwrap_or_else(|| panic!("{name}"));
            for word in grammar.long.iter().map(|(name, _)| *name) {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
                assert!(word.len() > 1 && word.chars().all(plain), "{name}: --{word}");
            }
            for (at, (letter, _)) in grammar.short.iter().enumerate() {
                assert!(letter.is_ascii_alphanumeric() || *letter == '.', "{name}: -{letter}");
                let again = grammar.short[..at].iter().any(|(other, _)| other == letter);
                assert!(!again, "{name}: -{letter} is listed twice");
            }
        }
        assert_eq!(lines(text).filter(|line| !line.starts_with('@')).count(), table.len());
    }
}

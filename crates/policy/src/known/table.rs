//! The table of known commands, read once.

use std::{collections::HashMap, sync::LazyLock};

use super::grammar::{Grammar, Operands, Shows, Sweep, Takes, Trait};

/// The grammar of a command; of git, by its subcommand: `git log`.
pub(super) fn find(name: &str) -> Option<&'static Grammar> {
    static TABLE: LazyLock<HashMap<&str, Grammar>> = LazyLock::new(|| read(include_str!("commands.txt")));
    TABLE.get(name)
}

/// Options that several lines share.
type Groups = HashMap<&'static str, (&'static str, &'static str)>;

/// Reads the table. A line that makes no sense is left out and its command not safe; a test wants every line.
fn read(text: &'static str) -> HashMap<&'static str, Grammar> {
    let mut groups = Groups::new();
    let mut table = HashMap::new();
    for line in lines(text) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, short, long, operands, left_out] = cells[..] else { continue };
        if name.starts_with('@') {
            groups.insert(name, (short, long));
        } else if let Some(operands) = self::operands(operands) {
            let mut grammar = Grammar { operands, ..Grammar::default() };
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

fn options(groups: &Groups, short: &'static str, long: &'static str, into: &mut Grammar) {
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

/// `abc` are three letters, `d:` is one with a value.
fn letters(word: &str, into: &mut Grammar) {
    let sign = word.chars().last();
    match takes(sign) {
        Takes::Nothing => into.short.extend(word.chars().map(|letter| (letter, Takes::Nothing))),
        takes => into.short.extend(word.chars().next().map(|letter| (letter, takes))),
    }
}

fn takes(sign: Option<char>) -> Takes {
    match sign {
        Some(':' | '=') => Takes::Value,
        Some('#') => Takes::Number,
        Some('?') => Takes::Attached,
        Some('*') => Takes::UnlessLast,
        _ => Takes::Nothing,
    }
}

fn operands(cell: &'static str) -> Option<Operands> {
    let mut operands = Operands::default();
    for word in cell.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("files", _) => operands.shows = Shows::Contents,
            ("list", _) => operands.shows = Shows::Names,
            ("names", _) => operands.shows = Shows::Nothing,
            ("words", _) => {
                operands.shows = Shows::Nothing;
                operands.traits.push(Trait::Words);
            }
            ("none", _) => operands.max = Some(0),
            ("max", number) => operands.max = Some(number.parse().ok()?),
            ("pattern", _) => operands.pattern = true,
            ("sweep", "") => operands.sweep = Sweep::Always,
            ("sweep", options) => operands.sweep = Sweep::With(options.split(',').collect()),
            ("digits", _) => operands.traits.push(Trait::Digits),
            ("harmless", _) => operands.traits.push(Trait::Harmless),
            ("no-at", _) => operands.traits.push(Trait::NoAt),
            ("plus", _) => operands.traits.push(Trait::Plus),
            ("check", _) => operands.traits.push(Trait::Check),
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

//! Tables of commands and their effects: `effect: command`, several effects with a comma between,
//! `none` for no effect.

use std::collections::BTreeSet;

use windlass_contract::effects::{CommandLine, OutwardEffect};

use super::table::EffectTable;
use crate::{Class, RuleFile, Rules, Trust, judge};

fn found(command: &str) -> Vec<OutwardEffect> {
    let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
    judge(&CommandLine { argv, cwd: None }, &Rules::default()).outward
}

/// Returns every line with another result than expected.
fn wrong(table: &str) -> Vec<String> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let differs = |line: &str| {
        let (names, command) = line.split_once(": ").unwrap();
        // A line of the table stands for several of a script.
        let found = found(&command.replace('⏎', "\n"));
        let found: BTreeSet<_> = found.into_iter().map(OutwardEffect::name).collect();
        let expected: BTreeSet<_> = names.split(',').filter(|name| *name != "none").collect();
        (found != expected).then(|| format!("{found:?} of {line}"))
    };
    lines.filter_map(differs).collect()
}

#[test]
fn every_line_of_the_table_makes_sense() {
    let lines = include_str!("commands.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(EffectTable::default().add(line).is_some(), "{line}");
    }
}

#[test]
fn what_leaves_the_machine_is_known_by_its_words() {
    assert_eq!(wrong(include_str!("cases.txt")), Vec::<String>::new());
}

#[test]
fn what_leaves_the_machine_is_known_however_it_is_spelt() {
    assert_eq!(wrong(include_str!("spellings.txt")), Vec::<String>::new());
}

#[test]
fn what_only_looks_like_an_effect_is_none() {
    assert_eq!(wrong(include_str!("neighbours.txt")), Vec::<String>::new());
}

#[test]
fn a_rule_about_an_effect_counts_for_every_spelling() {
    let text = "[[rule]]\neffect = \"push\"\ndecision = \"forbid\"\n";
    let rules = Rules::load(&[RuleFile { name: "r.toml", text, trust: Trust::User }]).unwrap();
    let class = |command: &str| {
        let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
        judge(&CommandLine { argv, cwd: None }, &rules).class
    };
    let lines = include_str!("spellings.txt").lines().filter(|line| !line.starts_with('#'));
    let commands = lines.filter_map(|line| line.split_once(": ")).filter(|(names, _)| names.contains("push"));
    let commands: Vec<_> = commands.map(|(_, command)| command.replace('⏎', "\n")).collect();
    let passed: Vec<_> = commands.iter().filter(|command| class(command) != Class::Forbidden).collect();
    assert_eq!(passed, Vec::<&String>::new());
    assert!(commands.len() > 60);
}

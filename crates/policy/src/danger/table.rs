//! The table of dangerous commands.

use std::{collections::HashMap, sync::LazyLock};

use super::{CommandDanger, DangerSeverity, SuspectCommand};

/// A line of the table.
struct DangerEntry {
    words: Vec<&'static str>,
    needs: Vec<&'static str>,
    severity: DangerSeverity,
    what: &'static str,
    instead: Option<&'static str>,
}

/// Maximum number of words before a subcommand: values of options, such as `git -C dir reset`.
const MAX_BEFORE: usize = 2;

/// Returns the danger that the table lists for a command.
pub(super) fn find(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    static TABLE: LazyLock<HashMap<&str, Vec<DangerEntry>>> =
        LazyLock::new(|| read(include_str!("commands.txt")));
    let entries = TABLE.get(call.program)?;
    let operands: Vec<_> = call.operands().collect();
    let fitting = entries.iter().filter(|entry| entry.fits(call, &operands));
    let found = fitting.max_by_key(|entry| entry.severity)?;
    let what = format!("`{}` {}", found.name(call.program), found.what);
    Some(CommandDanger { severity: found.severity, what, instead: found.instead.map(str::to_owned) })
}

impl DangerEntry {
    fn fits(&self, call: &SuspectCommand<'_>, operands: &[&str]) -> bool {
        let begins = (0..=MAX_BEFORE)
            .any(|at| operands.get(at..at + self.words.len()).is_some_and(|words| words == self.words));
        begins && (self.needs.is_empty() || self.needs.iter().any(|need| call.has(need)))
    }

    fn name(&self, program: &str) -> String {
        [&[program], &self.words[..], self.needs.get(..1).unwrap_or_default()].concat().join(" ")
    }
}

fn read(text: &'static str) -> HashMap<&'static str, Vec<DangerEntry>> {
    let mut table: HashMap<_, Vec<_>> = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((program, entry)) = entry(line) {
            table.entry(program).or_default().push(entry);
        }
    }
    table
}

fn entry(line: &'static str) -> Option<(&'static str, DangerEntry)> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let [command, severity, what, instead] = cells[..] else { return None };
    let severity = match severity {
        "ask" => DangerSeverity::Ask,
        "never" => DangerSeverity::Never,
        _ => return None,
    };
    let (command, needs) = command.split_once('+').unwrap_or((command, ""));
    let needs = needs.split(',').filter(|need| !need.is_empty()).collect();
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let instead = (instead != "-").then_some(instead);
    Some((program, DangerEntry { words: words.collect(), needs, severity, what, instead }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_makes_sense() {
        let lines = include_str!("commands.txt").lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            assert!(entry(line).is_some(), "{line}");
        }
    }
}

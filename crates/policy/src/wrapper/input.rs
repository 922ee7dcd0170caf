//! Scripts that a shell reads from its input: here-documents, here-strings, texts printed into a
//! pipe.

use std::iter::successors;

use super::{base_name, command, is_shell};
use crate::shell::{CommandSeparator, RedirectKind, ShellScript, ShellWord, SimpleCommand};

/// Names of the standard input as a file.
const STANDARD_INPUT: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"];

/// Options of shells whose value is the next word.
pub(super) const VALUED: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// Returns true if a command is a shell, perhaps behind wrappers, that reads its script from its
/// input.
pub(crate) fn reads_input(simple: &SimpleCommand) -> bool {
    let Some(words) = successors(Some(&simple.words[..]), |words| words.get(command(words)?)).last() else {
        return false;
    };
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = base_name(&program.text);
    match name {
        "at" | "batch" | "crontab" | "newgrp" => true,
        "source" | "." => arguments.first().is_some_and(|word| STANDARD_INPUT.contains(&word.text.as_str())),
        _ => is_shell(name) && shell_reads_input(arguments),
    }
}

fn shell_reads_input(arguments: &[ShellWord]) -> bool {
    let mut arguments = arguments.iter().map(|word| word.text.as_str());
    while let Some(text) = arguments.next() {
        let is_bundle = text.len() > 1 && text.starts_with('-') && !text.starts_with("--");
        if is_bundle && text.contains('c') {
            return false;
        } else if is_bundle && text.contains('s') {
            return true;
        } else if VALUED.contains(&text) {
            arguments.next();
        } else if !text.starts_with(['-', '+']) || text == "-" {
            return STANDARD_INPUT.contains(&text);
        }
    }
    true
}

/// Returns the scripts that a command gets as its input, or as a file that another command prints.
pub(super) fn scripts(script: &ShellScript, at: usize) -> Vec<String> {
    let Some(simple) = script.commands.get(at) else { return Vec::new() };
    let is_reader = simple.program().is_some_and(|program| {
        let name = base_name(program);
        is_shell(name) || matches!(name, "source" | ".")
    });
    let values = simple.assignments.iter().map(|assignment| &assignment.value);
    let targets = simple.redirects.iter().map(|redirect| &redirect.target);
    let substituted = simple.words.iter().chain(values).chain(targets);
    let mut found = Vec::new();
    if is_reader && substituted.into_iter().any(|word| word.text.starts_with("<(")) {
        let inside = script.commands.get(simple.inner.clone()).unwrap_or_default();
        found.extend(inside.iter().filter_map(printed));
    }
    if reads_input(simple) {
        found.extend(given(script, at));
    }
    found
}

/// Returns the texts that a command gets as its input.
pub(super) fn given(script: &ShellScript, at: usize) -> Vec<String> {
    let Some(simple) = script.commands.get(at) else { return Vec::new() };
    let mut found = Vec::new();
    let strings = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    found.extend(strings.map(|redirect| redirect.target.text.clone()));
    found.extend(simple.here.clone());
    let before = at.checked_sub(1).and_then(|before| script.commands.get(before));
    let before = before.filter(|_| simple.joined == CommandSeparator::Piped);
    found.extend(before.and_then(|before| before.here.clone().or_else(|| printed(before))));
    found
}

/// Returns the output of a command, if its words determine it.
fn printed(simple: &SimpleCommand) -> Option<String> {
    let arguments = simple.words.get(1..).unwrap_or_default().iter().map(|word| word.text.as_str());
    let text = match simple.program()? {
        "echo" => {
            let is_option = |text: &&str| text.len() > 1 && text.starts_with('-');
            arguments.skip_while(is_option).collect::<Vec<_>>().join(" ")
        }
        // Each of its arguments may become a line.
        "printf" => arguments.filter(|text| *text != "--").collect::<Vec<_>>().join("\n").replace("%s", " "),
        "cat" => {
            let strings = simple.redirects.iter().find(|redirect| redirect.kind == RedirectKind::Text);
            return strings.map(|redirect| redirect.target.text.clone());
        }
        _ => return None,
    };
    Some(text.replace("\\n", "\n").replace("\\t", "\t"))
}

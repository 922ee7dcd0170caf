//! Tools whose options or operands need more than the words of a table.

use std::collections::BTreeSet;

use windlass_contract::effects::OutwardEffect;

use super::{hidden, name::ToolCommand, network, table};
use crate::shell::ShellWord;

/// Letters of python's options that take a value.
const PYTHON_VALUES: &str = "cmWX";

/// The commands that come with `gh`.
const GH_COMMANDS: &[&str] = &[
    "agent-task",
    "alias",
    "api",
    "attestation",
    "at",
    "auth",
    "browse",
    "cache",
    "cs",
    "co",
    "codespace",
    "completion",
    "config",
    "copilot",
    "ext",
    "extension",
    "extensions",
    "gist",
    "gpg-key",
    "help",
    "issue",
    "label",
    "licenses",
    "org",
    "pr",
    "preview",
    "project",
    "release",
    "repo",
    "rs",
    "ruleset",
    "run",
    "search",
    "secret",
    "ssh-key",
    "status",
    "variable",
    "version",
    "workflow",
];

pub(super) fn effects(call: &ToolCommand<'_>, source: &str) -> BTreeSet<OutwardEffect> {
    let operands = table::operands(call);
    let one = |is_there: bool, effect| is_there.then_some(effect).into_iter().collect();
    match call.tool.as_str() {
        "curl" => one(network::curl(call), OutwardEffect::Send),
        "wget" => one(network::wget(call), OutwardEffect::Send),
        "http" => one(network::httpie(&operands), OutwardEffect::Send),
        "scp" => one(network::copies_away(&operands), OutwardEffect::Remote),
        "aws" => one(cloud(&operands), OutwardEffect::Deploy),
        // Alone it installs.
        "yarn" if operands.is_empty() => one(true, OutwardEffect::Install),
        "cargo" | "hg" | "jj" if call.texts().any(|text| text.contains("alias.")) => {
            let effect = if call.tool == "cargo" { OutwardEffect::Publish } else { OutwardEffect::Push };
            one(true, effect)
        }
        // Any other may be an alias.
        "gh" if operands.first().is_some_and(|verb| !GH_COMMANDS.contains(verb)) => {
            one(true, OutwardEffect::Send)
        }
        "make" | "rake" => operands.iter().flat_map(|task| task_effects(task, source)).collect(),
        "npm" | "pnpm" | "yarn" | "bun" => {
            let script = operands.iter().find(|word| !matches!(**word, "run" | "run-script"));
            script.map(|script| script_effects(script, source)).unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

/// Returns the command that an interpreter runs, if it is a tool of the table.
pub(super) fn runs(call: &ToolCommand<'_>) -> Option<Vec<ShellWord>> {
    if call.tool != "python" {
        return None;
    }
    let mut at = 0;
    while let Some(argument) = call.arguments.get(at) {
        let Some(bundle) = argument.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-')) else {
            // A script, such as `setup.py`.
            return Some(call.words_from(at));
        };
        let valued = bundle.char_indices().find(|(_, letter)| PYTHON_VALUES.contains(*letter));
        at += 1;
        let Some((letter_at, letter)) = valued else { continue };
        let attached = bundle.get(letter_at + 1..).filter(|value| !value.is_empty());
        match (letter, attached) {
            ('m', Some(module)) => {
                let mut words = vec![ShellWord::literal(module)];
                words.extend(call.words_from(at));
                return Some(words);
            }
            ('m', None) => return Some(call.words_from(at)),
            ('c', _) => return None,
            (_, None) => at += 1,
            (_, Some(_)) => {}
        }
    }
    None
}

/// Returns the effects of a script of a package.
fn script_effects(script: &str, source: &str) -> BTreeSet<OutwardEffect> {
    let mut found = task_effects(script, source);
    if found.is_empty() && script.split([':', '-', '_']).any(|part| part == "release") {
        found.insert(OutwardEffect::Publish);
    }
    found
}

/// Returns the effects of a task by its name: `make deploy`, `npm run publish`. A task that is not
/// literal stands for every task that the text names.
fn task_effects(task: &str, source: &str) -> BTreeSet<OutwardEffect> {
    if task.contains(['$', '`']) {
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':' | '.'));
        return words.filter_map(hidden::verb_effect).collect();
    }
    hidden::verb_effect(task).into_iter().collect()
}

/// Returns true for any subcommand that does more than show something.
fn cloud(operands: &[&str]) -> bool {
    const READS: &[&str] = &[
        "list",
        "ls",
        "get",
        "describe",
        "show",
        "help",
        "head",
        "search",
        "lookup",
        "query",
        "scan",
        "tail",
        "wait",
        "read",
        "view",
        "info",
        "version",
        "login",
        "configure",
        "config",
        "sts",
        "filter",
        "batch-get",
        "select",
        "estimate",
        "check",
        "preview",
        "explain",
        "print-access-token",
        "account",
        "presign",
        "auth",
        "interactive",
    ];
    let reads = |word: &&str| {
        READS
            .iter()
            .any(|verb| word == verb || word.strip_prefix(verb).is_some_and(|rest| rest.starts_with('-')))
    };
    // `aws s3 cp s3://bucket/key .` only downloads.
    if let ["s3" | "storage", "cp" | "sync", .., to] = operands {
        return to.contains("://") || to.starts_with('$');
    }
    !operands.is_empty() && !operands.iter().take(5).any(reads)
}

//! Tools whose options or operands say more than words of a table can.

use std::collections::BTreeSet;

use windlass_contract::effects::OutwardEffect;

use super::{hidden, name::ToolCall, network, table};
use crate::shell::Word;

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

pub(super) fn effects(call: &ToolCall<'_>, source: &str) -> BTreeSet<OutwardEffect> {
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
        "make" | "rake" => operands.iter().flat_map(|task| by_name(task, source)).collect(),
        "npm" | "pnpm" | "yarn" | "bun" => {
            let script = operands.iter().find(|word| !matches!(**word, "run" | "run-script"));
            script.map(|script| of_script(script, source)).unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

/// What an interpreter runs, where that is a tool of the table.
pub(super) fn runs(call: &ToolCall<'_>) -> Option<Vec<Word>> {
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
                let mut words = vec![Word::literal(module)];
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

/// A script of a package.
fn of_script(script: &str, source: &str) -> BTreeSet<OutwardEffect> {
    let mut found = by_name(script, source);
    if found.is_empty() && script.split([':', '-', '_']).any(|part| part == "release") {
        found.insert(OutwardEffect::Publish);
    }
    found
}

/// Tasks that say by their name what they do: `make deploy`, `npm run publish`. One that is not literal is any that the
/// text names.
fn by_name(task: &str, source: &str) -> BTreeSet<OutwardEffect> {
    if task.contains(['$', '`']) {
        let words = source.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':' | '.'));
        return words.filter_map(hidden::by_verb).collect();
    }
    hidden::by_verb(task).into_iter().collect()
}

/// Anything but what only shows.
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
    // `aws s3 cp s3://bucket/key .` only brings something here.
    if let ["s3" | "storage", "cp" | "sync", .., to] = operands {
        return to.contains("://") || to.starts_with('$');
    }
    !operands.is_empty() && !operands.iter().take(5).any(reads)
}

//! Texts that programs pass to a shell: arguments, settings, variables.

use crate::shell::{ShellWord, SimpleCommand};

/// Options of git before its subcommand whose value is the next word.
const GIT_VALUES: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Suffixes of git configuration keys that name a command.
const GIT_COMMANDS: &[&str] = &[
    "pager",
    "editor",
    "sshcommand",
    "fsmonitor",
    "external",
    "helper",
    "program",
    "cmd",
    "command",
    "textconv",
    "clean",
    "smudge",
    "process",
    "driver",
    "askpass",
];

/// Variables that name a command.
const COMMAND_VARIABLES: &[&str] = &[
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "MANPAGER",
    "LESSOPEN",
    "PROMPT_COMMAND",
];

/// Returns the scripts among the words of a command.
pub(super) fn argument_scripts(name: &str, words: &[ShellWord]) -> Vec<String> {
    let first = || words.get(1).map(|word| word.text.clone());
    match name {
        "eval" => rest(words, 1).into_iter().collect(),
        "trap" => first().filter(|text| !text.starts_with('-')).into_iter().collect(),
        "alias" => {
            words.iter().skip(1).filter_map(|word| Some(word.text.split_once('=')?.1.to_owned())).collect()
        }
        "su" | "runuser" | "script" | "flock" => values(words, Some('c'), &["command", "session-command"])
            .into_iter()
            .map(|(text, _)| text)
            .collect(),
        "env" => values(words, Some('S'), &["split-string"])
            .into_iter()
            .map(|(text, next)| {
                // It may begin with options of its own.
                let text = if text.starts_with('-') { format!("env {text}") } else { text };
                rest(words, next).map_or(text.clone(), |rest| format!("{text} {rest}"))
            })
            .collect(),
        "nix-shell" => texts(words, None, &["run", "command"]),
        "nodemon" => texts(words, Some('x'), &["exec"]),
        // Their arguments are whole command lines.
        "tmux" | "screen" | "hyperfine" | "concurrently" => {
            let lines = words.iter().skip(1).filter(|word| word.text.contains(' '));
            lines.map(|word| word.text.clone()).collect()
        }
        "git" => git(words),
        _ => Vec::new(),
    }
}

/// Returns the scripts in the variables of a command.
pub(super) fn in_variables(simple: &SimpleCommand) -> Vec<String> {
    let names_command = simple.assignments.iter().filter(|assignment| {
        COMMAND_VARIABLES.contains(&assignment.name.as_str()) && assignment.value.text.contains(' ')
    });
    names_command.map(|assignment| assignment.value.text.clone()).collect()
}

fn git(words: &[ShellWord]) -> Vec<String> {
    let mut at = 1;
    let mut found = Vec::new();
    while let Some(option) = words.get(at).map(|word| word.text.as_str()).filter(|text| text.starts_with('-'))
    {
        let value = words.get(at + 1).filter(|_| GIT_VALUES.contains(&option));
        found.extend(value.filter(|_| option == "-c").and_then(|setting| configured(&setting.text)));
        at += 1 + usize::from(value.is_some());
    }
    let text = |at: usize| words.get(at).map(|word| word.text.as_str());
    let arguments = words.get(at..).unwrap_or_default();
    match text(at) {
        Some("submodule") if text(at + 1) == Some("foreach") => {
            let options = words.iter().skip(at + 2).take_while(|word| word.text.starts_with('-')).count();
            found.extend(rest(words, at + 2 + options));
        }
        Some("bisect") if text(at + 1) == Some("run") => found.extend(rest(words, at + 2)),
        Some("rebase") => found.extend(texts(arguments, Some('x'), &["exec"])),
        Some("difftool") => found.extend(texts(arguments, Some('x'), &["extcmd"])),
        Some("filter-branch") => {
            let filters = arguments.windows(2).filter(|pair| pair[0].text.ends_with("-filter"));
            found.extend(filters.map(|pair| pair[1].text.clone()));
        }
        _ => {}
    }
    found
}

/// Returns the command that a setting of git names.
fn configured(setting: &str) -> Option<String> {
    let (key, value) = setting.split_once('=')?;
    let key = key.to_ascii_lowercase();
    if key.starts_with("alias.") {
        return Some(value.strip_prefix('!').map_or_else(|| format!("git {value}"), str::to_owned));
    }
    let last = key.rsplit('.').next().unwrap_or_default();
    let is_command = key.starts_with("pager.") || GIT_COMMANDS.iter().any(|end| last.ends_with(end));
    (is_command && value.contains(' ')).then(|| value.trim_start_matches('!').to_owned())
}

fn texts(words: &[ShellWord], letter: Option<char>, names: &[&str]) -> Vec<String> {
    values(words, letter, names).into_iter().map(|(text, _)| text).collect()
}

/// Returns the values of an option, and the index of the word after each: `-c x`, `-cx`, `-qc x`,
/// `--name x`, `--name=x`.
fn values(words: &[ShellWord], letter: Option<char>, names: &[&str]) -> Vec<(String, usize)> {
    let value_of = |(at, word): (usize, &ShellWord)| {
        let next = || Some((words.get(at + 1)?.text.clone(), at + 2));
        if let Some(long) = word.text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let value = value.map(|value| (value.to_owned(), at + 1));
            return names.contains(&name).then(|| value.or_else(next)).flatten();
        }
        let bundle = word.text.strip_prefix('-')?;
        let (_, attached) = bundle.split_once(letter?)?;
        if attached.is_empty() { next() } else { Some((attached.to_owned(), at + 1)) }
    };
    words.iter().enumerate().skip(1).filter_map(value_of).collect()
}

/// Joins the words from an index on.
fn rest(words: &[ShellWord], from: usize) -> Option<String> {
    words.get(from..).filter(|words| !words.is_empty()).map(super::joined)
}

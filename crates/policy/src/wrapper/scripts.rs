//! Texts that programs pass to a shell: arguments, settings, variables.

use crate::shell::{ShellWord, SimpleCommand, VariableAssignment};

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
    "RSYNC_RSH",
    "TAR_OPTIONS",
    "MAKEFLAGS",
];

/// An option of a program whose value is a command.
struct CommandOption {
    program: &'static str,
    letter: Option<char>,
    names: &'static [&'static str],
}

/// Options whose value is a command.
const COMMAND_OPTIONS: &[CommandOption] = &[
    option("bsdtar", None, &["use-compress-program"]),
    option("capsh", Some('c'), &[]),
    option("cargo", Some('s'), &["shell"]),
    option("cpio", None, &["rsh-command"]),
    option("doppler", None, &["command"]),
    option("flock", Some('c'), &["command"]),
    option("fzf", None, &["preview", "bind"]),
    option("gtar", Some('I'), TAR_COMMANDS),
    option("gtar", Some('F'), &[]),
    option("man", Some('P'), &["pager"]),
    option("nix-shell", None, &["run", "command"]),
    option("nodemon", Some('x'), &["exec"]),
    option("rg", None, &["pre"]),
    option("rsync", Some('e'), &["rsh", "rsync-path"]),
    option("runuser", Some('c'), &["command", "session-command"]),
    option("scp", Some('S'), &[]),
    option("script", Some('c'), &["command"]),
    option("sftp", Some('S'), &[]),
    option("sg", Some('c'), &[]),
    option("sort", None, &["compress-program"]),
    option("split", None, &["filter"]),
    option("su", Some('c'), &["command", "session-command"]),
    option("tar", Some('I'), TAR_COMMANDS),
    option("tar", Some('F'), &[]),
    option("zip", None, &["unzip-command"]),
];

const TAR_COMMANDS: &[&str] = &[
    "use-compress-program",
    "to-command",
    "checkpoint-action",
    "info-script",
    "new-volume-script",
    "rsh-command",
    "rmt-command",
];

/// Options of git's subcommands whose value is a command that it runs for a repository.
const GIT_OPTIONS: &[&str] =
    &["upload-pack", "receive-pack", "exec", "open-files-in-pager", "access-hook", "extcmd"];

const fn option(
    program: &'static str,
    letter: Option<char>,
    names: &'static [&'static str],
) -> CommandOption {
    CommandOption { program, letter, names }
}

/// Returns the commands in the options of a program.
fn in_options(name: &str, words: &[ShellWord]) -> Vec<String> {
    let options = COMMAND_OPTIONS.iter().filter(|option| option.program == name);
    let found = options.flat_map(|option| texts(words, option.letter, option.names));
    found.map(|text| text.strip_prefix("exec=").map_or(text.clone(), str::to_owned)).collect()
}

/// Returns the scripts among the words of a command.
pub(super) fn argument_scripts(name: &str, words: &[ShellWord]) -> Vec<String> {
    let mut found = in_options(name, words);
    found.extend(in_operands(name, words));
    found
}

fn in_operands(name: &str, words: &[ShellWord]) -> Vec<String> {
    match name {
        "eval" => rest(words, 1).into_iter().collect(),
        "trap" => {
            let action = words.iter().skip(1).find(|word| word.text != "--");
            action.map(|word| word.text.clone()).filter(|text| !text.starts_with('-')).into_iter().collect()
        }
        "alias" => {
            words.iter().skip(1).filter_map(|word| Some(word.text.split_once('=')?.1.to_owned())).collect()
        }
        "env" => values(words, Some('S'), &["split-string"])
            .into_iter()
            .map(|(text, next)| {
                // It may begin with options of its own.
                let text = text.replace(r"\_", " ");
                let text = if text.starts_with('-') { format!("env {text}") } else { text };
                rest(words, next).map_or(text.clone(), |rest| format!("{text} {rest}"))
            })
            .collect(),
        // An argument with blanks is a whole command line, or else a file.
        "tmux" | "screen" | "hyperfine" | "concurrently" | "tar" | "gtar" | "sg" | "zip" => {
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
    let script = |assignment: &VariableAssignment| match assignment.name.as_str() {
        "TAR_OPTIONS" => format!("tar {}", assignment.value.text),
        "MAKEFLAGS" => format!("make {}", assignment.value.text),
        _ => assignment.value.text.clone(),
    };
    names_command.map(script).collect()
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
        Some("submodule") if arguments.iter().any(|word| word.text == "foreach") => {
            let verb = arguments.iter().position(|word| word.text == "foreach").unwrap_or_default();
            let options = arguments.iter().skip(verb + 1).take_while(|word| word.text.starts_with('-'));
            found.extend(rest(arguments, verb + 1 + options.count()));
        }
        Some("bisect") if text(at + 1) == Some("run") => found.extend(rest(words, at + 2)),
        Some("rebase" | "difftool") => found.extend(texts(arguments, Some('x'), &[])),
        Some("grep") => found.extend(texts(arguments, Some('O'), &[])),
        Some("clone") => {
            found.extend(texts(arguments, Some('u'), &[]));
            let settings = texts(arguments, Some('c'), &["config"]);
            found.extend(settings.iter().filter_map(|setting| configured(setting)));
        }
        Some("config") => {
            let settings = arguments.windows(2).map(|pair| format!("{}={}", pair[0].text, pair[1].text));
            found.extend(settings.filter_map(|setting| configured(&setting)));
        }
        Some("filter-branch") => {
            let filters = arguments
                .windows(2)
                .filter(|pair| pair[0].text.ends_with("-filter") || pair[0].text == "--setup");
            found.extend(filters.map(|pair| pair[1].text.clone()));
        }
        _ => {}
    }
    found.extend(texts(arguments, None, GIT_OPTIONS));
    found.extend(arguments.iter().filter_map(|word| Some(word.text.strip_prefix("ext::")?.to_owned())));
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
            // Most programs take the beginning of a name for it.
            let is_option = |each: &&str| *each == name || name.len() > 3 && each.starts_with(name);
            return names.iter().any(is_option).then(|| value.or_else(next)).flatten();
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

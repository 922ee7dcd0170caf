//! Commands that run code from the network, or that send secrets to it.

use std::iter::successors;

use super::{
    CommandDanger, SuspectCommand,
    download::{self, is_download, is_interpreter},
};
use crate::{
    path::WorkingDirectories,
    secret,
    shell::{CommandSeparator, ShellRedirect, ShellScript, SimpleCommand},
    wrapper::{self, base_name},
};

/// Finds the danger of a command that uses the network, by its own words.
pub(super) fn find(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    match call.program {
        "nc" | "ncat" | "netcat" => {
            let gives_shell = call.has_any(&["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]);
            gives_shell.then(shell_for_others)
        }
        "socat" => {
            let mut texts = call.texts().map(str::to_lowercase);
            texts.any(|text| text.contains("exec:") || text.contains("system:")).then(shell_for_others)
        }
        _ => sends(call),
    }
}

fn shell_for_others() -> CommandDanger {
    CommandDanger::never("this opens a shell for someone else over the network")
}

/// Finds secret files that a command would upload.
fn sends(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let uploads: Vec<_> = match call.program {
        "curl" => values(call, "dFT", &["--data", "--form", "--upload-file", "--json", "--url-query"]),
        "wget" => values(call, "", &["--post-file", "--body-file", "--post-data", "--body-data"]),
        "scp" | "rsync" | "rclone" | "sftp" | "http" | "https" | "xh" => call.operands().collect(),
        _ => return None,
    };
    let secret = uploads.into_iter().find(|text| {
        text.split(['@', '<', '=', ';']).any(|part| secret::kept_in(part, true, call.places).is_some())
    });
    secret.map(|text| CommandDanger::never(format!("this sends `{text}`, which may hold secrets, away")))
}

/// Returns the values of short and long options, attached or not. A long name also stands for
/// options that begin with it.
fn values<'a>(call: &SuspectCommand<'a>, short: &str, long: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut texts = call.texts();
    while let Some(text) = texts.next() {
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            if long.iter().any(|each| name.starts_with(each)) {
                found.push(value);
            }
        } else if text.starts_with("--") {
            if long.iter().any(|each| text.starts_with(each)) {
                found.extend(texts.next());
            }
        } else if let Some(bundle) = text.strip_prefix('-')
            && let Some(at) = bundle.find(|letter| short.contains(letter))
        {
            let attached = bundle.get(at + 1..).filter(|value| !value.is_empty());
            found.extend(attached.or_else(|| texts.next()));
        }
    }
    found
}

/// Finds the danger that the position in a script adds: the input of a command, and the commands
/// that produce it.
pub(super) fn in_place(
    script: &ShellScript,
    at: usize,
    places: &WorkingDirectories,
) -> Option<CommandDanger> {
    let simple = script.commands.get(at)?;
    let (interprets, sends) = (programs(simple).any(is_interpreter), programs(simple).any(is_sender));
    let to_network = |redirect: &ShellRedirect| {
        ["/dev/tcp/", "/dev/udp/"].iter().any(|device| redirect.target.text.starts_with(device))
    };
    if simple.redirects.iter().any(to_network) {
        let what = "this talks to another machine past every tool for that";
        return Some(if interprets { shell_for_others() } else { CommandDanger::ask(what) });
    }
    let runs_input = wrapper::runs_input(simple);
    if !interprets && !sends && !runs_input {
        return None;
    }
    let fed_by = feeders(script, at);
    let inner = script.commands.get(simple.inner.clone()).unwrap_or_default();
    let any = |test: fn(&str) -> bool| fed_by.iter().any(|simple| programs(simple).any(test));
    if runs_input && any(is_download) {
        return Some(download::danger());
    }
    if interprets {
        if any(is_download) || inner.iter().any(|simple| programs(simple).any(is_download)) {
            return Some(download::danger());
        }
        if !fed_by.is_empty() && reads_stdin(simple) {
            return Some(
                CommandDanger::ask("this runs whatever another command prints").instead("look at it first"),
            );
        }
    }
    if sends {
        let fed_secrets = fed_by.iter().copied().chain(inner).any(|simple| shows_secrets(simple, places));
        if fed_secrets || reads_secrets(simple, places) {
            return Some(CommandDanger::never("this sends secrets away"));
        }
        if any(is_interpreter) {
            return Some(shell_for_others());
        }
    }
    None
}

/// Returns the commands whose output a command reads: all before it in its pipeline, and those in a
/// group there.
fn feeders(script: &ShellScript, at: usize) -> Vec<&SimpleCommand> {
    let piped =
        |at: usize| script.commands.get(at).is_some_and(|simple| simple.joined == CommandSeparator::Piped);
    if !piped(at) {
        return Vec::new();
    }
    // The script does not record where a group ends: everything before the pipe may be in it.
    let first = if script.is_clear() { (0..at).rev().find(|at| !piped(*at)).unwrap_or(0) } else { 0 };
    script.commands.get(first..at).unwrap_or_default().iter().collect()
}

/// Returns the program of a command and those of the wrappers around it.
fn programs(simple: &SimpleCommand) -> impl Iterator<Item = &str> {
    // This ends: each step leaves fewer words.
    let commands = successors(Some(&simple.words[..]), |words| words.get(wrapper::command(words)?));
    commands.filter_map(|words| words.first()).map(|program| base_name(&program.text))
}

fn is_sender(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "telnet", "ftp", "http", "https", "xh",
        "mail",
    ];
    NAMES.contains(&name)
}

/// Returns true if an interpreter, behind all its wrappers, has only its standard input to run.
fn reads_stdin(simple: &SimpleCommand) -> bool {
    let arguments = simple.words.iter().skip(programs(simple).count()).map(|word| word.text.as_str());
    arguments.into_iter().all(|text| text.starts_with('-') && !text.contains('c') && !text.contains('e'))
        || simple.words.iter().any(|word| matches!(word.text.as_str(), "-s" | "-"))
}

fn shows_secrets(simple: &SimpleCommand, places: &WorkingDirectories) -> bool {
    let environment = matches!(
        simple.program().map(base_name),
        Some("env" | "printenv" | "export" | "set" | "declare" | "typeset" | "compgen")
    );
    let named =
        simple.words.iter().skip(1).any(|word| secret::kept_in(&word.text, word.glob, places).is_some());
    environment || named || reads_secrets(simple, places)
}

fn reads_secrets(simple: &SimpleCommand, places: &WorkingDirectories) -> bool {
    let targets = simple.redirects.iter().map(|redirect| &redirect.target);
    targets.into_iter().any(|target| secret::kept_in(&target.text, target.glob, places).is_some())
}

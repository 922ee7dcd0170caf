//! What comes in from the network and is run, and what goes out that should not.

use std::iter::successors;

use super::{Call, Danger};
use crate::{
    path::Places,
    secret,
    shell::{Joined, Redirect, Script, Simple},
    wrapper::{self, base_name, is_shell},
};

/// What a command would do over the network, by its own words.
pub(super) fn find(call: &Call<'_>) -> Option<Danger> {
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

fn shell_for_others() -> Danger {
    Danger::never("this opens a shell for someone else over the network")
}

/// Files that are secrets, as what an upload is made from.
fn sends(call: &Call<'_>) -> Option<Danger> {
    let uploads: Vec<_> = match call.program {
        "curl" => values(call, "dFT", &["--data", "--form", "--upload-file", "--json", "--url-query"]),
        "wget" => values(call, "", &["--post-file", "--body-file", "--post-data", "--body-data"]),
        "scp" | "rsync" | "rclone" | "sftp" | "http" | "https" | "xh" => call.operands().collect(),
        _ => return None,
    };
    let secret = uploads.into_iter().find(|text| {
        text.split(['@', '<', '=', ';']).any(|part| secret::kept_in(part, true, call.places).is_some())
    });
    secret.map(|text| Danger::never(format!("this sends `{text}`, which may hold secrets, away")))
}

/// Values of short and long options, attached or not. A long name also stands for those that begin with it.
fn values<'a>(call: &Call<'a>, short: &str, long: &[&str]) -> Vec<&'a str> {
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

/// What the place of a command in its script adds: what it is fed, and by whom.
pub(super) fn in_place(script: &Script, at: usize, places: &Places) -> Option<Danger> {
    let simple = script.commands.get(at)?;
    let (interprets, sends) = (programs(simple).any(is_interpreter), programs(simple).any(is_sender));
    let to_network = |redirect: &Redirect| {
        ["/dev/tcp/", "/dev/udp/"].iter().any(|device| redirect.target.text.starts_with(device))
    };
    if simple.redirects.iter().any(to_network) {
        let what = "this talks to another machine past every tool for that";
        return Some(if interprets { shell_for_others() } else { Danger::ask(what) });
    }
    if !interprets && !sends {
        return None;
    }
    let fed_by = feeders(script, at);
    let inner = script.commands.get(simple.inner.clone()).unwrap_or_default();
    let any = |test: fn(&str) -> bool| fed_by.iter().any(|simple| programs(simple).any(test));
    if interprets {
        if any(is_download) || inner.iter().any(|simple| programs(simple).any(is_download)) {
            return Some(
                Danger::never("this runs whatever a server sends, unseen")
                    .instead("download it to a file, read it, then run it"),
            );
        }
        if !fed_by.is_empty() && reads_stdin(simple) {
            return Some(
                Danger::ask("this runs whatever another command prints").instead("look at it first"),
            );
        }
    }
    if sends {
        let fed_secrets = fed_by.iter().copied().chain(inner).any(|simple| shows_secrets(simple, places));
        if fed_secrets || reads_secrets(simple, places) {
            return Some(Danger::never("this sends secrets away"));
        }
        if any(is_interpreter) {
            return Some(shell_for_others());
        }
    }
    None
}

/// The commands whose output a command reads: all before it in its pipeline, and those in a group there.
fn feeders(script: &Script, at: usize) -> Vec<&Simple> {
    let piped = |at: usize| script.commands.get(at).is_some_and(|simple| simple.joined == Joined::Piped);
    if !piped(at) {
        return Vec::new();
    }
    // Where a group ends is not kept: everything before the pipe may be in it.
    let first = if script.is_clear() { (0..at).rev().find(|at| !piped(*at)).unwrap_or(0) } else { 0 };
    script.commands.get(first..at).unwrap_or_default().iter().collect()
}

/// The program of a command, behind the wrappers around it.
fn programs(simple: &Simple) -> impl Iterator<Item = &str> {
    // Bounded: each turn leaves fewer words.
    let commands = successors(Some(&simple.words[..]), |words| words.get(wrapper::command(words)?));
    commands.filter_map(|words| words.first()).map(|program| base_name(&program.text))
}

fn is_download(name: &str) -> bool {
    const NAMES: &[&str] =
        &["curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx", "w3m", "lwp-request"];
    NAMES.contains(&name)
}

fn is_sender(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "telnet", "ftp", "http", "https", "xh",
        "mail",
    ];
    NAMES.contains(&name)
}

fn is_interpreter(name: &str) -> bool {
    const NAMES: &[&str] =
        &["eval", "source", ".", "python", "python2", "python3", "perl", "ruby", "node", "php"];
    is_shell(name) || NAMES.contains(&name)
}

/// Whether an interpreter, behind all its wrappers, has nothing but its input to run.
fn reads_stdin(simple: &Simple) -> bool {
    let arguments = simple.words.iter().skip(programs(simple).count()).map(|word| word.text.as_str());
    arguments.into_iter().all(|text| text.starts_with('-') && !text.contains('c') && !text.contains('e'))
        || simple.words.iter().any(|word| matches!(word.text.as_str(), "-s" | "-"))
}

fn shows_secrets(simple: &Simple, places: &Places) -> bool {
    let environment = matches!(
        simple.program().map(base_name),
        Some("env" | "printenv" | "export" | "set" | "declare" | "typeset" | "compgen")
    );
    let named =
        simple.words.iter().skip(1).any(|word| secret::kept_in(&word.text, word.glob, places).is_some());
    environment || named || reads_secrets(simple, places)
}

fn reads_secrets(simple: &Simple, places: &Places) -> bool {
    let targets = simple.redirects.iter().map(|redirect| &redirect.target);
    targets.into_iter().any(|target| secret::kept_in(&target.text, target.glob, places).is_some())
}

//! Commands that run what another command of the same script downloads, from a pipe, a variable, a
//! file or a process substitution, or what it decodes.

use std::iter::successors;

use super::CommandDanger;
use crate::{
    outward::hides_program,
    shell::{RedirectKind, ShellScript, ShellWord, SimpleCommand},
    wrapper::{self, base_name, is_shell},
};

/// Programs that print or store what a server sends.
const DOWNLOADERS: &[&str] =
    &["curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lynx", "w3m", "lwp-request"];

/// Interpreters other than shells.
const INTERPRETERS: &[&str] =
    &["eval", "source", ".", "python", "python2", "python3", "perl", "ruby", "node", "php"];

/// Maximum number of commands that are searched for a download. A script with more is asked about
/// in any case.
const MAX_COMMANDS: usize = 256;

/// Programs that turn a text into another one which it does not show.
const DECODERS: &[&str] = &["base64", "base32", "basenc", "xxd", "uudecode", "openssl", "gpg"];

/// Builtins that store their input in variables.
const READERS: &[&str] = &["read", "mapfile", "readarray"];

/// Finds a command that runs what a download in the same script stored, or prints to it on a way
/// that is not a plain pipe.
pub(super) fn find(script: &ShellScript, at: usize) -> Option<CommandDanger> {
    let simple = script.commands.get(at)?;
    if runs_decoded(script, simple) {
        return Some(
            CommandDanger::ask("this runs a text that it decodes first").instead("look at it first"),
        );
    }
    let downloads: Vec<_> = looked_at(script).filter(|simple| is_by(simple, is_download)).collect();
    if downloads.is_empty() {
        return None;
    }
    if runs_variable(script, simple) || reads_unseen(simple) || feeds_shell(script, simple) {
        // A text that was not understood may be prose.
        let is_read = !script.unclear.iter().any(|unclear| unclear.what.is_unread());
        return Some(if is_read { danger() } else { danger().softened() });
    }
    // The file stays, so that a person can look at it before.
    runs_file(simple, &downloads).then(|| danger().softened())
}

/// Returns the commands that are searched for a download.
fn looked_at(script: &ShellScript) -> impl Iterator<Item = &SimpleCommand> {
    script.commands.iter().take(MAX_COMMANDS)
}

pub(super) fn danger() -> CommandDanger {
    CommandDanger::never("this runs whatever a server sends, unseen")
        .instead("download it to a file, read it, then run it")
}

pub(super) fn is_download(name: &str) -> bool {
    DOWNLOADERS.contains(&name)
}

pub(super) fn is_interpreter(name: &str) -> bool {
    is_shell(name) || INTERPRETERS.contains(&name)
}

/// Returns true if the program of a command, or one of the wrappers around it, passes a test.
fn is_by(simple: &SimpleCommand, test: fn(&str) -> bool) -> bool {
    // Most commands do not name any: following wrappers takes longer.
    if !simple.words.iter().any(|word| test(base_name(&word.text))) {
        return false;
    }
    let mut commands = successors(Some(&simple.words[..]), |words| words.get(wrapper::command(words)?));
    commands.any(|words| words.first().is_some_and(|program| test(base_name(&program.text))))
}

/// Returns true for a shell whose input is not in the script: it is the end of a pipe around it, a
/// file or a descriptor.
fn reads_unseen(simple: &SimpleCommand) -> bool {
    let is_given =
        simple.here.is_some() || simple.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Text);
    let only_shows = simple.words.iter().any(|word| matches!(word.text.as_str(), "--version" | "--help"));
    is_by(simple, is_shell) && wrapper::reads_input(simple) && !is_given && !only_shows
}

/// Returns true if a command runs the output of a decoder: `eval "$(… | base64 -d)"`.
fn runs_decoded(script: &ShellScript, simple: &SimpleCommand) -> bool {
    let name = simple.program().map(base_name).unwrap_or_default();
    let is_file = || simple.words.iter().any(|word| word.text.starts_with("<("));
    let runs = hides_program(&simple.words) || name == "eval" || is_interpreter(name) && is_file();
    let inner = script.commands.get(simple.inner.clone()).unwrap_or_default();
    runs && inner.iter().any(|simple| is_by(simple, |name| DECODERS.contains(&name)))
}

/// Returns true if a command prints into a shell: `tee >(sh)`.
fn feeds_shell(script: &ShellScript, simple: &SimpleCommand) -> bool {
    let targets = simple.redirects.iter().map(|redirect| &redirect.target);
    let substitutes = simple.words.iter().chain(targets).any(|word| word.text.contains(">("));
    let inner = script.commands.get(simple.inner.clone()).unwrap_or_default();
    substitutes && inner.iter().any(|simple| is_by(simple, is_interpreter))
}

/// Returns true if a command runs the value of a variable that holds a download.
fn runs_variable(script: &ShellScript, simple: &SimpleCommand) -> bool {
    let code: Vec<_> = match simple.program().map(base_name) {
        _ if hides_program(&simple.words) => simple.words.iter().take(1).collect(),
        Some("eval") => simple.words.iter().skip(1).collect(),
        Some(name) if is_interpreter(name) => {
            let option = simple.words.iter().position(|word| is_code_option(&word.text));
            option.and_then(|option| simple.words.get(option + 1)).into_iter().collect()
        }
        _ => return false,
    };
    let mut names = looked_at(script).flat_map(|simple| stored(script, simple));
    names.any(|name| code.iter().any(|word| expands(word, name)))
}

fn is_code_option(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.ends_with(['c', 'e'])
}

/// Returns the variables that a command sets to a download.
fn stored<'a>(script: &ShellScript, simple: &'a SimpleCommand) -> Vec<&'a str> {
    let inner = script.commands.get(simple.inner.clone()).unwrap_or_default();
    let assigns = inner.iter().any(|simple| is_by(simple, is_download));
    let assigned = simple.assignments.iter().filter(|_| assigns).map(|assignment| assignment.name.as_str());
    let reads = simple.program().is_some_and(|program| READERS.contains(&program));
    let read = simple.words.iter().skip(1).filter(|_| reads).map(|word| word.text.as_str());
    assigned.chain(read.filter(|name| !name.starts_with('-'))).collect()
}

fn expands(word: &ShellWord, name: &str) -> bool {
    let starts = |rest: &str| {
        let rest = rest.trim_start_matches('{').strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    word.text.split('$').skip(1).any(starts)
}

/// Returns true if a command runs a file that a download writes.
fn runs_file(simple: &SimpleCommand, downloads: &[&SimpleCommand]) -> bool {
    let written: Vec<_> = downloads.iter().flat_map(|download| files(download)).collect();
    let is_written = |word: &ShellWord| written.contains(&base_name(&word.text));
    let Some((program, arguments)) = simple.words.split_first() else { return false };
    let is_path = program.text.contains('/');
    let operand = arguments.iter().find(|word| !word.text.starts_with('-'));
    let inputs = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
    let interprets = is_interpreter(base_name(&program.text));
    is_path && is_written(program)
        || interprets && operand.into_iter().chain(inputs.map(|redirect| &redirect.target)).any(is_written)
}

/// Returns the names of the files that a download writes.
fn files(download: &SimpleCommand) -> Vec<&str> {
    let redirects = download
        .redirects
        .iter()
        .filter(|redirect| matches!(redirect.kind, RedirectKind::Write | RedirectKind::Append));
    let texts: Vec<_> = download.words.iter().map(|word| word.text.as_str()).collect();
    // curl prints, unless an option names a file or asks for the name in the address.
    let is_named = |option: &str| {
        let is_bundle = option.starts_with('-') && !option.starts_with("--");
        is_bundle && option.contains(['o', 'O'])
            || option.starts_with("--output")
            || option.starts_with("--remote")
    };
    let writes = !texts.contains(&"curl") || texts.iter().any(|text| is_named(text));
    let words = texts.into_iter().skip(1).filter(|_| writes);
    let words = words.map(|text| text.rsplit('=').next().unwrap_or_default());
    let names = redirects.map(|redirect| redirect.target.text.as_str()).chain(words).map(base_name);
    names.filter(|name| !name.is_empty() && !name.starts_with('-') && *name != "null").collect()
}

//! What the sandbox stopped: seen where it was stopped, or guessed from what the command printed.

use std::path::{Path, PathBuf};

use windlass_contract::{Denial, Effects, Exit, Held, Layer, Mechanism, Network, Proof};

use crate::sys::ExitReport;

/// How much of the end of an output is read. Programs complain last.
const READ_BYTES: usize = 16 * 1024;

/// How many guesses are told.
const TOLD: usize = 5;

/// The limit that is reported if what a command uses could not be counted: it was ended, since it may have been too much.
pub(crate) const UNCOUNTED: &str = "resources";

/// The limit that is reported if a command has more open files or mappings than can be counted in time.
pub(crate) const TOO_MANY: &str = "open files and mappings";

/// The most descriptors, and the most mappings, that one count looks at: then it takes a second at most.
pub(crate) const MAX_DESCRIPTORS: u32 = 128 * 1024;
pub(crate) const MAX_MAPPINGS: u32 = 1024 * 1024;

/// What programs say when the kernel does not let them touch a file.
const ABOUT_FILES: [&str; 4] =
    ["Read-only file system", "Permission denied", "Operation not permitted", "Device or resource busy"];

/// What programs say when they reach nobody.
const ABOUT_NETWORK: [&str; 6] = [
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "Address family not supported",
];

/// What the first process of a sandbox and the way of dying tell for certain.
pub fn observed(exit: Exit, words: &ExitReport) -> Vec<Denial> {
    let by_signal = match exit {
        Exit::Signal(libc::SIGXCPU) => Some("processor time"),
        Exit::Signal(libc::SIGXFSZ) => Some("file size"),
        _ => None,
    };
    let refused = words.refused.as_ref().map(|path| Denial {
        layer: Layer::Network,
        what: path.clone(),
        rule: "a command may reach local sockets of its own only".to_owned(),
        need: Effects { network: Network::Any, ..Effects::none() },
        proof: Proof::Observed,
    });
    let held_back = words.held_back.map(|what| Denial {
        rule: format!("the limit on {what} was reached, and the command got no more"),
        ..limit(what)
    });
    words.over.into_iter().chain(by_signal).map(limit).chain(held_back).chain(refused).collect()
}

/// That a command was ended at a limit.
pub fn limit(what: &str) -> Denial {
    let rule = match what {
        UNCOUNTED => "what the command used could not be counted, and it was ended".to_owned(),
        TOO_MANY => format!(
            "its processes have more than {MAX_DESCRIPTORS} open files or {MAX_MAPPINGS} mappings in all, too many to \
             count the memory in them, and the command was ended"
        ),
        what => format!("the limit on {what} was reached, and the command was ended"),
    };
    Denial { layer: Layer::Limit, what: what.to_owned(), rule, need: Effects::none(), proof: Proof::Observed }
}

/// What a failed command's last words hint at. A path counts only if the walls would really not let it be written.
pub fn suspect(exit: Exit, output: &[u8], held: &Held) -> Vec<Denial> {
    if exit == Exit::Code(0)
        || matches!(held.rung, Mechanism::Unconfined | Mechanism::External | Mechanism::InProcess)
    {
        return Vec::new();
    }
    let end = &output[output.len().saturating_sub(READ_BYTES)..];
    let text = String::from_utf8_lossy(end);
    let mut found: Vec<Denial> = Vec::new();
    for line in text.lines().rev() {
        let denial = about_file(line, held).or_else(|| about_network(line, held));
        if let Some(denial) = denial.filter(|denial| !found.contains(denial)) {
            found.push(denial);
        }
        if found.len() == TOLD {
            break;
        }
    }
    found.reverse();
    found
}

fn about_file(line: &str, held: &Held) -> Option<Denial> {
    let (complaint, at) =
        ABOUT_FILES.iter().find_map(|complaint| Some((complaint, line.find(complaint)?)))?;
    let (before, after) = line.split_at_checked(at)?;
    let path = paths(before).last().or_else(|| paths(after).next())?;
    let held_off = !held.writable.iter().any(|root| path.starts_with(root)) && !is_speaker(&path, before);
    if !held_off {
        return None;
    }
    Some(Denial {
        layer: Layer::Files,
        what: path.display().to_string(),
        rule: format!("outside what may be written; the command said `{complaint}`"),
        need: Effects::write(directory_of(&path)),
        proof: Proof::Suspected,
    })
}

/// Whether a path is only the name of the program that complains, as in `/bin/bash: line 1: x: Permission denied`.
fn is_speaker(path: &Path, before: &str) -> bool {
    let rest = path.to_str().and_then(|path| before.strip_prefix(path)?.strip_prefix(':'));
    rest.is_some_and(|rest| !rest.trim().is_empty())
}

/// The directory that would have to be writable: walls stand around directories, and only around those that exist.
fn directory_of(path: &Path) -> &Path {
    path.ancestors().find(|directory| directory.is_dir()).unwrap_or(path)
}

fn about_network(line: &str, held: &Held) -> Option<Denial> {
    let complaint = ABOUT_NETWORK.iter().find(|complaint| line.contains(**complaint))?;
    (held.network == Network::None).then(|| Denial {
        layer: Layer::Network,
        what: line.trim().chars().take(200).collect(),
        rule: format!("the network is off; the command said `{complaint}`"),
        need: Effects { network: Network::Any, ..Effects::none() },
        proof: Proof::Suspected,
    })
}

/// Absolute paths in a line, without what programs put around them.
fn paths(line: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let around =
        |c: char| c.is_whitespace() || "'\"`()[]<>:,;".contains(c) || c == '\u{2018}' || c == '\u{2019}';
    line.split(around)
        .filter(|word| word.len() > 1 && word.starts_with('/'))
        .map(|word| Path::new(word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_ended_for_a_limit_is_told_from_who_was_held_back() {
        let rules = |words: &ExitReport| {
            observed(Exit::Code(0), words).into_iter().map(|denial| denial.rule).collect::<Vec<_>>()
        };
        let over = ExitReport { over: Some("memory"), ..ExitReport::default() };
        assert_eq!(rules(&over), ["the limit on memory was reached, and the command was ended"]);
        let held_back = ExitReport { held_back: Some("processes"), ..ExitReport::default() };
        assert_eq!(rules(&held_back), ["the limit on processes was reached, and the command got no more"]);
    }

    fn held() -> Held {
        Held { writable: vec!["/w".into()], ..Held::by(Mechanism::Namespaces) }
    }

    fn suspected(output: &str) -> Vec<(Layer, String)> {
        let found = suspect(Exit::Code(1), output.as_bytes(), &held());
        found.into_iter().map(|denial| (denial.layer, denial.what)).collect()
    }

    #[test]
    fn a_path_is_suspected_only_if_the_walls_hold_it() {
        let said = "touch: cannot touch '/etc/x': Read-only file system\n";
        assert_eq!(suspected(said), [(Layer::Files, "/etc/x".to_owned())]);
        assert_eq!(suspected("sh: /w/script: Permission denied\n"), []);
        assert_eq!(suspected("/bin/sh: line 1: script: Permission denied\n"), []);
        for said in [
            "/bin/bash: line 1: /etc/x: Read-only file system\n",
            "cp: cannot copy /w/a to '/etc/x': Permission denied\n",
            "PermissionError: [Errno 13] Permission denied: '/etc/x'\n",
            "/etc/x: Permission denied\n",
        ] {
            assert_eq!(suspected(said), [(Layer::Files, "/etc/x".to_owned())], "{said}");
        }
        assert_eq!(suspected("cannot open /etc/x: No such file or directory\n"), []);
    }

    #[test]
    fn an_unreachable_network_is_suspected_only_where_it_is_off() {
        let said = "curl: (6) Could not resolve host: example.com";
        assert_eq!(suspected(said), [(Layer::Network, said.to_owned())]);
        let online = Held { network: Network::Any, ..held() };
        assert_eq!(suspect(Exit::Code(1), said.as_bytes(), &online), []);
    }

    #[test]
    fn success_and_freedom_raise_no_suspicion() {
        let said = b"/etc/x: Permission denied";
        assert_eq!(suspect(Exit::Code(0), said, &held()), []);
        assert_eq!(suspect(Exit::Code(1), said, &Held::by(Mechanism::Unconfined)), []);
    }
}

//! Denials: actions that the sandbox observed and stopped, or that a program named and this module
//! verified.

use std::net::SocketAddr;

use windlass_contract::{
    Denial, Effects,
    effects::Network,
    grant::{Held, Mechanism},
    host::{Exit, Layer, Proof},
};

use crate::sys::ExitReport;

mod denied_path;
mod error_lines;
mod system_place;

pub use denied_path::{BlockedWrite, DeniedPathCheck, WritablePlace};

/// The port of name servers.
const NAME_SERVER_PORT: u16 = 53;

/// The limit that is reported if usage could not be counted. The command was ended, because it may
/// have exceeded a limit.
pub(crate) const UNCOUNTED: &str = "resources";

/// The limit that is reported if a command has more open files or mappings than can be counted in
/// time.
pub(crate) const TOO_MANY: &str = "open files and mappings";

/// Maximum numbers of descriptors and mappings that one count visits, so that it takes a second at
/// most.
pub(crate) const MAX_DESCRIPTORS: u32 = 128 * 1024;
pub(crate) const MAX_MAPPINGS: u32 = 1024 * 1024;

/// Returns the denials that the first process of a sandbox reports, or that the exit signal proves.
pub fn observed(exit: Exit, report: &ExitReport, held: &Held) -> Vec<Denial> {
    let by_signal = match exit {
        Exit::Signal(libc::SIGXCPU) => Some("processor time"),
        Exit::Signal(libc::SIGXFSZ) => Some("file size"),
        _ => None,
    };
    let refused = report.refused.as_ref().map(|path| Denial {
        layer: Layer::Network,
        what: path.clone(),
        rule: "a command may reach local sockets of its own only".to_owned(),
        need: Effects { network: Network::Any, ..Effects::none() },
        proof: Proof::Observed,
        remedy: String::new(),
    });
    let held_back = report.held_back.map(|what| Denial {
        rule: format!("the limit on {what} was reached, and the command got no more"),
        ..limit(what)
    });
    let offline = report.offline.map(|address| offline(&address_text(address), Proof::Observed, held));
    let limits = report.over.into_iter().chain(by_signal).map(limit).chain(held_back);
    limits.chain(offline).chain(refused).collect()
}

/// Returns the denial for a command that was ended at a limit.
pub fn limit(what: &str) -> Denial {
    let rule = match what {
        UNCOUNTED => "what the command used could not be counted, and it was ended".to_owned(),
        TOO_MANY => format!(
            "its processes have more than {MAX_DESCRIPTORS} open files or {MAX_MAPPINGS} mappings in all, too many to \
             count the memory in them, and the command was ended"
        ),
        what => format!("the limit on {what} was reached, and the command was ended"),
    };
    let need = Effects::none();
    let (layer, what, proof) = (Layer::Limit, what.to_owned(), Proof::Observed);
    Denial { layer, what, rule, need, proof, remedy: String::new() }
}

/// Adds what a failed command's output tells about the network. Where a broker sees every
/// connection, text adds no more than the name of a host to a lookup, of which the broker sees the
/// name server only: such a host was named, not observed. Elsewhere a complaint counts if the
/// network is off. Without a complaint the host is the one of an address on the command line.
pub fn name_host(
    denials: &mut Vec<Denial>,
    exit: Exit,
    (output, arguments): (&[u8], &[String]),
    held: &Held,
) {
    if exit == Exit::Code(0) || held.network != Network::None {
        return;
    }
    let error_line = error_lines::unreachable_host(output);
    let named = error_line.clone().filter(|host| !host.is_empty());
    match held.rung {
        Mechanism::Namespaces => {
            if let Some(lookup) = denials.iter_mut().find(|denial| is_lookup(denial)) {
                if let Some(host) = named {
                    (lookup.what, lookup.proof) = (host, Proof::Verified);
                } else if let Some(host) = error_lines::host_of_address(arguments) {
                    lookup.what = format!("{}; the command line names {host}", lookup.what);
                }
            }
        }
        Mechanism::Landlock | Mechanism::Seatbelt if error_line.is_some() => {
            let what = named.unwrap_or_else(|| "a failed connection".to_owned());
            denials.push(offline(&what, Proof::Verified, held));
        }
        _ => {}
    }
}

/// Returns everything in an output that may name a path, for the fuzz targets.
#[cfg(any(test, fuzzing))]
pub(crate) fn candidates(output: &[u8]) -> Vec<String> {
    error_lines::error_lines(output)
        .into_iter()
        .flat_map(|error_line| [error_line.candidates, error_line.words, error_line.earlier].concat())
        .collect()
}

fn offline(what: &str, proof: Proof, held: &Held) -> Denial {
    Denial {
        layer: Layer::Network,
        what: what.to_owned(),
        rule: "the network is off".to_owned(),
        need: Effects { network: Network::Any, ..Effects::none() },
        proof,
        remedy: format!("{}`", with_mode(held, "-c sandbox_workspace_write.network_access=true")),
    }
}

/// Writes options of the program after the mode that they are for, up to the closing mark. A
/// running session cannot change them.
fn with_mode(held: &Held, options: &str) -> String {
    let mode = if held.writable.is_empty() { "-s workspace-write " } else { "" };
    format!("start windlass with `{mode}{options}")
}

/// Begins the name of a lookup of which only the name server is known.
const LOOKUP: &str = "no host name can be looked up at ";

fn address_text(address: SocketAddr) -> String {
    if address.port() == NAME_SERVER_PORT { format!("{LOOKUP}{}", address.ip()) } else { address.to_string() }
}

fn is_lookup(denial: &Denial) -> bool {
    denial.layer == Layer::Network && denial.what.starts_with(LOOKUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_ended_for_a_limit_is_told_from_who_was_held_back() {
        let rules = |report: &ExitReport| {
            let found = observed(Exit::Code(0), report, &Held::by(Mechanism::Namespaces));
            found.into_iter().map(|denial| denial.rule).collect::<Vec<_>>()
        };
        let over = ExitReport { over: Some("memory"), ..ExitReport::default() };
        assert_eq!(rules(&over), ["the limit on memory was reached, and the command was ended"]);
        let held_back = ExitReport { held_back: Some("processes"), ..ExitReport::default() };
        assert_eq!(rules(&held_back), ["the limit on processes was reached, and the command got no more"]);
    }

    fn told(report: &ExitReport, output: &str, held: &Held) -> Vec<(String, Proof)> {
        told_of(report, output, &[], held)
    }

    fn told_of(report: &ExitReport, output: &str, arguments: &[&str], held: &Held) -> Vec<(String, Proof)> {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let mut found = observed(Exit::Code(1), report, held);
        name_host(&mut found, Exit::Code(1), (output.as_bytes(), &arguments), held);
        found.into_iter().map(|denial| (denial.what, denial.proof)).collect()
    }

    #[test]
    fn a_connection_is_told_by_its_address_and_a_lookup_by_a_host_that_was_only_named() {
        let held = Held::by(Mechanism::Namespaces);
        let reached = |address: &str| ExitReport { offline: address.parse().ok(), ..ExitReport::default() };
        let web = reached("1.1.1.1:80");
        assert_eq!(told(&web, "", &held), [("1.1.1.1:80".to_owned(), Proof::Observed)]);
        let lookup = reached("10.0.0.2:53");
        let unnamed = "no host name can be looked up at 10.0.0.2".to_owned();
        assert_eq!(told(&lookup, "", &held), [(unnamed, Proof::Observed)]);
        let said = "curl: (6) Could not resolve host: example.com";
        assert_eq!(told(&lookup, said, &held), [("example.com".to_owned(), Proof::Verified)]);
        let line = ["-c", "curl -s 'https://user@example.org:8443/x' || exit 1"];
        let named =
            "no host name can be looked up at 10.0.0.2; the command line names example.org".to_owned();
        assert_eq!(told_of(&lookup, "", &line, &held), [(named, Proof::Observed)]);
        assert_eq!(told(&web, said, &held), [("1.1.1.1:80".to_owned(), Proof::Observed)]);
        assert_eq!(told(&ExitReport::default(), said, &held), [], "nothing was tried, whatever it prints");
    }

    #[test]
    fn without_a_broker_a_complaint_counts_only_where_the_network_is_off() {
        let held = Held::by(Mechanism::Landlock);
        let said = "curl: (6) Could not resolve host: example.com";
        assert_eq!(told(&ExitReport::default(), said, &held), [("example.com".to_owned(), Proof::Verified)]);
        let online = Held { network: Network::Any, ..held };
        assert_eq!(told(&ExitReport::default(), said, &online), []);
    }

    #[test]
    fn the_remedy_says_the_mode_only_where_it_is_another() {
        let remedy = |held: &Held| offline("x", Proof::Observed, held).remedy;
        let read_only = Held::by(Mechanism::Namespaces);
        assert_eq!(
            remedy(&read_only),
            "start windlass with `-s workspace-write -c sandbox_workspace_write.network_access=true`"
        );
        let writing = Held { writable: vec!["/w".into()], ..read_only };
        assert_eq!(remedy(&writing), "start windlass with `-c sandbox_workspace_write.network_access=true`");
    }
}

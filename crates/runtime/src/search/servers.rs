//! Servers that have not listed their tools yet, as a search tells of them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    remote::{ToolSource, UnlistedServer},
    wording::shortened,
};

/// Maximum time that a search waits for servers to list their tools. They go on starting after it.
const START_WAIT: Duration = Duration::from_secs(10);

/// Maximum number of servers that one search starts.
const MAX_STARTS: usize = 4;

/// Maximum number of servers that are named.
const MAX_NAMED: usize = 30;

/// Maximum length of a name or a state.
const MAX_CHARS: usize = 200;

/// Returns the part of the description of the search that names servers, for the whole session.
pub(super) fn description(source: Option<&dyn ToolSource>) -> String {
    let unlisted = source.map(ToolSource::unlisted).unwrap_or_default();
    if unlisted.is_empty() {
        return String::new();
    }
    let names = list(&unlisted, |server| format!("`{}`", shortened(&server.server, MAX_CHARS)));
    format!(" Some servers have not listed their tools yet; searching for its name starts a server: {names}.")
}

/// Starts the servers that a query names, and tells of those whose tools are not known.
pub(super) async fn report(source: &dyn ToolSource, query: &str, cancel: &CancellationToken) -> String {
    let query = query.to_lowercase();
    let unlisted = source.unlisted();
    let is_named = |server: &&UnlistedServer| query.contains(&server.server.to_lowercase());
    let named: Vec<_> = unlisted.iter().filter(is_named).take(MAX_STARTS).collect();
    if !named.is_empty() {
        let starts =
            futures_util::future::join_all(named.iter().map(|named| source.start_server(&named.server)));
        tokio::select! {
            _started = tokio::time::timeout(START_WAIT, starts) => {}
            () = cancel.cancelled() => {}
        }
    }
    let left = source.unlisted();
    let is_listed = |server: &&&UnlistedServer| !left.iter().any(|unlisted| unlisted.server == server.server);
    let listed: Vec<_> = named.iter().filter(is_listed).map(|server| (*server).clone()).collect();
    let mut text = String::new();
    if !listed.is_empty() {
        let started = list(&listed, |server| format!("`{}`", shortened(&server.server, MAX_CHARS)));
        text.push_str(&format!("\nStarted: {started}. Search again to find what it offers."));
    }
    if !left.is_empty() {
        let states = list(&left, |server| {
            format!("`{}` ({})", shortened(&server.server, MAX_CHARS), shortened(&server.state, MAX_CHARS))
        });
        text.push_str(&format!(
            "\nServers whose tools are not known yet: {states}. Search for the name of one to start it."
        ));
    }
    text.push_str(&held_back(source));
    text
}

/// Returns the lines about tools that wait for approval, so that a model does not look for them in
/// vain.
fn held_back(source: &dyn ToolSource) -> String {
    let held = source.held_back();
    if held.is_empty() {
        return String::new();
    }
    let lines: String =
        held.iter().take(MAX_NAMED).map(|line| format!("\n- {}", shortened(line, MAX_CHARS))).collect();
    let more = held.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    format!("\nTools that cannot be called until the user approves them:{lines}{more}")
}

fn list(servers: &[UnlistedServer], describe: impl Fn(&UnlistedServer) -> String) -> String {
    let names: Vec<_> = servers.iter().take(MAX_NAMED).map(describe).collect();
    let more = servers.len().saturating_sub(MAX_NAMED);
    if more == 0 { names.join(", ") } else { format!("{}, and {more} more", names.join(", ")) }
}

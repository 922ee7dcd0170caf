//! `windlass mcp test`: starts servers and shows what they answer, or what would let them run.

use std::{sync::Arc, time::Instant};

use serde_json::{Value, json};
use windlass::{
    Stop, counted, first_line,
    host::Window,
    mcp::{
        definition::RemoteToolDefinition,
        listing::{ServerListing, UnusableTool},
        pins::{HeldTool, Pins},
        pool::{RemoteError, ServerPool},
        schemas::unusable_schemas,
        status::ServerState,
        unpinned_runner::UnpinnedRunner,
    },
};

use super::{ConfiguredServer, ConfiguredServers, connections, pins::held_text, reported_servers};
use crate::{
    exit::ProgramExit, interrupts, output::print, problem::CliProblem, redact::own, screen::visible,
    setup::ProgramSetup, trust::ProjectConfiguration,
};

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, name: Option<&str>, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = reported_servers(setup);
    let chosen: Vec<(&str, ConfiguredServer)> = if let Some(name) = name {
        vec![(name, enabled(configured.usable(name)?))]
    } else {
        let all = configured.servers.iter().filter(|(_, server)| server.config.is_enabled());
        all.map(|(name, server)| (name.as_str(), server.clone())).collect()
    };
    let probed =
        probe_all(setup, &chosen, |result| if json { Ok(()) } else { print(&result.text()).map(drop) })?;
    let results = match probed {
        ProbeEnd::Interrupted => return Ok(ProgramExit::Interrupted),
        ProbeEnd::Complete(results) => results,
    };
    if json {
        let mut values: Vec<_> = results.iter().map(ProbeResult::json).collect();
        let value = if name.is_some() { values.swap_remove(0) } else { Value::Array(values) };
        print(&format!("{value:#}\n"))?;
    } else if results.is_empty() {
        print("there are no MCP servers\n")?;
    }
    let is_well = results.iter().all(ProbeResult::is_well);
    Ok(if is_well { ProgramExit::Done } else { ProgramExit::Failed })
}

/// The end of a number of tests.
pub(super) enum ProbeEnd<'a> {
    /// All servers were tested.
    Complete(Vec<ProbeResult<'a>>),
    /// The user interrupted the tests.
    Interrupted,
}

/// Starts servers one after the other, saves and pins their tools, and reports each result.
pub(super) fn probe_all<'a>(
    setup: &ProgramSetup,
    chosen: &'a [(&'a str, ConfiguredServer)],
    report: impl Fn(&ProbeResult<'_>) -> Result<(), CliProblem>,
) -> Result<ProbeEnd<'a>, CliProblem> {
    let pool = connections::pool(setup, chosen.iter().map(|(name, server)| (*name, server)));
    let pins = Pins::open(connections::directory(setup));
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    let results = crate::runtime()?.block_on(async {
        let mut results = Vec::new();
        for (name, server) in chosen {
            tokio::select! {
                biased;
                _reason = stop.stopped() => break,
                result = probe((&pool, &pins), name, server) => {
                    report(&result)?;
                    results.push(result);
                }
            }
        }
        pool.shut_down().await;
        Ok::<_, CliProblem>(results)
    })?;
    Ok(if stop.reason().is_some() { ProbeEnd::Interrupted } else { ProbeEnd::Complete(results) })
}

/// Tests the servers that a trusted project configures, which saves and pins their tools.
pub(crate) fn test_servers_of(
    setup: &ProgramSetup,
    project: &ProjectConfiguration,
) -> Result<(), CliProblem> {
    let all = ConfiguredServers::of(setup).servers.into_iter();
    let chosen: Vec<_> = all.filter(|(name, _)| project.servers.contains_key(name)).collect();
    let chosen: Vec<_> = chosen.iter().map(|(name, server)| (name.as_str(), server.clone())).collect();
    probe_all(setup, &chosen, |result| print(&result.text()).map(drop)).map(drop)
}

/// A server that is turned off can be tested, too.
fn enabled(server: &ConfiguredServer) -> ConfiguredServer {
    let mut server = server.clone();
    server.config.enabled = None;
    server
}

/// The result of one start.
pub(super) struct ProbeResult<'a> {
    name: &'a str,
    server: &'a ConfiguredServer,
    listing: Result<Arc<ServerListing>, RemoteError>,
    seconds: f64,
    /// The definitions that wait for approval.
    held: Vec<HeldTool>,
    /// The reason of a failure, without what follows.
    reason: Option<String>,
    /// The last lines of standard error, and the accesses that the sandbox blocked.
    stderr: String,
    denials: Vec<String>,
}

async fn probe<'a>(
    (pool, pins): (&ServerPool, &Pins),
    name: &'a str,
    server: &'a ConfiguredServer,
) -> ProbeResult<'a> {
    let begun = Instant::now();
    let listing = pool.start(name).await;
    let seconds = begun.elapsed().as_secs_f64();
    let status = pool.status().into_iter().find(|status| status.server == name);
    let (reason, stderr, denials) = match status.map(|status| status.state) {
        Some(ServerState::Failed { error, stderr, denials }) => (Some(error), stderr, denials),
        _ => (None, String::new(), Vec::new()),
    };
    let held = listing.as_ref().map(|listing| pins.review(name, &server.config, listing).held);
    ProbeResult { name, server, held: held.unwrap_or_default(), listing, seconds, reason, stderr, denials }
}

impl ProbeResult<'_> {
    /// Returns true if the server has listed its tools.
    pub(super) fn is_well(&self) -> bool {
        self.listing.is_ok()
    }

    /// Describes the result for a person.
    pub(super) fn text(&self) -> String {
        let name = visible(self.name);
        let lines = match &self.listing {
            Ok(listing) => self.success(listing),
            Err(error) => self.failure(error),
        };
        let end = match &self.listing {
            Ok(_) => "answers",
            Err(RemoteError::NeedsLogin { .. }) => "needs a login",
            Err(_) => "FAILED",
        };
        let head = format!("{name}: {end} after {:.1} s\n", self.seconds);
        lines.iter().fold(head, |text, line| format!("{text}  {}\n", visible(&clean(line))))
    }

    fn success(&self, listing: &ServerListing) -> Vec<String> {
        let mut lines = vec![
            format!("server: {} {}", listing.server_name, listing.server_version),
            format!("protocol: {}", listing.protocol_version),
            format!("confinement: {}", self.server.confinement()),
        ];
        let bad_schemas = unusable_schemas(listing);
        let is_usable = |tool: &&RemoteToolDefinition| bad_schemas.iter().all(|bad| bad.name != tool.name);
        let (offered, left_out): (Vec<_>, Vec<_>) =
            listing.tools.iter().filter(is_usable).partition(|tool| self.server.config.offers(&tool.name));
        lines.push(counted(offered.len() as u64, "tool"));
        lines.extend(offered.iter().map(|tool| {
            let description = first_line(tool.description.as_deref().unwrap_or_default());
            format!("  {}  {description}", tool.name).trim_end().to_owned()
        }));
        lines.extend(left_out.iter().map(|tool| format!("  {}  (left out by the configuration)", tool.name)));
        if !self.held.is_empty() {
            let count = counted(self.held.len() as u64, "tool");
            lines
                .push(format!("{count} held back; `windlass mcp pins approve {}` approves them:", self.name));
            lines.extend(self.held.iter().flat_map(|held| {
                held_text(held).lines().map(|line| format!("  {line}")).collect::<Vec<_>>()
            }));
        }
        let unusable = self.unusable(listing).into_iter();
        lines.extend(unusable.map(|tool| format!("  {}  (cannot be used: {})", tool.name, tool.reason)));
        lines.extend(self.unpinned_warning(Some(listing)));
        lines
    }

    /// Returns the warning of a command line that does not say which version it runs.
    fn unpinned_warning(&self, listing: Option<&ServerListing>) -> Option<String> {
        let runner = UnpinnedRunner::find(&self.server.config, listing)?;
        Some(format!("warning: {}", runner.warning(self.name)))
    }

    /// Returns the tools that cannot be used, with those whose schema cannot.
    fn unusable(&self, listing: &ServerListing) -> Vec<UnusableTool> {
        let schemas = unusable_schemas(listing).into_iter();
        let offered = schemas.filter(|tool| self.server.config.offers(&tool.name));
        listing.unusable.iter().cloned().chain(offered).collect()
    }

    fn failure(&self, error: &RemoteError) -> Vec<String> {
        let mut lines = vec![self.reason.clone().unwrap_or_else(|| error.to_string())];
        if !self.stderr.trim().is_empty() {
            lines.push("standard error:".to_owned());
            lines.extend(self.stderr.lines().map(|line| format!("  {line}")));
        }
        if !self.denials.is_empty() {
            lines.push(format!("the sandbox of [mcp_servers.{}]:", self.name));
            lines.extend(self.denials.iter().map(|line| format!("  {line}")));
        }
        lines.extend(self.unpinned_warning(None));
        lines
    }

    /// Returns the result for a program.
    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "server": self.name,
            "ok": self.listing.is_ok(),
            "seconds": self.seconds,
            "confinement": self.server.confinement(),
        });
        match &self.listing {
            Ok(listing) => {
                value["protocol_version"] = json!(listing.protocol_version);
                value["server_name"] = json!(listing.server_name);
                value["server_version"] = json!(listing.server_version);
                value["instructions"] = json!(listing.instructions);
                value["has_resources"] = json!(listing.has_resources);
                value["has_prompts"] = json!(listing.has_prompts);
                value["tools"] = json!(listing.tools);
                value["held"] = json!(self.held);
                value["unusable"] = json!(self.unusable(listing));
                value["unpinned"] = json!(UnpinnedRunner::find(&self.server.config, Some(listing)));
            }
            Err(error) => {
                value["error"] = json!(clean(&self.reason.clone().unwrap_or_else(|| error.to_string())));
                value["stderr"] = json!(clean(&self.stderr));
                value["denials"] = json!(self.denials);
                value["needs_login"] = json!(matches!(error, RemoteError::NeedsLogin { .. }));
            }
        }
        value
    }
}

fn clean(text: &str) -> String {
    own().clean(text).into_owned()
}

//! `windlass mcp pins`: the approved definitions of tools, and those that wait for approval.

use std::sync::Arc;

use serde_json::json;
use windlass::{
    Stop, counted,
    host::Window,
    mcp::{
        config::McpServerConfig,
        listing::ServerListing,
        pins::{HeldTool, PinError, PinnedServer, PinnedTool, Pins},
    },
};

use super::{ConfiguredServers, connections, reported_servers};
use crate::{
    args::{McpPinsAction, McpPinsOptions},
    exit::ProgramExit,
    interrupts, note,
    output::print,
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
};

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, options: &McpPinsOptions) -> Result<ProgramExit, CliProblem> {
    let pins = Pins::open(connections::directory(setup));
    match &options.action {
        None => list(&pins, options.server.as_deref(), options.json),
        Some(McpPinsAction::Approve { server, tool, json }) => {
            approve(setup, &pins, (server, tool.as_deref()), *json)
        }
        Some(McpPinsAction::Forget { server, json }) => forget(&pins, server, *json),
    }
}

fn list(pins: &Pins, server: Option<&str>, json: bool) -> Result<ProgramExit, CliProblem> {
    let mut listed = pins.list().map_err(|error| CliProblem::failed(error.to_string()))?;
    if let Some(server) = server {
        listed.retain(|pinned| pinned.server == server);
    }
    if json {
        return print(&format!("{:#}\n", json!(listed)));
    }
    if listed.is_empty() {
        return print("no tools were approved yet; the first start of a server approves its tools\n");
    }
    print(&listed.iter().map(pinned_text).collect::<String>())
}

/// Describes the pins of one server, with every change that waits.
fn pinned_text(pinned: &PinnedServer) -> String {
    let waiting = pinned.tools.iter().filter(|tool| tool.held.is_some()).count();
    let mut text = format!("{}: {}\n", visible(&pinned.server), visible(&pinned.origin));
    if let Some(problem) = &pinned.problem {
        text.push_str(&format!("  {}\n", visible(problem)));
    }
    if let Some(origin) = &pinned.new_origin {
        text.push_str(&format!("  waits for approval: it is now {}\n", visible(origin)));
    }
    for tool in &pinned.tools {
        let state = match (&tool.approved, &tool.held) {
            (Some(hash), None) => hash.clone(),
            (None, Some(hash)) => format!("{hash}  new, waits for approval"),
            (Some(old), Some(new)) => format!("{old} -> {new}  changed, waits for approval"),
            (None, None) => String::new(),
        };
        text.push_str(&format!("  {}  {state}\n", visible(&tool.tool)));
        tool.changes
            .iter()
            .for_each(|change| text.push_str(&format!("      {}\n", visible(&change.to_string()))));
    }
    if waiting > 0 || pinned.new_origin.is_some() {
        text.push_str(&format!("  approve with: windlass mcp pins approve {}\n", visible(&pinned.server)));
    }
    text
}

/// Approves what waits for approval, as `mcp pins` shows it. If nothing waits, the server is
/// started and what it offers now is approved.
fn approve(
    setup: &ProgramSetup,
    pins: &Pins,
    (server, tool): (&str, Option<&str>),
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let configured = reported_servers(setup);
    let config = configured.usable(server)?.config.clone();
    let failed = |error: PinError| CliProblem::failed(error.to_string());
    // Another start could show other definitions than the ones that the user has read.
    let mut waiting = waiting(pins, server).map_err(failed)?;
    if waiting.is_none() {
        let listing = listing(setup, &configured, server)?;
        pins.review(server, &config, &listing);
        waiting = self::waiting(pins, server).map_err(failed)?;
    }
    let approved = match (&waiting, tool) {
        (None, None) => Vec::new(),
        _ => pins.approve(server, tool).map_err(failed)?,
    };
    let tools = waiting.iter().flat_map(|pinned| &pinned.tools);
    let changed: Vec<_> = tools.filter(|pinned| approved.contains(&pinned.tool)).collect();
    if json {
        print(&format!("{:#}\n", json!({"server": server, "approved": approved, "changes": changed})))?;
        return Ok(ProgramExit::Done);
    }
    let origin = waiting.as_ref().and_then(|pinned| pinned.new_origin.as_ref());
    if let Some(origin) = origin {
        print(&format!("{}: it is now {}\n", visible(server), visible(origin)))?;
    }
    print(&changed.iter().map(|pinned| changed_text(pinned)).collect::<String>())?;
    match (approved.is_empty(), origin) {
        (true, None) => note("nothing waited for approval"),
        (true, Some(_)) => note("approved the server as it is now"),
        (false, _) => note(&format!("approved {}", counted(approved.len() as u64, "tool"))),
    }
    Ok(ProgramExit::Done)
}

/// Returns the pins of a server if something waits for approval.
fn waiting(pins: &Pins, server: &str) -> Result<Option<PinnedServer>, PinError> {
    let is_waiting = |pinned: &PinnedServer| {
        pinned.server == server
            && (pinned.new_origin.is_some() || pinned.tools.iter().any(|tool| tool.held.is_some()))
    };
    Ok(pins.list()?.into_iter().find(is_waiting))
}

fn changed_text(pinned: &PinnedTool) -> String {
    let changes = pinned.changes.iter().map(|change| format!("    {}\n", visible(&change.to_string())));
    let state = if pinned.approved.is_some() { "changed" } else { "new" };
    format!("{}: {state}\n{}", visible(&pinned.tool), changes.collect::<String>())
}

/// Describes a tool that waits for approval, with its changes.
pub(super) fn held_text(held: &HeldTool) -> String {
    let changes = held.changes.iter().map(|change| format!("    {}\n", visible(&change.to_string())));
    format!("{}: {}\n{}", visible(&held.tool), visible(&held.reason.to_string()), changes.collect::<String>())
}

/// Returns the tools of a server, as they are now.
fn listing(
    setup: &ProgramSetup,
    configured: &ConfiguredServers,
    name: &str,
) -> Result<Arc<ServerListing>, CliProblem> {
    let mut server = configured.usable(name)?.clone();
    server.config = McpServerConfig { enabled: None, ..server.config };
    let pool = connections::pool(setup, [(name, &server)]);
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    crate::runtime()?.block_on(async {
        let started = tokio::select! {
            biased;
            _reason = stop.stopped() => Err(CliProblem::failed("interrupted")),
            listing = pool.start(name) => listing.map_err(|error| CliProblem::failed(error.to_string())),
        };
        pool.shut_down().await;
        started
    })
}

fn forget(pins: &Pins, server: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let was_there = pins.forget(server).map_err(|error| CliProblem::failed(error.to_string()))?;
    if json {
        print(&format!("{:#}\n", json!({"server": server, "forgotten": was_there})))?;
    } else if was_there {
        note(&format!("forgot the pins of `{}`; its next start approves its tools", visible(server)));
    } else {
        note(&format!("`{}` has no pins", visible(server)));
    }
    Ok(if was_there { ProgramExit::Done } else { ProgramExit::Failed })
}

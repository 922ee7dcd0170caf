//! The comparison of a listing with pins.

use std::{collections::BTreeSet, fmt};

use serde::Serialize;

use super::{
    changes::{PinChange, changes},
    pin_file::ServerPins,
};
use crate::{
    config::McpServerConfig,
    definition::RemoteToolDefinition,
    listing::ServerListing,
    server_origin::{origin_hash, shown_origin},
    untrusted_text::visible_line,
};

/// Maximum number of bytes of a tool's name in a message.
pub(super) const MAX_NAME_BYTES: usize = 128;

/// The tools of a server after the comparison with the pins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PinReview {
    /// Tools that are as they were approved, in the order of the server.
    pub offered: Vec<RemoteToolDefinition>,
    /// Tools that wait for approval.
    pub held: Vec<HeldTool>,
}

/// A tool that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldTool {
    /// Its name, without control characters.
    pub tool: String,
    /// The reason.
    #[serde(flatten)]
    pub reason: HoldReason,
    /// The changed fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PinChange>,
}

/// The reason why a tool is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum HoldReason {
    /// The server did not have it when its tools were approved.
    New,
    /// Its definition has changed.
    Changed,
    /// An approved tool has this name now.
    Renamed {
        /// The approved name.
        from: String,
    },
    /// The command line or address of the server has changed.
    ServerChanged,
    /// The pins cannot be read or written.
    PinsUnusable {
        /// The problem and the remedy.
        problem: String,
    },
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("it is new since the tools of its server were approved"),
            Self::Changed => f.write_str("its definition has changed since it was approved"),
            Self::Renamed { from } => write!(f, "it was approved under the name `{from}`"),
            Self::ServerChanged => {
                f.write_str("the command line or address of its server has changed since it was approved")
            }
            Self::PinsUnusable { problem } => f.write_str(problem),
        }
    }
}

/// Compares a listing with pins. Returns the pins to keep: for a server without pins those of all
/// its tools, otherwise the same with everything that waits for approval now.
pub(super) fn compare(
    server: &str,
    config: &McpServerConfig,
    listing: &ServerListing,
    pins: Option<ServerPins>,
) -> (ServerPins, PinReview) {
    let (origin, shown) = (origin_hash(config), shown_origin(config));
    let Some(mut pins) = pins else {
        let mut pins = ServerPins::new(server, origin, shown);
        for tool in &listing.tools {
            pins.approved.entry(tool.name.clone()).or_insert_with(|| tool.clone());
        }
        return (
            pins,
            PinReview { offered: offered_tools(config, listing).cloned().collect(), held: Vec::new() },
        );
    };
    pins.held.clear();
    pins.held_origin = (pins.origin != origin).then_some((origin, shown));
    let names: BTreeSet<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut review = PinReview::default();
    for tool in offered_tools(config, listing) {
        let reason = match pins.approved.get(&tool.name) {
            Some(approved) if approved == tool => {
                pins.held_origin.is_some().then_some(HoldReason::ServerChanged)
            }
            Some(_) => Some(HoldReason::Changed),
            None => Some(renamed(tool, &pins, &names).unwrap_or(HoldReason::New)),
        };
        let Some(reason) = reason else {
            review.offered.push(tool.clone());
            continue;
        };
        let changes = differences(&pins, tool);
        if pins.approved.get(&tool.name) != Some(tool) {
            pins.held.insert(tool.name.clone(), tool.clone());
        }
        review.held.push(held_tool(&tool.name, reason, changes));
    }
    (pins, review)
}

/// Returns the tools of a listing that the configuration offers. Of two tools with one name, the
/// first counts.
pub(super) fn offered_tools<'a>(
    config: &McpServerConfig,
    listing: &'a ServerListing,
) -> impl Iterator<Item = &'a RemoteToolDefinition> {
    let mut names = BTreeSet::new();
    listing.tools.iter().filter(move |tool| config.offers(&tool.name) && names.insert(tool.name.as_str()))
}

/// Returns the approved tool that has become this one: it is gone and differs only in its name.
fn renamed(tool: &RemoteToolDefinition, pins: &ServerPins, names: &BTreeSet<&str>) -> Option<HoldReason> {
    let is_same = |approved: &&RemoteToolDefinition| {
        !names.contains(approved.name.as_str())
            && RemoteToolDefinition { name: tool.name.clone(), ..(*approved).clone() } == *tool
    };
    let from = pins.approved.values().find(is_same)?;
    Some(HoldReason::Renamed { from: visible_line(&from.name, MAX_NAME_BYTES) })
}

/// Lists the differences between a tool, its server and their pins.
fn differences(pins: &ServerPins, tool: &RemoteToolDefinition) -> Vec<PinChange> {
    let origin = pins
        .held_origin
        .iter()
        .map(|(_, shown)| PinChange::new("server", Some(&pins.shown_origin), Some(shown)));
    let approved = pins.approved.get(&tool.name);
    let fields = approved.map(|approved| changes(approved, tool)).unwrap_or_default();
    origin.chain(fields).collect()
}

pub(super) fn held_tool(name: &str, reason: HoldReason, changes: Vec<PinChange>) -> HeldTool {
    HeldTool { tool: visible_line(name, MAX_NAME_BYTES), reason, changes }
}

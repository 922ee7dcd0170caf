//! Lists of pins.

use std::{collections::BTreeSet, path::Path};

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::json;

use super::{
    changes::{PinChange, changes},
    comparison::MAX_NAME_BYTES,
    foreign, in_words,
    pin_file::{ServerPins, read_pins},
    pin_path,
};
use crate::{catalogue::hex, definition::RemoteToolDefinition, untrusted_text::visible_line};

/// The pins of one server, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinnedServer {
    /// Name in the configuration.
    pub server: String,
    /// Approved command line or address, without secrets.
    pub origin: String,
    /// The command line or address that waits for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_origin: Option<String>,
    /// Its tools, sorted by name.
    pub tools: Vec<PinnedTool>,
    /// The reason why its pins cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The pin of one tool, for lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PinnedTool {
    /// Its name, without control characters.
    pub tool: String,
    /// Beginning of the hash of the approved definition, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Beginning of the hash of the definition that waits for approval, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The differences between the two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PinChange>,
}

pub(super) fn listed(pins: &ServerPins) -> PinnedServer {
    let names: BTreeSet<_> = pins.approved.keys().chain(pins.held.keys()).collect();
    let tools = names.into_iter().map(|name| {
        let (approved, held) = (pins.approved.get(name), pins.held.get(name));
        PinnedTool {
            tool: visible_line(name, MAX_NAME_BYTES),
            approved: approved.map(fingerprint),
            held: held.map(fingerprint),
            changes: approved.zip(held).map(|(old, new)| changes(old, new)).unwrap_or_default(),
        }
    });
    PinnedServer {
        server: pins.server.clone(),
        origin: pins.shown_origin.clone(),
        new_origin: pins.held_origin.as_ref().map(|(_, shown)| shown.clone()),
        tools: tools.collect(),
        problem: None,
    }
}

pub(super) fn listed_file(directory: &Path, path: &Path) -> PinnedServer {
    let name = || path.file_stem().unwrap_or_default().to_string_lossy();
    match read_pins(path) {
        Ok(Some(pins)) if pin_path(directory, &pins.server) != path => {
            PinnedServer::unusable(&name(), in_words(&foreign(path, &pins)))
        }
        Ok(Some(pins)) => listed(&pins),
        Ok(None) => PinnedServer::unusable(&name(), "the pins were removed".to_owned()),
        Err(error) => PinnedServer::unusable(&name(), in_words(&error)),
    }
}

impl PinnedServer {
    fn unusable(file: &str, problem: String) -> Self {
        // The file is called by the server and a hash.
        let server = file.rsplit_once('-').map_or(file, |(server, _)| server).to_owned();
        Self { server, origin: String::new(), new_origin: None, tools: Vec::new(), problem: Some(problem) }
    }
}

/// Returns the beginning of the hash of a definition.
fn fingerprint(definition: &RemoteToolDefinition) -> String {
    let mut hash = hex(digest(&SHA256, json!(definition).to_string().as_bytes()).as_ref());
    hash.truncate(16);
    hash
}

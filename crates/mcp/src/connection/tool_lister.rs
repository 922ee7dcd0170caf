//! Lists the tools of a server: all pages, within bounds, one bad definition at a time.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use rmcp::{
    RoleClient,
    model::{
        CacheScope, ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ServerPeerInfo,
        ServerResult, Tool,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::Value;

use super::conversion;
use crate::{
    definition::RemoteToolDefinition,
    listing::{ServerListing, UnusableTool},
    untrusted_text::{bounded_text, visible_line, visible_text},
};

/// Maximum number of tools of a server. The rest is left out.
const MAX_TOOLS: usize = 1000;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 100;
/// Maximum number of unusable tools that are named.
const MAX_UNUSABLE: usize = 100;
/// Maximum size of a name in a list of unusable tools.
const MAX_UNUSABLE_NAME: usize = 128;
/// Maximum size of a name.
const MAX_NAME: usize = 256;
/// Maximum size of one definition.
const MAX_DEFINITION: usize = 256 * 1024;
/// Maximum size of the instructions.
const MAX_INSTRUCTIONS: usize = 16 * 1024;
/// Maximum time for which a list may be fresh.
const MAX_FRESH: Duration = Duration::from_hours(24);

/// The reason why the tools could not be listed.
#[derive(Debug)]
pub(crate) enum ListFailure {
    /// The request failed.
    Request(ServiceError),
    /// The answer breaks a bound or is no list.
    Answer(String),
}

/// One page, with the tools that could not be parsed.
struct ToolPage {
    tools: Vec<Tool>,
    unusable: Vec<UnusableTool>,
    next_cursor: Option<String>,
    fresh_for: Option<Duration>,
    is_private: bool,
}

/// Lists the tools. The caller limits the time.
pub(crate) async fn list_tools(peer: &Peer<RoleClient>) -> Result<ServerListing, ListFailure> {
    let Some(info) = peer.peer_info() else {
        return Err(ListFailure::Answer("it did not tell its capabilities".to_owned()));
    };
    let mut listing = empty_listing(&info);
    if info.capabilities.tools.is_none() {
        return Ok(listing);
    }
    let mut cursors = HashSet::new();
    let mut names = HashSet::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = list_page(peer, cursor.take()).await?;
        listing.fresh_for = match (listing.fresh_for, page.fresh_for) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        listing.is_private |= page.is_private;
        for unusable in page.unusable {
            note_unusable(&mut listing, unusable);
        }
        for tool in page.tools {
            if listing.tools.len() == MAX_TOOLS {
                let reason = format!("the server has more than {MAX_TOOLS} tools");
                note_unusable(&mut listing, unusable_tool(&tool.name, &reason));
                return Ok(listing);
            }
            match checked(conversion::tool(tool), &mut names) {
                Ok(tool) => listing.tools.push(tool),
                Err(unusable) => note_unusable(&mut listing, unusable),
            }
        }
        let Some(next) = page.next_cursor else { return Ok(listing) };
        if !cursors.insert(next.clone()) {
            return Err(ListFailure::Answer("its list of tools repeats a cursor".to_owned()));
        }
        cursor = Some(next);
    }
    Err(ListFailure::Answer(format!("its list of tools has more than {MAX_PAGES} pages")))
}

fn empty_listing(info: &ServerPeerInfo) -> ServerListing {
    let server = info.server_info.as_ref();
    let instructions = info.instructions.as_deref();
    ServerListing {
        protocol_version: info.protocol_version.to_string(),
        server_name: server.map(|server| visible_line(&server.name, 128)).unwrap_or_default(),
        server_version: server.map(|server| visible_line(&server.version, 128)).unwrap_or_default(),
        instructions: instructions.map(|text| bounded_text(&visible_text(text), MAX_INSTRUCTIONS)),
        has_resources: info.capabilities.resources.is_some(),
        has_prompts: info.capabilities.prompts.is_some(),
        tools: Vec::new(),
        unusable: Vec::new(),
        listed_at: SystemTime::now(),
        fresh_for: None,
        is_private: false,
    }
}

async fn list_page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<ToolPage, ListFailure> {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ClientRequest::ListToolsRequest(ListToolsRequest { params, ..ListToolsRequest::default() });
    // The cache of rmcp is not used: a list that has changed would be as old as its time to live.
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_cancellable_request(request, options).await.map_err(ListFailure::Request)?;
    match handle.await_response().await.map_err(ListFailure::Request)? {
        ServerResult::ListToolsResult(result) => Ok(whole_page(result)),
        ServerResult::CustomResult(result) => salvaged_page(result.0),
        _ => Err(ListFailure::Answer("its answer is no list of tools".to_owned())),
    }
}

fn whole_page(result: ListToolsResult) -> ToolPage {
    ToolPage {
        tools: result.tools,
        unusable: Vec::new(),
        next_cursor: result.next_cursor.filter(|cursor| !cursor.is_empty()),
        fresh_for: result.ttl_ms.map(|ttl| Duration::from_millis(ttl).min(MAX_FRESH)),
        is_private: result.cache_scope == Some(CacheScope::Private),
    }
}

/// Takes the valid tools out of a list that has others.
fn salvaged_page(mut result: Value) -> Result<ToolPage, ListFailure> {
    let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) else {
        return Err(ListFailure::Answer("its answer is no list of tools".to_owned()));
    };
    if let Some(rest) = result.as_object_mut() {
        rest.insert("tools".to_owned(), Value::Array(Vec::new()));
    }
    let rest: ListToolsResult = serde_json::from_value(result)
        .map_err(|error| ListFailure::Answer(format!("its list of tools is not valid: {error}")))?;
    let mut page = whole_page(rest);
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("(no name)").to_owned();
        match serde_json::from_value(tool) {
            Ok(tool) => page.tools.push(tool),
            Err(error) => page.unusable.push(unusable_tool(&name, &error.to_string())),
        }
    }
    Ok(page)
}

fn checked(
    tool: RemoteToolDefinition,
    names: &mut HashSet<String>,
) -> Result<RemoteToolDefinition, UnusableTool> {
    let size = serde_json::to_string(&tool).map_or(usize::MAX, |text| text.len());
    let problem = if tool.name.is_empty() {
        Some("it has no name".to_owned())
    } else if tool.name.len() > MAX_NAME {
        Some(format!("its name has more than {MAX_NAME} bytes"))
    } else if visible_line(&tool.name, MAX_NAME) != tool.name {
        Some("its name has control characters or unusual spaces".to_owned())
    } else if size > MAX_DEFINITION {
        Some(format!("its definition has more than {} KiB", MAX_DEFINITION / 1024))
    } else if !names.insert(tool.name.clone()) {
        Some("the server lists this name twice".to_owned())
    } else {
        None
    };
    match problem {
        Some(reason) => Err(unusable_tool(&tool.name, &reason)),
        None => Ok(tool),
    }
}

fn unusable_tool(name: &str, reason: &str) -> UnusableTool {
    let name = visible_line(name, MAX_UNUSABLE_NAME);
    UnusableTool { name, reason: visible_line(reason, 512) }
}

fn note_unusable(listing: &mut ServerListing, unusable: UnusableTool) {
    if listing.unusable.len() < MAX_UNUSABLE {
        listing.unusable.push(unusable);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_bad_definition_does_not_cost_the_others() {
        let page = salvaged_page(json!({
            "tools": [
                {"name": "good", "inputSchema": {"type": "object"}},
                {"name": "ba\u{1b}d", "inputSchema": "no schema"},
                {"inputSchema": {}},
            ],
            "nextCursor": "2", "resultType": "complete",
        }))
        .unwrap();
        assert_eq!(page.tools.len(), 1);
        let names: Vec<&str> = page.unusable.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["bad", "(no name)"]);
        assert_eq!(page.next_cursor.as_deref(), Some("2"));
    }

    #[test]
    fn a_name_that_cannot_be_shown_is_unusable() {
        let mut names = HashSet::new();
        let mut check = |name: &str| {
            let tool = json!({"name": name, "inputSchema": {"type": "object"}});
            let tool = conversion::tool(serde_json::from_value(tool).unwrap());
            checked(tool, &mut names).map_err(|unusable| unusable.reason)
        };
        assert!(check("plain").is_ok());
        assert!(check("plain").unwrap_err().contains("twice"));
        assert!(check("a\u{7}b").unwrap_err().contains("control"));
        assert!(check("").unwrap_err().contains("no name"));
        assert!(check(&"x".repeat(500)).unwrap_err().contains("256 bytes"));
    }
}

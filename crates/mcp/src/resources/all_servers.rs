//! Lists of the resources of all servers.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use windlass_contract::BoxFuture;

use super::{MAX_ERROR_BYTES, ResourceRequest};
use crate::{
    config::McpServerConfig,
    pool::ServerPool,
    untrusted_text::{bounded_text, visible_text},
};

/// Maximum number of servers that are asked at once.
const MAX_CONCURRENT: usize = 4;
/// Maximum number of pages of one server.
const MAX_PAGES: usize = 50;
/// Maximum number of entries of one server.
const MAX_ENTRIES: usize = 2000;

/// The name of a server, and its entries or an error.
type ServerAnswer<'a> = BoxFuture<'a, (&'a str, Result<Vec<Value>, String>)>;

/// Lists the resources of all servers that have some, sorted by server. A server that fails costs
/// only its own entries; its error is listed.
pub(super) async fn list(request: ResourceRequest, pool: &ServerPool) -> Value {
    let asked = pool.servers().filter(|(server, _)| may_have_resources(pool, server));
    let requests: Vec<ServerAnswer<'_>> = asked
        .map(|(server, config)| {
            let drained = drained(request, pool, server, config);
            Box::pin(async move { (server, drained.await) }) as ServerAnswer<'_>
        })
        .collect();
    let answers: Vec<_> = stream::iter(requests).buffered(MAX_CONCURRENT).collect().await;
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for (server, answer) in answers {
        match answer {
            Ok(more) => entries.extend(more),
            Err(error) => {
                let error = bounded_text(&visible_text(&error), MAX_ERROR_BYTES);
                errors.push(json!({"server": server, "error": error}));
            }
        }
    }
    let mut list = json!({request.member(): entries});
    if !errors.is_empty() {
        list["errors"] = json!(errors);
    }
    list
}

/// Returns false if a server is known to have no resources, so that it is not started for them.
fn may_have_resources(pool: &ServerPool, server: &str) -> bool {
    pool.listing(server).is_none_or(|listing| listing.has_resources)
}

/// Returns the entries of all pages of a server, within its time limit.
async fn drained(
    request: ResourceRequest,
    pool: &ServerPool,
    server: &str,
    config: &McpServerConfig,
) -> Result<Vec<Value>, String> {
    let limit = config.startup_timeout().saturating_add(config.tool_timeout());
    let pages = tokio::time::timeout(limit, all_pages(request, pool, server));
    pages.await.unwrap_or_else(|_| Err(format!("{} failed: it took too long", request.method())))
}

async fn all_pages(request: ResourceRequest, pool: &ServerPool, server: &str) -> Result<Vec<Value>, String> {
    let failed = |error: String| format!("{} failed: {error}", request.method());
    pool.start(server).await.map_err(|error| failed(error.to_string()))?;
    if !may_have_resources(pool, server) {
        return Ok(Vec::new());
    }
    let (mut entries, mut cursors, mut cursor) = (Vec::new(), HashSet::new(), None);
    for _ in 0..MAX_PAGES {
        let page = request.page(pool, server, cursor.take()).await;
        let page = page.map_err(|error| failed(error.to_string()))?;
        entries.extend(page.entries.iter().map(|entry| request.entry(server, entry)));
        let Some(next) = page.next_cursor else { return Ok(entries) };
        if !cursors.insert(next.clone()) {
            return Err(failed("the server repeats a cursor".to_owned()));
        }
        if entries.len() >= MAX_ENTRIES {
            break;
        }
        cursor = Some(next);
    }
    // The rest can be listed page by page, with the name of the server.
    entries.truncate(MAX_ENTRIES);
    Ok(entries)
}

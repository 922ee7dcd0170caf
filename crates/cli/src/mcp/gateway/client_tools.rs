//! The tools that one client of the gateway gets, and the sessions in which its calls are recorded.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use windlass::{
    BoxFuture, Exposure, SpecKind, ToolName, Toolbox,
    mcp::{
        ToolHints,
        definition::RemoteToolDefinition,
        names::model_tool_name,
        result::RemoteResult,
        serve::{ServedCall, ServedTools, ServerIdentity},
    },
};

use super::{FilteredSource, ServedServers};
use crate::{
    mcp::serve::{
        allowed_tools::ClientFilter,
        result,
        served_session::{OutsideCaller, ServedSession},
    },
    problem::CliProblem,
};

/// The tool that finds tools.
const SEARCH_TOOL: &str = "tool_search";
/// The tool that calls a tool that was found.
const CALL_TOOL: &str = "call_tool";
/// Maximum number of sessions of clients that name themselves. Further clients share one.
const MAX_SESSIONS: usize = 16;
/// Name in the records of clients without one.
const UNNAMED: &str = "a client";

/// The tools of servers that one client gets. Each call passes the gate, the limits, the redaction
/// and the records of a session.
pub(super) struct ClientTools {
    servers: Arc<ServedServers>,
    /// Name in the configuration. Without it clients go by the name that they give themselves.
    name: Option<String>,
    source: Arc<FilteredSource>,
    /// For the list of tools; it records nothing.
    listed: Toolbox,
    sessions: Mutex<BTreeMap<String, Arc<ServedSession>>>,
}

impl ClientTools {
    /// Prepares the tools. A session is started with the first call.
    pub(super) fn new(
        servers: &Arc<ServedServers>,
        name: Option<String>,
        filter: ClientFilter,
    ) -> Result<Self, CliProblem> {
        let servers = Arc::clone(servers);
        let source = Arc::new(FilteredSource { tools: Arc::clone(&servers.tools), filter });
        let caller = Arc::new(OutsideCaller::new());
        let listed = servers.setup.gateway_agent(caller, source.clone(), servers.search)?;
        let listed = ServedSession::toolbox(listed, &servers.setup.cwd)?;
        Ok(Self { servers, name, source, listed, sessions: Mutex::default() })
    }

    /// Returns the session of a client, started with its first call.
    fn session(&self, client: Option<&str>) -> Result<Arc<ServedSession>, String> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut name = client.unwrap_or(UNNAMED);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(name) {
            name = UNNAMED;
        }
        if let Some(session) = sessions.get(name) {
            return Ok(Arc::clone(session));
        }
        let ServedServers { setup, search, calls, .. } = &*self.servers;
        let caller = Arc::new(OutsideCaller::named(name));
        let started = setup
            .gateway_agent(caller, self.source.clone(), *search)
            .and_then(|builder| ServedSession::start(builder, &setup.cwd, Some(name), calls));
        let started = Arc::new(started.map_err(|problem| problem.message)?);
        sessions.insert(name.to_owned(), Arc::clone(&started));
        Ok(started)
    }

    /// Returns a tool as the registry knows it, and its exposure. One that waits for approval is
    /// not there.
    fn registered(&self, name: &str, hints: ToolHints) -> Option<(RemoteToolDefinition, Exposure)> {
        let registered = self.listed.registry.find(name)?;
        let SpecKind::Function { parameters } = &registered.spec.kind else { return None };
        let definition = RemoteToolDefinition {
            name: name.to_owned(),
            title: None,
            description: Some(registered.spec.description.clone()),
            input_schema: parameters.explicit().as_object()?.clone(),
            // A schema would promise data in every result; limits can leave it out.
            output_schema: None,
            hints,
        };
        Some((definition, registered.exposure))
    }

    /// Returns the names and annotations of all tools in the order of the servers.
    fn names(&self) -> Vec<(ToolName, ToolHints)> {
        self.listed.registry.join_new();
        let pool = &self.servers.pool;
        let listings = pool.servers().filter_map(|(name, _)| Some((name, pool.listing(name)?)));
        let names = listings.flat_map(|(server, listing)| {
            let names = listing.tools.iter().map(|tool| (model_tool_name(server, &tool.name), tool.hints));
            names.collect::<Vec<_>>()
        });
        names.collect()
    }

    /// Returns the tools for the search, if there is one.
    fn search_tools(&self) -> Vec<RemoteToolDefinition> {
        let hints = ToolHints { read_only: Some(true), ..ToolHints::default() };
        let Some((mut search, _)) = self.registered(SEARCH_TOOL, hints) else { return Vec::new() };
        let how = format!(" Call what was found by its name, or with `{CALL_TOOL}`.");
        search.description.get_or_insert_default().push_str(&how);
        vec![search, call_tool()]
    }
}

impl ServedTools for ClientTools {
    fn identity(&self) -> ServerIdentity {
        let names: Vec<_> = self.servers.pool.servers().map(|(name, _)| name).collect();
        let names =
            if self.source.filter.is_open() { format!(" {}", names.join(", ")) } else { String::new() };
        ServerIdentity {
            name: "windlass-gateway".to_owned(),
            title: Some("Windlass gateway".to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: Some(format!("Tools of the MCP servers{names}.")),
        }
    }

    fn tools(&self) -> Vec<RemoteToolDefinition> {
        let names = self.names();
        let known = names.iter().filter_map(|(name, hints)| self.registered(name.as_str(), *hints));
        let listed = known.filter(|(_, exposure)| *exposure == Exposure::Advertised);
        listed.map(|(tool, _)| tool).chain(self.search_tools()).collect()
    }

    fn tool(&self, name: &str) -> Option<RemoteToolDefinition> {
        // Every call asks: the definitions of all other tools are not copied for it.
        match self.names().into_iter().find(|(known, _)| known.as_str() == name) {
            Some((_, hints)) => self.registered(name, hints).map(|(tool, _)| tool),
            None => self.search_tools().into_iter().find(|tool| tool.name == name),
        }
    }

    fn call(&self, call: ServedCall) -> BoxFuture<'_, RemoteResult> {
        Box::pin(async move {
            let mut call = if call.tool == CALL_TOOL {
                match self.found_call(call) {
                    Ok(call) => call,
                    Err(problem) => return RemoteResult::failed(problem),
                }
            } else {
                call
            };
            if self.name.is_some() {
                call.client.name.clone_from(&self.name);
            }
            match self.session(call.client.name.as_deref()) {
                Ok(session) => Box::pin(session.call(call, result::passed_on)).await,
                Err(problem) => RemoteResult::failed(problem),
            }
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.servers.pool.changes())
    }
}

impl ClientTools {
    /// Returns the call that a call of `call_tool` stands for.
    fn found_call(&self, mut call: ServedCall) -> Result<ServedCall, String> {
        let Some(Value::String(name)) = call.arguments.get("name") else {
            return Err("`name` must be the name of a tool".to_owned());
        };
        let name = name.clone();
        if name == CALL_TOOL || self.tool(&name).is_none() {
            let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            return Err(format!("there is no tool `{name}`; `{SEARCH_TOOL}` finds the existing ones"));
        }
        let arguments = match call.arguments.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err("`arguments` must be an object".to_owned()),
        };
        Ok(ServedCall { tool: name, arguments, ..call })
    }
}

/// Returns the tool that calls tools that are not listed.
fn call_tool() -> RemoteToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": format!("Name of the tool, as `{SEARCH_TOOL}` wrote it")},
            "arguments": {"type": "object", "description": "Its arguments, as its schema demands"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    RemoteToolDefinition {
        name: CALL_TOOL.to_owned(),
        title: None,
        description: Some(format!("Call a tool that `{SEARCH_TOOL}` has found.")),
        input_schema: schema.as_object().cloned().unwrap_or_default(),
        output_schema: None,
        hints: ToolHints::default(),
    }
}

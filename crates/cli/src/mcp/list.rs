//! `windlass mcp list` and `windlass mcp get`: the servers, without secrets.

use serde_json::{Map, Value, json};
use windlass::{
    clean::is_secret_name,
    counted,
    mcp::{ServerReach, catalogue::Catalogue, status::ServerState, unpinned_runner::UnpinnedRunner},
};

use super::{ConfiguredServer, ConfiguredServers, connections, reported_servers, servers::ServerUse};
use crate::{
    exit::ProgramExit,
    note,
    output::print,
    problem::CliProblem,
    redact::own,
    screen::visible,
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
};

/// Stands for a value that is not shown.
const HIDDEN: &str = "<hidden>";

/// Prints all servers.
pub(super) fn all(setup: &ProgramSetup, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = reported_servers(setup);
    let servers: Vec<_> = configured.all().map(|server| ListedServer::new(setup, server)).collect();
    if json {
        let servers: Vec<_> = servers.iter().map(ListedServer::json).collect();
        return print(&format!("{:#}\n", json!(servers)));
    }
    if servers.is_empty() {
        return print("there are no MCP servers; `windlass mcp add --help` shows how to add one\n");
    }
    let table = TextTable {
        titles: ["NAME", "STATE", "TRANSPORT", "REACH", "COMMAND OR ADDRESS"],
        expendable: &["TRANSPORT", "REACH"],
        last: LastColumn::Cut,
        rows: servers.iter().map(ListedServer::row).collect(),
    };
    print(&table.text())?;
    servers.iter().flat_map(ListedServer::warnings).for_each(|warning| note(&warning));
    Ok(ProgramExit::Done)
}

/// Prints one server.
pub(super) fn one(setup: &ProgramSetup, name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = ConfiguredServers::of(setup);
    let found = configured.all().find(|(each, ..)| *each == name);
    let found = ListedServer::new(setup, found.ok_or_else(|| configured.unknown(name))?);
    if json {
        return print(&format!("{:#}\n", found.json()));
    }
    let keys = [
        ("name", json!(name)),
        ("state", json!(found.state_in_words())),
        ("source", json!(found.server.source)),
        ("reach", json!(reach(found.server))),
    ];
    let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
    let lines = keys.chain(found.failure()).chain(shown_config(found.server)).map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}: {}\n", visible(&value))
    });
    print(&lines.collect::<String>())
}

/// A server with everything that is known about it without a start.
struct ListedServer<'a> {
    name: &'a str,
    server: &'a ConfiguredServer,
    server_use: ServerUse,
    /// State in which its last start has left it.
    state: ServerState,
    /// Number of its tools, if it ever listed them.
    tools: Option<usize>,
}

impl<'a> ListedServer<'a> {
    fn new(
        setup: &ProgramSetup,
        (name, server, server_use): (&'a str, &'a ConfiguredServer, ServerUse),
    ) -> Self {
        let catalogue = Catalogue::open(connections::directory(setup));
        let state = catalogue.last_state(name, &server.config);
        let tools = catalogue.load(name, &server.config).map(|listing| listing.tools.len());
        Self { name, server, server_use, state, tools }
    }

    fn row(&self) -> [String; 5] {
        [
            visible(self.name),
            self.state_in_words(),
            self.server.transport().to_owned(),
            reach(self.server).to_owned(),
            visible(&clean(&self.server.target())),
        ]
    }

    fn state_in_words(&self) -> String {
        match (self.server_use, &self.state, self.tools) {
            (ServerUse::Disabled, ..) => "disabled".to_owned(),
            (ServerUse::Untrusted, ..) => "untrusted".to_owned(),
            (_, ServerState::NeedsLogin, _) => "needs login".to_owned(),
            (_, ServerState::Failed { .. }, _) => "failed".to_owned(),
            (.., Some(tools)) => format!("known, {}", counted(tools as u64, "tool")),
            (.., None) => "not started".to_owned(),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let name = visible(self.name);
        let mut warnings = Vec::new();
        if let (ServerUse::Enabled, ServerState::Failed { error, .. }) = (self.server_use, &self.state) {
            let error = visible(&clean(error));
            warnings.push(format!(
                "warning: `{name}` failed at its last start: {error}; `windlass mcp get {name}` shows more"
            ));
        }
        if (self.server_use, &self.state) == (ServerUse::Enabled, &ServerState::NeedsLogin) {
            warnings.push(format!("warning: `{name}` needs a login: windlass mcp login {name}"));
        }
        if let Some(runner) = UnpinnedRunner::find(&self.server.config, None) {
            let package = visible(&clean(&runner.package));
            warnings.push(format!(
                "warning: `{name}` runs the newest `{package}` at each start; `windlass mcp test {name}` \
                 shows how to pin it"
            ));
        }
        warnings
    }

    /// Returns the state, and the reason of a failure, as members of an object.
    fn failure(&self) -> Map<String, Value> {
        let ServerState::Failed { error, stderr, denials } = &self.state else { return Map::new() };
        let members = [("error", json!(error)), ("stderr", json!(stderr)), ("denials", json!(denials))];
        let members = members.into_iter().map(|(key, mut value)| {
            clean_text(&mut value);
            (key.to_owned(), value)
        });
        members.collect()
    }

    fn json(&self) -> Value {
        let state = match (self.server_use, &self.state) {
            (ServerUse::Disabled, _) => json!("disabled"),
            (ServerUse::Untrusted, _) => json!("untrusted"),
            (ServerUse::Enabled, state) => json!(state)["state"].take(),
        };
        let mut object = json!({
            "name": self.name,
            "state": state,
            "tools": self.tools,
            "enabled": self.server.config.is_enabled(),
            "transport": self.server.transport(),
            "reach": self.server.config.reach(),
            "source": self.server.source,
            "unpinned": UnpinnedRunner::find(&self.server.config, None),
            "config": Value::Object(shown_config(self.server)),
        });
        if let (ServerUse::Enabled, Some(members)) = (self.server_use, object.as_object_mut()) {
            members.extend(self.failure());
        }
        object
    }
}

/// Describes everything that a server can change.
fn reach(server: &ConfiguredServer) -> &'static str {
    match server.config.reach() {
        ServerReach::Nothing => "nothing",
        ServerReach::Files => "files",
        ServerReach::Outside => "anything",
    }
}

/// Returns the keys that are set. Values that may be secrets are hidden.
fn shown_config(server: &ConfiguredServer) -> Map<String, Value> {
    // A server came from TOML or JSON, so it can be written as JSON.
    let Ok(Value::Object(mut keys)) = serde_json::to_value(&server.config) else { return Map::new() };
    for (key, value) in &mut keys {
        match (key.as_str(), value) {
            ("http_headers", Value::Object(headers)) => {
                headers.values_mut().for_each(|value| *value = json!(HIDDEN));
            }
            ("env", Value::Object(variables)) => {
                for (name, value) in variables {
                    if is_secret_name(name) { *value = json!(HIDDEN) } else { clean_text(value) }
                }
            }
            (_, value) => clean_text(value),
        }
    }
    keys
}

fn clean_text(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean(text),
        Value::Array(values) => values.iter_mut().for_each(clean_text),
        _ => {}
    }
}

fn clean(text: &str) -> String {
    own().clean(text).into_owned()
}

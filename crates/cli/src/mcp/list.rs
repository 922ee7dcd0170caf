//! `windlass mcp list` and `windlass mcp get`: the servers, without secrets.

use serde_json::{Map, Value, json};
use windlass::{
    clean::is_secret_name,
    mcp::{ServerReach, unpinned_runner::UnpinnedRunner},
};

use super::{ConfiguredServer, ConfiguredServers, reported_servers};
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
    if json {
        let servers: Vec<_> =
            configured.all().map(|(name, server, state)| object(name, server, state)).collect();
        return print(&format!("{:#}\n", json!(servers)));
    }
    if configured.all().next().is_none() {
        return print("there are no MCP servers; `windlass mcp add --help` shows how to add one\n");
    }
    let rows = configured.all().map(|(name, server, state)| row(name, server, state)).collect();
    let table = TextTable {
        titles: ["NAME", "STATE", "TRANSPORT", "REACH", "COMMAND OR ADDRESS"],
        expendable: &["TRANSPORT", "REACH"],
        last: LastColumn::Cut,
        rows,
    };
    print(&table.text())?;
    for (name, server, _) in configured.all() {
        if let Some(runner) = UnpinnedRunner::find(&server.config, None) {
            let (name, package) = (visible(name), visible(&clean(&runner.package)));
            note(&format!(
                "warning: `{name}` runs the newest `{package}` at each start; `windlass mcp test {name}` \
                 shows how to pin it"
            ));
        }
    }
    Ok(ProgramExit::Done)
}

/// Prints one server.
pub(super) fn one(setup: &ProgramSetup, name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = ConfiguredServers::of(setup);
    let found = configured.all().find(|(each, ..)| *each == name);
    let (_, server, state) = found.ok_or_else(|| configured.unknown(name))?;
    if json {
        return print(&format!("{:#}\n", object(name, server, state)));
    }
    let keys = [
        ("name", json!(name)),
        ("state", json!(state)),
        ("source", json!(server.source)),
        ("reach", json!(reach(server))),
    ];
    let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
    let lines = keys.chain(shown_config(server)).map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}: {}\n", visible(&value))
    });
    print(&lines.collect::<String>())
}

fn row(name: &str, server: &ConfiguredServer, state: &str) -> [String; 5] {
    [
        visible(name),
        state.to_owned(),
        server.transport().to_owned(),
        reach(server).to_owned(),
        visible(&clean(&server.target())),
    ]
}

fn object(name: &str, server: &ConfiguredServer, state: &str) -> Value {
    json!({
        "name": name,
        "state": state,
        "enabled": server.config.is_enabled(),
        "transport": server.transport(),
        "reach": server.config.reach(),
        "source": server.source,
        "unpinned": UnpinnedRunner::find(&server.config, None),
        "config": Value::Object(shown_config(server)),
    })
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

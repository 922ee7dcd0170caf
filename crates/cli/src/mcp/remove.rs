//! `windlass mcp remove`: removes a server from the user's own configuration file.

use serde_json::json;

use crate::{
    config::{self, ConfigKey},
    exit::ProgramExit,
    note,
    output::print,
    problem::CliProblem,
    screen::{visible, visible_path},
    settings, setup,
};

/// Runs the command.
pub(super) fn run(name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let key = ConfigKey::from(["mcp_servers", name]).to_string();
    let was_there = settings::change(|editor| editor.remove(&key))?;
    let file = config::file(&setup::home()?);
    if !was_there {
        note(&format!("there is no MCP server `{}` in {}", visible(name), visible_path(&file)));
    }
    if json {
        print(&format!("{:#}\n", json!({"server": name, "file": file, "removed": was_there})))?;
    }
    Ok(if was_there { ProgramExit::Done } else { ProgramExit::Failed })
}

//! `windlass mcp`: the servers of the configuration.

mod add;
mod connections;
mod gateway;
mod list;
mod login;
mod pins;
mod probe;
mod prompts;
mod remove;
mod serve;
mod servers;
mod session_servers;
mod state_lines;

pub(crate) use self::{
    probe::test_servers_of,
    prompts::{as_request, prompt_text},
    servers::{ConfiguredServer, ConfiguredServers},
    session_servers::{SessionServers, with_servers},
    state_lines::StateOutput,
};

use crate::{
    args::{CommonOptions, McpCommand},
    exit::ProgramExit,
    note,
    problem::CliProblem,
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, command: McpCommand) -> Result<ProgramExit, CliProblem> {
    match command {
        McpCommand::List { json } => list::all(&ProgramSetup::for_tools(common)?, json),
        McpCommand::Get { name, json } => list::one(&ProgramSetup::for_tools(common)?, &name, json),
        McpCommand::Serve(options) => serve::run(common, &options),
        McpCommand::Gateway(options) => gateway::run(common, &options),
        McpCommand::Add(options) => add::run(common, &options),
        McpCommand::Test { name, json } => {
            probe::run(&ProgramSetup::for_tools(common)?, name.as_deref(), json)
        }
        McpCommand::Pins(options) => pins::run(&ProgramSetup::for_tools(common)?, &options),
        McpCommand::Login { name, json } => login::run(&ProgramSetup::for_tools(common)?, &name, json),
        McpCommand::Logout { name, json } => login::log_out(&ProgramSetup::for_tools(common)?, &name, json),
        McpCommand::Prompts(options) => prompts::run(&ProgramSetup::for_tools(common)?, &options),
        McpCommand::Remove { name, json } => remove::run(&name, json),
    }
}

/// Returns the servers of a run without a person, and reports the configuration that is ignored.
pub(crate) fn reported_servers(setup: &ProgramSetup) -> ConfiguredServers {
    let configured = ConfiguredServers::of(setup);
    configured.notes.iter().for_each(|text| note(&format!("note: {text}")));
    configured
}

//! `windlass mcp add`: writes a server into the user's own configuration file, and tests it, so
//! that the first session has its tools.

use std::{
    collections::BTreeSet,
    path::{self, Path, PathBuf},
};

use serde_json::{Value as JsonValue, json};
use toml::Value;
use windlass::mcp::{ServerSandbox, config::McpServerConfig};

use super::{
    ConfiguredServers,
    probe::{ProbeEnd, ProbeResult, probe_all},
};
use crate::{
    args::{CommonOptions, McpAddOptions, SandboxFlag},
    config::{self, ConfigKey},
    exit::ProgramExit,
    note,
    output::print,
    problem::CliProblem,
    settings,
    setup::{self, ProgramSetup},
};

/// Keys in the order in which they are written; the others follow.
const ORDER: [&str; 6] = ["command", "args", "url", "unix_socket", "env", "env_vars"];

/// Runs the command.
pub(super) fn run(common: &CommonOptions, options: &McpAddOptions) -> Result<ProgramExit, CliProblem> {
    let server = server(options)?;
    let name = &options.name;
    server.check(name).map_err(|error| CliProblem::usage(error.to_string()))?;
    let key = ConfigKey::from(["mcp_servers", name]);
    let mut is_there = false;
    settings::change(|editor| {
        is_there = editor.has(&key);
        if is_there && !options.replace {
            return Ok(false);
        }
        editor.remove(&key.to_string())?;
        editor.set_table(&key, keys(&server))?;
        Ok(true)
    })?;
    if is_there && !options.replace {
        let message = format!("there is already a server `{name}`; pass `--replace` to replace it");
        return Err(CliProblem::usage(message));
    }
    let test = tested(common, options)?;
    if options.json {
        let file = config::file(&setup::home()?);
        let test = match &test {
            AddTest::Done(result) => result.clone(),
            AddTest::Skipped | AddTest::Interrupted => JsonValue::Null,
        };
        let added = json!({"server": name, "file": file, "replaced": is_there, "test": test});
        print(&format!("{added:#}\n"))?;
    }
    Ok(if matches!(test, AddTest::Interrupted) { ProgramExit::Interrupted } else { ProgramExit::Done })
}

/// The test of a server that was added.
enum AddTest {
    /// It has a result, for a program.
    Done(JsonValue),
    Skipped,
    Interrupted,
}

/// Starts the new server once, which saves and pins its tools. Nothing that goes wrong here undoes
/// the change of the file.
fn tested(common: &CommonOptions, options: &McpAddOptions) -> Result<AddTest, CliProblem> {
    let name = options.name.as_str();
    if options.no_test || options.disabled {
        note(&format!("`windlass mcp test {name}` starts it and lists its tools"));
        return Ok(AddTest::Skipped);
    }
    let loaded = ProgramSetup::for_tools(common).and_then(|setup| {
        let server = ConfiguredServers::of(&setup).usable(name)?.clone();
        Ok((setup, server))
    });
    let (setup, server) = match loaded {
        Ok(loaded) => loaded,
        Err(problem) => {
            note(&format!("warning: `{name}` was not tested: {}", problem.message));
            return Ok(AddTest::Skipped);
        }
    };
    let chosen = [(name, server)];
    let report = |result: &ProbeResult<'_>| match (options.json, result.is_well()) {
        (true, _) => Ok(()),
        (false, true) => print(&result.text()).map(drop),
        (false, false) => {
            note(result.text().trim_end());
            Ok(())
        }
    };
    let ProbeEnd::Complete(results) = probe_all(&setup, &chosen, report)? else {
        return Ok(AddTest::Interrupted);
    };
    if !results.iter().all(ProbeResult::is_well) {
        note(&format!(
            "warning: `{name}` was added, but cannot be used yet; `windlass mcp test {name}` tests it again"
        ));
    }
    Ok(results.first().map_or(AddTest::Skipped, |result| AddTest::Done(result.json())))
}

/// Returns the server that the options describe.
fn server(options: &McpAddOptions) -> Result<McpServerConfig, CliProblem> {
    let mut command = options.command.iter().cloned();
    let set = |is_set: bool| is_set.then_some(true);
    let names = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    Ok(McpServerConfig {
        command: command.next(),
        args: command.collect(),
        env: options.env.iter().cloned().collect(),
        env_vars: options.env_var.clone(),
        cwd: options.cwd.as_deref().map(absolute).transpose()?,
        url: options.url.clone(),
        unix_socket: options.unix_socket.as_deref().map(absolute).transpose()?,
        bearer_token_env_var: options.bearer_token_env_var.clone(),
        http_headers: options.header.iter().cloned().collect(),
        env_http_headers: options.env_header.iter().cloned().collect(),
        scopes: options.scope.clone(),
        oauth_client_id: options.oauth_client_id.clone(),
        enabled: options.disabled.then_some(false),
        required: set(options.required),
        startup_timeout_sec: options.startup_timeout,
        tool_timeout_sec: options.tool_timeout,
        idle_timeout_sec: options.idle_timeout,
        enabled_tools: Some(names(&options.tool)).filter(|tools| !tools.is_empty()),
        disabled_tools: names(&options.without_tool),
        trusted: set(options.trusted),
        default_tools_approval_mode: options.approval_mode.map(Into::into),
        sandbox: options.sandbox.map(sandbox),
        network: set(options.network),
        writable: options.writable.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?,
        memory_mb: options.memory_mb,
        ..McpServerConfig::default()
    })
}

fn sandbox(flag: SandboxFlag) -> ServerSandbox {
    match flag {
        SandboxFlag::ReadOnly => ServerSandbox::ReadOnly,
        SandboxFlag::WorkspaceWrite => ServerSandbox::WorkspaceWrite,
        SandboxFlag::DangerFullAccess | SandboxFlag::External => ServerSandbox::None,
    }
}

/// Makes a path of the command line absolute: in the file, it would be relative to that.
fn absolute(path: &Path) -> Result<PathBuf, CliProblem> {
    path::absolute(path).map_err(|error| CliProblem::file("cannot use", path, &error))
}

/// Returns the keys that are set, in the order of the file.
fn keys(server: &McpServerConfig) -> Vec<(String, Value)> {
    // Every key is a value of TOML.
    let mut table = toml::Table::try_from(server).unwrap_or_default();
    let first: Vec<_> = ORDER.iter().filter_map(|key| table.remove_entry(*key)).collect();
    first.into_iter().chain(table).collect()
}

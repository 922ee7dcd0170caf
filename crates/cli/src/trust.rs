//! `windlass trust`: decides whether the configuration in a project is used.
//!
//! Nothing in a repository is configuration before its directory is trusted. A decision is bound to
//! the content of the files: if they change, it is asked for again.

mod project;
mod store;
mod variables;

pub(crate) use self::{
    project::ProjectConfiguration,
    store::{ProjectTrust, TrustStore},
};

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use windlass::counted;

use crate::{
    args::{CommonOptions, TrustOptions},
    confirm::{agrees, is_attended},
    exit::ProgramExit,
    mcp, note,
    output::print,
    policy,
    problem::CliProblem,
    redact::own,
    screen::{visible, visible_path},
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &TrustOptions) -> Result<ProgramExit, CliProblem> {
    let common = match &options.directory {
        Some(directory) => CommonOptions { cd: Some(directory.clone()), ..common.clone() },
        None => common.clone(),
    };
    let setup = ProgramSetup::for_tools(&common)?;
    let store = TrustStore::new(&setup.home);
    if options.list {
        return list(&store, options.json);
    }
    let root = policy::project_root(&setup.cwd);
    if options.revoke {
        return revoke(&store, root, options.json);
    }
    let found = ProjectConfiguration::read(root).map_err(|fault| CliProblem::usage(fault.to_string()))?;
    let Some(project) = found else {
        let message =
            format!("there is no `.mcp.json` in {}, so there is nothing to trust", visible_path(root));
        return Err(CliProblem::failed(message));
    };
    decide(&setup, &store, &project, options)
}

fn decide(
    setup: &ProgramSetup,
    store: &TrustStore,
    project: &ProjectConfiguration,
    options: &TrustOptions,
) -> Result<ProgramExit, CliProblem> {
    let state = store.state(project).map_err(|error| CliProblem::usage(error.to_string()))?;
    if !options.json {
        print(&description(project))?;
    }
    let is_new = state != ProjectTrust::Trusted;
    let agreed = match (is_new, options.yes) {
        (false, _) => false,
        (true, true) => true,
        (true, false) if options.json => false,
        (true, false) => agrees(QUESTION, "pass `--yes` to trust it")?,
    };
    if agreed {
        store.decide(project, true).map_err(|error| CliProblem::failed(error.to_string()))?;
    }
    let state = if agreed { ProjectTrust::Trusted } else { state };
    if options.json {
        print(&format!("{:#}\n", object(project, state)))?;
    } else if agreed {
        note(&format!("trusted, until `{}` changes", visible_path(&project.path)));
        if !options.yes && agrees(TEST_QUESTION, "run `windlass mcp test`")? {
            // The result is shown; a server that fails does not change the decision.
            mcp::test_servers_of(setup, project)?;
        }
    } else if is_new {
        note("nothing was trusted");
    } else {
        note("it is trusted already");
    }
    Ok(if state == ProjectTrust::Trusted { ProgramExit::Done } else { ProgramExit::Refused })
}

const QUESTION: &str = "Trust this configuration, until it changes? [y/N] ";

const TEST_QUESTION: &str = "Start these servers once, so that the next session has their tools? [y/N] ";

/// Asks a person at the start of a session about a configuration that is new or changed. The answer
/// is kept, so that each content is asked about once.
pub(crate) fn ask(setup: &ProgramSetup) -> Result<(), CliProblem> {
    if !is_attended() {
        return Ok(());
    }
    let store = TrustStore::new(&setup.home);
    // What cannot be read is not used; the notes at the start of the session say so.
    let Ok(Some(project)) = ProjectConfiguration::read(policy::project_root(&setup.cwd)) else {
        return Ok(());
    };
    if !matches!(store.state(&project), Ok(ProjectTrust::Unknown | ProjectTrust::Changed)) {
        return Ok(());
    }
    note(&description(&project));
    let agreed = agrees(QUESTION, "run `windlass trust`")?;
    store.decide(&project, agreed).map_err(|error| CliProblem::failed(error.to_string()))?;
    if !agreed {
        note("it is not used; `windlass trust` asks again");
    }
    Ok(())
}

/// Describes what the configuration would start and reach.
fn description(project: &ProjectConfiguration) -> String {
    let count = counted(project.servers.len() as u64, "MCP server");
    let mut text = format!("{} configures {count}:\n", visible_path(&project.path));
    for (name, server) in &project.servers {
        let (target, reach) = (clean(&server.target()), server.confinement());
        text.push_str(&format!("  {}: {}\n    ({reach})\n", visible(name), visible(&target)));
        // A variable such as PATH or NODE_OPTIONS decides what a harmless command line runs.
        for (name, value) in &server.config.env {
            text.push_str(&format!("    with {}={}\n", visible(name), visible(&clean(value))));
        }
        for (name, value) in &server.config.http_headers {
            text.push_str(&format!("    with the header {}: {}\n", visible(name), visible(&clean(value))));
        }
    }
    let variables = project.variables();
    if !variables.is_empty() {
        let names: Vec<_> = variables.iter().map(|name| visible(name)).collect();
        text.push_str(&format!("They get the values of these variables: {}\n", names.join(", ")));
    }
    text
}

fn clean(text: &str) -> String {
    own().clean(text).into_owned()
}

fn object(project: &ProjectConfiguration, state: ProjectTrust) -> Value {
    let servers = project.servers.iter().map(|(name, server)| {
        let env = |(name, value): (&String, &String)| (name.clone(), clean(value));
        json!({
            "name": name,
            "transport": server.transport(),
            "target": clean(&server.target()),
            "env": server.config.env.iter().map(env).collect::<BTreeMap<_, _>>(),
            "http_headers": server.config.http_headers.iter().map(env).collect::<BTreeMap<_, _>>(),
        })
    });
    json!({
        "directory": project.root,
        "file": project.path,
        "sha256": project.sha256,
        "state": state.name(),
        "servers": servers.collect::<Vec<_>>(),
        "variables": project.variables(),
    })
}

fn list(store: &TrustStore, json: bool) -> Result<ProgramExit, CliProblem> {
    let decisions = store.list().map_err(|error| CliProblem::usage(error.to_string()))?;
    let states = decisions.iter().map(|directory| {
        let state = match ProjectConfiguration::read(directory) {
            Ok(Some(project)) => store.state(&project).map_or("unreadable", ProjectTrust::name),
            Ok(None) => "gone",
            Err(_) => "unreadable",
        };
        (directory, state)
    });
    if json {
        let all: Vec<_> =
            states.map(|(directory, state)| json!({"directory": directory, "state": state})).collect();
        return print(&format!("{:#}\n", Value::from(all)));
    }
    let lines: String =
        states.map(|(directory, state)| format!("{state:<10}  {}\n", visible_path(directory))).collect();
    print(if lines.is_empty() { "no directory was decided about\n" } else { &lines })
}

fn revoke(store: &TrustStore, root: &Path, json: bool) -> Result<ProgramExit, CliProblem> {
    let was_there = store.forget(root).map_err(|error| CliProblem::failed(error.to_string()))?;
    if json {
        print(&format!("{:#}\n", json!({"directory": root, "revoked": was_there})))?;
    } else if was_there {
        note(&format!("forgot the decision about {}", visible_path(root)));
    } else {
        note(&format!("there is no decision about {}", visible_path(root)));
    }
    Ok(if was_there { ProgramExit::Done } else { ProgramExit::Failed })
}

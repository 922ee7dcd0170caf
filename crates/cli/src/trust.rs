//! `windlass trust`: decides whether the configuration in a project is used.
//!
//! Nothing in a repository is configuration before its directory is trusted. A decision is bound to
//! the content of the files: if they change, it is asked for again.

mod project;
mod store;
mod texts;
mod variables;

pub(crate) use self::{
    project::ProjectConfiguration,
    store::{ProjectTrust, TextTrust, TrustStore},
    texts::ProjectTexts,
};

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use windlass::{counted, hooks::HookEvent, instructions::FileDigests};

use self::{project::ProjectFault, store::TrustSubject};
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
    let found = Project::read(&setup).map_err(|fault| CliProblem::usage(fault.to_string()))?;
    let Some(project) = found else {
        let message = format!(
            "there is no `.mcp.json`, `.windlass/hooks.json`, skill or prompt in {}, so there is nothing to trust",
            visible_path(root)
        );
        return Err(CliProblem::failed(message));
    };
    decide(&setup, &store, &project, options)
}

/// Everything of a project that is used only after a decision. Not empty.
struct Project {
    servers: Option<ProjectConfiguration>,
    texts: ProjectTexts,
}

impl Project {
    fn read(setup: &ProgramSetup) -> Result<Option<Self>, ProjectFault> {
        let servers = ProjectConfiguration::read(policy::project_root(&setup.cwd))?;
        let texts = ProjectTexts::read(&setup.cwd, &setup.home);
        Ok((servers.is_some() || !texts.is_empty()).then_some(Self { servers, texts }))
    }

    /// Returns the state of the part that is trusted least.
    fn state(&self, store: &TrustStore) -> Result<ProjectTrust, CliProblem> {
        let unreadable = |error: store::TrustStoreError| CliProblem::usage(error.to_string());
        let texts = store.texts(&self.texts.root).map_err(unreadable)?;
        let mut states: Vec<_> = self.texts.parts().map(|files| texts.state(files)).collect();
        if let Some(servers) = &self.servers {
            states.push(store.state(servers).map_err(unreadable)?);
        }
        let by_trust =
            [ProjectTrust::Changed, ProjectTrust::Unknown, ProjectTrust::Declined, ProjectTrust::Trusted];
        Ok(by_trust.into_iter().find(|state| states.contains(state)).unwrap_or(ProjectTrust::Unknown))
    }

    fn keep(&self, store: &TrustStore, trusted: bool) -> Result<(), CliProblem> {
        let Self { servers, texts } = self;
        let subject = TrustSubject { root: &texts.root, servers: servers.as_ref(), files: texts.files() };
        store.decide(subject, trusted).map_err(|error| CliProblem::failed(error.to_string()))
    }

    /// Describes what the project would start, reach and tell the model.
    fn description(&self) -> String {
        let mut text = self.servers.as_ref().map(servers_description).unwrap_or_default();
        let ProjectTexts { root, skills, prompts } = &self.texts;
        let row = |name: &str, about: &str, files: &FileDigests| {
            let size = if files.len() > 1 { format!(" ({} files)", files.len()) } else { String::new() };
            format!("  {}{size}: {}\n", visible(name), visible(&clean(about)))
        };
        if !skills.is_empty() {
            let count = counted(skills.len() as u64, "skill");
            text.push_str(&format!("{} has {count} (`windlass skills show NAME`):\n", visible_path(root)));
            text.extend(skills.iter().map(|skill| row(&skill.name, &skill.description, &skill.files)));
        }
        if !prompts.is_empty() {
            let count = counted(prompts.len() as u64, "prompt");
            text.push_str(&format!("{} has {count} (`windlass prompts show NAME`):\n", visible_path(root)));
            text.extend(prompts.iter().map(|prompt| row(&prompt.name, &prompt.description, &prompt.files)));
        }
        text
    }
}

fn decide(
    setup: &ProgramSetup,
    store: &TrustStore,
    project: &Project,
    options: &TrustOptions,
) -> Result<ProgramExit, CliProblem> {
    let state = project.state(store)?;
    if !options.json {
        print(&project.description())?;
    }
    let is_new = state != ProjectTrust::Trusted;
    let agreed = match (is_new, options.yes) {
        (false, _) => false,
        (true, true) => true,
        (true, false) if options.json => false,
        (true, false) => agrees(QUESTION, "pass `--yes` to trust it")?,
    };
    if agreed {
        project.keep(store, true)?;
    }
    let state = if agreed { ProjectTrust::Trusted } else { state };
    if options.json {
        print(&format!("{:#}\n", object(project, state)))?;
    } else if agreed {
        match &project.servers {
            Some(servers) if project.texts.is_empty() => {
                note(&format!("trusted, until `{}` changes", visible_path(&servers.path)));
            }
            _ => note("trusted, each part until it changes"),
        }
        if let Some(servers) = &project.servers
            && !options.yes
            && !servers.servers.is_empty()
            && agrees(TEST_QUESTION, "run `windlass mcp test`")?
        {
            // The result is shown; a server that fails does not change the decision.
            mcp::test_servers_of(setup, servers)?;
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
    let Ok(Some(project)) = Project::read(setup) else {
        return Ok(());
    };
    if !matches!(project.state(&store), Ok(ProjectTrust::Unknown | ProjectTrust::Changed)) {
        return Ok(());
    }
    note(&project.description());
    let agreed = agrees(QUESTION, "run `windlass trust`")?;
    project.keep(&store, agreed)?;
    if !agreed {
        note("it is not used; `windlass trust` asks again");
    }
    Ok(())
}

/// Describes what the servers of a project would start and reach.
fn servers_description(project: &ProjectConfiguration) -> String {
    let count = counted(project.servers.len() as u64, "MCP server");
    let mut text = match project.servers.len() {
        0 => String::new(),
        _ => format!("{} configures {count}:\n", visible_path(&project.path)),
    };
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
    text.push_str(&described_hooks(project));
    let variables = project.variables();
    if !variables.is_empty() {
        let names: Vec<_> = variables.iter().map(|name| visible(name)).collect();
        text.push_str(&format!("They get the values of these variables: {}\n", names.join(", ")));
    }
    text
}

/// Describes the hooks, which run in every session.
fn described_hooks(project: &ProjectConfiguration) -> String {
    let hooks = HookEvent::ALL.into_iter().flat_map(|event| {
        let groups = project.hooks.groups(event).iter();
        groups.flat_map(move |group| group.hooks.iter().map(move |hook| (event, group, hook)))
    });
    let lines = hooks.map(|(event, group, hook)| {
        let matcher = group.matcher.as_deref().unwrap_or("*");
        format!("  {event} {}: {}\n", visible(matcher), visible(&clean(&hook.command.to_string())))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    let path = visible_path(&project.hooks_path());
    format!("{path} configures hooks, which run in a read-only sandbox without network:\n{lines}")
}

pub(crate) fn clean(text: &str) -> String {
    own().clean(text).into_owned()
}

fn object(project: &Project, state: ProjectTrust) -> Value {
    let Project { servers, texts } = project;
    let configured = servers.as_ref().map(|file| &file.servers).into_iter().flatten();
    let server = configured.map(|(name, server)| {
        let env = |(name, value): (&String, &String)| (name.clone(), clean(value));
        json!({
            "name": name,
            "transport": server.transport(),
            "target": clean(&server.target()),
            "env": server.config.env.iter().map(env).collect::<BTreeMap<_, _>>(),
            "http_headers": server.config.http_headers.iter().map(env).collect::<BTreeMap<_, _>>(),
        })
    });
    let text = |name: &str, about: &str, files: &FileDigests| json!({"name": name, "description": clean(about), "files": files});
    let skills = texts.skills.iter().map(|skill| text(&skill.name, &skill.description, &skill.files));
    let prompts = texts.prompts.iter().map(|prompt| text(&prompt.name, &prompt.description, &prompt.files));
    json!({
        "directory": texts.root,
        "file": servers.as_ref().map(|file| &file.path),
        "sha256": servers.as_ref().map(|file| &file.sha256),
        "state": state.name(),
        "servers": server.collect::<Vec<_>>(),
        "variables": servers.as_ref().map(ProjectConfiguration::variables).unwrap_or_default(),
        "skills": skills.collect::<Vec<_>>(),
        "prompts": prompts.collect::<Vec<_>>(),
        "hooks": servers.as_ref().map(|file| &file.hooks),
    })
}

fn list(store: &TrustStore, json: bool) -> Result<ProgramExit, CliProblem> {
    let decisions = store.list().map_err(|error| CliProblem::usage(error.to_string()))?;
    let states = decisions.iter().map(|directory| {
        let texts = ProjectTexts::read(directory, store.home());
        let state = match ProjectConfiguration::read(directory) {
            Ok(None) if texts.is_empty() => "gone",
            Ok(servers) => Project { servers, texts }.state(store).map_or("unreadable", ProjectTrust::name),
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

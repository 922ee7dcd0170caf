//! `windlass mcp prompts`: the prompts of servers, and prompts as requests.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass::{
    Content, Stop, first_line,
    host::Window,
    mcp::{
        pool::{RemoteError, ServerPool},
        result::{RemoteArguments, RemoteContent, RemotePrompt, RemotePromptMessage},
    },
};

use super::{connections, reported_servers};
use crate::{
    args::McpPromptsOptions,
    exit::ProgramExit,
    interrupts, note,
    output::{print, print_answer},
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
};

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, options: &McpPromptsOptions) -> Result<ProgramExit, CliProblem> {
    match (&options.server, &options.name) {
        (Some(server), Some(name)) => show(setup, (server, name), options),
        (server, _) => list(setup, server.as_deref(), options.json),
    }
}

fn list(setup: &ProgramSetup, server: Option<&str>, json: bool) -> Result<ProgramExit, CliProblem> {
    let listed = with_pool(setup, server, async |pool| {
        let mut listed = Vec::new();
        for (name, _) in pool.servers() {
            listed.push((name.to_owned(), pool.list_prompts(name).await));
        }
        Ok(listed)
    })?;
    let is_well = listed.iter().all(|(_, prompts)| prompts.is_ok());
    if json {
        let all: Vec<_> = listed.iter().map(|(server, prompts)| prompts_json(server, prompts)).collect();
        print(&format!("{:#}\n", json!(all)))?;
    } else {
        let mut text = String::new();
        for (server, prompts) in &listed {
            match prompts {
                Ok(prompts) => prompts.iter().for_each(|prompt| text.push_str(&line(server, prompt))),
                Err(error) => note(&format!("warning: {}", visible(&error.to_string()))),
            }
        }
        print(if text.is_empty() { "there are no prompts\n" } else { &text })?;
    }
    Ok(if is_well { ProgramExit::Done } else { ProgramExit::Failed })
}

fn prompts_json(server: &str, prompts: &Result<Vec<RemotePrompt>, RemoteError>) -> Value {
    match prompts {
        Ok(prompts) => json!({"server": server, "prompts": prompts}),
        Err(error) => json!({"server": server, "prompts": [], "error": error.to_string()}),
    }
}

fn line(server: &str, prompt: &RemotePrompt) -> String {
    let arguments = prompt.arguments.iter().map(|argument| {
        let name = visible(&argument.name);
        if argument.required { format!(" {name}=…") } else { format!(" [{name}=…]") }
    });
    let description = visible(&first_line(prompt.description.as_deref().unwrap_or_default()));
    let gap = if description.is_empty() { "" } else { "  " };
    let arguments: String = arguments.collect();
    format!("{}/{}{arguments}{gap}{description}\n", visible(server), visible(&prompt.name))
}

fn show(
    setup: &ProgramSetup,
    (server, name): (&str, &str),
    options: &McpPromptsOptions,
) -> Result<ProgramExit, CliProblem> {
    let messages = messages(setup, (server, name), &options.arguments)?;
    if options.json {
        let object = json!({"server": server, "prompt": name, "messages": messages});
        return print(&format!("{object:#}\n"));
    }
    let shown = messages.iter().map(|message| format!("{}: {}\n", message.role, text(&message.content)));
    print_answer(&shown.collect::<String>())
}

/// Returns a prompt as the content of a user's message.
pub(crate) fn as_request(
    setup: &ProgramSetup,
    prompt: &str,
    arguments: &[(String, String)],
) -> Result<Vec<Content>, CliProblem> {
    let Some((server, name)) = prompt.split_once('/') else {
        return Err(CliProblem::usage(format!("`{}` is not a prompt; write SERVER/NAME", visible(prompt))));
    };
    let messages = messages(setup, (server, name), arguments)?;
    Ok(messages.iter().map(|message| content(message, messages.len() > 1)).collect())
}

/// Returns a prompt of running servers as one text.
pub(crate) fn prompt_text(
    pool: &ServerPool,
    prompt: &str,
    arguments: &[(String, String)],
) -> Result<String, CliProblem> {
    let (server, name) = prompt.split_once('/').unwrap_or((prompt, ""));
    if !pool.servers().any(|(known, _)| known == server) {
        return Err(CliProblem::usage(format!(
            "there is no MCP server `{}` in this session",
            visible(server)
        )));
    }
    let arguments = remote_arguments(arguments);
    let messages = crate::runtime()?.block_on(pool.get_prompt(server, name, &arguments));
    let messages = messages.map_err(|error| CliProblem::failed(visible(&error.to_string())))?;
    let is_conversation = messages.len() > 1;
    let texts = messages.iter().map(|message| match text(&message.content) {
        text if is_conversation => format!("{}: {text}", message.role),
        text => text,
    });
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn remote_arguments(arguments: &[(String, String)]) -> RemoteArguments {
    arguments.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

fn messages(
    setup: &ProgramSetup,
    (server, name): (&str, &str),
    arguments: &[(String, String)],
) -> Result<Vec<RemotePromptMessage>, CliProblem> {
    let arguments = remote_arguments(arguments);
    with_pool(setup, Some(server), async |pool| {
        let messages = pool.get_prompt(server, name, &arguments).await;
        messages.map_err(|error| CliProblem::failed(visible(&error.to_string())))
    })
}

/// Does something with the servers, or with one of them, and ends them.
fn with_pool<T>(
    setup: &ProgramSetup,
    server: Option<&str>,
    act: impl AsyncFnOnce(Arc<ServerPool>) -> Result<T, CliProblem>,
) -> Result<T, CliProblem> {
    let configured = reported_servers(setup);
    let chosen = match server {
        Some(server) => vec![(server, configured.usable(server)?)],
        None => configured.servers.iter().map(|(name, server)| (name.as_str(), server)).collect(),
    };
    let pool = connections::pool(setup, chosen);
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    crate::runtime()?.block_on(async {
        let end = tokio::select! {
            biased;
            _reason = stop.stopped() => Err(CliProblem::failed("interrupted")),
            end = act(Arc::clone(&pool)) => end,
        };
        pool.shut_down().await;
        end
    })
}

/// Returns a message of a prompt. In a conversation, each names its role.
fn content(message: &RemotePromptMessage, is_conversation: bool) -> Content {
    match &message.content {
        RemoteContent::Image { data, mime_type } => Content::Image(format!("data:{mime_type};base64,{data}")),
        other if is_conversation => Content::Text(format!("{}: {}", message.role, text(other))),
        other => Content::Text(text(other)),
    }
}

/// Returns content as text.
fn text(content: &RemoteContent) -> String {
    match content {
        RemoteContent::Text { text } => text.clone(),
        RemoteContent::Image { mime_type, .. } => format!("(an image, {mime_type})"),
        RemoteContent::Audio { mime_type, .. } => format!("(audio, {mime_type})"),
        RemoteContent::Resource { resource } => match &resource.text {
            Some(text) => format!("{}:\n{text}", resource.uri),
            None => format!("({}, binary)", resource.uri),
        },
        RemoteContent::ResourceLink(link) => format!("({})", link.uri),
    }
}

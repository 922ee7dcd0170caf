//! `windlass tools`: lists tools, and finds those that fit a request.

mod bench;
mod choose;
mod cost;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};
use windlass::{AliasMeaning, Category, Exposure, ParameterAlias, Registered, Registry, SpecKind, Toolbox};

use choose::SelectableTools;

use crate::{
    args::{CommonOptions, ToolQuery, ToolsCommand},
    calls,
    exec::from_stdin,
    exit::ProgramExit,
    mcp::{self, SessionServers, with_servers},
    note,
    output::{print, print_text},
    problem::CliProblem,
    screen::{named, visible},
    setup::ProgramSetup,
    spelling::did_you_mean,
    table::{LastColumn, TextTable},
    user_tools,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: ToolsCommand) -> Result<ProgramExit, CliProblem> {
    let mut exit = ProgramExit::Done;
    let is_json = args.is_json();
    let shown = match args {
        ToolsCommand::Search(choosing) => {
            let choosing = asked(choosing)?;
            let (shown, found) = offered(common, &choosing)?.search(&choosing);
            exit = found;
            shown
        }
        ToolsCommand::Select { choosing, explain } => {
            let choosing = asked(choosing)?;
            let (shown, chosen) = offered(common, &choosing)?.select(&choosing, explain);
            exit = chosen;
            shown
        }
        ToolsCommand::Bench { dir, out } => {
            let report = bench::run(&dir, &out)?;
            // Times are only informative; the predictions are written even if stderr is gone.
            let _gone = io::stderr().lock().write_all(report.as_bytes());
            String::new()
        }
        ToolsCommand::Cost { tools, json } => {
            cost::run(&ProgramSetup::for_tools(common)?, tools.as_deref(), json)?
        }
        ToolsCommand::List { tools, json } => list(&toolbox(common, tools.as_deref())?.registry, json),
        ToolsCommand::Manifest { tools, json } => {
            let toolbox = toolbox(common, tools.as_deref())?;
            user_tools::report_quarantined(toolbox.registry.quarantined());
            manifest(&toolbox.registry, json)
        }
        ToolsCommand::Show { name, tools, json } => {
            let toolbox = toolbox(common, tools.as_deref())?;
            user_tools::report_quarantined(toolbox.registry.quarantined());
            show(&toolbox.registry, &name, json)?
        }
    };
    if is_json {
        print(&shown)?;
    } else {
        print_text(&shown)?;
    }
    Ok(exit)
}

/// Reads the request from stdin if it is `-`.
fn asked(mut args: ToolQuery) -> Result<ToolQuery, CliProblem> {
    if args.request == "-" {
        if args.tools.as_deref() == Some(Path::new("-")) {
            return Err(CliProblem::usage("the request and the list of tools cannot both be on stdin"));
        }
        args.request = from_stdin("the request")?;
    }
    if args.request.trim().is_empty() {
        return Err(CliProblem::usage("the request is empty; describe the task, or name a tool"));
    }
    Ok(args)
}

/// Returns the tools that a request is answered from.
fn offered(common: &CommonOptions, args: &ToolQuery) -> Result<SelectableTools, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let usage = windlass::usage(&calls::open(&setup)?).map_err(|error| calls::problem(&error))?;
    let offered = match &args.tools {
        Some(path) => SelectableTools::listed(path, &setup.home)?,
        None => SelectableTools::here(&toolbox(common, None)?.registry),
    };
    Ok(offered.with_usage(usage))
}

fn toolbox(common: &CommonOptions, list: Option<&Path>) -> Result<Toolbox, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let builder = user_tools::with_user_tools(setup.tools(setup.machine()?)?, list)?;
    let servers = SessionServers::known(&setup, &mcp::reported_servers(&setup), None);
    let builder = with_servers(builder, servers.as_ref());
    servers.iter().flat_map(SessionServers::missing).for_each(|text| note(&visible(&text)));
    builder.toolbox().map_err(|errors| CliProblem::usage(errors.to_string()))
}

fn list(registry: &Registry, json: bool) -> String {
    if json {
        return pretty(&Value::from(registry.tools().iter().map(summary).collect::<Vec<_>>()));
    }
    let rows = registry.tools().iter().map(|tool| {
        [visible(tool.spec.name.as_str()), offered_as(tool).to_owned(), visible(first_line(tool))]
    });
    let left_out = registry
        .quarantined()
        .iter()
        .map(|tool| [visible(tool.name.as_str()), "left out".to_owned(), visible(&tool.reason)]);
    let rows = rows.chain(left_out).collect();
    let titles = ["TOOL", "OFFERED", "DESCRIPTION"];
    TextTable { titles, expendable: &[], last: LastColumn::Wrapped, rows }.text()
}

/// Describes how a model learns about a tool.
fn offered_as(tool: &Registered) -> &'static str {
    match tool.exposure {
        Exposure::Advertised => "yes",
        Exposure::Deferred => "by search",
        Exposure::Hidden => "if called",
    }
}

fn show(registry: &Registry, name: &str, json: bool) -> Result<String, CliProblem> {
    let found = registry.resolve(name).map(|(tool, _)| tool);
    let tool = found.ok_or_else(|| CliProblem::usage(unknown(registry, name)))?;
    Ok(if json { pretty(&full(tool)) } else { describe(tool, "#") })
}

/// Returns the message for an unknown tool name.
fn unknown(registry: &Registry, name: &str) -> String {
    let names = registry.tools().iter().map(|tool| tool.spec.name.as_str());
    let hint = did_you_mean(name, names).unwrap_or_else(|| "`windlass tools list` lists all".to_owned());
    format!("there is no tool `{}`; {hint}", named(name))
}

fn manifest(registry: &Registry, json: bool) -> String {
    let mut by_category: BTreeMap<Category, Vec<&Registered>> = BTreeMap::new();
    for tool in registry.tools() {
        by_category.entry(tool.meta.category).or_default().push(tool);
    }
    if json {
        let categories = by_category.iter().map(|(category, tools)| {
            json!({"category": category, "tools": tools.iter().map(|tool| full(tool)).collect::<Vec<_>>()})
        });
        return pretty(&Value::from(categories.collect::<Vec<_>>()));
    }
    let sections = by_category.iter().map(|(category, tools)| {
        let tools: String = tools.iter().map(|tool| describe(tool, "###")).collect();
        format!("## {}\n\n{tools}", category.title())
    });
    format!("# Tools\n\n{}", sections.collect::<String>())
}

fn first_line(tool: &Registered) -> &str {
    match &tool.spec.kind {
        SpecKind::WebSearch(_) => "Search the web (done by the model's server).",
        _ => tool
            .spec
            .description
            .split(". ")
            .next()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches('.'),
    }
}

fn summary(tool: &Registered) -> Value {
    json!({
        "name": tool.spec.name,
        "description": first_line(tool),
        "category": tool.meta.category,
        "advertised": tool.is_advertised(),
        "aliases": tool.meta.aliases,
    })
}

fn full(tool: &Registered) -> Value {
    json!({"spec": tool.spec, "meta": tool.meta, "advertised": tool.is_advertised()})
}

/// Formats a tool as a page of Markdown.
fn describe(tool: &Registered, heading: &str) -> String {
    let mut out = format!("{heading} {}\n\n{}\n", tool.spec.name, tool.spec.description);
    if tool.exposure != Exposure::Advertised {
        out.push_str(&format!("\nOffered: {}\n", offered_as(tool)));
    }
    let mut list = |title: &str, rows: Vec<String>| {
        if !rows.is_empty() {
            out.push_str(&format!("\n{title}:\n"));
            out.push_str(&rows.iter().map(|row| format!("- {row}\n")).collect::<String>());
        }
    };
    if let SpecKind::Function { parameters } = &tool.spec.kind {
        let rows =
            parameters.properties().map(|(name, schema)| parameter(name, schema, parameters.requires(name)));
        list("Parameters", rows.collect());
    }
    let meta = &tool.meta;
    list("Returns", Some(&meta.returns).filter(|text| !text.is_empty()).cloned().into_iter().collect());
    list("Constraints", meta.constraints.clone());
    list("Side effects", meta.side_effects.clone());
    list(
        "Examples",
        meta.examples.iter().map(|example| format!("{}: `{}`", example.request, example.input)).collect(),
    );
    list("Parameter aliases", meta.parameter_aliases.iter().filter_map(alias).collect());
    list("Aliases", meta.aliases.iter().map(|alias| format!("`{alias}`")).collect());
    out.push('\n');
    out
}

/// Returns another name of a parameter, if it stands for one.
fn alias(alias: &ParameterAlias) -> Option<String> {
    match alias.means {
        AliasMeaning::Parameter(parameter) if parameter == alias.name => None,
        AliasMeaning::Parameter(parameter) => Some(format!("`{}` for `{parameter}`", alias.name)),
        AliasMeaning::Switch(parameter, on) => {
            Some(format!("`{}`: `true` for `{parameter}`: `{on}`", alias.name))
        }
        AliasMeaning::AlwaysSo(so) => Some(format!("`{}`: only `{so}`", alias.name)),
        AliasMeaning::Remark => Some(format!("`{}`, ignored", alias.name)),
    }
}

fn parameter(name: &str, schema: &Value, required: bool) -> String {
    let kind = schema.get("type").map(|kind| kind.to_string().replace('"', "")).unwrap_or_default();
    let must = if required { ", required" } else { "" };
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let default = schema.get("default").map(|value| format!(" Default: {value}.")).unwrap_or_default();
    format!("`{name}` ({kind}{must}): {text}{default}")
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

//! `windlass tools`: which tools there are, and which of them fit.

mod bench;
mod choose;
mod cost;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};
use windlass::{
    AliasMeaning, Category, Exposure, ParameterAlias, Registered, Registry, SpecKind, Toolbox,
    select::repair::nearest,
};

use choose::Offered;

use crate::{
    args::{Choosing, Common, Tools},
    brought, calls,
    exec::from_stdin,
    exit::Exit,
    output::print,
    problem::Problem,
    screen::{named, visible},
    setup::Setup,
    table::Table,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: Tools) -> Result<Exit, Problem> {
    let mut exit = Exit::Done;
    let shown = match args {
        Tools::Search(choosing) => {
            let choosing = asked(choosing)?;
            let (shown, found) = offered(common, &choosing)?.search(&choosing);
            exit = found;
            shown
        }
        Tools::Select { choosing, explain } => {
            let choosing = asked(choosing)?;
            let (shown, chosen) = offered(common, &choosing)?.select(&choosing, explain);
            exit = chosen;
            shown
        }
        Tools::Bench { dir, out } => {
            let report = bench::run(&dir, &out)?;
            // Times are for whoever watches; if nobody does, the predictions are there all the same.
            let _gone = io::stderr().lock().write_all(report.as_bytes());
            String::new()
        }
        Tools::Cost { tools, json } => cost::run(&Setup::for_tools(common)?, tools.as_deref(), json)?,
        Tools::List { tools, json } => list(&toolbox(common, tools.as_deref())?.registry, json),
        Tools::Manifest { tools, json } => {
            let toolbox = toolbox(common, tools.as_deref())?;
            brought::tell(toolbox.registry.quarantined());
            manifest(&toolbox.registry, json)
        }
        Tools::Show { name, tools, json } => {
            let toolbox = toolbox(common, tools.as_deref())?;
            brought::tell(toolbox.registry.quarantined());
            show(&toolbox.registry, &name, json)?
        }
    };
    print(&shown)?;
    Ok(exit)
}

/// With a request to answer, from stdin if that is where it is.
fn asked(mut args: Choosing) -> Result<Choosing, Problem> {
    if args.request == "-" {
        if args.tools.as_deref() == Some(Path::new("-")) {
            return Err(Problem::usage("the request and the list of tools cannot both be on stdin"));
        }
        args.request = from_stdin("the request")?;
    }
    if args.request.trim().is_empty() {
        return Err(Problem::usage("the request is empty; say what the tool should do, or name it"));
    }
    Ok(args)
}

/// The tools a request is answered from.
fn offered(common: &Common, args: &Choosing) -> Result<Offered, Problem> {
    let setup = Setup::for_tools(common)?;
    let usage = windlass::usage(&calls::open(&setup)?).map_err(|error| calls::problem(&error))?;
    let offered = match &args.tools {
        Some(path) => Offered::listed(path, &setup.home)?,
        None => Offered::here(&toolbox(common, None)?.registry),
    };
    Ok(offered.knowing(usage))
}

fn toolbox(common: &Common, list: Option<&Path>) -> Result<Toolbox, Problem> {
    let builder = brought::added(Setup::for_tools(common)?.tools()?, list)?;
    builder.toolbox().map_err(|errors| Problem::usage(errors.to_string()))
}

/// The tools that are listed: not those that exist for tests, unless they are on offer.
fn listed(registry: &Registry) -> impl Iterator<Item = &Registered> {
    let is_test =
        |tool: &Registered| tool.meta.category == Category::Testing && tool.exposure == Exposure::Hidden;
    registry.tools().iter().filter(move |tool| !is_test(tool))
}

fn list(registry: &Registry, json: bool) -> String {
    if json {
        return pretty(&Value::from(listed(registry).map(summary).collect::<Vec<_>>()));
    }
    let rows = listed(registry).map(|tool| {
        [visible(tool.spec.name.as_str()), offered_as(tool).to_owned(), visible(first_line(tool))]
    });
    let left_out = registry
        .quarantined()
        .iter()
        .map(|tool| [visible(tool.name.as_str()), "left out".to_owned(), visible(&tool.reason)]);
    let rows = rows.chain(left_out).collect();
    Table { titles: ["TOOL", "OFFERED", "WHAT IT DOES"], expendable: &[], rows }.text()
}

/// Whether and how a model gets to know a tool.
fn offered_as(tool: &Registered) -> &'static str {
    match tool.exposure {
        Exposure::Advertised => "yes",
        Exposure::Deferred => "by search",
        Exposure::Hidden => "if called",
    }
}

fn show(registry: &Registry, name: &str, json: bool) -> Result<String, Problem> {
    let found = registry.resolve(name).map(|(tool, _)| tool);
    let tool = found.ok_or_else(|| Problem::usage(unknown(registry, name)))?;
    Ok(if json { pretty(&full(tool)) } else { describe(tool, "#") })
}

/// What to say of a name no tool has.
fn unknown(registry: &Registry, name: &str) -> String {
    let names = nearest(name, listed(registry).map(|tool| tool.spec.name.as_str()));
    format!("there is no tool `{}`; there are, the nearest first: {}", named(name), names.join(", "))
}

fn manifest(registry: &Registry, json: bool) -> String {
    let mut by_category: BTreeMap<Category, Vec<&Registered>> = BTreeMap::new();
    for tool in listed(registry) {
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

/// A tool as a page of Markdown.
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
    list("Parameters also answer to", meta.parameter_aliases.iter().filter_map(alias).collect());
    list("Also answers to", meta.aliases.iter().map(|alias| format!("`{alias}`")).collect());
    out.push('\n');
    out
}

/// Another name of a parameter, if it stands for one.
fn alias(alias: &ParameterAlias) -> Option<String> {
    match alias.means {
        AliasMeaning::Parameter(parameter) if parameter == alias.name => None,
        AliasMeaning::Parameter(parameter) => Some(format!("`{}` for `{parameter}`", alias.name)),
        AliasMeaning::Switch(parameter, on) => {
            Some(format!("`{}`: `true` for `{parameter}`: `{on}`", alias.name))
        }
        AliasMeaning::AlwaysSo(so) => Some(format!("`{}`: only `{so}`", alias.name)),
        AliasMeaning::Remark => Some(format!("`{}`, which changes nothing", alias.name)),
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

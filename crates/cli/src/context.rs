//! `windlass context` and `windlass compact`: what fills the context window, and making the
//! conversation shorter.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use windlass::{
    Silent, Stop, Usage,
    record::{self, ContextHistory, Which},
};

use crate::{
    args::{CommonOptions, CompactOptions, ContextOptions},
    exit::ProgramExit,
    ids, interrupts,
    output::print,
    problem::{CliProblem, chain},
    setup::ProgramSetup,
    table,
};

/// Runs `windlass context`.
pub(crate) fn run(common: &CommonOptions, options: &ContextOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let path = session_file(&setup, options.session.as_deref())?;
    let context = record::context_of(&path).map_err(|error| CliProblem::failed(chain(&error)))?;
    print(&if options.json { format!("{:#}\n", as_json(&context)) } else { as_text(&context) })
}

fn session_file(setup: &ProgramSetup, session: Option<&str>) -> Result<PathBuf, CliProblem> {
    if let Some(name) = session {
        return Ok(ids::file(setup, name)?.1);
    }
    let entries = record::list(&setup.home).map_err(|error| CliProblem::failed(chain(&error)))?;
    let here = entries.into_iter().find(|entry| entry.cwd == setup.cwd);
    here.map(|entry| entry.path).ok_or_else(|| {
        CliProblem::usage("there is no session of this directory; `windlass sessions list` lists all")
    })
}

fn as_json(context: &ContextHistory) -> Value {
    json!({
        "tokens": context.tokens,
        "window": context.window,
        "parts": context.parts,
        "requests": context.requests,
        "usage": context.usage,
        "cache_misses": context.cache_misses,
        "compactions": context.compactions,
    })
}

fn as_text(context: &ContextHistory) -> String {
    if context.requests == 0 && context.compactions.is_empty() {
        return "no request of this session is on record with its size\n".to_owned();
    }
    let sum = context.parts.total().max(1);
    let part = |tokens: u64| format!("{tokens:>8}  {:>3} %", tokens.saturating_mul(100) / sum);
    let filled = match context.window {
        Some(window) => {
            let percent = context.tokens.saturating_mul(100) / window.max(1);
            format!("{} of {window} tokens, {percent} %", context.tokens)
        }
        None => format!("{} tokens", context.tokens),
    };
    let parts = &context.parts;
    let tools = parts.tools.iter().map(|(server, tokens)| {
        let name = if server == "built-in" { "tools" } else { "tools of MCP" };
        let server = if server == "built-in" { String::new() } else { format!("  {server}") };
        (name, format!("{}{server}", part(*tokens)))
    });
    let rows = [("context", filled), ("instructions", part(parts.instructions))];
    let rest = [
        ("files", part(parts.files)),
        ("outputs", part(parts.outputs)),
        ("conversation", part(parts.conversation)),
        ("requests", context.requests.to_string()),
        ("cache", cache_words(&context.usage, context.cache_misses)),
    ];
    let compactions = context.compactions.iter().map(|compaction| {
        let words = compaction.method.describe(compaction.tokens_before, compaction.tokens_after);
        ("compaction", format!("{words} ({})", compaction.reason.name()))
    });
    table::pairs(rows.into_iter().chain(tools).chain(rest).chain(compactions))
}

/// Describes the use of the prompt cache of the server.
pub(crate) fn cache_words(usage: &Usage, misses: u64) -> String {
    let Usage { input_tokens, cached_input_tokens, .. } = usage;
    if *cached_input_tokens == 0 {
        return format!("{input_tokens} tokens read, none of them from the cache");
    }
    let percent = cached_input_tokens.saturating_mul(100) / (*input_tokens).max(1);
    let misses = windlass::counted(misses, "request");
    format!(
        "{cached_input_tokens} of {input_tokens} tokens read came from the cache, {percent} %; {misses} missed it"
    )
}

/// Runs `windlass compact`.
pub(crate) fn compact(common: &CommonOptions, options: &CompactOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_compaction(common, options)?.with_installed_model()?;
    let which = match &options.session {
        Some(name) => Which::Id(ids::session_id(&setup, name)?),
        None => Which::LastIn(setup.cwd.clone()),
    };
    let stop = Stop::default();
    interrupts::watch(stop.clone(), windlass::host::Window::of_terminal())?;
    let mut builder = setup.agent(setup.machine()?)?.events(Arc::new(Silent)).resume(which);
    if !setup.has_chosen_provider() {
        builder = builder.same_provider();
    }
    let report = crate::runtime()?.block_on(async {
        let mut agent = builder.build().map_err(|error| setup.explain(&error))?;
        agent.compact(options.keep.as_deref(), &stop).await.map_err(|error| CliProblem::failed(chain(&error)))
    })?;
    let (before, after) = (report.tokens_before, report.tokens_after);
    if options.json {
        let report = json!({
            "method": report.method, "tokens_before": before, "tokens_after": after, "usage": report.usage,
        });
        return print(&format!("{report}\n"));
    }
    print(&format!("{}\n", report.method.describe(before, after)))
}

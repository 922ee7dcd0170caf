//! `windlass history`: lists calls.

use std::{
    io::{self, IsTerminal},
    ops::ControlFlow,
};

use serde_json::{Value, json};
use windlass::{
    Content,
    clean::Secrets,
    record::{Call, CallFilter, CallRecord, Calls},
};

use crate::{
    args::{CommonOptions, HistoryOptions},
    calls::{self, brief, one_line, tokens},
    exit::ProgramExit,
    output::print,
    paths::PathDisplay,
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
    table::TextTable,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &HistoryOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let wanted = CallFilter {
        tool: args.tool.clone(),
        status: args.status.clone(),
        since: calls::since(args.since.as_deref())?,
        session: args.session.as_deref().map(Into::into),
        feedback: args.feedback.map(Into::into),
    };
    let index = calls::open(&setup)?;
    let found = found(&index, &wanted, args, &setup.secrets())?;
    if args.json {
        let lines = found.iter().map(|(call, input)| format!("{}\n", as_json(call, input)));
        return print(&lines.collect::<String>());
    }
    if found.is_empty() {
        crate::note("no matching calls are on record");
        return Ok(ProgramExit::Done);
    }
    let rows = found.iter().map(|(call, input)| row(call, &seen(call, input, &setup))).collect();
    let titles = ["CALL", "TIME", "TOOL", "STATUS", "TOOK", "INPUT"];
    print(&TextTable { titles, expendable: &["TOOK", "TIME"], rows }.text())
}

/// Formats an input: on a terminal, paths inside this directory are relative.
fn seen(call: &Call, input: &str, setup: &ProgramSetup) -> String {
    if io::stdout().is_terminal() && call.cwd == setup.cwd {
        return PathDisplay::seen_from(&setup.cwd).show_in_json(input);
    }
    input.to_owned()
}

/// Returns the calls with their inputs, without secrets.
fn found(
    index: &Calls,
    wanted: &CallFilter,
    args: &HistoryOptions,
    secrets: &Secrets,
) -> Result<Vec<(Call, String)>, CliProblem> {
    let mut found = Vec::new();
    let needle = args.grep.as_deref().map(str::to_lowercase);
    let take = |mut call: Call| {
        if found.len() >= args.limit {
            return ControlFlow::Break(());
        }
        // A file that is gone or changed has nothing to show; the call itself is still known.
        let recorded = index.read_record(&call).ok();
        let input =
            recorded.as_ref().map(|recorded| secrets.clean(recorded.call.input.as_str()).into_owned());
        let input = input.unwrap_or_else(|| "(not in the session file)".to_owned());
        let fits = needle.as_deref().is_none_or(|needle| {
            let output = recorded.as_ref().map(output).unwrap_or_default();
            // Search only the text that would be shown: otherwise a secret could be guessed letter
            // by letter.
            [input.as_str(), &*secrets.clean(&output)].iter().any(|text| text.to_lowercase().contains(needle))
        });
        if fits {
            // The name is whatever a model wrote.
            call.tool = secrets.clean(call.tool.as_str()).as_ref().into();
            found.push((call, input));
        }
        ControlFlow::Continue(())
    };
    index.for_each_call(wanted, take).map_err(|error| calls::problem(&error))?;
    Ok(found)
}

/// Returns the text of a result.
pub(crate) fn output(recorded: &CallRecord) -> String {
    let content = recorded.outcome.as_ref().map(|outcome| outcome["content"].clone()).unwrap_or_default();
    serde_json::from_value::<Vec<Content>>(content).map(|parts| Content::join(&parts)).unwrap_or_default()
}

fn row(call: &Call, input: &str) -> [String; 6] {
    let status = call.status.as_deref().unwrap_or("running");
    let mut status = call.class.as_ref().map_or(status.to_owned(), |class| format!("{status}: {class}"));
    if let Some(rating) = call.feedback {
        status.push_str(&format!(", rated {}", rating.as_str()));
    }
    let duration = call.status.as_ref().map_or(String::new(), |_| brief(call.duration));
    let tool = visible(call.tool.as_str());
    let time = calls::when(call.time);
    [call.handle.clone(), time, tool, visible(&status), duration, one_line(input)]
}

/// Returns the entry of the index, for programs.
pub(crate) fn as_json(call: &Call, input: &str) -> Value {
    json!({
        "call": call.handle,
        "id": call.id,
        "tool": call.tool,
        "session": call.thread,
        "cwd": call.cwd,
        "time": call.time.to_string(),
        "input": input,
        "input_hash": call.input_hash,
        "decision": call.decision,
        "held": call.held,
        "status": call.status.as_deref().unwrap_or("running"),
        "error": call.class,
        "success": call.success,
        "duration_ms": u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX),
        "bytes_in": call.bytes_in,
        "bytes_out": call.bytes_out,
        "tokens_in": tokens(call.bytes_in),
        "tokens_out": tokens(call.bytes_out),
        "verdict": call.verdict,
        "feedback": call.feedback,
    })
}

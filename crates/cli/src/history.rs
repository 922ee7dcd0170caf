//! `windlass history`: lists calls.

use std::{ops::ControlFlow, path::Path};

use serde_json::{Value, json};
use windlass::{
    CallWords, Content, Effects,
    clean::Secrets,
    record::{Call, CallFilter, CallRecord, Calls},
};

use crate::{
    args::{CommonOptions, HistoryOptions},
    calls::{self, brief, one_line, tokens},
    exit::ProgramExit,
    ids,
    output::print,
    paths::PathDisplay,
    problem::CliProblem,
    screen::visible,
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &HistoryOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let wanted = CallFilter {
        tool: args.tool.clone(),
        status: args.status.clone(),
        since: calls::since(args.since.as_deref())?,
        session: args.session.as_deref().map(|name| ids::thread_id(&setup, name)).transpose()?,
        feedback: args.feedback.map(Into::into),
    };
    let index = calls::open(&setup)?;
    let below = (!args.all && args.session.is_none()).then_some(setup.cwd.as_path());
    let (found, elsewhere) = found(&index, &CallSearch { wanted, below, args }, &setup.secrets())?;
    if args.json {
        let lines = found.iter().map(|call| format!("{}\n", as_json(&call.call, &call.input)));
        return print(&lines.collect::<String>());
    }
    if found.is_empty() {
        crate::note(if elsewhere {
            "no matching calls of this directory are on record; `--all` shows those of others"
        } else {
            "no matching calls are on record"
        });
        return Ok(ProgramExit::Done);
    }
    let rows = found.iter().map(|call| call.row(&setup.cwd)).collect();
    let titles = ["CALL", "TIME", "TOOL", "STATUS", "TOOK", "INPUT"];
    print(&TextTable { titles, expendable: &[], last: LastColumn::Cut, rows }.text())
}

/// The calls to list.
struct CallSearch<'a> {
    wanted: CallFilter,
    /// Only calls of this directory and those below it.
    below: Option<&'a Path>,
    args: &'a HistoryOptions,
}

/// A call to list.
struct ListedCall {
    call: Call,
    /// Its input, without secrets.
    input: String,
    /// Its arguments in words, without secrets.
    gist: Option<String>,
}

/// Returns the calls, and true if there are others in other directories.
fn found(
    index: &Calls,
    search: &CallSearch<'_>,
    secrets: &Secrets,
) -> Result<(Vec<ListedCall>, bool), CliProblem> {
    let (mut found, mut elsewhere) = (Vec::new(), false);
    let needle = search.args.grep.as_deref().map(str::to_lowercase);
    let take = |mut call: Call| {
        if found.len() >= search.args.limit {
            return ControlFlow::Break(());
        }
        if search.below.is_some_and(|directory| !call.cwd.starts_with(directory)) {
            elsewhere = true;
            return ControlFlow::Continue(());
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
            let gist = recorded.as_ref().map(|recorded| gist(recorded, &call.cwd, secrets));
            found.push(ListedCall { call, input, gist });
        }
        ControlFlow::Continue(())
    };
    index.for_each_call(&search.wanted, take).map_err(|error| calls::problem(&error))?;
    Ok((found, elsewhere))
}

/// Returns the arguments of a call in words.
pub(crate) fn gist(recorded: &CallRecord, cwd: &Path, secrets: &Secrets) -> String {
    let effects = recorded.intent.as_ref().map(|intent| intent["effects"].clone()).unwrap_or_default();
    let effects: Effects = serde_json::from_value(effects).unwrap_or_default();
    let paths = PathDisplay::seen_from(cwd);
    let words = CallWords::new(&recorded.call, &effects, &|path| paths.show(path));
    secrets.clean(&words.object).into_owned()
}

/// Returns the text of a result.
pub(crate) fn output(recorded: &CallRecord) -> String {
    let content = recorded.outcome.as_ref().map(|outcome| outcome["content"].clone()).unwrap_or_default();
    serde_json::from_value::<Vec<Content>>(content).map(|parts| Content::join(&parts)).unwrap_or_default()
}

impl ListedCall {
    /// Formats the call in words. Only `--json` has its arguments as they were written.
    fn row(&self, cwd: &Path) -> [String; 6] {
        let Self { call, input, gist } = self;
        let mut status = status_words(call);
        if let Some(rating) = call.feedback {
            status.push_str(&format!(", rated {}", rating.as_str()));
        }
        let duration = call.status.as_ref().map_or(String::new(), |_| brief(call.duration));
        let tool = visible(call.tool.as_str());
        let input = match gist {
            Some(gist) if call.cwd != cwd => {
                format!("{} ({})", one_line(gist), PathDisplay::seen_from(cwd).show(&call.cwd))
            }
            Some(gist) => one_line(gist),
            None => one_line(input),
        };
        [call.handle.clone(), calls::when(call.time), tool, visible(&status), duration, input]
    }
}

/// Returns the end of a call in a word or two: the kind of failure if one is known.
pub(crate) fn status_words(call: &Call) -> String {
    let status = call.status.as_deref().unwrap_or("running");
    call.class.as_deref().unwrap_or(status).replace('_', " ")
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

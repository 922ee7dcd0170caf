//! `windlass stats`: prints success rates, durations and failures of tools.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass::record::{CallGroup, CallGrouping, Calls};

use crate::{
    args::{CommonOptions, StatsBy, StatsOptions},
    calls::{self, brief, tokens},
    exit::ProgramExit,
    ids,
    output::print,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &StatsOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let since = calls::since(args.since.as_deref())?;
    if args.rebuild {
        rebuild(&setup)?;
    }
    let by = match args.by {
        StatsBy::Tool => CallGrouping::Tool,
        StatsBy::Session => CallGrouping::Session,
        StatsBy::Error => CallGrouping::Error,
    };
    let groups = calls::open(&setup)?.stats(by, since, Timestamp::now());
    let groups = groups.map_err(|error| calls::problem(&error))?;
    let schemas = if by == CallGrouping::Tool { schemas(&setup)? } else { BTreeMap::new() };
    if args.json {
        let groups: Vec<_> = groups.iter().map(|group| as_json(group, by, &schemas)).collect();
        return print(&format!("{:#}\n", json!(groups)));
    }
    if groups.is_empty() {
        crate::note("no matching calls are on record");
        return Ok(ProgramExit::Done);
    }
    print(&match by {
        CallGrouping::Tool => by_tool(&groups, &schemas),
        CallGrouping::Session => by_session(&groups),
        CallGrouping::Error => by_error(&groups),
    })
}

fn rebuild(setup: &ProgramSetup) -> Result<(), CliProblem> {
    let (_calls, aside) =
        Calls::rebuild(&setup.home, setup.keep()).map_err(|error| calls::problem(&error))?;
    if let Some(aside) = aside {
        crate::note(&format!("the damaged index is now `{}`", visible_path(&aside)));
    }
    Ok(())
}

/// Estimates the tokens that each tool adds to every request.
fn schemas(setup: &ProgramSetup) -> Result<BTreeMap<String, u64>, CliProblem> {
    let toolbox =
        setup.tools(setup.machine()?)?.toolbox().map_err(|errors| CliProblem::usage(errors.to_string()))?;
    let specs = toolbox.registry.specs();
    let cost = |spec: &windlass::ToolSpec| tokens(json!(spec).to_string().len() as u64);
    Ok(specs.iter().map(|spec| (spec.name.to_string(), cost(spec))).collect())
}

fn by_tool(groups: &[CallGroup], schemas: &BTreeMap<String, u64>) -> String {
    let rows = groups
        .iter()
        .map(|group| {
            let schema = schemas.get(&group.name).map_or("-".to_owned(), |tokens| format!("~{tokens}"));
            let [p50, p90, p99] = latency(group);
            let (name, calls) = (visible(&group.name), group.calls.to_string());
            [
                name,
                calls,
                rate(group),
                rating_counts(group),
                p50,
                p90,
                p99,
                sparkline(&group.trend),
                schema,
                last(group),
                worst(group),
            ]
        })
        .collect();
    let titles =
        ["TOOL", "CALLS", "OK", "RATED", "P50", "P90", "P99", "TREND", "SCHEMA", "LAST", "MAIN FAILURE"];
    let expendable = &["SCHEMA", "RATED", "LAST", "P99", "TREND", "P90", "P50"];
    TextTable { titles, expendable, last: LastColumn::Wrapped, rows }.text()
}

fn by_session(groups: &[CallGroup]) -> String {
    let rows = groups
        .iter()
        .map(|group| {
            let [p50, p90, _] = latency(group);
            let all = groups.iter().map(|group| group.name.as_str());
            let (name, calls) = (visible(&ids::shown(&group.name, all)), group.calls.to_string());
            [name, calls, rate(group), p50, p90, sparkline(&group.trend), last(group), worst(group)]
        })
        .collect();
    let titles = ["SESSION", "CALLS", "OK", "P50", "P90", "TREND", "LAST", "MAIN FAILURE"];
    TextTable { titles, expendable: &["P90", "LAST", "TREND", "P50"], last: LastColumn::Wrapped, rows }.text()
}

fn by_error(groups: &[CallGroup]) -> String {
    let rows =
        groups.iter().map(|group| [visible(&group.name), group.calls.to_string(), last(group)]).collect();
    let titles = ["ERROR", "CALLS", "LAST"];
    TextTable { titles, expendable: &[], last: LastColumn::Wrapped, rows }.text()
}

fn rate(group: &CallGroup) -> String {
    group.rate.map_or("-".to_owned(), |rate| format!("{:.0}%", rate * 100.0))
}

/// Formats the ratings: so many good, so many bad.
fn rating_counts(group: &CallGroup) -> String {
    match group.ratings {
        (0, 0) => "-".to_owned(),
        (good, bad) => format!("+{good} -{bad}"),
    }
}

fn latency(group: &CallGroup) -> [String; 3] {
    group.latency.map_or_else(|| ["-", "-", "-"].map(str::to_owned), |times| times.map(brief))
}

fn last(group: &CallGroup) -> String {
    calls::when(group.last)
}

fn worst(group: &CallGroup) -> String {
    let (class, count) = group.classes.first().map_or(("", 0), |(class, count)| (class.as_str(), *count));
    if count == 0 { String::new() } else { format!("{} ({count})", visible(class)) }
}

/// Draws bars from the shortest to the longest.
fn sparkline(times: &[Duration]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let milliseconds = times.iter().map(Duration::as_millis);
    let (least, most) = (milliseconds.clone().min().unwrap_or(0), milliseconds.clone().max().unwrap_or(0));
    let bar = |time: u128| {
        let height = (time - least) * (BARS.len() as u128 - 1) / (most - least).max(1);
        BARS[usize::try_from(height).unwrap_or(0).min(BARS.len() - 1)]
    };
    milliseconds.map(bar).collect()
}

fn as_json(group: &CallGroup, by: CallGrouping, schemas: &BTreeMap<String, u64>) -> Value {
    let key = match by {
        CallGrouping::Tool => "tool",
        CallGrouping::Session => "session",
        CallGrouping::Error => "error",
    };
    let milliseconds = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let classes: serde_json::Map<_, _> =
        group.classes.iter().map(|(class, count)| (class.clone(), json!(count))).collect();
    json!({
        key: group.name,
        "calls": group.calls,
        "succeeded": group.succeeded,
        "failed": group.failed,
        "feedback": {"good": group.ratings.0, "bad": group.ratings.1},
        "success_rate": group.rate,
        "latency_ms": group.latency.map(|[p50, p90, p99]| {
            json!({"p50": milliseconds(&p50), "p90": milliseconds(&p90), "p99": milliseconds(&p99)})
        }),
        "trend_ms": group.trend.iter().map(milliseconds).collect::<Vec<_>>(),
        "last": group.last.to_string(),
        "bytes_in": group.bytes_in,
        "bytes_out": group.bytes_out,
        "tokens_in": tokens(group.bytes_in),
        "tokens_out": tokens(group.bytes_out),
        "schema_tokens": schemas.get(&group.name),
        "errors": classes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_the_shortest_to_the_longest() {
        let line =
            |times: &[u64]| sparkline(&times.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>());
        assert_eq!(line(&[10, 20, 80, 45]), "▁▂█▄");
        assert_eq!(line(&[5, 5, 5]), "▁▁▁");
        assert_eq!(line(&[]), "");
    }
}

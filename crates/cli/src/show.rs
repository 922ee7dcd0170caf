//! `windlass show`: prints everything on record about one call.

use serde_json::Value;
use windlass::{
    Feedback,
    clean::Secrets,
    record::{Call, CallRecord},
};

use crate::{
    args::CommonOptions,
    audit::cleaned,
    calls::{self, brief},
    exit::ProgramExit,
    history::{as_json, output, status_words},
    ids,
    output::{print, print_text},
    paths::PathDisplay,
    problem::{CliProblem, chain},
    screen::{named, visible},
    sessions,
    setup::ProgramSetup,
    table,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let index = calls::open(&setup)?;
    if index.find(name).is_ok_and(|found| found.is_empty())
        && let Some(found) = ids::thread_by_own_id(&setup, name)?
    {
        return sessions::show(&setup, found, json);
    }
    let mut call = ids::call(&setup, &index, name)?;
    let recorded = index.read_record(&call).map_err(|error| CliProblem::failed(chain(&error)))?;
    let secrets = setup.secrets();
    call.tool = secrets.clean(call.tool.as_str()).as_ref().into();
    if json {
        return print(&full(&call, recorded, &secrets));
    }
    print_text(&described(&call, &recorded, &secrets))
}

fn full(call: &Call, recorded: CallRecord, secrets: &Secrets) -> String {
    let mut all = as_json(call, &secrets.clean(recorded.call.input.as_str()));
    all["intent"] = cleaned(recorded.intent.unwrap_or_default(), secrets);
    all["outcome"] = cleaned(recorded.outcome.unwrap_or_default(), secrets);
    all["note"] = recorded.feedback.map(|feedback| secrets.clean(&feedback.note).into_owned()).into();
    format!("{all:#}\n")
}

fn described(call: &Call, recorded: &CallRecord, secrets: &Secrets) -> String {
    let clean = |text: &str| visible(&secrets.clean(text));
    let mut rows = Vec::new();
    let mut say = |name: &'static str, what: &str| {
        if !what.is_empty() {
            rows.push((name, what.to_owned()));
        }
    };
    say("call", &format!("{} ({})", call.handle, visible(call.id.as_str())));
    say("tool", &named(call.tool.as_str()));
    say(
        "session",
        &format!("{} in {}", call.thread, PathDisplay::seen_from(&call.cwd).show_whole(&call.cwd)),
    );
    say("time", &format!("{:.3}", call.time));
    say("decision", &clean(if call.decision.is_empty() { "none: it did not run" } else { &call.decision }));
    let outcome = recorded.outcome.clone().unwrap_or_default();
    for line in held(&outcome["receipt"]) {
        say("receipt", &clean(&line));
    }
    let ended = format!("{} after {}", visible(&status_words(call)), brief(call.duration));
    let is_over = call.status.is_some();
    say("status", if is_over { &ended } else { "running, or its end was not recorded" });
    say("verdict", &clean(&verdict(&outcome["verdict"])));
    say("insight", &clean(&insight(&outcome["insight"])));
    if let Some(Feedback { rating: Some(rating), note, .. }) = &recorded.feedback {
        say("feedback", clean(&format!("{}: {note}", rating.as_str())).trim_end_matches(": "));
    }
    let mut text = table::pairs(rows);
    let lines = |text: &str| {
        secrets.clean(text).lines().map(|line| format!("  {}\n", visible(line))).collect::<String>()
    };
    let input = recorded.call.input.as_str();
    // JSON is easier to read over several lines.
    let spread = serde_json::from_str::<Value>(input).map(|value| format!("{value:#}"));
    text.push_str(&format!("\ninput\n{}", lines(spread.as_deref().unwrap_or(input))));
    text.push_str(&format!("\noutput\n{}", lines(&output(recorded))));
    text
}

/// Describes the confinement of the call: mechanism, access, and denials.
fn held(receipt: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(rung) = receipt["held"]["rung"].as_str() {
        let writable = texts(&receipt["held"]["writable"]).join(", ");
        let writable = if writable.is_empty() { "nothing".to_owned() } else { writable };
        let network = &receipt["held"]["network"];
        let network = network.as_str().map_or_else(|| network.to_string(), str::to_owned);
        lines.push(format!("{rung}; could write {writable}; network: {network}"));
    }
    let denials = receipt["denials"].as_array().into_iter().flatten();
    lines.extend(denials.filter_map(|denial| Some(format!("denied: {}", denial["what"].as_str()?))));
    lines.extend(texts(&receipt["undo_limits"]).into_iter().map(str::to_owned));
    lines.extend(texts(&receipt["hooks"]).into_iter().map(str::to_owned));
    lines.extend(texts(&receipt["repairs"]).into_iter().map(|repair| format!("repaired: {repair}")));
    let refusal = receipt["refusal"].as_str();
    lines.extend(refusal.map(|why| format!("refused: {}", why.strip_prefix("refused: ").unwrap_or(why))));
    lines
}

fn verdict(verdict: &Value) -> String {
    let Some(success) = verdict["success"].as_bool() else { return String::new() };
    let reasons = texts(&verdict["reasons"]).join("; ");
    let word = if success { "success" } else { "failure" };
    if reasons.is_empty() { word.to_owned() } else { format!("{word}: {reasons}") }
}

/// Returns the summary if there is one, otherwise everything.
fn insight(insight: &Value) -> String {
    match (insight, insight["summary"].as_str()) {
        (Value::Null, _) => String::new(),
        (_, Some(summary)) => summary.to_owned(),
        (other, None) => other.to_string(),
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_held_a_call_is_told_in_words() {
        let receipt = json!({
            "held": {"rung": "namespaces", "writable": ["/w"], "network": "none"},
            "denials": [{"what": "write /etc/passwd"}],
            "refusal": "nobody was there",
            "undo_limits": ["undo: not available"],
        });
        assert_eq!(
            held(&receipt),
            [
                "namespaces; could write /w; network: none",
                "denied: write /etc/passwd",
                "undo: not available",
                "refused: nobody was there"
            ]
        );
        assert_eq!(held(&json!({"refusal": "refused: it asks"})), ["refused: it asks"]);
        assert_eq!(held(&Value::Null), Vec::<String>::new());
    }
}

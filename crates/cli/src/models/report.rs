//! The report of a probe, for people and for programs.

use std::{cmp::Reverse, fmt};

use serde_json::{Value, json};

use super::{
    probe::{CallMethod, ProbeStop, ProbeTrial, TaskResult},
    tasks::TASKS,
};
use crate::setup::ServedModel;

/// Returns the best trial; of equals the one that was tried first. None if no call ever succeeded.
pub(super) fn best(trials: &[ProbeTrial]) -> Option<&ProbeTrial> {
    trials.iter().filter(|trial| trial.called() > 0).min_by_key(|trial| Reverse(trial.score()))
}

/// Formats the report for people: a table, and the lines to paste.
pub(super) fn text(served: &ServedModel<'_>, trials: &[ProbeTrial], stopped: Option<ProbeStop>) -> String {
    let width = trials.iter().map(|trial| trial.way.to_string().len()).max().unwrap_or(0);
    let mut text = format!("{} ({})\n\n{:width$}  score", served.options.model, served.id, "");
    for task in &TASKS {
        text += &format!("  {}", task.name);
    }
    for trial in trials {
        let score = format!("{}/{}", trial.score(), TASKS.len());
        text += &format!("\n{:width$}  {score:>5}", trial.way.to_string());
        for (at, task) in TASKS.iter().enumerate() {
            let mark = match trial.done.get(at) {
                Some(done) if done.wrong.is_none() => "ok",
                Some(_) => "-",
                None => "",
            };
            text += &format!("  {mark:>0$}", task.name.chars().count());
        }
    }
    text += "\n\n";
    match best(trials) {
        None if stopped.is_some() => text += "not enough results: no call had succeeded by then\n",
        None => text += "no method of calling tools worked: this model cannot be an agent\n",
        Some(trial) if trial.way == CallMethod::from_provider(served.provider) => {
            text += "nothing to change: the provider is already configured like this\n"
        }
        Some(trial) => text += &format!("add this to the configuration:\n\n{}", toml(served.id, trial.way)),
    }
    text
}

/// Formats the report for programs.
pub(super) fn json(served: &ServedModel<'_>, trials: &[ProbeTrial], stopped: Option<ProbeStop>) -> String {
    let trial = |trial: &ProbeTrial| {
        let task = |done: &TaskResult| {
            json!({
                "name": done.task.name,
                "passed": done.wrong.is_none(),
                "wrong": done.wrong,
                "ms": millis(done.took)
            })
        };
        let tasks: Vec<Value> = trial.done.iter().map(task).collect();
        json!({
            "tool_dialect": trial.way.dialect.name(),
            "tool_prompt": trial.way.is_told,
            "score": trial.score(),
            "of": TASKS.len(),
            "tasks": tasks
        })
    };
    let recommended = best(trials).map(|trial| {
        json!({
            "tool_dialect": trial.way.dialect.name(),
            "tool_prompt": trial.way.is_told,
            "toml": toml(served.id, trial.way)
        })
    });
    let all = json!({
        "provider": served.id,
        "model": served.options.model,
        "profiles": trials.iter().map(trial).collect::<Vec<_>>(),
        "recommended": recommended,
        "stopped": stopped.map(ProbeStop::name)
    });
    format!("{all:#}\n")
}

/// Returns the lines of configuration for a method.
fn toml(id: &str, way: CallMethod) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let id = if id.chars().all(is_bare) { id.to_owned() } else { format!("{id:?}") };
    let told = if way.is_told { "true" } else { "false" };
    format!("[model_providers.{id}]\ntool_dialect = \"{}\"\ntool_prompt = {told}\n", way.dialect.name())
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for CallMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = if self.is_told { ", in the prompt" } else { "" };
        write!(f, "{}{told}", self.dialect.name())
    }
}

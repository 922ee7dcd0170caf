//! Options of the command line that stand for a key of the configuration.

use std::path::{Path, PathBuf};

use toml::Value;
use windlass::{ApprovalPolicy, SandboxMode};

use crate::{
    args::{CommonOptions, CompactOptions, ExecOptions, ModelChoice},
    config::ConfigFlag,
    problem::CliProblem,
    screen::visible_path,
};

/// Returns the options of every command that stand for a key.
pub(super) fn common_flags(common: &CommonOptions) -> Vec<ConfigFlag> {
    let set = |name, key, value: &str| ConfigFlag { name, key, value: Value::String(value.to_owned()) };
    let mut flags = Vec::new();
    if let Some(mode) = common.sandbox {
        flags.push(set("--sandbox", "sandbox_mode", SandboxMode::from(mode).name()));
    }
    if let Some(policy) = common.approval {
        flags.push(set("--ask-for-approval", "approval_policy", ApprovalPolicy::from(policy).name()));
    }
    if common.bypass {
        let name = "--dangerously-bypass-approvals-and-sandbox";
        flags.push(set(name, "sandbox_mode", SandboxMode::DangerFullAccess.name()));
        flags.push(set(name, "approval_policy", ApprovalPolicy::Never.name()));
    }
    flags
}

/// Returns the options that choose a model.
pub(super) fn choice_flags(choice: &ModelChoice) -> Vec<ConfigFlag> {
    let flag = |name, key, value: &Option<String>| {
        value.as_ref().map(|value| ConfigFlag { name, key, value: Value::String(value.clone()) })
    };
    let model = flag("--model", "model", &choice.model);
    model.into_iter().chain(flag("--provider", "model_provider", &choice.provider)).collect()
}

/// Returns the options of every command with an agent that stand for a key.
pub(super) fn agent_flags(
    choice: &ModelChoice,
    script: Option<&Path>,
    add_dir: &[PathBuf],
) -> Result<Vec<ConfigFlag>, CliProblem> {
    let mut flags = choice_flags(choice);
    let mut set = |name, key, value| flags.push(ConfigFlag { name, key, value });
    if let Some(path) = script {
        set("--script", "model_provider", Value::String("scripted".to_owned()));
        set("--script", "model_providers", within("scripted", within("script", text("--script", path)?)));
    }
    if !add_dir.is_empty() {
        let roots = add_dir.iter().map(|path| text("--add-dir", path)).collect::<Result<_, _>>()?;
        set("--add-dir", "sandbox_workspace_write", within("writable_roots", Value::Array(roots)));
    }
    Ok(flags)
}

/// Returns the options of `exec` that stand for a key.
pub(super) fn exec_flags(options: &ExecOptions) -> Result<Vec<ConfigFlag>, CliProblem> {
    let mut flags = agent_flags(&options.choice, options.script.as_deref(), &options.add_dir)?;
    let mut set = |name, key, value| flags.push(ConfigFlag { name, key, value });
    let number = |name, limit: u64| {
        i64::try_from(limit)
            .map(Value::Integer)
            .map_err(|_| CliProblem::usage(format!("{name}: {limit} is too large")))
    };
    if let Some(seconds) = options.time_limit {
        set("--time-limit", "turn_time_limit_sec", number("--time-limit", seconds)?);
    }
    if let Some(tokens) = options.token_limit {
        set("--token-limit", "turn_token_limit", number("--token-limit", tokens)?);
    }
    if let Some(percent) = options.compact_at {
        set("--compact-at", "compact_at", number("--compact-at", percent.into())?);
    }
    let counts = [("--max-requests", options.max_requests), ("--max-calls", options.max_calls)];
    for (name, count) in counts {
        if let Some(count) = count {
            let key = name.trim_start_matches("--").replace('-', "_");
            set(name, "budget", within(&key, number(name, count)?));
        }
    }
    if let Some(dollars) = options.max_cost {
        set("--max-cost", "budget", within("max_cost_usd", Value::Float(dollars)));
    }
    Ok(flags)
}

/// Returns the options of `compact` that stand for a key.
pub(super) fn compact_flags(options: &CompactOptions) -> Result<Vec<ConfigFlag>, CliProblem> {
    agent_flags(&options.choice, options.script.as_deref(), &[])
}

/// Returns a table with one key.
fn within(key: &str, value: Value) -> Value {
    Value::Table([(key.to_owned(), value)].into_iter().collect())
}

fn text(flag: &str, path: &Path) -> Result<Value, CliProblem> {
    let text = path
        .to_str()
        .ok_or_else(|| CliProblem::usage(format!("{flag}: `{}` is not UTF-8", visible_path(path))))?;
    Ok(Value::String(text.to_owned()))
}

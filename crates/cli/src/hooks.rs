//! `windlass hooks`, and the hooks of every session.

use std::{env, path::Path, sync::Arc};

use serde_json::{Map, Value, json};
use windlass::{
    AgentBuilder, HookCommands,
    hooks::{CommandHooks, HookDescription, HookEvent, HookRun, HookVerdict},
};

use crate::{
    args::{CommonOptions, HooksCommand},
    config::ConfigKey,
    exit::ProgramExit,
    note,
    output::print,
    policy,
    problem::CliProblem,
    redact::own,
    screen::{visible, visible_path},
    setup::{self, ProgramSetup},
    table::{LastColumn, TextTable},
    trust::{ProjectConfiguration, ProjectTrust, TrustStore},
};

/// Commands that a shell may run without a program of that name.
const SHELL_WORDS: [&str; 18] = [
    "cd", "echo", "exit", "export", "eval", "exec", "false", "if", "for", "case", "printf", "read", "set",
    "test", "true", "while", "cat", ":",
];

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, command: &HooksCommand) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let ConfiguredHooks { hooks, notes } = ConfiguredHooks::of(&setup)?;
    for text in notes {
        note(&format!("note: {text}"));
    }
    match command {
        HooksCommand::List { json } => list(&hooks, *json),
        HooksCommand::Test { name, json } => test(&setup, &hooks, name.as_deref(), *json),
    }
}

/// The hooks of the user, and those of the project if the user trusts it.
struct ConfiguredHooks {
    hooks: Arc<CommandHooks>,
    /// Messages for the user: hooks of the project that are not used.
    notes: Vec<String>,
}

impl ConfiguredHooks {
    fn of(setup: &ProgramSetup) -> Result<Self, CliProblem> {
        let source = setup.loaded.first_origin(&ConfigKey::from(["hooks"])).to_string();
        let mut commands = HookCommands::new(setup.cwd.clone())
            .home(setup.home.clone())
            .environment(setup::variables())
            .sandbox(setup.sandbox_rules())
            .limits(setup.command_limits().defaults())
            .config(setup.config().hooks.clone(), source);
        let mut notes = Vec::new();
        match ProjectConfiguration::read(policy::project_root(&setup.cwd)) {
            Ok(Some(project)) if !project.hooks.is_empty() => {
                let file = visible_path(&project.hooks_path());
                match TrustStore::new(&setup.home).state(&project) {
                    Ok(ProjectTrust::Trusted) => commands = commands.config(project.hooks, file),
                    // The user knows.
                    Ok(ProjectTrust::Declined) => {}
                    Ok(ProjectTrust::Unknown) => notes.push(ignored(&file, "is not trusted", &project.root)),
                    Ok(ProjectTrust::Changed) => {
                        notes.push(ignored(&file, "has changed since it was decided about", &project.root));
                    }
                    Err(error) => notes.push(error.to_string()),
                }
            }
            // The servers of the project are reported with the same fault.
            Ok(_) | Err(_) => {}
        }
        let hooks = commands.build().map_err(|error| CliProblem::usage(error.to_string()))?;
        Ok(Self { hooks, notes })
    }
}

fn ignored(file: &str, why: &str, root: &Path) -> String {
    format!("ignored the hooks of {file}: it {why}; `windlass trust {}` allows them", visible_path(root))
}

/// Gives an agent the hooks, if there are any.
pub(crate) fn with_hooks(setup: &ProgramSetup, builder: AgentBuilder) -> Result<AgentBuilder, CliProblem> {
    if !are_configured(setup) {
        return Ok(builder);
    }
    let ConfiguredHooks { hooks, .. } = ConfiguredHooks::of(setup)?;
    Ok(if hooks.is_empty() { builder } else { builder.hooks(hooks) })
}

/// Returns false if there is nothing to read: most sessions have no hooks, and pay nothing for
/// them.
fn are_configured(setup: &ProgramSetup) -> bool {
    let project = policy::project_root(&setup.cwd).join(".windlass/hooks.json");
    !setup.config().hooks.is_empty() || project.symlink_metadata().is_ok()
}

/// Says at the start of a session which hooks are not used, and which cannot run.
pub(crate) fn report(setup: &ProgramSetup) -> Result<(), CliProblem> {
    if !are_configured(setup) {
        return Ok(());
    }
    let ConfiguredHooks { hooks, notes } = ConfiguredHooks::of(setup)?;
    for text in notes {
        note(&format!("note: {text}"));
    }
    for (hook, problem) in unusable(&hooks, &setup.cwd) {
        let effect =
            if hook.handler.denies_on_failure(hook.event) { "; what it guards is refused" } else { "" };
        let (event, title) = (hook.event, visible(&hook.handler.title()));
        note(&format!("warning: the {event} hook `{title}` cannot run: {problem}{effect}"));
    }
    Ok(())
}

/// Returns the number of hooks, and those whose program does not exist, with the reason.
pub(crate) fn check(setup: &ProgramSetup) -> Result<(usize, Vec<String>), CliProblem> {
    let ConfiguredHooks { hooks, .. } = ConfiguredHooks::of(setup)?;
    let missing = unusable(&hooks, &setup.cwd).into_iter();
    let lines =
        missing.map(|(hook, problem)| format!("{} `{}`: {problem}", hook.event, hook.handler.title()));
    Ok((hooks.list().len(), lines.collect()))
}

/// Returns the hooks whose program does not exist, as far as that is known without running them.
fn unusable(hooks: &CommandHooks, cwd: &Path) -> Vec<(HookDescription, String)> {
    let problem = |hook: HookDescription| {
        let program = hook.handler.command.program()?;
        let reason = missing_program(program, cwd)?;
        Some((hook, reason))
    };
    hooks.list().into_iter().filter_map(problem).collect()
}

/// Returns the reason that a program cannot be started. A name without a slash may be a part of the
/// shell.
fn missing_program(program: &str, cwd: &Path) -> Option<String> {
    if program.contains('/') {
        let path = cwd.join(program);
        return (!path.is_file()).then(|| format!("there is no file {}", visible_path(&path)));
    }
    let directories = env::var_os("PATH").unwrap_or_default();
    let is_found = env::split_paths(&directories).any(|directory| directory.join(program).is_file());
    (!is_found && !SHELL_WORDS.contains(&program))
        .then(|| format!("there is no program `{}`", visible(program)))
}

fn list(hooks: &CommandHooks, json: bool) -> Result<ProgramExit, CliProblem> {
    let hooks = hooks.list();
    if json {
        let all: Vec<_> = hooks.iter().map(object).collect();
        return print(&format!("{:#}\n", Value::from(all)));
    }
    if hooks.is_empty() {
        return print("there are no hooks; docs/hooks.md shows how to write one\n");
    }
    let rows = hooks.iter().map(|hook| {
        let HookDescription { event, matcher, handler, .. } = hook;
        let on_failure = if handler.denies_on_failure(*event) { "deny" } else { "ignore" };
        [
            event.name().to_owned(),
            matcher.as_deref().map_or_else(|| "*".to_owned(), visible),
            on_failure.to_owned(),
            format!("{} s", handler.time_limit().as_secs()),
            sandbox(hook),
            visible(&clean(&handler.title())),
        ]
    });
    let table = TextTable {
        titles: ["STEP", "MATCHER", "ON FAILURE", "LIMIT", "SANDBOX", "HOOK"],
        expendable: &["LIMIT", "ON FAILURE"],
        last: LastColumn::Cut,
        rows: rows.collect(),
    };
    print(&table.text())
}

fn sandbox(hook: &HookDescription) -> String {
    let profile = hook.handler.profile();
    let network = if profile.network { ", network" } else { "" };
    let name = serde_json::to_value(profile.sandbox).ok();
    format!("{}{network}", name.as_ref().and_then(Value::as_str).unwrap_or_default())
}

fn object(hook: &HookDescription) -> Value {
    let HookDescription { event, matcher, handler, source } = hook;
    json!({
        "event": event.name(),
        "matcher": matcher,
        "name": clean(&handler.title()),
        "command": handler.command.argv().iter().map(|word| clean(word)).collect::<Vec<_>>(),
        "on_failure": if handler.denies_on_failure(*event) { "deny" } else { "ignore" },
        "timeout_s": handler.time_limit().as_secs(),
        "sandbox": handler.sandbox,
        "network": handler.network,
        "writable": handler.writable,
        "source": source,
    })
}

fn test(
    setup: &ProgramSetup,
    hooks: &CommandHooks,
    name: Option<&str>,
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let chosen: Vec<_> = hooks.list().into_iter().enumerate().collect();
    let chosen: Vec<_> =
        chosen.into_iter().filter(|(_, hook)| name.is_none_or(|name| hook.handler.title() == name)).collect();
    if let (Some(name), true) = (name, chosen.is_empty()) {
        let message = format!("there is no hook `{}`; `windlass hooks list` lists them", visible(name));
        return Err(CliProblem::usage(message));
    }
    let runs = crate::runtime()?.block_on(async {
        let mut runs = Vec::new();
        for (place, hook) in &chosen {
            runs.extend(hooks.run_one(*place, sample(setup, hook.event)).await);
        }
        runs
    });
    let has_failed =
        |run: &HookRun| matches!(run.verdict, HookVerdict::FailedDenied | HookVerdict::FailedIgnored);
    let failed = runs.iter().any(has_failed);
    if json {
        let all: Vec<_> = runs.iter().map(result).collect();
        print(&format!("{:#}\n", Value::from(all)))?;
    } else if runs.is_empty() {
        print("there are no hooks; docs/hooks.md shows how to write one\n")?;
    } else {
        let line = |run: &HookRun| {
            let (mark, word) = if has_failed(run) { ("failed", "") } else { ("ok", run.verdict.name()) };
            let texts = [word, &run.reason, run.context.as_deref().unwrap_or_default()];
            let texts: Vec<_> =
                texts.into_iter().filter(|text| !text.is_empty()).map(|text| visible(&clean(text))).collect();
            let texts = texts.join(": ");
            format!("{mark:<6}  {}  {}: {texts}\n", run.event, visible(&clean(&run.hook)))
        };
        print(&runs.iter().map(line).collect::<String>())?;
    }
    Ok(if failed { ProgramExit::Failed } else { ProgramExit::Done })
}

fn result(run: &HookRun) -> Value {
    json!({
        "event": run.event.name(),
        "name": clean(&run.hook),
        "verdict": run.verdict.name(),
        "reason": clean(&run.reason),
        "context": run.context.as_deref().map(clean),
        "message": run.message.as_deref().map(clean),
        "updated_input": run.updated_input,
        "duration_ms": u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Returns a sample of the input of a step: a call of `true`.
fn sample(setup: &ProgramSetup, event: HookEvent) -> Map<String, Value> {
    let mut input = json!({
        "session_id": "test",
        "transcript_path": null,
        "cwd": setup.cwd,
        "permission_mode": "default",
        "model": null,
        "hook_event_name": event.name(),
    });
    let call = json!({
        "tool_name": "Bash",
        "tool_use_id": "test",
        "tool_input": {"command": "true"},
        "windlass": {"tool": "shell_command", "arguments": {"command": "true"}, "reads": [], "writes": [],
            "may_change": false},
    });
    let fields = match event {
        HookEvent::PreToolUse | HookEvent::PermissionRequest => call,
        HookEvent::PostToolUse => {
            let mut call = call;
            call["tool_response"] =
                json!({"content": "", "status": "success", "success": true, "exit_code": 0});
            call
        }
        HookEvent::UserPromptSubmit => json!({"prompt": "a test of the hooks"}),
        HookEvent::SessionStart => json!({"source": "startup"}),
        HookEvent::SessionEnd => json!({"reason": "other"}),
        HookEvent::PreCompact => json!({"trigger": "auto", "custom_instructions": ""}),
        HookEvent::Stop | HookEvent::SubagentStop => {
            json!({"stop_hook_active": false, "last_assistant_message": "a test of the hooks"})
        }
    };
    if let (Value::Object(input), Value::Object(fields)) = (&mut input, fields) {
        input.extend(fields);
    }
    match input {
        Value::Object(input) => input,
        _ => Map::new(),
    }
}

fn clean(text: &str) -> String {
    own().clean(text).into_owned()
}

//! `windlass call`: one tool through the whole pipeline, without a model.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use serde_json::Value;
use windlass::{
    Effects, Elicitor, Facts, FinishedCall, Input, Outcome, SpecKind, Status, Stop, ToolCall, Toolbox,
    host::Window,
    record::Edits,
    render::{self, CallReport},
};

use crate::{
    allow_hints::AllowHints,
    args::{CallOptions, CommonOptions},
    ask::{TerminalApprover, TerminalElicitor, with_elicitor},
    confirm::obstacle_to_asking,
    exec::from_stdin,
    exit::ProgramExit,
    interrupts,
    mcp::{self, SessionServers, StateOutput, with_servers},
    output::print_answer,
    paths::PathDisplay,
    preview::RequestedPreview,
    problem::CliProblem,
    progress_terminal::ProgressTerminal,
    retention_thread::RetentionThread,
    screen::{SingleCallScreen, visible},
    setup::ProgramSetup,
    user_tools,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &CallOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?.limited(&args.limits)?;
    let preview = RequestedPreview::new(args.preview, &setup)?;
    let stop = Stop::default();
    let window = Window::of_terminal();
    let machine = setup.machine()?.with_window(window.clone());
    let machine = match &preview {
        Some(requested) => machine.with_preview(requested.preview.clone()),
        None => machine,
    };
    let machine = if args.json { machine.with_apart_streams() } else { machine };
    let mut builder = user_tools::with_user_tools(setup.tools(machine)?, args.tools.as_deref())?;
    let terminal = Arc::new(ProgressTerminal::new());
    if obstacle_to_asking(args.no_input).is_none() {
        let approver = TerminalApprover::new(&setup.cwd, &stop).with_progress(Arc::clone(&terminal));
        builder = builder.approver(Arc::new(approver));
    }
    let screen =
        SingleCallScreen { paths: PathDisplay::seen_from(&setup.cwd), terminal: Arc::clone(&terminal) };
    let elicitor = TerminalElicitor::at_terminal(args.no_input, &stop, Some(terminal.clone()));
    let servers =
        if is_remote(&args.name) { listed_servers(&setup, &args.name, elicitor.clone())? } else { None };
    let builder = with_elicitor(with_servers(builder, servers.as_ref()), elicitor.as_ref());
    let toolbox = builder.events(Arc::new(screen)).toolbox();
    let toolbox = toolbox.map_err(|errors| CliProblem::usage(errors.to_string()))?;
    user_tools::report_quarantined(toolbox.registry.quarantined());
    let call = asked(&toolbox, args)?;
    interrupts::watch(stop.clone(), window)?;
    let _cleaning = RetentionThread::start(&setup);
    let FinishedCall { call, effects, arguments, outcome, .. } = crate::runtime()?.block_on(async {
        let finished = toolbox.call(call, &stop).await;
        // No later call could use a process that is still running.
        toolbox.sandbox.close().await;
        finished
    });
    drop(servers);
    terminal.flush();
    let parameters = parameters(&toolbox, &call, arguments);
    let note = ended_session(&outcome);
    let report =
        CallReport { tool: &call.name, parameters: &parameters, outcome: &outcome, note: note.as_deref() };
    let exit = show(args, &setup, &report, preview, &stop)?;
    if let Some(reason) = &outcome.receipt.refusal {
        let effects = clean_effects(&toolbox, effects);
        let hint = AllowHints::new(&setup, args.no_input, false)?.hint(&effects, reason);
        if let Some(hint) = hint {
            crate::note(&visible(&hint));
        }
    }
    Ok(exit)
}

/// Returns true if a tool belongs to MCP servers. They are started for no other tool.
fn is_remote(name: &str) -> bool {
    const RESOURCES: [&str; 3] = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"];
    name.starts_with("mcp__") || RESOURCES.contains(&name)
}

/// Returns the servers, once the tool is known or its server has failed.
fn listed_servers(
    setup: &ProgramSetup,
    tool: &str,
    elicitor: Option<Arc<dyn Elicitor>>,
) -> Result<Option<SessionServers>, CliProblem> {
    let servers = SessionServers::known(setup, &mcp::reported_servers(setup), elicitor);
    let Some(servers) = servers else { return Ok(None) };
    let servers = servers.start(StateOutput::Person)?;
    crate::runtime()?.block_on(servers.wait_for_tool(tool));
    if let Some(why) = servers.held_back(tool) {
        crate::note(&format!("warning: {}", visible(&why)));
    }
    Ok(Some(servers))
}

/// Prints the result of the call: one object for a program; for a person, the result before the
/// question.
fn show(
    args: &CallOptions,
    setup: &ProgramSetup,
    report: &CallReport<'_>,
    mut preview: Option<RequestedPreview>,
    stop: &Stop,
) -> Result<ProgramExit, CliProblem> {
    let outcome = report.outcome;
    let mut settled = None;
    let edits = Edits::outside(&setup.home);
    let shown = if args.json {
        let mut result = report.json();
        settled = preview.take().map(|preview| preview.settle(&edits, stop)).transpose()?;
        if let Some(settled) = &settled {
            result["preview"] = settled.report.clone();
        }
        format!("{result:#}\n")
    } else if args.markdown {
        report.markdown()
    } else {
        terminated(report.text())
    };
    print_answer(&shown)?;
    if !args.json && !args.markdown && !outcome.receipt.repairs.is_empty() {
        crate::note(&format!("note: the call was repaired: {}", outcome.receipt.repairs.join("; ")));
    }
    if args.judge {
        crate::note(render::verdict(&outcome.verdict).trim_end());
    }
    if let Some(preview) = preview {
        settled = Some(preview.settle(&edits, stop)?);
    }
    let exit = exit_of(outcome, stop);
    Ok(settled.map_or(exit, |settled| settled.end.exit(exit)))
}

/// Returns the requested call, with its input from stdin if it is not an argument.
fn asked(toolbox: &Toolbox, args: &CallOptions) -> Result<ToolCall, CliProblem> {
    let text = match &args.input {
        Some(text) if text != "-" => text.clone(),
        None if io::stdin().is_terminal() => String::new(),
        Some(_) | None => from_stdin("the input")?,
    };
    let tool = toolbox.registry.resolve(&args.name).map(|(tool, _)| tool);
    let freeform = tool.is_some_and(|tool| matches!(tool.spec.kind, SpecKind::Custom { .. }));
    let input = if freeform { Input::Text(text) } else { Input::Json(text) };
    Ok(ToolCall { id: "call".into(), name: args.name.as_str().into(), input })
}

/// Returns the arguments that the call runs with, or the text given instead, without secrets.
fn parameters(toolbox: &Toolbox, call: &ToolCall, arguments: Option<Value>) -> Value {
    let parameters =
        arguments.map_or_else(|| call.input.as_str().to_owned(), |arguments| arguments.to_string());
    let clean = toolbox.shaper.secrets.clean(&parameters);
    serde_json::from_str(&clean).unwrap_or_else(|_| Value::String(clean.into_owned()))
}

/// Returns effects without secrets in the command.
fn clean_effects(toolbox: &Toolbox, mut effects: Effects) -> Effects {
    for word in effects.command.iter_mut().flat_map(|command| &mut command.argv) {
        *word = toolbox.shaper.secrets.clean(word).into_owned();
    }
    effects
}

/// Describes a session that was still running when the call returned.
fn ended_session(outcome: &Outcome) -> Option<String> {
    let Facts::Session(session) = &outcome.facts else { return None };
    let (id, seconds) = (session.session, session.report.duration.as_secs_f32());
    let state = if session.report.waits_for_input { "waiting for input" } else { "still running" };
    session.report.exit.is_none().then(|| {
        format!(
            "{state} after {seconds:.1} s, as session {id}; it was ended with this call, because nothing \
             outlives `windlass call`. In `windlass exec` it goes on, and `write_stdin` with session_id {id} reaches it"
        )
    })
}

fn terminated(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
}

fn exit_of(outcome: &Outcome, stop: &Stop) -> ProgramExit {
    match outcome.status {
        _ if stop.reason().is_some() => ProgramExit::Interrupted,
        _ if outcome.verdict.success => ProgramExit::Done,
        Status::Rejected if outcome.receipt.refusal.is_some() => ProgramExit::Refused,
        Status::Timeout => ProgramExit::Limit,
        Status::NotFound if outcome.receipt.unknown_tool => ProgramExit::Usage,
        Status::Success | Status::Error | Status::Rejected | Status::PermissionDenied | Status::NotFound => {
            ProgramExit::Failed
        }
    }
}

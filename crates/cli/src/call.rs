//! `windlass call`: one tool through the whole pipeline, without a model.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use serde_json::Value;
use windlass::{
    Facts, FinishedCall, Input, Outcome, SpecKind, Status, Stop, ToolCall, Toolbox,
    host::Window,
    record::Edits,
    render::{self, CallReport},
};

use crate::{
    args::{Call, Common},
    ask::Terminal,
    brought,
    cleaning::Cleaning,
    exec::from_stdin,
    exit::Exit,
    interrupts,
    output::print_answer,
    paths::Paths,
    preview::RequestedPreview,
    problem::Problem,
    screen::Warnings,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Call) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?.limited(&args.limits)?;
    let preview = RequestedPreview::new(args.preview, &setup)?;
    let stop = Stop::default();
    let window = Window::of_terminal();
    let builder = brought::added(setup.tools()?, args.tools.as_deref())?
        .approver(Arc::new(Terminal { stop: stop.clone(), paths: Paths::seen_from(&setup.cwd) }))
        .window(window.clone());
    let builder = match &preview {
        Some(requested) => builder.preview(requested.preview.clone()),
        None => builder,
    };
    let builder = if args.json { builder.apart_streams() } else { builder };
    let toolbox = builder.events(Arc::new(Warnings)).toolbox();
    let toolbox = toolbox.map_err(|errors| Problem::usage(errors.to_string()))?;
    brought::tell(toolbox.registry.quarantined());
    let call = asked(&toolbox, args)?;
    interrupts::watch(stop.clone(), window)?;
    let _cleaning = Cleaning::start(&setup);
    let FinishedCall { call, arguments, outcome, .. } = crate::runtime()?.block_on(async {
        let finished = toolbox.call(call, &stop).await;
        // There is no later call that could use what goes on.
        toolbox.sandbox.close().await;
        finished
    });
    let parameters = parameters(&toolbox, &call, arguments);
    let note = ended_session(&outcome);
    let report =
        CallReport { tool: &call.name, parameters: &parameters, outcome: &outcome, note: note.as_deref() };
    show(args, &setup, &report, preview, &stop)
}

/// Shows what came of the call. A program gets one object, a person the result before the question.
fn show(
    args: &Call,
    setup: &Setup,
    report: &CallReport<'_>,
    mut preview: Option<RequestedPreview>,
    stop: &Stop,
) -> Result<Exit, Problem> {
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

/// The call that is asked for, with its input from stdin if that is where it is.
fn asked(toolbox: &Toolbox, args: &Call) -> Result<ToolCall, Problem> {
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

/// The arguments that the call runs with, or what was written in their place, without secrets.
fn parameters(toolbox: &Toolbox, call: &ToolCall, arguments: Option<Value>) -> Value {
    let parameters =
        arguments.map_or_else(|| call.input.as_str().to_owned(), |arguments| arguments.to_string());
    let clean = toolbox.shaper.secrets.clean(&parameters);
    serde_json::from_str(&clean).unwrap_or_else(|_| Value::String(clean.into_owned()))
}

/// What became of a session that was still running when the call returned.
fn ended_session(outcome: &Outcome) -> Option<String> {
    let Facts::Session(session) = &outcome.facts else { return None };
    let (id, seconds) = (session.session, session.duration.as_secs_f32());
    let state = if session.waits_for_input { "waiting for input" } else { "still running" };
    session.exit.is_none().then(|| {
        format!(
            "{state} after {seconds:.1} s, as session {id}; it was ended with this call, because nothing \
             outlives `windlass call`. In `windlass exec` it goes on, and `write_stdin` with session_id {id} reaches it"
        )
    })
}

fn terminated(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
}

fn exit_of(outcome: &Outcome, stop: &Stop) -> Exit {
    match outcome.status {
        _ if stop.reason().is_some() => Exit::Interrupted,
        _ if outcome.verdict.success => Exit::Done,
        Status::Rejected if outcome.receipt.refusal.is_some() => Exit::Refused,
        Status::Timeout => Exit::Limit,
        Status::NotFound if outcome.receipt.unknown_tool => Exit::Usage,
        Status::Success | Status::Error | Status::Rejected | Status::PermissionDenied | Status::NotFound => {
            Exit::Failed
        }
    }
}

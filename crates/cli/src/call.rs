//! `windlass call`: one tool through the whole pipeline, without a model.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use windlass::{
    AgentBuilder, Input, Outcome, SpecKind, Status, Stop, ToolCall, host::Window, record::Edits, render,
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
pub(crate) fn run(common: &Common, args: Call) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?.limited(&args.limits)?;
    let mut preview = RequestedPreview::new(args.preview, &setup)?;
    let stop = Stop::default();
    let window = Window::of_terminal();
    let mut builder = setup.tools()?;
    if let Some(path) = &args.tools {
        builder = brought::tools(path)?.into_iter().fold(builder, AgentBuilder::tool);
    }
    let builder = builder
        .approver(Arc::new(Terminal { stop: stop.clone(), paths: Paths::seen_from(&setup.cwd) }))
        .window(window.clone());
    let builder = match &preview {
        Some(requested) => builder.preview(requested.preview.clone()),
        None => builder,
    };
    let toolbox = builder.events(Arc::new(Warnings)).toolbox();
    let toolbox = toolbox.map_err(|errors| Problem::usage(errors.to_string()))?;
    let text = match args.input {
        Some(text) if text != "-" => text,
        None if io::stdin().is_terminal() => String::new(),
        Some(_) | None => from_stdin("the input")?,
    };
    let freeform = toolbox
        .registry
        .find(&args.name)
        .is_some_and(|tool| matches!(tool.spec.kind, SpecKind::Custom { .. }));
    let input = if freeform { Input::Text(text) } else { Input::Json(text) };
    let name: windlass::ToolName = args.name.as_str().into();
    let call = ToolCall { id: "call".into(), name: name.clone(), input };
    interrupts::watch(stop.clone(), window)?;
    let _cleaning = Cleaning::start(&setup);
    let outcome = crate::runtime()?.block_on(async {
        let outcome = toolbox.call(call, &stop).await;
        // There is no later call that could use what goes on.
        toolbox.sandbox.close().await;
        outcome
    });
    // A program gets one object, a person the result before the question.
    let mut settled = None;
    let edits = Edits::outside(&setup.home);
    let shown = if args.json {
        let mut result = render::json(&name, &outcome);
        settled = preview.take().map(|preview| preview.settle(&edits, &stop)).transpose()?;
        if let Some(settled) = &settled {
            result["preview"] = settled.report.clone();
        }
        format!("{result:#}\n")
    } else if args.markdown {
        render::markdown(&name, &outcome)
    } else {
        terminated(render::text(&outcome))
    };
    print_answer(&shown)?;
    if args.judge {
        crate::note(render::verdict(&outcome.verdict).trim_end());
    }
    if outcome.status == Status::NotFound {
        crate::note(&crate::tools::unknown(&toolbox.registry, &args.name));
    }
    if let Some(preview) = preview {
        settled = Some(preview.settle(&edits, &stop)?);
    }
    let exit = exit_of(&outcome, &stop);
    Ok(settled.map_or(exit, |settled| settled.end.exit(exit)))
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
        Status::NotFound => Exit::Usage,
        Status::Success | Status::Error | Status::Rejected | Status::PermissionDenied => Exit::Failed,
    }
}

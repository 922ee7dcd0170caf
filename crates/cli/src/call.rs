//! `windlass call`: one tool through the whole pipeline, without a model.

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    thread,
};

use tokio::sync::oneshot;
use windlass::{
    Answer, Approver, BoxFuture, CommandLine, Input, Outcome, Question, SpecKind, Status, Stop, ToolCall,
    render,
};

use crate::{
    args::{Call, Common},
    exec::from_stdin,
    exit::Exit,
    interrupts,
    problem::Problem,
    screen::visible,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: Call) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?;
    let stop = Stop::default();
    let toolbox = setup.tools()?.approver(Arc::new(Terminal { stop: stop.clone() })).toolbox();
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
    interrupts::watch(stop.clone())?;
    let outcome = crate::runtime()?.block_on(toolbox.run(toolbox.prepare(call), &stop));
    let shown = if args.json {
        format!("{:#}\n", render::json(&name, &outcome))
    } else if args.markdown {
        render::markdown(&name, &outcome)
    } else {
        terminated(render::text(&outcome))
    };
    let written = io::stdout().lock().write_all(shown.as_bytes());
    written.map_err(|error| Problem::failed(format!("cannot write the result: {error}")))?;
    if outcome.status == Status::NotFound {
        crate::note(&crate::tools::unknown(&toolbox.registry, &args.name));
    }
    Ok(exit_of(&outcome, &stop))
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

/// Asks at the terminal, if there is one.
struct Terminal {
    stop: Stop,
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
                return Answer::Unavailable;
            }
            let text = in_words(question);
            let (answer, given) = oneshot::channel();
            // A thread, because nothing else can be left while it waits for a person. It ends with the process.
            thread::spawn(move || answer.send(ask(&text)));
            tokio::select! {
                given = given => given.unwrap_or(Answer::Unavailable),
                _reason = self.stop.stopped() => Answer::Unavailable,
            }
        })
    }
}

/// The whole question: nothing is cut, and nothing can pose as something else.
fn in_words(question: &Question) -> String {
    let Question { tool, effects, cwd, reason, unclear, leaves_sandbox, .. } = question;
    let what = effects.command.as_ref().map_or_else(|| format!("{effects:?}"), CommandLine::display);
    let mut lines = vec![
        format!("{tool} wants to run:"),
        format!("  {}", visible(&what)),
        format!("in {}", visible(&cwd.to_string_lossy())),
        format!("because: {}", visible(reason)),
    ];
    let said = effects.escalation.as_ref().and_then(|escalation| escalation.justification.as_deref());
    lines.extend(said.map(|text| format!("the model says: {}", visible(text))));
    lines.extend(unclear.iter().map(|what| format!("unclear: {}", visible(what))));
    let held = if *leaves_sandbox { "WITHOUT the sandbox" } else { "as the sandbox mode says" };
    lines.push(format!("A yes lets this one command run once, {held}."));
    format!("{}\nAllow it? [y/N] ", lines.join("\n"))
}

fn ask(text: &str) -> Answer {
    let mut line = String::new();
    let asked =
        io::stderr().lock().write_all(text.as_bytes()).and_then(|()| io::stdin().read_line(&mut line));
    match asked {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Answer::Once,
        Ok(0) | Err(_) => Answer::Unavailable,
        Ok(_) => Answer::Deny(String::new()),
    }
}

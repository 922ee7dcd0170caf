//! `windlass exec`: one turn of an agent.

use std::{
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use windlass::{
    Agent, AgentBuilder, AgentError, AnswerSchema, ApprovalPolicy, BuildError, Content, Reason, SchemaError,
    Stop, ThreadId, TurnReport,
    host::{OutputFile, Window},
    record::{Edits, Which},
};

mod exec_output;
mod piped_input;

use self::{exec_output::ExecOutput, piped_input::with_piped_input};
use crate::{
    args::{CommonOptions, ExecAction, ExecArguments, ExecOptions},
    ask::with_elicitor,
    exit::ProgramExit,
    hooks, ids, instructions, interrupts,
    mcp::{self, SessionServers, with_servers},
    output::print,
    preview::RequestedPreview,
    problem::{CliProblem, chain},
    resumed_directory,
    retention_thread::RetentionThread,
    screen::visible_path,
    setup::ProgramSetup,
    user_tools,
};

/// Maximum size of a prompt, an image or a schema. The input of a call has a lower limit of its
/// own.
const MAX_READ_BYTES: u64 = 32 * 1024 * 1024;

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, exec: ExecArguments) -> Result<ProgramExit, CliProblem> {
    let ExecArguments { options, prompt, action } = exec;
    let setup = ProgramSetup::for_exec(common, &options)?.with_installed_model()?.limited(&options.limits)?;
    let (resume, prompt) = match action {
        None => (None, prompt),
        Some(ExecAction::Resume { session, prompt: after, last }) => {
            let (which, unused) = which(&setup, session, last)?;
            resumed_directory::check(&setup, common, &which)?;
            (Some(which), only([prompt, unused, after])?)
        }
    };
    instructions::report(&setup);
    let prompt = prompt.map(|text| instructions::expanded_request(&setup, text)).transpose()?;
    let content = match &options.mcp_prompt {
        Some(name) => {
            let mut request = mcp::as_request(&setup, name, &options.prompt_arg)?;
            if prompt.is_some() || !options.image.is_empty() {
                request.extend(content(prompt.or_else(|| Some(String::new())), &options.image)?);
            }
            request
        }
        None => content(prompt, &options.image)?,
    };
    hooks::report(&setup)?;
    let preview = RequestedPreview::new(options.preview, &setup)?;
    let stop = Stop::default();
    let output = ExecOutput::new(&setup, &options, &stop)?;
    let window = Window::of_terminal();
    let machine = setup.machine()?.with_window(window.clone());
    let machine = match &preview {
        Some(requested) => machine.with_preview(requested.preview.clone()),
        None => machine,
    };
    let builder = output.agent(&setup, machine, &stop)?.single_turn();
    let builder = user_tools::with_user_tools(builder, options.tools.as_deref())?;
    let elicitor = output.elicitor(&options, &stop);
    // With `never`, a run goes through without its person.
    let is_attended = setup.config().approval_policy != ApprovalPolicy::Never;
    let builder = with_elicitor(builder, elicitor.as_ref().filter(|_| is_attended));
    let servers = SessionServers::known(&setup, &mcp::reported_servers(&setup), elicitor);
    let servers = servers.map(|servers| servers.start(output.server_states())).transpose()?;
    let mut builder = with_servers(builder, servers.as_ref());
    if let Some(which) = resume {
        builder = builder.resume(which);
        if !setup.has_chosen_provider() {
            builder = builder.same_provider();
        }
    }
    if let Some(path) = &options.output_schema {
        builder = builder.output_schema(answer_schema(path, &setup)?);
    }
    let answer_file = options.output_last_message.as_deref().map(|path| {
        setup.output_file(path).map_err(|error| CliProblem::file("cannot write the answer to", path, &error))
    });
    let answer_file = answer_file.transpose()?;
    interrupts::watch(stop.clone(), window)?;
    let _cleaning = RetentionThread::start(&setup);
    let report = crate::runtime()?.block_on(async {
        if let Some(servers) = &servers {
            tokio::select! {
                _reason = stop.stopped() => {}
                () = servers.wait_for_first_lists() => {}
            }
        }
        turn(builder, content, &stop, &setup, &output).await
    });
    drop(servers);
    output.flush();
    let (report, thread) = report.map_err(|error| setup.explain(&error))?;
    let exit = finish(&report, (&options, answer_file), &output)?;
    let Some(preview) = preview else { return Ok(exit) };
    let edits = Edits::of_session(&setup.home, &thread).map_err(|error| CliProblem::failed(chain(&error)))?;
    let settled = preview.settle(&edits, &stop)?;
    if output.is_json() {
        print(&format!("{}\n", json!({"type": "preview", "preview": settled.report})))?;
    }
    Ok(settled.end.exit(exit))
}

/// Selects the session to resume. `resume --last PROMPT` has its prompt in the position of the
/// session, so that is returned.
fn which(
    setup: &ProgramSetup,
    session: Option<String>,
    last: bool,
) -> Result<(Which, Option<String>), CliProblem> {
    match (session, last) {
        (Some(session), false) => Ok((Which::Id(ids::session_id(setup, &session)?), None)),
        (session, true) => Ok((Which::LastIn(setup.cwd.clone()), session)),
        (None, false) => Err(CliProblem::usage(
            "no session given; pass its id, or --last for the newest of this directory",
        )),
    }
}

/// Returns the one prompt that was given.
fn only(prompts: [Option<String>; 3]) -> Result<Option<String>, CliProblem> {
    let mut given = prompts.into_iter().flatten();
    match (given.next(), given.next()) {
        (prompt, None) => Ok(prompt),
        (_, Some(second)) => {
            Err(CliProblem::usage(format!("there are two prompts; the second is `{second}`")))
        }
    }
}

async fn turn(
    builder: AgentBuilder,
    content: Vec<Content>,
    stop: &Stop,
    setup: &ProgramSetup,
    output: &ExecOutput,
) -> Result<(TurnReport, ThreadId), BuildError> {
    let mut agent: Agent = builder.build()?;
    user_tools::report_quarantined(agent.toolbox().registry.quarantined());
    if !output.is_json() {
        crate::note(&output.header(setup, agent.model(), agent.thread()));
    }
    let thread = agent.thread().clone();
    let report = agent.run(content, stop).await;
    agent.end_session("other").await;
    Ok((report, thread))
}

fn finish(
    report: &TurnReport,
    (options, answer_file): (&ExecOptions, Option<OutputFile>),
    output: &ExecOutput,
) -> Result<ProgramExit, CliProblem> {
    let answer = match &report.end {
        Ok(answer) => answer,
        Err(AgentError::Stopped(reason)) if reason.is_limit() => return Ok(ProgramExit::Limit),
        Err(AgentError::Stopped(Reason::Hook) | AgentError::BlockedMessage { .. }) => {
            return Ok(ProgramExit::Refused);
        }
        Err(AgentError::Stopped(_)) => return Ok(ProgramExit::Interrupted),
        Err(AgentError::Model(_) | AgentError::Journal(_) | AgentError::UnfitAnswer { .. }) => {
            return Ok(ProgramExit::Failed);
        }
    };
    output.print_answer(answer)?;
    if let (Some(path), Some(file)) = (&options.output_last_message, answer_file) {
        file.write(answer.as_bytes(), 0o666)
            .map_err(|error| CliProblem::file("cannot write the answer to", path, &error))?;
    }
    let refused = report.refusals.iter().any(|refusal| !refusal.made_up_for);
    Ok(if options.experimental_json {
        ProgramExit::Done
    } else if refused {
        ProgramExit::Refused
    } else if report.declined {
        ProgramExit::Failed
    } else {
        ProgramExit::Done
    })
}

/// Returns the user's message: the prompt and the images.
fn content(prompt: Option<String>, images: &[PathBuf]) -> Result<Vec<Content>, CliProblem> {
    let text = match prompt {
        Some(text) if text != "-" && text.trim().is_empty() => text,
        Some(text) if text != "-" => with_piped_input(text)?,
        Some(_) | None => from_stdin("the prompt")?,
    };
    let text = Some(text).filter(|text| !text.trim().is_empty());
    if text.is_none() && images.is_empty() {
        return Err(CliProblem::usage("the prompt is empty; give it as an argument or on stdin"));
    }
    let images = images.iter().map(|path| image(path));
    text.into_iter().map(|text| Ok(Content::Text(text))).chain(images).collect()
}

/// Reads all of stdin as text.
pub(crate) fn from_stdin(what: &str) -> Result<String, CliProblem> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        crate::note(&format!("reading {what} from stdin; press Ctrl-D to end"));
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(MAX_READ_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliProblem::usage(format!("cannot read {what} from stdin: {error}")))?;
    if bytes.len() as u64 > MAX_READ_BYTES {
        return Err(CliProblem::usage(format!("{what} on stdin is longer than {MAX_READ_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliProblem::usage(format!("{what} on stdin is not UTF-8 text (byte {at})"))
    })
}

/// Reads an image file as a data URL. Its type is detected by its first bytes, not by its name.
fn image(path: &Path) -> Result<Content, CliProblem> {
    let bytes = read_file(path, "the image")?;
    let kind = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "png",
        [0xff, 0xd8, 0xff, ..] => "jpeg",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        _ => {
            return Err(CliProblem::usage(format!(
                "`{}` is not a PNG, JPEG, GIF or WebP image",
                visible_path(path)
            )));
        }
    };
    Ok(Content::Image(format!("data:image/{kind};base64,{}", BASE64_STANDARD.encode(bytes))))
}

fn answer_schema(path: &Path, setup: &ProgramSetup) -> Result<AnswerSchema, CliProblem> {
    if !setup.has_model() {
        let message =
            "--output-schema needs a model: the offline rules answer only in text; choose a `--provider`";
        return Err(CliProblem::usage(message));
    }
    let bytes = read_file(path, "the output schema")?;
    let schema: Value = serde_json::from_slice(&bytes).map_err(|error| {
        CliProblem::usage(format!("the output schema `{}` is not JSON: {error}", visible_path(path)))
    })?;
    AnswerSchema::new(schema).map_err(|error| {
        let problem = match error {
            SchemaError::NotAnObject { found } => {
                format!("must be a JSON Schema of type `object`, found {found}")
            }
            other => format!("cannot be used: {other}"),
        };
        CliProblem::usage(format!("the output schema `{}` {problem}", visible_path(path)))
    })
}

fn read_file(path: &Path, what: &str) -> Result<Vec<u8>, CliProblem> {
    let file = |error: &io::Error| CliProblem::file(&format!("cannot read {what}"), path, error);
    let opened = std::fs::File::open(path).map_err(|error| file(&error))?;
    let mut bytes = Vec::new();
    opened.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes).map_err(|error| file(&error))?;
    if bytes.len() as u64 > MAX_READ_BYTES {
        return Err(CliProblem::usage(format!(
            "{what} `{}` is larger than {MAX_READ_BYTES} bytes",
            visible_path(path)
        )));
    }
    Ok(bytes)
}

//! `windlass apply-patch`: a patch to the files of a directory, with no model around it. Texts and exit codes are those of
//! the program of that name.

use std::{ffi::OsString, process::ExitCode, sync::Arc};

use windlass::{Content, Input, Stop, ToolCall, patch};

use crate::{
    args::{Approval, Common, Sandbox},
    exec::from_stdin,
    exit::Exit,
    output::print_answer,
    problem::Problem,
    screen::Warnings,
    setup::Setup,
};

/// What the tool begins its complaints with, for models.
const FOR_MODELS: &str = "apply_patch verification failed: ";

/// Applies the patch. Unless told otherwise, only files of the directory may change.
pub(crate) fn run(common: &Common, patch: Option<OsString>) -> Result<ExitCode, Problem> {
    let text = match patch {
        Some(text) if text != "-" => match text.into_string() {
            Ok(text) => text,
            Err(_) => return Ok(failed("Error: the patch is not UTF-8 text.")),
        },
        Some(_) | None => from_stdin("the patch")?,
    };
    if text.trim().is_empty() {
        return Err(Problem::usage("the patch is empty; give it as an argument or on stdin"));
    }
    if let Err(error) = patch::parse(&text) {
        return Ok(failed(&error.for_terminal()));
    }
    let common = Common {
        sandbox: common.sandbox.or(Some(Sandbox::WorkspaceWrite)),
        // Nobody is asked about what they have asked for themselves.
        approval: Some(Approval::Never),
        ..common.clone()
    };
    let setup = Setup::for_tools(&common)?;
    let toolbox = setup.tools()?.events(Arc::new(Warnings)).toolbox();
    let toolbox = toolbox.map_err(|errors| Problem::usage(errors.to_string()))?;
    let call = ToolCall { id: "apply-patch".into(), name: "apply_patch".into(), input: Input::Text(text) };
    let outcome = crate::runtime()?.block_on(toolbox.call(call, &Stop::default())).outcome;
    if !outcome.verdict.success {
        let text = outcome.text();
        return Ok(failed(text.strip_prefix(FOR_MODELS).unwrap_or(&text)));
    }
    let mut texts = outcome.content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text),
        Content::Image(_) | Content::Tool(_) => None,
    });
    let summary = texts.next().map(String::as_str).unwrap_or_default();
    print_answer(summary)?;
    texts.for_each(|note| crate::note(note));
    Ok(Exit::Done.into())
}

fn failed(message: &str) -> ExitCode {
    crate::note(message);
    Exit::Failed.into()
}

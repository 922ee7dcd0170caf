//! `windlass apply-patch`: applies a patch to the files of a directory, without a model. Texts and
//! exit codes are those of the program of that name.

use std::{ffi::OsString, process::ExitCode, sync::Arc};

use windlass::{Content, Input, Stop, ToolCall, patch};

use crate::{
    args::{ApprovalFlag, CommonOptions, SandboxFlag},
    exec::from_stdin,
    exit::ProgramExit,
    output::print_answer,
    problem::CliProblem,
    screen::WarningScreen,
    setup::ProgramSetup,
};

/// The prefix of the tool's error messages, for models.
const FOR_MODELS: &str = "apply_patch verification failed: ";

/// Applies the patch. By default only files of the directory may change.
pub(crate) fn run(common: &CommonOptions, patch: Option<OsString>) -> Result<ExitCode, CliProblem> {
    let text = match patch {
        Some(text) if text != "-" => match text.into_string() {
            Ok(text) => text,
            Err(_) => return Ok(failed("Error: the patch is not UTF-8 text.")),
        },
        Some(_) | None => from_stdin("the patch")?,
    };
    if text.trim().is_empty() {
        return Err(CliProblem::usage("the patch is empty; give it as an argument or on stdin"));
    }
    if let Err(error) = patch::parse(&text) {
        return Ok(failed(&error.for_terminal()));
    }
    let common = CommonOptions {
        sandbox: common.sandbox.or(Some(SandboxFlag::WorkspaceWrite)),
        // The user asked for the patch, so no question is needed.
        approval: Some(ApprovalFlag::Never),
        ..common.clone()
    };
    let setup = ProgramSetup::for_tools(&common)?;
    let toolbox = setup.tools(setup.machine()?)?.events(Arc::new(WarningScreen)).toolbox();
    let toolbox = toolbox.map_err(|errors| CliProblem::usage(errors.to_string()))?;
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
    Ok(ProgramExit::Done.into())
}

fn failed(message: &str) -> ExitCode {
    crate::note(message);
    ProgramExit::Failed.into()
}

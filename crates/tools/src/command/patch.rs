//! Handles commands that call `apply_patch`, which models learned to run through a shell. No shell
//! runs: the patch is applied here under the rules for patches, and the result looks like that of a
//! command.

use std::{path::Path, time::Instant};

use windlass_contract::{
    Content, Cx, Output, ToolError, host::Exit, outcome::Facts, report::ProcessReport, tool::ErrorKind,
};
use windlass_patch::recognise;

use crate::apply_patch::PatchCall;

/// Advice to the model to use the tool for its next patch.
const ADVICE: &str = "Note: use the apply_patch tool for patches, not a command.";

/// Returns the patch of a command that only calls `apply_patch`, or the error in that call.
pub(crate) fn found(argv: &[String], workdir: Option<&Path>) -> Option<Result<PatchCall, ToolError>> {
    let invocation = match recognise(argv)? {
        Ok(invocation) => invocation,
        Err(error) => return Some(Err(ToolError::bad_input(error.to_string()))),
    };
    let inner = invocation.workdir.map(Path::new);
    let workdir = match (workdir, inner) {
        (Some(outer), Some(inner)) => Some(outer.join(inner)),
        (outer, inner) => outer.or(inner).map(Path::to_owned),
    };
    Some(Ok(PatchCall { text: invocation.patch.to_owned(), workdir }))
}

/// Applies a patch as the program of that name would.
pub(crate) async fn apply(patching: &PatchCall, cx: &Cx) -> Result<Output, ToolError> {
    let begun = Instant::now();
    let (code, mut content) = match patching.apply(cx).await {
        Ok(output) => (0, output.content),
        Err(error) if matches!(error.kind, ErrorKind::Denied(_) | ErrorKind::Cancelled) => return Err(error),
        Err(error) => (1, vec![Content::Text(error.message)]),
    };
    content.push(Content::Text(ADVICE.to_owned()));
    let report = ProcessReport {
        duration: begun.elapsed(),
        output_bytes: Content::join(&content).len() as u64,
        ..ProcessReport::new(Exit::Code(code))
    };
    Ok(Output { content, facts: Facts::Command(Box::new(report)), ..Output::default() })
}

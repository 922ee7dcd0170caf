//! `windlass sessions export`: writes a session as a transcript.

use std::{io::ErrorKind, path::Path};

use super::{
    export_text::{as_html, as_markdown},
    transcript::SessionTranscript,
};
use crate::{
    args::{ExportOptions, TranscriptFormat},
    exit::ProgramExit,
    ids,
    output::print,
    problem::CliProblem,
    setup::ProgramSetup,
};

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, args: &ExportOptions) -> Result<ProgramExit, CliProblem> {
    let format = args.format.unwrap_or_else(|| by_ending(args.output.as_deref()));
    let transcript = SessionTranscript::load(setup, ids::thread(setup, &args.id)?.entry)?;
    let text = match format {
        TranscriptFormat::Markdown => as_markdown(&transcript),
        TranscriptFormat::Html => as_html(&transcript),
        TranscriptFormat::Json => format!("{:#}\n", transcript.as_json(&setup.secrets())),
    };
    let Some(file) = &args.output else { return print(&text) };
    let written = setup.output_file(file).and_then(|made| {
        if !made.is_new() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        made.write(text.as_bytes(), 0o600)
    });
    written.map_err(|error| CliProblem::file("cannot write the transcript to", file, &error))?;
    Ok(ProgramExit::Done)
}

fn by_ending(output: Option<&Path>) -> TranscriptFormat {
    match output.and_then(Path::extension).and_then(|ending| ending.to_str()) {
        Some("json") => TranscriptFormat::Json,
        Some("html" | "htm") => TranscriptFormat::Html,
        _ => TranscriptFormat::Markdown,
    }
}

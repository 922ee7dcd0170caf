//! `windlass feedback`: records a person's rating of a call.

use serde_json::json;
use windlass::Rating;

use crate::{
    args::{CommonOptions, FeedbackOptions, FeedbackRating},
    calls,
    exit::ProgramExit,
    ids,
    output::{print, print_text},
    problem::{CliProblem, chain},
    screen::named,
    setup::ProgramSetup,
};

/// Maximum size of a note, which is a short remark.
const MAX_NOTE_BYTES: usize = 4096;

impl From<FeedbackRating> for Rating {
    fn from(said: FeedbackRating) -> Self {
        match said {
            FeedbackRating::Good => Self::Good,
            FeedbackRating::Bad => Self::Bad,
        }
    }
}

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &FeedbackOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let note = args.note.as_deref().unwrap_or_default();
    if note.len() > MAX_NOTE_BYTES {
        let bytes = note.len();
        return Err(CliProblem::usage(format!(
            "the note has {bytes} bytes; the maximum is {MAX_NOTE_BYTES}"
        )));
    }
    let note = setup.secrets().clean_text(note.to_owned());
    let rating = args.rating.map(Rating::from);
    let index = calls::open(&setup)?;
    let call = ids::call(&setup, &index, &args.call)?;
    index.add_feedback(&call, rating, note.clone()).map_err(|error| CliProblem::failed(chain(&error)))?;
    if args.json {
        let said = json!({"call": call.handle, "id": call.id, "tool": call.tool, "session": call.thread,
            "feedback": rating, "note": rating.map(|_| note)});
        return print(&format!("{said:#}\n"));
    }
    let word = rating.map_or("no longer rated", Rating::as_str);
    print_text(&format!("{} ({}): {word}\n", call.handle, named(call.tool.as_str())))
}

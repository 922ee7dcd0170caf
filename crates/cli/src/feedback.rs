//! `windlass feedback`: what a person thinks of a call.

use serde_json::json;
use windlass::Rating;

use crate::{
    args::{Common, Feedback, Said},
    calls,
    exit::Exit,
    output::print,
    problem::{Problem, chain},
    screen::named,
    setup::Setup,
};

/// A note is a remark; a longer one belongs elsewhere.
const MAX_NOTE_BYTES: usize = 4096;

impl From<Said> for Rating {
    fn from(said: Said) -> Self {
        match said {
            Said::Good => Self::Good,
            Said::Bad => Self::Bad,
        }
    }
}

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Feedback) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?;
    let note = args.note.as_deref().unwrap_or_default();
    if note.len() > MAX_NOTE_BYTES {
        let bytes = note.len();
        return Err(Problem::usage(format!("the note has {bytes} bytes; it may have {MAX_NOTE_BYTES}")));
    }
    let note = setup.secrets().clean(note).into_owned();
    let rating = args.rating.map(Rating::from);
    let index = calls::open(&setup)?;
    let call = calls::one(&index, &args.call)?;
    index.add_feedback(&call, rating, note.clone()).map_err(|error| Problem::failed(chain(&error)))?;
    if args.json {
        let said = json!({"call": call.handle, "id": call.id, "tool": call.tool, "session": call.thread,
            "feedback": rating, "note": rating.map(|_| note)});
        return print(&format!("{said:#}\n"));
    }
    let word = rating.map_or("no longer rated", Rating::as_str);
    print(&format!("{} ({}): {word}\n", call.handle, named(call.tool.as_str())))
}

//! `windlass doctor`: what this machine can enforce.

use crate::{args::Common, exit::Exit, problem::Problem};

/// Runs the command.
pub(crate) fn run(_common: &Common, _json: bool) -> Result<Exit, Problem> {
    Ok(Exit::Done)
}

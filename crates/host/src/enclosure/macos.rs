//! The one rung of macOS: Seatbelt, through the system's own program for it.

use windlass_contract::Rung;

use super::{Enclosed, Site, confine, impossible};
use crate::{
    ground::{hidden, roots},
    program::Program,
    protect::Protection,
    seatbelt::{self, Profile},
    sys::{self, ChildStdio as Stdio, StartError, Zygotes as Starters},
};

/// There is nothing to climb.
#[derive(Debug, Default)]
pub(crate) struct Ladder;

impl Ladder {
    /// There is no Landlock here.
    pub(crate) fn landlock(&self) -> u32 {
        0
    }

    /// There are no namespaces here.
    pub(crate) fn try_namespaces(&self) -> Result<(), String> {
        Err("macOS has none; Seatbelt is used".to_owned())
    }

    /// There are none to leave out.
    pub(crate) fn without_namespaces(&self, _reason: &str) {}
}

impl Site {
    /// Starts a program behind these walls.
    pub(super) fn start(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let roots = roots(&self.walls).map_err(impossible)?;
        let protection = Protection::of(&roots, program.directory());
        let mut not_covered = vec!["memory, processes and disk are not limited".to_owned()];
        let hidden =
            hidden(&self.walls, self.ground(Some(temporary), program.directory()), &roots, &mut not_covered);
        let profile = Profile::new(&roots, temporary, &protection, &hidden, self.walls.network);
        let program = program.with(&self.variables(Rung::Seatbelt, temporary, program))?;
        let program = program.under(seatbelt::PROGRAM, &profile.arguments())?;
        let started = sys::start(&program, stdio, starters)?;
        let held = self.held(Rung::Seatbelt, None, not_covered);
        Ok(Enclosed { started, held, protection: Some(protection) })
    }
}

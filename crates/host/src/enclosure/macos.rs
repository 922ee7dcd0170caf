//! The one rung of macOS: Seatbelt, through the system's own program for it.

use windlass_contract::Rung;

use super::{Enclosed, Site, confine};
use crate::{
    ground::hidden,
    program::Program,
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
    pub(crate) fn start(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let workspace = self.begin(false, starters)?;
        let roots: Vec<_> = workspace.roots.iter().map(|root| root.path.clone()).collect();
        let mut not_covered = vec!["memory, processes and disk are not limited".to_owned()];
        let hidden = hidden(&self.walls, self.ground(Some(temporary)), &roots, &mut not_covered);
        let profile = Profile::new(&roots, temporary, &workspace.protected, &hidden, self.walls.network);
        let program = program.with(&self.variables(Rung::Seatbelt, temporary, program))?;
        let program = program.under(seatbelt::PROGRAM, &profile.arguments())?;
        let started = sys::start(&program, stdio, starters)?;
        let held = self.held(Rung::Seatbelt, None, not_covered);
        Ok(Enclosed { started, held, guard: workspace.command })
    }
}

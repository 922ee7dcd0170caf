//! The one mechanism of macOS: Seatbelt, through the system's own program for it.

use windlass_contract::grant::Mechanism;

use super::{LaunchedChild, SandboxSpec, confine, no_layer};
use crate::{
    hidden_paths::hidden,
    program::Program,
    seatbelt::{self, SeatbeltProfile},
    sys::{self, ChildStdio, StartError, Zygotes},
    writable_plan::WritablePlan,
};

/// The mechanisms this machine has: Seatbelt alone.
#[derive(Debug, Default)]
pub struct Mechanisms;

impl Mechanisms {
    /// Returns 0: macOS has no Landlock.
    pub fn landlock(&self) -> u32 {
        0
    }

    /// Checks that there is a mechanism for commands. An error says what is missing.
    pub fn probe(&self) -> Result<(), String> {
        let is_there = std::path::Path::new(seatbelt::PROGRAM).exists();
        if is_there { Ok(()) } else { Err(format!("there is no `{}`", seatbelt::PROGRAM)) }
    }

    /// Returns the mechanism for the next command.
    pub fn preferred(&self) -> Mechanism {
        Mechanism::Seatbelt
    }

    /// Returns an error: macOS has no namespaces.
    pub fn try_namespaces(&self) -> Result<(), String> {
        Err("macOS has none; Seatbelt is used".to_owned())
    }

    /// Does nothing: macOS has no namespaces.
    pub fn without_namespaces(&self, _reason: &str) {}
}

impl SandboxSpec {
    /// Starts a program held by one mechanism of this machine. A mechanism that it does not have is
    /// an error.
    pub fn launch(
        &self,
        mechanism: Mechanism,
        writable: &WritablePlan<'_>,
        (program, stdio): (&Program, ChildStdio),
        zygotes: &mut Zygotes,
    ) -> Result<LaunchedChild, StartError> {
        if mechanism != Mechanism::Seatbelt {
            return Err(StartError::Impossible(format!("macOS has no `{}`", mechanism.name())));
        }
        if writable.has_layers() {
            return Err(no_layer());
        }
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let roots: Vec<_> = writable.roots.iter().map(|root| root.path.to_owned()).collect();
        let mut not_covered = vec!["memory, processes and disk are not limited".to_owned()];
        let hidden = hidden(&self.rules, self.paths(Some(temporary)), &roots, &mut not_covered);
        let profile =
            SeatbeltProfile::new(&roots, temporary, writable.protected, &hidden, self.rules.network);
        let program = program.with(&self.variables(Mechanism::Seatbelt, temporary, program))?;
        let program = program.wrapped_by(seatbelt::PROGRAM, &profile.arguments())?;
        let started = sys::start(&program, stdio, zygotes)?;
        let held = self.held(Mechanism::Seatbelt, None, not_covered);
        Ok(LaunchedChild { started, held, hidden_in_roots: Vec::new() })
    }
}

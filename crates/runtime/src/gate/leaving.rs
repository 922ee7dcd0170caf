//! Finds the program that may leave the sandbox by a rule or by an earlier answer.

use std::path::PathBuf;

use windlass_contract::{
    Effects,
    approval::Beyond,
    effects::CommandLine,
    grant::{Confinement, DirectProgram},
};
use windlass_policy::single_program;

use super::{Gate, escalation, programs};

impl Gate {
    pub(super) fn is_replaceable(&self, name: &str, command: &CommandLine) -> bool {
        let place = self.command_cwd(command);
        self.finder
            .as_ref()
            .is_none_or(|finder| programs::is_replaceable(&**finder, &self.policy, name, &place))
    }

    /// Returns the program that runs if an approval without the sandbox lasts longer than one call.
    /// Returns `None` unless the command is one program with literal arguments whose file no
    /// sandboxed command can write.
    pub(super) fn direct_program(
        &self,
        effects: &Effects,
        confinement: &Confinement,
    ) -> Option<DirectProgram> {
        let leaves = escalation::extra_access(&self.policy.confinement(), confinement) == Beyond::Everything;
        let command = effects.command.as_ref().filter(|_| leaves)?;
        if self.obstacle_outside().is_some() {
            return None;
        }
        let mut argv = single_program(command)?;
        let program = argv.first_mut()?;
        *program = self.unwritable_program(program, command)?.into_os_string().into_string().ok()?;
        Some(self.started_directly(argv, command))
    }

    /// Returns the reason why no program may leave the sandbox by an earlier approval now.
    pub(super) fn obstacle_outside(&self) -> Option<String> {
        if self.policy.plan_mode {
            return Some("plan mode is on".to_owned());
        }
        self.finder.as_ref()?.obstacle_outside(&programs::writable_directories(&self.policy))
    }

    pub(super) fn started_directly(&self, argv: Vec<String>, command: &CommandLine) -> DirectProgram {
        DirectProgram {
            argv,
            cwd: self.command_cwd(command),
            writable: programs::writable_directories(&self.policy),
            temporary: programs::temporary_directories(self.finder.as_deref()),
        }
    }

    /// Returns the file of a program if no sandboxed command can write it.
    pub(super) fn unwritable_program(&self, name: &str, command: &CommandLine) -> Option<PathBuf> {
        programs::find_unwritable(&**self.finder.as_ref()?, &self.policy, name, &self.command_cwd(command))
    }

    /// Like `unwritable_program`, but only for files of the system: a rule must name the same
    /// program in every workspace.
    pub(super) fn system_program(&self, name: &str, command: &CommandLine) -> Option<PathBuf> {
        let place = self.command_cwd(command);
        let is_system_program = programs::is_system_program(&**self.finder.as_ref()?, name, &place);
        self.unwritable_program(name, command).filter(|_| is_system_program)
    }
}

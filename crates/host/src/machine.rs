//! From a grant to a host.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, Command, ConfineError, Confinement, Finished, Grant, Host, HostError, Limits, Sandbox,
};

use crate::{keeper::Keeper, process, program::Program};

/// This machine. Children get the environment it was made with, and nothing from this process's own.
#[derive(Debug, Clone)]
pub struct Machine {
    environment: Arc<BTreeMap<String, String>>,
    keeper: Keeper,
}

impl Machine {
    /// A machine whose children see exactly these variables.
    pub fn new(environment: BTreeMap<String, String>) -> Self {
        Self { environment: Arc::new(environment), keeper: Keeper::default() }
    }
}

impl Sandbox for Machine {
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError> {
        Ok(match grant.confinement() {
            Confinement::InProcess => Arc::new(Nothing),
            Confinement::Unconfined => Arc::new(Unconfined {
                machine: self.clone(),
                cwd: grant.cwd().clone(),
                limits: grant.limits().clone(),
            }),
        })
    }
}

/// For calls that declared to start no process: they do not get to.
struct Nothing;

impl Host for Nothing {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        _cancel: &'a CancellationToken,
        _output: &'a (dyn Fn(&[u8]) + Send + Sync),
    ) -> BoxFuture<'a, Result<Finished, HostError>> {
        let program = command.argv.first().cloned().unwrap_or_default();
        Box::pin(async { Err(HostError::NotGranted { program }) })
    }

    fn confinement(&self) -> Confinement {
        Confinement::InProcess
    }
}

/// Runs with the rights of the user.
struct Unconfined {
    machine: Machine,
    cwd: PathBuf,
    limits: Limits,
}

impl Host for Unconfined {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: &'a (dyn Fn(&[u8]) + Send + Sync),
    ) -> BoxFuture<'a, Result<Finished, HostError>> {
        Box::pin(async move {
            let run = process::Run {
                program: Program::new(command, &self.machine.environment, &self.cwd)?,
                time_limit: command.time_limit.unwrap_or(self.limits.default_time),
                output_limit_bytes: self.limits.output_bytes,
                output,
            };
            run.complete(&self.machine.keeper, cancel).await
        })
    }

    fn confinement(&self) -> Confinement {
        Confinement::Unconfined
    }
}

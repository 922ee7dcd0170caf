//! Finds out, once a command has failed, whether its sandbox was the reason.

use std::{env, path::PathBuf, sync::Arc};

use windlass_contract::{Denial, grant::Held, host::Exit};
use windlass_sandbox::{
    Program,
    denials::{self, BlockedWrite, DeniedPathCheck},
    home_directories,
};

use crate::{
    launch::{CommandLaunch, SandboxedLaunch},
    workspace_guard::has_protected_name,
};

/// Maximum number of bytes at the end of an output that are checked. Programs print errors last.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// The data about a command that the check needs. A command that succeeds costs no more than this.
pub(crate) struct DenialCheck {
    sandbox: Option<Arc<SandboxedLaunch>>,
    directory: PathBuf,
    arguments: Vec<String>,
    search_path: Vec<PathBuf>,
}

impl DenialCheck {
    pub(crate) fn new(program: &Program, launch: &CommandLaunch) -> Self {
        let sandbox = match launch {
            CommandLaunch::Unconfined | CommandLaunch::External(_) => None,
            CommandLaunch::Sandboxed(sandbox) => Some(Arc::clone(sandbox)),
        };
        let search_path = program.variable("PATH").unwrap_or_default();
        Self {
            sandbox,
            directory: program.directory().to_owned(),
            arguments: program.arguments(),
            search_path: env::split_paths(&search_path).collect(),
        }
    }

    /// Returns what was stopped: what was observed, the hosts that the output names, and the paths
    /// it names that the sandbox really keeps from being written.
    pub(crate) async fn complete(
        self,
        mut observed: Vec<Denial>,
        exit: Exit,
        output: &[u8],
        held: Held,
    ) -> Vec<Denial> {
        let Some(sandbox) = self.sandbox.as_ref().filter(|_| exit != Exit::Code(0)).map(Arc::clone) else {
            return observed;
        };
        let end = output[output.len().saturating_sub(MAX_OUTPUT_BYTES)..].to_vec();
        denials::name_host(&mut observed, exit, (&end, &self.arguments), &held);
        let found = self.look(sandbox, held, move |check| check.find(exit, &end));
        observed.extend(found.await);
        observed
    }

    /// Returns the writes of a server that its sandbox blocked. Adds the names of hosts to what was
    /// observed.
    pub(crate) async fn blocked_writes(
        self,
        observed: &mut Vec<Denial>,
        exit: Exit,
        output: &[u8],
        held: Held,
    ) -> Vec<BlockedWrite> {
        let Some(sandbox) = self.sandbox.as_ref().map(Arc::clone) else { return Vec::new() };
        let end = output[output.len().saturating_sub(MAX_OUTPUT_BYTES)..].to_vec();
        denials::name_host(observed, exit, (&end, &self.arguments), &held);
        self.look(sandbox, held, move |check| check.find_writes(exit, &end)).await
    }

    /// Checks what an output names, where blocking is allowed.
    async fn look<T: Send + 'static>(
        self,
        sandbox: Arc<SandboxedLaunch>,
        held: Held,
        look: impl FnOnce(&DeniedPathCheck<'_>) -> Vec<T> + Send + 'static,
    ) -> Vec<T> {
        let Self { directory, arguments, search_path, .. } = self;
        let found = tokio::task::spawn_blocking(move || {
            let homes = home_directories(sandbox.spec.home.as_deref());
            look(&DeniedPathCheck {
                spec: &sandbox.spec,
                held: &held,
                directory: &directory,
                arguments: &arguments,
                search_path: &search_path,
                is_protected: &|path| has_protected_name(path, &sandbox.spec.cwd, &homes),
            })
        });
        // A check that panics finds nothing: the result stays what it is.
        found.await.unwrap_or_default()
    }
}

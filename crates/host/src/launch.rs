//! Starts children: opens the writable roots, and launches the program with the best mechanism of
//! this machine.
//!
//! It runs on the spawner's thread, since it reads files and waits for the child.

use std::{os::fd::AsFd, path::PathBuf, sync::Arc};

use windlass_contract::{effects::Network, grant::Mechanism};
use windlass_sandbox::{
    ChildStdio, LaunchedChild, LayerMount, Program, ProtectedPaths, SandboxSpec, StartError, WritablePlan,
    WritableRoot, Zygotes, launch_externally_confined, launch_unconfined,
};

use crate::{
    preview::{self, Preview},
    workspace_guard::{
        CommandGuard, GuardError, PrivateConfig, WorkspaceGuard, WorkspaceRoot, git_program::SandboxedGit,
    },
};

/// Maximum number of attempts to start a sandbox with namespaces for one command.
const MAX_TRIES: usize = 8;

/// The way to start a command.
#[derive(Debug, Clone)]
pub(crate) enum CommandLaunch {
    /// Without confinement.
    Unconfined,
    /// Without confinement by Windlass. The outer sandbox allows this network access.
    External(Network),
    /// In a sandbox.
    Sandboxed(Arc<SandboxedLaunch>),
}

/// A sandbox, and the workspace to check when a command has ended.
#[derive(Debug)]
pub(crate) struct SandboxedLaunch {
    pub(crate) spec: SandboxSpec,
    /// The guard of the writable directories.
    pub(crate) guard: Option<Arc<WorkspaceGuard>>,
    /// The preview layer that commands run on, if any.
    pub(crate) preview: Option<Preview>,
}

/// A child, and the guard to check when it is gone.
pub(crate) type GuardedChild = (LaunchedChild, Option<CommandGuard>);

impl CommandLaunch {
    /// Returns true if the command may write outside of its private temporary directory.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Unconfined | Self::External(_) => true,
            Self::Sandboxed(sandbox) => !sandbox.spec.rules.writable.is_empty(),
        }
    }

    /// Starts a program.
    pub(crate) fn start(
        &self,
        program: &Program,
        stdio: ChildStdio,
        zygotes: &mut Zygotes,
    ) -> Result<GuardedChild, StartError> {
        let child = match self {
            Self::Unconfined => launch_unconfined(program, stdio, zygotes)?,
            Self::External(network) => launch_externally_confined(*network, program, stdio, zygotes)?,
            Self::Sandboxed(sandbox) => return sandbox.start(program, stdio, zygotes),
        };
        Ok((child, None))
    }
}

impl SandboxedLaunch {
    /// Starts a program in the sandbox, by namespaces unless this machine turns out to have none.
    pub(crate) fn start(
        &self,
        program: &Program,
        stdio: ChildStdio,
        zygotes: &mut Zygotes,
    ) -> Result<GuardedChild, StartError> {
        let mut tries = 0;
        while self.spec.mechanisms.preferred() == Mechanism::Namespaces {
            tries += 1;
            match self.start_by(Mechanism::Namespaces, program, stdio.try_clone()?, zygotes) {
                Err(StartError::Confine(step, error)) if tries == MAX_TRIES => {
                    let step = format!(
                        "{step}, {MAX_TRIES} times over, perhaps as another program kept replacing it,"
                    );
                    return Err(StartError::Confine(step, error));
                }
                // The failure may not be due to this command, so try an empty sandbox. If
                // namespaces work, another program may have renamed or removed a path to cover; a
                // new plan avoids it.
                Err(StartError::Confine(..)) => drop(self.spec.mechanisms.try_namespaces()),
                Err(StartError::Impossible(_)) if tries == 1 => drop(self.spec.mechanisms.try_namespaces()),
                result => return result,
            }
        }
        self.start_by(self.spec.mechanisms.preferred(), program, stdio, zygotes)
    }

    fn start_by(
        &self,
        mechanism: Mechanism,
        program: &Program,
        stdio: ChildStdio,
        zygotes: &mut Zygotes,
    ) -> Result<GuardedChild, StartError> {
        if let Some((preview, guard)) = self.preview.as_ref().zip(self.guard.as_ref()) {
            return self.start_on_layer(mechanism, (preview, guard), (program, stdio), zygotes);
        }
        let mut workspace = self.begin(mechanism, zygotes)?;
        let child =
            workspace.with_plan(|plan| self.spec.launch(mechanism, plan, (program, stdio), zygotes))?;
        if let Some(command) = &mut workspace.command {
            command.hidden.clone_from(&child.hidden_in_roots);
        }
        Ok((child, workspace.command))
    }

    /// Starts a program on the layer of a preview, which checks the workspace itself.
    fn start_on_layer(
        &self,
        mechanism: Mechanism,
        (preview, guard): (&Preview, &Arc<WorkspaceGuard>),
        (program, stdio): (&Program, ChildStdio),
        zygotes: &mut Zygotes,
    ) -> Result<GuardedChild, StartError> {
        if mechanism != Mechanism::Namespaces {
            return Err(preview::refused("it needs user namespaces, which this system does not have"));
        }
        let begun = preview.begin(guard, &self.spec.rules.writable, zygotes, |open, name| {
            let (roots, protected) = (open.guard.roots.clone(), Arc::clone(&open.guard.protected));
            let copies = open.guard.private_configs.clone();
            WritableWorkspace { roots, protected, copies, command: None, layer: Some(name.to_owned()) }
        });
        let workspace = begun?;
        let child =
            workspace.with_plan(|plan| self.spec.launch(mechanism, plan, (program, stdio), zygotes))?;
        preview.hide(&child.hidden_in_roots);
        Ok((child, None))
    }

    /// Opens the writable roots and prepares to check them afterwards. Only mounts keep protected
    /// paths from change.
    fn begin(&self, mechanism: Mechanism, zygotes: &mut Zygotes) -> Result<WritableWorkspace, StartError> {
        let refused = |error: GuardError| StartError::Impossible(error.to_string());
        let requested = &self.spec.rules.writable;
        let Some(guard) = &self.guard else {
            let open = |path: &PathBuf| WorkspaceRoot::open(path, &[]).map(Arc::new);
            let roots: Result<_, _> = requested.iter().map(open).collect();
            let roots = roots.map_err(|error| refused(error.into()))?;
            let (protected, copies) = (Arc::default(), Vec::new());
            return Ok(WritableWorkspace { roots, protected, copies, command: None, layer: None });
        };
        let mut git = SandboxedGit { environment: &guard.git, writable: requested.clone(), zygotes };
        let mounts_hold = mechanism == Mechanism::Namespaces;
        let command = guard.begin(requested, mounts_hold, &mut git).map_err(refused)?;
        let (roots, protected) = (command.roots.clone(), Arc::clone(&command.protected));
        Ok(WritableWorkspace {
            roots,
            protected,
            copies: command.private_configs.clone(),
            command: Some(command),
            layer: None,
        })
    }
}

/// The writable roots of a command, and the protected paths in them.
struct WritableWorkspace {
    roots: Vec<Arc<WorkspaceRoot>>,
    protected: Arc<ProtectedPaths>,
    /// Git settings that are replaced by a private copy.
    copies: Vec<PrivateConfig>,
    command: Option<CommandGuard>,
    /// The name of the layer in each root.
    layer: Option<String>,
}

impl WritableWorkspace {
    /// Passes the workspace to the sandbox, as data.
    fn with_plan<T>(&self, launch: impl FnOnce(&WritablePlan<'_>) -> T) -> T {
        let layer = self.layer.as_deref().map(|name| LayerMount { name });
        let roots = self.roots.iter();
        let roots: Vec<_> = roots
            .map(|root| WritableRoot { path: &root.path, directory: root.handle.as_fd(), layer })
            .collect();
        let private_files: Vec<_> = self.copies.iter().map(PrivateConfig::as_private_file).collect();
        launch(&WritablePlan { roots: &roots, protected: &self.protected, private_files: &private_files })
    }
}

//! From a grant to a started child: opens what may be written, and starts the program by the best mechanism this machine
//! has.
//!
//! Runs on the spawner's thread: it looks at files and waits for the child.

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

/// How often a sandbox with namespaces is tried for one command.
const MAX_TRIES: usize = 8;

/// How a command is started.
#[derive(Debug, Clone)]
pub(crate) enum Launch {
    /// Held by nothing.
    Unconfined,
    /// Held by nothing of ours; what holds this process lets it reach this.
    External(Network),
    /// In a sandbox.
    Sandboxed(Arc<SandboxedLaunch>),
}

/// A sandbox, and the workspace that is checked when a command has ended.
#[derive(Debug)]
pub(crate) struct SandboxedLaunch {
    pub(crate) spec: SandboxSpec,
    /// What the session knows of the directories that may be written.
    pub(crate) guard: Option<Arc<WorkspaceGuard>>,
    /// The layer that commands run on, if they do.
    pub(crate) preview: Option<Preview>,
}

/// A child, and what to check when it is gone.
pub(crate) type GuardedChild = (LaunchedChild, Option<CommandGuard>);

impl Launch {
    /// Tells whether the command may write anything but its private temporary directory.
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
                // Perhaps not due to this command: an empty sandbox tells. If there are namespaces, another program may
                // have renamed or removed what was to be covered in the meantime; planned again, it fits.
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

    /// Starts a program on the layer of a preview, which looks after the workspace itself.
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
            Workspace { roots, protected, copies, command: None, layer: Some(name.to_owned()) }
        });
        let workspace = begun?;
        let child =
            workspace.with_plan(|plan| self.spec.launch(mechanism, plan, (program, stdio), zygotes))?;
        preview.hide(&child.hidden_in_roots);
        Ok((child, None))
    }

    /// Opens what may be written, and prepares to check it afterwards. Only mounts keep protected paths from change.
    fn begin(&self, mechanism: Mechanism, zygotes: &mut Zygotes) -> Result<Workspace, StartError> {
        let refused = |error: GuardError| StartError::Impossible(error.to_string());
        let requested = &self.spec.rules.writable;
        let Some(guard) = &self.guard else {
            let open = |path: &PathBuf| WorkspaceRoot::open(path, &[]).map(Arc::new);
            let roots: Result<_, _> = requested.iter().map(open).collect();
            let roots = roots.map_err(|error| refused(error.into()))?;
            let (protected, copies) = (Arc::default(), Vec::new());
            return Ok(Workspace { roots, protected, copies, command: None, layer: None });
        };
        let mut git = SandboxedGit { environment: &guard.git, writable: requested.clone(), zygotes };
        let mounts_hold = mechanism == Mechanism::Namespaces;
        let command = guard.begin(requested, mounts_hold, &mut git).map_err(refused)?;
        let (roots, protected) = (command.roots.clone(), Arc::clone(&command.protected));
        Ok(Workspace {
            roots,
            protected,
            copies: command.private_configs.clone(),
            command: Some(command),
            layer: None,
        })
    }
}

/// What a command may write, and what of it must not change.
struct Workspace {
    roots: Vec<Arc<WorkspaceRoot>>,
    protected: Arc<ProtectedPaths>,
    /// Settings of git of which a copy is written instead.
    copies: Vec<PrivateConfig>,
    command: Option<CommandGuard>,
    /// The name of the layer in each root.
    layer: Option<String>,
}

impl Workspace {
    /// Hands the workspace to the sandbox, as data.
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

//! From walls to a started child, on the best rung this machine has.
//!
//! Runs on the keeper's thread: it looks at files and waits for the child.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::{Accounting, Held, Limits, Network, Rung, Walls};

use crate::{
    ground::{Ground, Impossible},
    package_cache::CacheRequest,
    program::Program,
    sys::{self, ChildStdio as Stdio, StartError, StartedChild as Started, Zygotes as Starters},
    temporary::Temporary,
    workspace_guard::{
        CommandGuard, GuardError, ProtectedPaths, WorkspaceGuard, WorkspaceRoot, git_program::SandboxedGit,
    },
};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::Ladder;
#[cfg(target_os = "macos")]
pub(crate) use macos::Ladder;

/// What a command is started behind.
#[derive(Debug, Clone)]
pub(crate) enum Enclosure {
    /// Nothing.
    Open,
    /// Nothing of ours; what holds this process lets it reach this.
    External(Network),
    /// Walls.
    Walls(Arc<Site>),
}

/// Walls and where they are to stand.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) walls: Walls,
    pub(crate) limits: Limits,
    pub(crate) cwd: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) agent_socket: Option<PathBuf>,
    pub(crate) ladder: Arc<Ladder>,
    pub(crate) temporary: Arc<Temporary>,
    /// What the session knows of the directories that may be written.
    pub(crate) guard: Option<Arc<WorkspaceGuard>>,
    /// Where package managers keep their caches.
    pub(crate) package_cache: Option<PathBuf>,
}

/// A child and what holds it.
#[derive(Debug)]
pub(crate) struct Enclosed {
    pub(crate) started: Started,
    pub(crate) held: Held,
    /// What to check when it is gone.
    pub(crate) guard: Option<CommandGuard>,
}

impl Enclosure {
    /// Starts a program behind this.
    pub(crate) fn start(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        match self {
            Self::Open => open(program, stdio, starters, Held::by(Rung::Unconfined)),
            Self::External(network) => {
                let program = program.with(&told(Rung::External, *network))?;
                open(&program, stdio, starters, Held::externally(*network))
            }
            Self::Walls(site) => site.start(program, stdio, starters),
        }
    }
}

fn open(
    program: &Program,
    stdio: Stdio,
    starters: &mut Starters,
    held: Held,
) -> Result<Enclosed, StartError> {
    let started = sys::start(
        program,
        stdio,
        #[cfg(target_os = "linux")]
        None,
        starters,
    )?;
    Ok(Enclosed { started, held, guard: None })
}

/// What a program finds in its environment about what holds it: a value, or that there must be none.
fn told(rung: Rung, network: Network) -> BTreeMap<&'static str, Option<String>> {
    let offline = (network == Network::None).then(|| "1".to_owned());
    BTreeMap::from([
        ("WINDLASS_SANDBOX", Some(rung.name().to_owned())),
        ("WINDLASS_SANDBOX_NETWORK_DISABLED", offline.clone()),
        // For programs that know the best-known agent.
        ("CODEX_SANDBOX_NETWORK_DISABLED", offline),
    ])
}

impl Site {
    pub(crate) fn ground<'a>(&'a self, temporary: Option<&'a Path>) -> Ground<'a> {
        let (home, sockets) = (self.home.as_deref(), self.agent_socket.as_deref());
        let package_cache = self.package_cache.as_deref();
        Ground { home, cwd: &self.cwd, temporary, sockets, package_cache }
    }

    /// Opens what may be written, and prepares to check it afterwards.
    fn begin(&self, mounts_hold: bool, starters: &mut Starters) -> Result<Workspace, StartError> {
        let refused = |error: GuardError| StartError::Impossible(error.to_string());
        let Some(guard) = &self.guard else {
            let open = |path: &PathBuf| WorkspaceRoot::open(path, &[]).map(Arc::new);
            let roots: Result<_, _> = self.walls.writable.iter().map(open).collect();
            let roots = roots.map_err(|error| refused(error.into()))?;
            return Ok(Workspace { roots, protected: Arc::default(), command: None });
        };
        let writable = self.walls.writable.clone();
        let mut git = SandboxedGit { environment: &guard.git, writable, zygotes: starters };
        let command = guard.begin(&self.walls.writable, mounts_hold, &mut git).map_err(refused)?;
        let (roots, protected) = (command.roots.clone(), Arc::clone(&command.protected));
        Ok(Workspace { roots, protected, command: Some(command) })
    }

    fn held(&self, rung: Rung, accounting: Option<Accounting>, not_covered: Vec<String>) -> Held {
        let Walls { writable, network, .. } = &self.walls;
        let (writable, network, quota) = (writable.clone(), *network, self.limits.quota);
        Held { rung, writable, network, quota, accounting, not_covered }
    }

    /// What a program behind walls finds in its environment: a value, or that there must be none.
    fn variables(
        &self,
        rung: Rung,
        temporary: &Path,
        program: &Program,
    ) -> BTreeMap<&'static str, Option<String>> {
        let caches = self.caches(temporary, program);
        let temporary = Some(temporary.to_string_lossy().into_owned());
        let mut variables = told(rung, self.walls.network);
        variables.extend([
            ("TMPDIR", temporary.clone()),
            ("TMP", temporary.clone()),
            ("TEMP", temporary),
            // Daemons that are out of reach.
            ("SSH_AUTH_SOCK", None),
            ("DBUS_SESSION_BUS_ADDRESS", None),
            ("DOCKER_HOST", None),
            ("DISPLAY", None),
            ("WAYLAND_DISPLAY", None),
            ("XAUTHORITY", None),
            ("GPG_AGENT_INFO", None),
        ]);
        variables.extend(caches.into_iter().map(|(name, value)| (name, Some(value))));
        variables
    }

    /// Points package managers to caches they can write. Without one of our own, only Go is pointed to the temporary
    /// directory: it builds nothing without a cache.
    fn caches(&self, temporary: &Path, program: &Program) -> Vec<(&'static str, String)> {
        let Some(cache) = &self.package_cache else {
            let go = (!program.has("GOCACHE")).then(|| temporary.join("go-build"));
            return go.map(|cache| ("GOCACHE", cache.to_string_lossy().into_owned())).into_iter().collect();
        };
        let request = CacheRequest {
            cache,
            home: self.home.as_deref(),
            writable: &self.walls.writable,
            directory: program.directory(),
            is_online: self.walls.network == Network::Any,
        };
        request.variables(|name| program.variable(name))
    }
}

/// What a command may write, and what of it must not change.
struct Workspace {
    roots: Vec<Arc<WorkspaceRoot>>,
    protected: Arc<ProtectedPaths>,
    command: Option<CommandGuard>,
}

fn impossible(Impossible(reason): Impossible) -> StartError {
    StartError::Impossible(reason)
}

fn confine(step: &str, error: io::Error) -> StartError {
    StartError::Confine(step.to_owned(), error)
}

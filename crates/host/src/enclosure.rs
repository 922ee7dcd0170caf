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
    program::Program,
    protect::Protection,
    sys::{self, ChildStdio as Stdio, StartError, StartedChild as Started, Zygotes as Starters},
    temporary::Temporary,
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
}

/// A child and what holds it.
#[derive(Debug)]
pub(crate) struct Enclosed {
    pub(crate) started: Started,
    pub(crate) held: Held,
    /// What to look at when it is gone.
    pub(crate) protection: Option<Protection>,
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
    Ok(Enclosed { started, held, protection: None })
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
    pub(crate) fn ground<'a>(&'a self, temporary: Option<&'a Path>, begins: &'a Path) -> Ground<'a> {
        let (home, sockets) = (self.home.as_deref(), self.agent_socket.as_deref());
        Ground { home, cwd: &self.cwd, begins, temporary, sockets }
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
        // Go builds nothing without a cache it can write, and the usual one is in the home directory.
        let go = (!program.has("GOCACHE")).then(|| temporary.join("go-build"));
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
        variables.extend(go.map(|cache| ("GOCACHE", Some(cache.to_string_lossy().into_owned()))));
        variables
    }
}

fn impossible(Impossible(reason): Impossible) -> StartError {
    StartError::Impossible(reason)
}

fn confine(step: &str, error: io::Error) -> StartError {
    StartError::Confine(step.to_owned(), error)
}

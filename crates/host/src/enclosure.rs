//! From walls to a started child, on the best rung this machine has.
//!
//! Runs on the keeper's thread: it looks at files and waits for the child.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use windlass_contract::{Held, Limits, Network, Rung, Walls};

use crate::{
    blueprint::{Blueprint, Ground, Impossible},
    fence::Fence,
    program::Program,
    protect::Protection,
    sys::{self, StartError, Started, Stdio, confined, hold::Hold, landlock},
    temporary::Temporary,
};

/// What a command is started behind.
#[derive(Debug, Clone)]
pub(crate) enum Enclosure {
    /// Nothing.
    Open,
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

/// Which rungs this machine has, found out when it matters.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    /// Why there are no namespaces, once that is known.
    no_namespaces: OnceLock<String>,
    version: OnceLock<u32>,
}

impl Ladder {
    /// The version of Landlock; 0 if there is none.
    pub(crate) fn landlock(&self) -> u32 {
        *self.version.get_or_init(landlock::version)
    }

    /// Tries namespaces with nothing in them. The reason, if this machine does not have them.
    pub(crate) fn try_namespaces(&self) -> Result<(), String> {
        if let Some(reason) = self.no_namespaces.get() {
            return Err(reason.clone());
        }
        let ground = Ground { home: None, cwd: Path::new("/"), temporary: None, sockets: None };
        let tried = Blueprint::draw(&Walls::default(), &Limits::default().quota, ground)
            .map_err(|Impossible(reason)| reason)
            .and_then(|empty| confined::rehearse(&empty, self.landlock()).map_err(|error| in_words(&error)));
        tried.map_err(|reason| self.no_namespaces.get_or_init(|| reason).clone())
    }

    /// Leaves namespaces out, for tests and measurements of the rung below.
    pub(crate) fn without_namespaces(&self, reason: &str) {
        // Someone else may have said so before.
        let _known = self.no_namespaces.set(reason.to_owned());
    }
}

fn in_words(error: &StartError) -> String {
    match error {
        StartError::Directory(error) | StartError::Program(error) => error.to_string(),
        StartError::Confine(step, error) => format!("{step}: {error}"),
    }
}

impl Enclosure {
    /// Starts a program behind this.
    pub(crate) fn start(&self, program: &Program, stdio: Stdio) -> Result<Enclosed, StartError> {
        match self {
            Self::Open => {
                let started = sys::start(program, stdio, None)?;
                Ok(Enclosed { started, held: Held::by(Rung::Unconfined), protection: None })
            }
            Self::Walls(site) => site.start(program, stdio),
        }
    }
}

impl Site {
    fn start(&self, program: &Program, stdio: Stdio) -> Result<Enclosed, StartError> {
        if self.ladder.no_namespaces.get().is_none() {
            let again = stdio.try_clone()?;
            match self.behind_namespaces(program, stdio) {
                // Not this command's fault, perhaps: an empty sandbox tells.
                Err(StartError::Confine(..)) if self.ladder.try_namespaces().is_err() => {
                    return self.behind_landlock(program, again);
                }
                result => return result,
            }
        }
        self.behind_landlock(program, stdio)
    }

    fn ground<'a>(&'a self, temporary: Option<&'a Path>) -> Ground<'a> {
        let (home, sockets) = (self.home.as_deref(), self.agent_socket.as_deref());
        Ground { home, cwd: &self.cwd, temporary, sockets }
    }

    fn behind_namespaces(&self, program: &Program, stdio: Stdio) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.lasting().map_err(|error| confine("making a temporary directory", error))?;
        let blueprint =
            Blueprint::draw(&self.walls, &self.limits.quota, self.ground(temporary)).map_err(impossible)?;
        let changes = self.variables(Rung::Namespaces, Path::new("/tmp"));
        let program = program.with(&changes)?;
        let started = confined::start(&program, &blueprint, self.ladder.landlock(), stdio)?;
        let held = self.held(Rung::Namespaces, blueprint.not_covered);
        Ok(Enclosed { started, held, protection: Some(blueprint.protection) })
    }

    fn behind_landlock(&self, program: &Program, stdio: Stdio) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let ground = self.ground(Some(temporary));
        let fence = Fence::draw(&self.walls, &self.limits.quota, ground, self.ladder.landlock())
            .map_err(impossible)?;
        let program = program.with(&self.variables(Rung::Landlock, temporary))?;
        let started = sys::start(&program, stdio, Some(Hold::from(&fence)))?;
        let held = self.held(Rung::Landlock, fence.not_covered);
        Ok(Enclosed { started, held, protection: Some(fence.protection) })
    }

    fn held(&self, rung: Rung, not_covered: Vec<String>) -> Held {
        let Walls { writable, network, .. } = &self.walls;
        Held { rung, writable: writable.clone(), network: *network, quota: self.limits.quota, not_covered }
    }

    /// What a confined program finds in its environment: a value, or that there must be none.
    fn variables(&self, rung: Rung, temporary: &Path) -> BTreeMap<&'static str, Option<String>> {
        let temporary = Some(temporary.to_string_lossy().into_owned());
        let offline = (self.walls.network == Network::None).then(|| "1".to_owned());
        BTreeMap::from([
            ("TMPDIR", temporary.clone()),
            ("TMP", temporary.clone()),
            ("TEMP", temporary),
            ("WINDLASS_SANDBOX", Some(rung.name().to_owned())),
            ("WINDLASS_SANDBOX_NETWORK_DISABLED", offline.clone()),
            // For programs that know the best-known agent.
            ("CODEX_SANDBOX_NETWORK_DISABLED", offline),
            // Daemons that are out of reach.
            ("SSH_AUTH_SOCK", None),
            ("DBUS_SESSION_BUS_ADDRESS", None),
            ("DOCKER_HOST", None),
            ("DISPLAY", None),
            ("WAYLAND_DISPLAY", None),
            ("XAUTHORITY", None),
            ("GPG_AGENT_INFO", None),
        ])
    }
}

fn impossible(Impossible(reason): Impossible) -> StartError {
    confine(&reason, io::ErrorKind::Unsupported.into())
}

fn confine(step: &str, error: io::Error) -> StartError {
    StartError::Confine(step.to_owned(), error)
}

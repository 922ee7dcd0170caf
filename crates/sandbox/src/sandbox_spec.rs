//! From rules to a started child, by one of the mechanisms this machine has.
//!
//! Blocks: it looks at files and waits for the child.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::{
    effects::Network,
    grant::{Accounting, Held, Limits, Mechanism, SandboxRules},
};

use crate::{
    hidden_paths::{HiddenPathHandles, hidden, shown},
    package_cache::CacheRequest,
    private_tmp::PrivateTmp,
    program::Program,
    sandbox_paths::{PlanError, SandboxPaths},
    sys::{self, ChildStdio, StartError, StartedChild, Zygotes},
};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::Mechanisms;
#[cfg(target_os = "macos")]
pub use macos::Mechanisms;

/// Rules and resources for the commands of one grant, except the paths that one command may write
/// ([`WritablePlan`](crate::WritablePlan)).
#[derive(Debug)]
pub struct SandboxSpec {
    /// Access to files and the network.
    pub rules: SandboxRules,
    /// Limits on time, memory and other resources.
    pub limits: Limits,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's home directory, if it is known.
    pub home: Option<PathBuf>,
    /// The socket of the user's SSH agent.
    pub agent_socket: Option<PathBuf>,
    /// Mechanisms of this machine.
    pub mechanisms: Arc<Mechanisms>,
    /// The commands' `/tmp`.
    pub temporary: Arc<PrivateTmp>,
    /// Cache directory for package managers.
    pub package_cache: Option<PathBuf>,
    /// Paths that were hidden from earlier commands of the session.
    pub hidden: Arc<HiddenPathHandles>,
    /// Paths that the user has named for the program. Where they lie in the system's temporary
    /// directories, which are replaced, the entries there that hold them stay to be read.
    pub named: Vec<PathBuf>,
}

/// Settings for programs without network access. They give up at the first failed connection:
/// retries with growing pauses take from seconds to minutes. And npm does not look for a newer npm:
/// a script that fails would look as if the sandbox had stopped it. Set unless the user has set
/// them.
const OFFLINE_SETTINGS: [(&str, &str); 7] = [
    ("CARGO_NET_RETRY", "0"),
    ("npm_config_fetch_retries", "0"),
    ("npm_config_update_notifier", "false"),
    ("YARN_HTTP_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("BUNDLE_RETRY", "0"),
];

/// A child and its confinement.
#[derive(Debug)]
pub struct LaunchedChild {
    /// The child.
    pub started: StartedChild,
    /// The confinement.
    pub held: Held,
    /// Paths in the writable directories that it may not read.
    pub hidden_in_roots: Vec<PathBuf>,
}

/// Starts a program without confinement.
pub fn launch_unconfined(
    program: &Program,
    stdio: ChildStdio,
    zygotes: &mut Zygotes,
) -> Result<LaunchedChild, StartError> {
    open(program, stdio, zygotes, Held::by(Mechanism::Unconfined))
}

/// Starts a program with only the external confinement of this process, which allows this network
/// access.
pub fn launch_externally_confined(
    network: Network,
    program: &Program,
    stdio: ChildStdio,
    zygotes: &mut Zygotes,
) -> Result<LaunchedChild, StartError> {
    let program = program.with(&sandbox_variables(Mechanism::External, network))?;
    open(&program, stdio, zygotes, Held::externally(network))
}

fn open(
    program: &Program,
    stdio: ChildStdio,
    zygotes: &mut Zygotes,
    held: Held,
) -> Result<LaunchedChild, StartError> {
    let started = sys::start(
        program,
        stdio,
        #[cfg(target_os = "linux")]
        None,
        zygotes,
    )?;
    Ok(LaunchedChild { started, held, hidden_in_roots: Vec::new() })
}

/// Returns environment variables that describe the sandbox to a program; `None` removes a variable.
fn sandbox_variables(rung: Mechanism, network: Network) -> BTreeMap<&'static str, Option<String>> {
    let offline = (network == Network::None).then(|| "1".to_owned());
    BTreeMap::from([
        ("WINDLASS_SANDBOX", Some(rung.name().to_owned())),
        ("WINDLASS_SANDBOX_NETWORK_DISABLED", offline.clone()),
        // For programs that know the best-known agent.
        ("CODEX_SANDBOX_NETWORK_DISABLED", offline),
    ])
}

impl SandboxSpec {
    fn paths<'a>(&'a self, temporary: Option<&'a Path>) -> SandboxPaths<'a> {
        let (home, sockets) = (self.home.as_deref(), self.agent_socket.as_deref());
        let package_cache = self.package_cache.as_deref();
        let hidden = Some(&*self.hidden);
        let named = &self.named;
        SandboxPaths { home, cwd: &self.cwd, temporary, sockets, package_cache, hidden, named }
    }

    /// Returns what may not be read and exists, given the real paths of what may be written.
    pub fn hidden(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        hidden(&self.rules, self.paths(None), roots, &mut Vec::new())
    }

    /// Returns what may be read inside what is hidden.
    pub fn shown(&self, hidden: &[PathBuf]) -> Vec<PathBuf> {
        shown(&self.rules, hidden)
    }

    fn held(&self, rung: Mechanism, accounting: Option<Accounting>, not_covered: Vec<String>) -> Held {
        let SandboxRules { writable, network, .. } = &self.rules;
        let (writable, network, quota) = (writable.clone(), *network, self.limits.quota);
        Held { rung, writable, network, quota, accounting, not_covered }
    }

    /// Returns the environment variables of a confined program; `None` removes a variable.
    fn variables(
        &self,
        rung: Mechanism,
        temporary: &Path,
        program: &Program,
    ) -> BTreeMap<&'static str, Option<String>> {
        let caches = self.caches(temporary, program);
        let temporary = Some(temporary.to_string_lossy().into_owned());
        let mut variables = sandbox_variables(rung, self.rules.network);
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
        if self.rules.network == Network::None {
            let missing = OFFLINE_SETTINGS.into_iter().filter(|(name, _)| !program.has(name));
            variables.extend(missing.map(|(name, value)| (name, Some(value.to_owned()))));
        }
        variables
    }

    /// Points package managers to caches they can write. Without one of our own, only Go is pointed
    /// to the temporary directory: it builds nothing without a cache.
    fn caches(&self, temporary: &Path, program: &Program) -> Vec<(&'static str, String)> {
        let Some(cache) = &self.package_cache else {
            let go = (!program.has("GOCACHE")).then(|| temporary.join("go-build"));
            return go.map(|cache| ("GOCACHE", cache.to_string_lossy().into_owned())).into_iter().collect();
        };
        let request = CacheRequest {
            cache,
            home: self.home.as_deref(),
            writable: &self.rules.writable,
            directory: program.directory(),
            is_online: self.rules.network == Network::Any,
        };
        request.variables(|name| program.variable(name))
    }
}

/// The error where there are no mounts of our own.
fn no_layer() -> StartError {
    StartError::Impossible("a layer needs user namespaces, which this system does not have".to_owned())
}

fn plan_error(PlanError(reason): PlanError) -> StartError {
    StartError::Impossible(reason)
}

fn confine(step: &str, error: io::Error) -> StartError {
    StartError::Confine(step.to_owned(), error)
}

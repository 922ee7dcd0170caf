//! The file with the pins of one server.

use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    definition::RemoteToolDefinition,
    state_file::{open_lock, read_state, replace_state},
};

/// Version of the file format.
const FORMAT: u32 = 1;
/// Maximum size of the pins of one server.
const MAX_PINS_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum time for which another process is waited for. It holds the lock for milliseconds.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);
/// Time between two attempts to get the lock. A file lock has no event to wait for.
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// The pins of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerPins {
    format: u32,
    /// Name of the server in the configuration.
    pub(crate) server: String,
    /// Hash of its command line or address.
    pub(crate) origin: String,
    /// Its command line or address for people, without secrets.
    pub(crate) shown_origin: String,
    /// Approved definitions by name.
    pub(crate) approved: BTreeMap<String, RemoteToolDefinition>,
    /// Definitions that wait for approval, by name.
    #[serde(default)]
    pub(crate) held: BTreeMap<String, RemoteToolDefinition>,
    /// The command line or address that waits for approval: its hash, and its form for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_origin: Option<(String, String)>,
}

impl ServerPins {
    /// Creates pins without a tool.
    pub(crate) fn new(server: &str, origin: String, shown_origin: String) -> Self {
        let (approved, held) = (BTreeMap::new(), BTreeMap::new());
        Self {
            format: FORMAT,
            server: server.to_owned(),
            origin,
            shown_origin,
            approved,
            held,
            held_origin: None,
        }
    }
}

/// The reason that pins cannot be used. All tools of the server are held back then.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be read.
    #[error("cannot read the pins in `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is damaged or belongs to another server.
    #[error("the pins in `{}` are damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The file cannot be written.
    #[error("cannot write the pins in `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process has locked the pins for too long.
    #[error("another process has locked the pins in `{}` for too long", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// One tool was to be approved, but its server is another program now.
    #[error(
        "the command line or address of MCP server `{server}` has changed; approve the server as a whole"
    )]
    ServerChanged {
        /// The server.
        server: String,
    },
    /// Nothing of this server, or no such tool, waits for approval.
    #[error("nothing of MCP server `{server}` with this name waits for approval")]
    NothingHeld {
        /// The server.
        server: String,
    },
}

/// Reads the pins of a server. `None` if it has none.
pub(crate) fn read_pins(path: &Path) -> Result<Option<ServerPins>, PinError> {
    let read = read_state(path, MAX_PINS_BYTES);
    let bytes = read.map_err(|source| PinError::Read { path: path.to_owned(), source })?;
    let damaged = |problem: String| PinError::Damaged { path: path.to_owned(), problem };
    let Some(bytes) = bytes else { return Ok(None) };
    let pins: ServerPins = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    match pins.format {
        FORMAT => Ok(Some(pins)),
        other => Err(damaged(format!("format {other} is not known"))),
    }
}

/// Replaces the pins of a server. The caller holds the lock.
pub(crate) fn write_pins(path: &Path, pins: &ServerPins) -> Result<(), PinError> {
    let failed = |source: io::Error| PinError::Write { path: path.to_owned(), source };
    let bytes = serde_json::to_vec(pins).map_err(|error| failed(error.into()))?;
    if bytes.len() as u64 > MAX_PINS_BYTES {
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "the definitions are too large")));
    }
    replace_state(path, &bytes).map_err(failed)
}

/// Locks the pins of all servers until the returned file is dropped.
pub(crate) fn lock_pins(directory: &Path) -> Result<File, PinError> {
    let path = directory.join(".lock");
    let file = open_lock(&path).map_err(|source| PinError::Write { path: path.clone(), source })?;
    let deadline = Instant::now() + MAX_LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_RETRY),
            Err(TryLockError::WouldBlock) => return Err(PinError::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(PinError::Write { path, source }),
        }
    }
}

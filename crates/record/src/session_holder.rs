//! The process that writes a session file, for the message to another one that wants to.
//!
//! The lock of the session file alone decides who may write. The file here, `ID.holder` beside it,
//! only names the holder of the lock. The kernel releases the lock when the process ends in any
//! way, so a holder that was left behind keeps no one out.

use std::{
    fmt, fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Maximum size of the file that is read.
const MAX_BYTES: u64 = 4096;

/// A process that has a session file open for writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHolder {
    /// Its process id, as it sees it itself.
    pub pid: u32,
    /// The name of its machine or container, if the system tells it.
    #[serde(default)]
    pub host: Option<String>,
    /// The time at which it opened the file.
    pub since: Timestamp,
}

impl SessionHolder {
    /// Describes this process.
    fn current() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.map(|host| host.trim().to_owned());
        Self { pid: process::id(), host, since: Timestamp::now() }
    }

    /// Names this process as the holder of the lock of a session file. Without it the next message
    /// is only less helpful, so errors are ignored.
    pub(crate) fn announce(session: &Path) {
        let write = || {
            let path = holder_path(session);
            // Never through a link that was put there.
            let _old = fs::remove_file(&path);
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            serde_json::to_writer(file, &Self::current()).map_err(io::Error::from)
        };
        let _unnamed: io::Result<()> = write();
    }

    /// Removes the name before the lock is released.
    pub(crate) fn withdraw(session: &Path) {
        let _gone = fs::remove_file(holder_path(session));
    }

    /// Returns the process that was named last.
    pub(crate) fn of(session: &Path) -> Option<Self> {
        let path = holder_path(session);
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_file() || found.len() > MAX_BYTES {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

impl fmt::Display for SessionHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, since } = self;
        write!(f, "process {pid}")?;
        if let Some(host) = host {
            write!(f, " on `{}`", host.escape_debug())?;
        }
        write!(f, " since {since:.0}")
    }
}

/// Returns the path of the file that names the holder.
pub(crate) fn holder_path(session: &Path) -> PathBuf {
    session.with_extension("holder")
}

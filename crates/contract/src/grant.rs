//! What a call may do: the gate's yes, as data.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Effects, Network};

/// What a call may do. Made by the gate alone (`runtime/gate.rs`; `cargo xtask tidy` checks it), and the only thing a
/// [`Sandbox`](crate::Sandbox) makes a host from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    cwd: PathBuf,
    writes: Vec<PathBuf>,
    network: Network,
    limits: Limits,
    confinement: Confinement,
}

impl Grant {
    /// Allows a call its effects under the given confinement. For the gate.
    pub fn issue(cwd: PathBuf, effects: &Effects, limits: Limits, confinement: Confinement) -> Self {
        Self { cwd, writes: effects.writes.clone(), network: effects.network, limits, confinement }
    }

    /// Where relative paths and commands start.
    pub fn cwd(&self) -> &PathBuf {
        &self.cwd
    }

    /// What may be written.
    pub fn writes(&self) -> &[PathBuf] {
        &self.writes
    }

    /// What may be reached.
    pub fn network(&self) -> Network {
        self.network
    }

    /// How much may be used.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the kernel must enforce. A sandbox that cannot do exactly this refuses.
    pub fn confinement(&self) -> Confinement {
        self.confinement
    }
}

/// How tightly a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    /// The call starts no process and touches nothing outside this program: there is nothing to confine.
    InProcess,
    /// Runs with the rights of the user, because the user said so.
    Unconfined,
}

/// How much a call may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time where the call names none.
    #[serde(with = "millis")]
    pub default_time: Duration,
    /// Bytes of output kept in memory, half from the start and half from the end.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { default_time: Duration::from_secs(10), output_bytes: 1024 * 1024 }
    }
}

/// Durations as whole milliseconds, so that a record is readable.
pub(crate) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

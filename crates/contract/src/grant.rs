//! Grants: the gate's permission for a call, as data.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use windlass_seal::GrantSeal;

use crate::{CallId, Effects, effects::Network};

/// Permissions of a call. A [`Sandbox`](crate::Sandbox) makes hosts from nothing else. The gate
/// (`runtime/gate`) makes it: the constructors take a [`GrantSeal`], which only a crate that
/// depends on `seal` can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    cwd: PathBuf,
    writes: Vec<PathBuf>,
    network: Network,
    limits: Limits,
    confinement: Confinement,
    #[serde(skip)]
    runs_command: bool,
    #[serde(skip)]
    direct: Option<DirectProgram>,
    #[serde(skip)]
    call: Option<CallId>,
}

/// A program that the user allowed to run outside the sandbox more than once. It runs exactly as
/// given here, whatever command the call names. No shell, wrapper or input of the call comes
/// between the approval and the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectProgram {
    /// Path of the program, then its arguments.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Directories that sandboxed commands may write. The program must not follow anything that
    /// lies there.
    pub writable: Vec<PathBuf>,
    /// Directories for temporary files, which any program may write.
    pub temporary: Vec<PathBuf>,
}

impl Grant {
    /// Grants a call its effects under the given confinement.
    pub fn issue(
        _seal: GrantSeal,
        cwd: PathBuf,
        effects: &Effects,
        limits: Limits,
        confinement: Confinement,
    ) -> Self {
        let (writes, runs_command) = (effects.writes.clone(), effects.command.is_some());
        let (network, direct, call) = (effects.network, None, None);
        Self { cwd, writes, network, limits, confinement, runs_command, direct, call }
    }

    /// Returns the same grant, restricted to one program.
    #[must_use]
    pub fn only_for(self, _seal: GrantSeal, program: DirectProgram) -> Self {
        Self { direct: Some(program), ..self }
    }

    /// Returns the only program that may run, if the grant is for one.
    pub fn direct(&self) -> Option<&DirectProgram> {
        self.direct.as_ref()
    }

    /// Returns the directory in which commands start and relative paths are resolved.
    pub fn cwd(&self) -> &PathBuf {
        &self.cwd
    }

    /// Returns the paths that may be written.
    pub fn writes(&self) -> &[PathBuf] {
        &self.writes
    }

    /// Returns the network access that is allowed.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Returns the resource limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns true if the call declared a command, for which the kernel must enforce the
    /// confinement.
    pub fn runs_command(&self) -> bool {
        self.runs_command
    }

    /// Returns the same grant for one call, whose id marks the changes its commands make.
    #[must_use]
    pub fn for_call(&self, call: &CallId) -> Self {
        Self { call: Some(call.clone()), ..self.clone() }
    }

    /// Returns the call it was issued for, if it is known.
    pub fn call(&self) -> Option<&CallId> {
        self.call.as_ref()
    }

    /// Returns the confinement that the kernel must enforce. A sandbox that cannot enforce exactly
    /// this refuses.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }
}

/// Confinement that a call requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    /// The call starts no process and uses nothing outside this program, so there is nothing to
    /// confine.
    InProcess,
    /// Runs with the rights of the user, because the user chose that.
    Unconfined,
    /// Runs with the rights of this process. The user says that an external sandbox confines it and
    /// allows this network access.
    External(Network),
    /// The kernel confines every process it starts.
    #[serde(rename = "walls")]
    Sandboxed(SandboxRules),
}

/// Rules that the kernel must enforce on a command. Every path not listed here may be read and not
/// written. The host adds protected names inside writable directories, and the default secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRules {
    /// Directories that may be written, with everything in them. The private temporary directory is
    /// not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Files and directories that may not be read, in addition to the secrets the host knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathBuf>,
    /// Exceptions: secrets that the host would hide, and directories inside unreadable ones, that
    /// may be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable_again: Vec<PathBuf>,
    /// Network access that is allowed.
    #[serde(default)]
    pub network: Network,
}

/// Confinement that was actually enforced. Never less than the grant requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Mechanism that enforced it.
    pub rung: Mechanism,
    /// Paths that could be written, except the private temporary directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Network access that was possible.
    #[serde(default)]
    pub network: Network,
    /// Resource limits that applied.
    #[serde(default, skip_serializing_if = "Quota::is_none")]
    pub quota: Quota,
    /// Enforcement of the limits on memory and processes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// Restrictions that one might expect and that were not enforced, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}

impl Held {
    /// Returns the confinement that this mechanism has by its nature, without further rules.
    pub fn by(rung: Mechanism) -> Self {
        let (writable, network) = match rung {
            Mechanism::Unconfined | Mechanism::External => (vec!["/".into()], Network::Any),
            Mechanism::InProcess | Mechanism::Namespaces | Mechanism::Landlock | Mechanism::Seatbelt => {
                (Vec::new(), Network::None)
            }
        };
        Self { rung, writable, network, quota: Quota::default(), accounting: None, not_covered: Vec::new() }
    }

    /// Returns the confinement by an external sandbox, which is not checked.
    pub fn externally(network: Network) -> Self {
        let unknown = "the external sandbox: the user vouches for it, and Windlass has not checked it";
        Self { network, not_covered: vec![unknown.to_owned()], ..Self::by(Mechanism::External) }
    }
}

/// Enforcement of the limits on the memory and the processes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// The supervisor of the command counts, or each process has its own limit.
    Counted,
    /// The kernel limits all its processes together.
    Cgroup,
}

/// Mechanism that confines a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// No process was started.
    InProcess,
    /// Nothing confined it.
    Unconfined,
    /// An external sandbox, according to the user.
    External,
    /// Linux: namespaces, mounts, Landlock and seccomp.
    Namespaces,
    /// Linux: Landlock and seccomp.
    Landlock,
    /// macOS: Seatbelt.
    Seatbelt,
}

impl Mechanism {
    /// Returns the name used on every wire and screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Unconfined => "unconfined",
            Self::External => "external",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
        }
    }
}

/// Resource limits of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time if the call names none.
    #[serde(with = "millis")]
    pub default_time: Duration,
    /// Maximum wall time that a call may name.
    #[serde(with = "millis", default = "max_time")]
    pub max_time: Duration,
    /// Bytes of output kept in memory, half from the start and half from the end.
    pub output_bytes: usize,
    /// Limits on other resources.
    #[serde(default)]
    pub quota: Quota,
}

/// Resource limits of a command and everything it starts. An absent value is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Memory of all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Seconds of processor time, for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Maximum size of each file it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Bytes that all its processes together may write to files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Open files, for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Seconds of wall time, whatever the call requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<u64>,
    /// Bytes of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Default limits for values that are absent above.
    #[serde(default, skip_serializing_if = "DefaultLimits::is_none")]
    pub defaults: DefaultLimits,
}

/// Limits that apply without being configured, wherever the sandbox can enforce them. If it cannot,
/// the receipt says so (`not_covered`). A configured limit that cannot be enforced makes the
/// sandbox refuse the command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultLimits {
    /// Memory of all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Open files, for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl DefaultLimits {
    /// Returns true if nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Quota {
    /// Returns the limit on memory: the configured one, else the default.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_bytes.or(self.defaults.memory_bytes)
    }

    /// Returns the limit on processes: the configured one, else the default.
    pub fn process_limit(&self) -> Option<u64> {
        self.processes.or(self.defaults.processes)
    }

    /// Returns the limit on open files: the configured one, else the default.
    pub fn open_file_limit(&self) -> Option<u64> {
        self.open_files.or(self.defaults.open_files)
    }

    /// Returns the remaining limits where the kernel enforces those on memory and processes.
    #[must_use]
    pub fn without_memory_and_processes(self) -> Self {
        let defaults = DefaultLimits { open_files: self.defaults.open_files, ..DefaultLimits::default() };
        Self { memory_bytes: None, processes: None, defaults, ..self }
    }

    /// Returns the limits that hold without a sandbox too: the parent process enforces them.
    #[must_use]
    pub fn without_walls(&self) -> Self {
        Self { wall_seconds: self.wall_seconds, output_bytes: self.output_bytes, ..Self::default() }
    }

    /// Returns the maximum wall time of a command.
    pub fn wall(&self) -> Duration {
        self.wall_seconds.map_or(Duration::MAX, Duration::from_secs)
    }

    /// Returns true if nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Limits {
    fn default() -> Self {
        let (default_time, max_time) = (Duration::from_secs(10), max_time());
        Self { default_time, max_time, output_bytes: 1024 * 1024, quota: Quota::default() }
    }
}

/// Returns the default of `max_time`. Builds and test suites end within an hour; a person should
/// start anything longer.
fn max_time() -> Duration {
    Duration::from_hours(1)
}

/// Durations as whole milliseconds, so that records are readable.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_the_names_they_were_written_with() {
        let rules = SandboxRules { writable: vec!["/work".into()], ..SandboxRules::default() };
        let written = serde_json::to_value(Confinement::Sandboxed(rules.clone())).unwrap();
        assert_eq!(written["walls"]["writable"], serde_json::json!(["/work"]));
        assert_eq!(serde_json::from_value::<Confinement>(written).unwrap(), Confinement::Sandboxed(rules));
        let held = serde_json::to_value(Held::by(Mechanism::InProcess)).unwrap();
        assert_eq!(held["rung"], "in-process");
    }
}

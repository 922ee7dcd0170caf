//! Grants: what a call may do, which is the gate's yes as data.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use windlass_seal::GrantSeal;

use crate::{CallId, Effects, effects::Network};

/// What a call may do. The only thing a [`Sandbox`](crate::Sandbox) makes a host from. The gate
/// (`runtime/gate`) makes it: the constructors take a [`GrantSeal`], which only a crate that depends
/// on `seal` can name.
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

/// The program that a person let out of the sandbox for longer than once. It runs as it is here, whatever command the call
/// names: no shell, no wrapper and no input of the call's is between what was approved and what runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectProgram {
    /// The file of the program, then its words.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Directories that sandboxed commands may write. It must obey nothing that lies there.
    pub writable: Vec<PathBuf>,
    /// Directories for temporary files, which any program may write.
    pub temporary: Vec<PathBuf>,
}

impl Grant {
    /// Allows a call its effects under the given confinement.
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

    /// The same grant, for one program and nothing else.
    #[must_use]
    pub fn only_for(self, _seal: GrantSeal, program: DirectProgram) -> Self {
        Self { direct: Some(program), ..self }
    }

    /// The one program that may run, if the grant is for one.
    pub fn direct(&self) -> Option<&DirectProgram> {
        self.direct.as_ref()
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

    /// Tells whether the call declared a command, for which the kernel must enforce the confinement.
    pub fn runs_command(&self) -> bool {
        self.runs_command
    }

    /// The same grant, for what this call does. It names the changes that its commands make.
    #[must_use]
    pub fn for_call(&self, call: &CallId) -> Self {
        Self { call: Some(call.clone()), ..self.clone() }
    }

    /// The call that it was given to, if it is known.
    pub fn call(&self) -> Option<&CallId> {
        self.call.as_ref()
    }

    /// What the kernel must enforce. A sandbox that cannot do exactly this refuses.
    pub fn confinement(&self) -> &Confinement {
        &self.confinement
    }
}

/// How tightly a call must be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    /// The call starts no process and touches nothing outside this program: there is nothing to confine.
    InProcess,
    /// Runs with the rights of the user, because the user said so.
    Unconfined,
    /// Runs with the rights of this process, because the user said that something outside holds it, and what that lets
    /// it reach.
    External(Network),
    /// Whatever it starts is held by the kernel.
    #[serde(rename = "walls")]
    Sandboxed(SandboxRules),
}

/// What the kernel must hold a command to. Everything not named here may be read and not written; which names are
/// protected inside what may be written, and which files are secrets by default, the host knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRules {
    /// Directories that may be written, with all that is in them. The private temporary directory needs no mention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Files and directories that may not even be read, beside the secrets the host knows of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathBuf>,
    /// Secrets the host would hide, and directories inside something that may not be read, that may be read all the
    /// same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readable_again: Vec<PathBuf>,
    /// What may be reached.
    #[serde(default)]
    pub network: Network,
}

/// What really held a call. Never less than its grant asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// By which means.
    pub rung: Mechanism,
    /// What could be written, the private temporary directory aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// What could be reached.
    #[serde(default)]
    pub network: Network,
    /// How much could be used.
    #[serde(default, skip_serializing_if = "Quota::is_none")]
    pub quota: Quota,
    /// Who keeps the limits on memory and processes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// What one might expect to be held and is not, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}

impl Held {
    /// Held by nothing but this rung's own nature.
    pub fn by(rung: Mechanism) -> Self {
        let (writable, network) = match rung {
            Mechanism::Unconfined | Mechanism::External => (vec!["/".into()], Network::Any),
            Mechanism::InProcess | Mechanism::Namespaces | Mechanism::Landlock | Mechanism::Seatbelt => {
                (Vec::new(), Network::None)
            }
        };
        Self { rung, writable, network, quota: Quota::default(), accounting: None, not_covered: Vec::new() }
    }

    /// Held by something outside that nobody here has looked at.
    pub fn externally(network: Network) -> Self {
        let unknown =
            "what holds this process from outside: the user vouches for it, nothing here has checked it";
        Self { network, not_covered: vec![unknown.to_owned()], ..Self::by(Mechanism::External) }
    }
}

/// Who keeps the limits on the memory and the processes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounting {
    /// Who looks after the command counts, or each process is limited for itself.
    Counted,
    /// The kernel, for all its processes together.
    Cgroup,
}

/// The means by which a call can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Nothing was started.
    InProcess,
    /// Nothing held it.
    Unconfined,
    /// Something outside, as the user says.
    External,
    /// Linux: namespaces, mounts, Landlock and seccomp.
    Namespaces,
    /// Linux: Landlock and seccomp.
    Landlock,
    /// macOS: Seatbelt.
    Seatbelt,
}

impl Mechanism {
    /// The name used on every wire and screen.
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

/// How much a call may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time where the call names none.
    #[serde(with = "millis")]
    pub default_time: Duration,
    /// The longest wall time a call may name.
    #[serde(with = "millis", default = "max_time")]
    pub max_time: Duration,
    /// Bytes of output kept in memory, half from the start and half from the end.
    pub output_bytes: usize,
    /// What it may use.
    #[serde(default)]
    pub quota: Quota,
}

/// How much a command and everything it starts may use. What is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Memory of all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Seconds of processor time, each process for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The size of any one file it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// What all its processes write to files together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Open files, each process for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    /// Seconds by the clock, whatever a call asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<u64>,
    /// What it prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Limits for what is not named above.
    #[serde(default, skip_serializing_if = "DefaultLimits::is_none")]
    pub defaults: DefaultLimits,
}

/// Limits that hold without being asked for, wherever the sandbox can keep them. One that it cannot keep is said in the
/// receipt (`not_covered`), where one that was asked for has the command refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultLimits {
    /// Memory of all its processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Open files, each process for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl DefaultLimits {
    /// Tells whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Quota {
    /// The limit on memory, by default if none was asked for.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_bytes.or(self.defaults.memory_bytes)
    }

    /// The limit on processes, by default if none was asked for.
    pub fn process_limit(&self) -> Option<u64> {
        self.processes.or(self.defaults.processes)
    }

    /// The limit on open files, by default if none was asked for.
    pub fn open_file_limit(&self) -> Option<u64> {
        self.open_files.or(self.defaults.open_files)
    }

    /// The limits that are left to keep where the kernel keeps those on memory and processes.
    #[must_use]
    pub fn without_memory_and_processes(self) -> Self {
        let defaults = DefaultLimits { open_files: self.defaults.open_files, ..DefaultLimits::default() };
        Self { memory_bytes: None, processes: None, defaults, ..self }
    }

    /// What is kept without walls, too: by who waits for a command and reads what it prints.
    #[must_use]
    pub fn without_walls(&self) -> Self {
        Self { wall_seconds: self.wall_seconds, output_bytes: self.output_bytes, ..Self::default() }
    }

    /// The longest a command may take.
    pub fn wall(&self) -> Duration {
        self.wall_seconds.map_or(Duration::MAX, Duration::from_secs)
    }

    /// Whether nothing is limited.
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

/// Builds and test suites end within an hour; what takes longer is for a person to start.
fn max_time() -> Duration {
    Duration::from_hours(1)
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

//! The default limits of every command.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use windlass::{DefaultLimits, host::physical_memory};

/// More than a large `make -j`, a JVM or a test suite of Node needs; threads count, too.
const PROCESSES: u64 = 2048;

/// Keeps the machine responsive for the user.
const MEMORY_PERCENT: u8 = 75;

/// Enough for any program except a large server. Some programs close every descriptor up to their
/// limit at startup.
const OPEN_FILES: u64 = 65_536;

/// Limits of each command in the sandbox, unless `--limit` sets another. 0 switches one off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CommandLimits {
    /// Maximum number of processes and threads of a command at the same time. 0 means no limit.
    pub(crate) processes: u64,
    /// Maximum memory of all processes of a command together, in percent of this machine's. 0 means
    /// no limit.
    #[serde(deserialize_with = "percent_or_none")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) memory_percent: u8,
    /// Maximum number of open files that each process may set for itself. 0 means the system's
    /// limit.
    pub(crate) open_files: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { processes: PROCESSES, memory_percent: MEMORY_PERCENT, open_files: OPEN_FILES }
    }
}

impl CommandLimits {
    /// Returns the limits of commands, on this machine.
    pub(crate) fn defaults(&self) -> DefaultLimits {
        let share = |total: u64| total / 100 * u64::from(self.memory_percent);
        DefaultLimits {
            memory_bytes: physical_memory().filter(|_| self.memory_percent > 0).map(share),
            processes: none_if_zero(self.processes),
            open_files: none_if_zero(self.open_files),
        }
    }
}

fn none_if_zero(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn percent_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let percent = u8::deserialize(from)?;
    if percent <= 100 { Ok(percent) } else { Err(D::Error::custom("not from 0 to 100")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_switches_each_off() {
        let off = CommandLimits { processes: 0, memory_percent: 0, open_files: 0 };
        assert_eq!(off.defaults(), DefaultLimits::default());
    }

    #[test]
    fn by_default_all_are_on() {
        let DefaultLimits { memory_bytes, processes, open_files } = CommandLimits::default().defaults();
        assert_eq!((processes, open_files), (Some(2048), Some(65_536)));
        if let Some(memory) = physical_memory() {
            assert_eq!(memory_bytes, Some(memory / 100 * 75));
        }
    }
}

//! The limits that hold for every command unless an option says otherwise.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use windlass::{
    DefaultLimits,
    host::{OutputRetention, physical_memory},
};

/// More than a large `make -j`, a JVM or a test suite of Node has; threads count, too.
const PROCESSES: u64 = 2048;

/// Leaves the user a machine that still answers.
const MEMORY_PERCENT: u8 = 75;

/// Enough for any program that is not a large server. Some close every number up to their limit when they start.
const OPEN_FILES: u64 = 65_536;

const KEPT_OUTPUT_MEGABYTES: u64 = 1024;
const KEPT_OUTPUT_DAYS: u32 = 7;

const MEGABYTE: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits of each command in the sandbox, where `--limit` sets no other. 0 switches one off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CommandLimits {
    /// Processes and threads at the same time. 0 means no limit.
    pub(crate) processes: u64,
    /// Memory of all its processes together, in percent of what this machine has. 0 means no limit.
    #[serde(deserialize_with = "percent_or_none")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) memory_percent: u8,
    /// The most open files that each process may allow itself. 0 means what the system allows.
    pub(crate) open_files: u64,
    /// The most megabytes of long outputs that are kept in files, of all sessions together; the oldest go first. 0 means
    /// no limit.
    pub(crate) kept_output_megabytes: u64,
    /// How many days such a file is kept. 0 means for ever.
    pub(crate) kept_output_days: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            processes: PROCESSES,
            memory_percent: MEMORY_PERCENT,
            open_files: OPEN_FILES,
            kept_output_megabytes: KEPT_OUTPUT_MEGABYTES,
            kept_output_days: KEPT_OUTPUT_DAYS,
        }
    }
}

impl CommandLimits {
    /// The limits of commands, on this machine.
    pub(crate) fn defaults(&self) -> DefaultLimits {
        let share = |total: u64| total / 100 * u64::from(self.memory_percent);
        DefaultLimits {
            memory_bytes: physical_memory().filter(|_| self.memory_percent > 0).map(share),
            processes: none_if_zero(self.processes),
            open_files: none_if_zero(self.open_files),
        }
    }

    /// The bounds on outputs that are kept in files.
    pub(crate) fn output_retention(&self) -> OutputRetention {
        OutputRetention {
            max_bytes: none_if_zero(self.kept_output_megabytes.saturating_mul(MEGABYTE)),
            max_age: (self.kept_output_days > 0).then(|| DAY * self.kept_output_days),
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
        let off = CommandLimits {
            processes: 0,
            memory_percent: 0,
            open_files: 0,
            kept_output_megabytes: 0,
            kept_output_days: 0,
        };
        assert_eq!(off.defaults(), DefaultLimits::default());
        assert_eq!(off.output_retention(), OutputRetention::default());
    }

    #[test]
    fn by_default_all_are_on() {
        let DefaultLimits { memory_bytes, processes, open_files } = CommandLimits::default().defaults();
        assert_eq!((processes, open_files), (Some(2048), Some(65_536)));
        if let Some(memory) = physical_memory() {
            assert_eq!(memory_bytes, Some(memory / 100 * 75));
        }
        let week = DAY * 7;
        let expected = OutputRetention { max_bytes: Some(1 << 30), max_age: Some(week) };
        assert_eq!(CommandLimits::default().output_retention(), expected);
    }
}

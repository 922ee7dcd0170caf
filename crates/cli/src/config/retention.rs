//! Limits on the data below the home directory.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::record::{self, KeepLimit, RetentionLimits};

const MEGABYTE: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_hours(24);

/// The times at which the session file is flushed to the disk. A record that is not flushed yet
/// survives a crash of the program, but not of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Durability")]
pub(crate) enum SessionDurability {
    /// After every record.
    Always,
    /// Before a call that may change something, at the end of a turn, and otherwise within a
    /// second.
    #[default]
    Effects,
    /// Left to the operating system.
    Never,
}

impl From<SessionDurability> for record::DurabilityMode {
    fn from(durability: SessionDurability) -> Self {
        match durability {
            SessionDurability::Always => Self::Always,
            SessionDurability::Effects => Self::Effects,
            SessionDurability::Never => Self::Never,
        }
    }
}

/// Limits on the data below the home directory of Windlass, for all sessions together. 0 switches
/// one off. Limits never remove session files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Retention")]
pub(crate) struct RetentionSettings {
    /// Maximum size of long outputs, in megabytes; the oldest are removed first. 0 means no limit.
    pub(crate) outputs_megabytes: u32,
    /// Number of days that a long output is kept. 0 means no limit.
    pub(crate) outputs_days: u32,
    /// Maximum size of the old contents of changed files, which `windlass undo` needs, in
    /// megabytes. The sessions changed longest ago are removed first. 0 means no limit.
    pub(crate) edits_megabytes: u32,
    /// Number of days that they are kept after the last change of a session. 0 means no limit.
    pub(crate) edits_days: u32,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self { outputs_megabytes: 1024, outputs_days: 30, edits_megabytes: 2048, edits_days: 90 }
    }
}

impl From<RetentionSettings> for RetentionLimits {
    fn from(kept: RetentionSettings) -> Self {
        Self {
            outputs: limit(kept.outputs_megabytes, kept.outputs_days),
            edits: limit(kept.edits_megabytes, kept.edits_days),
            ..Self::default()
        }
    }
}

fn limit(megabytes: u32, days: u32) -> KeepLimit {
    KeepLimit {
        max_bytes: (megabytes > 0).then_some(u64::from(megabytes) * MEGABYTE),
        max_age: (days > 0).then_some(DAY * days),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_on_by_default_and_zero_switches_each_off() {
        let limits = RetentionLimits::from(RetentionSettings::default());
        assert_eq!(limits.outputs, KeepLimit { max_bytes: Some(1 << 30), max_age: Some(DAY * 30) });
        assert_eq!(limits.edits, KeepLimit { max_bytes: Some(2 << 30), max_age: Some(DAY * 90) });
        assert_eq!(limits.sessions, KeepLimit::default());
        let off =
            RetentionSettings { outputs_megabytes: 0, outputs_days: 0, edits_megabytes: 0, edits_days: 0 };
        assert_eq!(RetentionLimits::from(off), RetentionLimits::default());
    }
}

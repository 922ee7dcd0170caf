//! Settings of interactive sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of interactive sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tui")]
pub(crate) struct TuiSettings {
    /// Gives the input the keys of vi. `N` before the input shows normal mode.
    pub(crate) vi_keys: bool,
}

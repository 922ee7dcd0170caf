//! Settings of interactive sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of interactive sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Tui")]
pub(crate) struct TuiSettings {
    /// The colours: `auto` asks the terminal for its background. `NO_COLOR` switches them off in
    /// any case.
    pub(crate) theme: TuiTheme,
    /// Prints plain lines and never moves the cursor, as `--plain` does, for screen readers.
    pub(crate) screen_reader: bool,
    /// Rings the bell, or shows a message where the terminal does so, when a question waits or a
    /// long turn has ended.
    pub(crate) notifications: bool,
    /// Gives the input the keys of vi. `N` before the input shows normal mode.
    pub(crate) vi_keys: bool,
}

impl Default for TuiSettings {
    fn default() -> Self {
        Self { theme: TuiTheme::Auto, screen_reader: false, notifications: true, vi_keys: false }
    }
}

/// The colours of an interactive session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TuiTheme {
    /// Those that fit the background of the terminal.
    Auto,
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// No colours.
    None,
}

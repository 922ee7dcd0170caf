//! Options of `windlass context` and `windlass compact`.

use std::path::PathBuf;

use clap::Args;

use super::ModelChoice;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass context             the newest session of this directory
  windlass context 0199f3a2    another session")]
pub(crate) struct ContextOptions {
    /// Id of the session, a unique prefix of it, or its name. Default: the newest session of this
    /// directory.
    pub(crate) session: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass compact                                  the newest session of this directory
  windlass compact 0199f3a2 --keep \"the API design\"
                                                    say what the summary must keep")]
pub(crate) struct CompactOptions {
    /// Id of the session, a unique prefix of it, or its name. Default: the newest session of this
    /// directory.
    pub(crate) session: Option<String>,
    /// Facts that the summary must keep, in words.
    #[arg(long, value_name = "WHAT")]
    pub(crate) keep: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Replay a script instead of asking a model (see docs/scripts.md).
    #[arg(long, value_name = "FILE", conflicts_with = "provider")]
    pub(crate) script: Option<PathBuf>,
}

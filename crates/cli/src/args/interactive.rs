//! Options of interactive sessions.

use std::path::PathBuf;

use clap::Args;

use super::{LimitChoice, ModelChoice};

/// Open an interactive session.
#[derive(Debug, Args)]
pub(crate) struct ChatOptions {
    #[command(flatten)]
    pub(crate) session: SessionOptions,
    /// The first message.
    pub(crate) prompt: Option<String>,
}

/// Go on with an earlier session, interactively.
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    #[command(flatten)]
    pub(crate) session: SessionOptions,
    /// The session: its id, a unique prefix of it, its name, or one of its calls. Without it, the
    /// sessions of this directory are listed to choose from.
    pub(crate) id: Option<String>,
    /// The newest session of this directory.
    #[arg(long, conflicts_with = "id")]
    pub(crate) last: bool,
}

/// Options of every interactive session.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionOptions {
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Play back a script instead of asking a model (see docs/scripts.md).
    #[arg(long, value_name = "FILE", conflicts_with = "provider")]
    pub(crate) script: Option<PathBuf>,
    /// Another directory the agent may write to where it may write at all, as with
    /// `-s workspace-write`. May be repeated.
    #[arg(long = "add-dir", value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Tools of your own, as programs (see docs/tools.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    /// Begin in plan mode: nothing is changed until you approve a plan (`/plan`).
    #[arg(long)]
    pub(crate) plan: bool,
    /// Use the whole screen, and leave no text behind.
    #[arg(long)]
    pub(crate) fullscreen: bool,
    /// Print plain lines and never move the cursor, for screen readers. The default with
    /// `TERM=dumb`.
    #[arg(long, conflicts_with = "fullscreen")]
    pub(crate) plain: bool,
}

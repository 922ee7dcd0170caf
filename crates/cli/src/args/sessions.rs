//! Options of `windlass sessions`.

use clap::{Args, Subcommand};

const COLLECT_EXAMPLES: &str = "\
Examples:
  windlass sessions gc --dry-run           show what the limits would remove
  windlass sessions gc --older-than 30d    remove outputs and edits older than 30 days
  windlass sessions gc --sessions --older-than 180d
                                           also remove session files";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first.
    #[command(after_help = "Example:\n  windlass sessions list --limit 5")]
    List {
        /// Maximum number of sessions.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show one session: its directory, model, prompts and size.
    #[command(after_help = "Example:\n  windlass sessions show 0199f3a2")]
    Show {
        /// Id of the session, or a unique prefix.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show disk usage by kind of data, and the largest sessions.
    #[command(after_help = "Example:\n  windlass sessions du")]
    Du {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove data beyond the limits of `retention` now, except that of running sessions.
    #[command(after_help = COLLECT_EXAMPLES)]
    Gc(CollectOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CollectOptions {
    /// Only show what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove data older than this (`30d`, `2w`, `12h`), instead of applying the limits on age.
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,
    /// Also remove session files, with all their data. Those sessions cannot be resumed.
    #[arg(long, requires = "older_than")]
    pub(crate) sessions: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

//! `windlass sessions`.

use clap::{Args, Subcommand};

const COLLECT_EXAMPLES: &str = "\
Examples:
  windlass sessions gc --dry-run           show what the limits would remove
  windlass sessions gc --older-than 30d    outputs and edits older than 30 days
  windlass sessions gc --sessions --older-than 180d
                                           session files, too";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, the newest first.
    #[command(after_help = "Example:\n  windlass sessions list --limit 5")]
    List {
        /// List at most so many.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show one session: where it was held, with which model, what was asked, and its size.
    #[command(after_help = "Example:\n  windlass sessions show 0199f3a2")]
    Show {
        /// The session, by its id or the beginning of it.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what is kept, by kind, and the sessions that take the most.
    #[command(after_help = "Example:\n  windlass sessions du")]
    Du {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove what is beyond the limits of `retention` now. A running session keeps everything.
    #[command(after_help = COLLECT_EXAMPLES)]
    Gc(CollectOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CollectOptions {
    /// Only show what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove what was last changed before then, in the place of the limits on age: `30d`, `2w`, `12h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,
    /// Remove session files, too, with all that belongs to them. They cannot be resumed any more.
    #[arg(long, requires = "older_than")]
    pub(crate) sessions: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

//! Options of `windlass sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
        /// Id of the session, a unique prefix of it, its name, or one of its calls.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show sessions with those of the agents that they have started, newest first.
    #[command(after_help = "Examples:\n  windlass sessions tree\n  windlass sessions tree 0199f3a2 --json")]
    Tree {
        /// Id of a session, a unique prefix of it, its name, or one of its calls. Default: all that
        /// have started agents.
        id: Option<String>,
        /// Maximum number of sessions without a parent.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
        /// Print one JSON object per session, with its agents inside.
        #[arg(long)]
        json: bool,
    },
    /// Search sessions by words of prompts and answers, newest first.
    Search(SearchOptions),
    /// Give a session a name, which every command accepts as its id.
    Rename(RenameOptions),
    /// Delete sessions with their outputs and edits, after confirmation.
    ///
    /// Their changes to files stay, and can no longer be undone. A session in use is not deleted.
    #[command(after_help = "Example:\n  windlass sessions delete 0199f3a2-7c1e")]
    Delete {
        /// Ids or names of the sessions.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
    /// Export a session as a readable transcript with calls, results and diffs, without secrets.
    Export(ExportOptions),
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
#[command(after_help = "Example:\n  windlass sessions search parser tabs")]
pub(crate) struct SearchOptions {
    /// Words that a prompt or an answer must contain, all of them, ignoring case.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Maximum number of sessions.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass sessions rename 0199f3a2-7c1e 'parser work'
  windlass resume 'parser work'")]
pub(crate) struct RenameOptions {
    /// Id of the session, a unique prefix of it, its name, or one of its calls.
    pub(crate) id: String,
    /// The new name.
    #[arg(required_unless_present = "clear")]
    pub(crate) name: Option<String>,
    /// Remove the name.
    #[arg(long, conflicts_with = "name")]
    pub(crate) clear: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass sessions export 0199f3a2-7c1e > transcript.md
  windlass sessions export 'parser work' -o transcript.html")]
pub(crate) struct ExportOptions {
    /// Id of the session, a unique prefix of it, its name, or one of its calls.
    pub(crate) id: String,
    /// Format of the transcript. Default: by the ending of the output file, or markdown.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<TranscriptFormat>,
    /// Write the transcript to this file, which must not exist yet. Default: stdout.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The format of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TranscriptFormat {
    /// Markdown.
    Markdown,
    /// JSON.
    Json,
    /// One HTML page without scripts.
    Html,
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

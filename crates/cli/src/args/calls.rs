//! Options of the commands about earlier calls: `history`, `stats`, `feedback`, `audit`, `undo`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Final statuses of a call, and that of a call without one.
const STATUSES: [&str; 7] =
    ["success", "error", "timeout", "rejected", "permission_denied", "not_found", "running"];

/// Undo changes made by tools and commands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass undo                    show the newest change here, ask, and undo it
  windlass undo --preview          only show it
  windlass undo 3fa2b1             undo one call, by its id in `windlass history`
  windlass undo --to 3fa2b1        undo that call and everything after it in its session
  windlass redo                    reverse the last undo")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct UndoOptions {
    /// Call to undo: its id in `--list` and `windlass history`, or a unique prefix. Default: the
    /// newest of this directory that is not undone. An undo is a call, too, and can be undone by
    /// its id.
    #[arg(conflicts_with_all = ["turn", "list", "to", "redo"])]
    pub(crate) call: Option<String>,
    /// Undo this call and everything after it in its session, newest first.
    #[arg(long, value_name = "CALL", conflicts_with_all = ["turn", "list", "redo"])]
    pub(crate) to: Option<String>,
    /// Undo everything of the newest turn that is not undone.
    #[arg(long, conflicts_with_all = ["list", "redo"])]
    pub(crate) turn: bool,
    /// Reverse the last undo, as `windlass redo` does.
    #[arg(long, conflicts_with = "list")]
    pub(crate) redo: bool,
    /// Only list the changes that can be undone, newest last.
    #[arg(long)]
    pub(crate) list: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "list")]
    pub(crate) preview: bool,
    /// Skip files that have changed since, and undo the rest.
    #[arg(long, conflicts_with = "list")]
    pub(crate) keep_changed: bool,
    /// Do not ask for confirmation. Without a terminal, there is no question.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print the changes that can be undone, or that were undone, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Only changes of this session: its id, a unique prefix of it, its name, or one of its calls.
    /// Default: changes in this directory, of any session or none.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Reverse the last undo, unless the files have changed since.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass redo                    show the changes of the last undo, ask, and restore them
  windlass redo --preview          only show them")]
pub(crate) struct RedoOptions {
    /// Only show what would change.
    #[arg(long)]
    preview: bool,
    /// Do not ask for confirmation. Without a terminal, there is no question.
    #[arg(long, short)]
    yes: bool,
    /// Print the changes that were restored, or with `--preview` would be, as JSON.
    #[arg(long)]
    json: bool,
    /// Only changes of this session: its id, a unique prefix of it, its name, or one of its calls.
    /// Default: changes in this directory, of any session or none.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

impl From<RedoOptions> for UndoOptions {
    fn from(redo: RedoOptions) -> Self {
        let RedoOptions { preview, yes, json, session } = redo;
        let (call, to, turn, list, keep_changed) = (None, None, false, false, false);
        Self { call, to, turn, redo: true, list, preview, keep_changed, yes, json, session }
    }
}

/// Show success rates, durations and failures of tools.
#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// Grouping of calls.
    #[arg(long, value_enum, value_name = "KEY", default_value_t = StatsBy::Tool)]
    pub(crate) by: StatsBy,
    /// Only calls since this time: `30m`, `12h`, `7d` or `2w` ago, or a date such as `2026-11-01`
    /// (UTC).
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Rebuild the index from the session files first. A damaged index is moved aside.
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// Grouping of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsBy {
    /// By tool.
    Tool,
    /// By session.
    Session,
    /// By kind of failure.
    Error,
}

/// List tool calls.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass history                            calls of this directory
  windlass history --all --status error --since 7d")]
pub(crate) struct HistoryOptions {
    /// Only calls of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls with this status.
    #[arg(long, value_name = "STATUS", value_parser = STATUSES)]
    pub(crate) status: Option<String>,
    /// Only calls with this text in the input or the result, ignoring case.
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// Only calls since this time: `30m`, `12h`, `7d` or `2w` ago, or a date such as `2026-11-01`
    /// (UTC).
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls of this session: its id, a unique prefix of it, its name, or one of its calls.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Calls of all directories. Default: of this directory and those below it.
    #[arg(long)]
    pub(crate) all: bool,
    /// Only calls with this rating.
    #[arg(long, value_enum, value_name = "RATING")]
    pub(crate) feedback: Option<FeedbackRating>,
    /// Maximum number of calls.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Rate a call as good or bad.
#[derive(Debug, Args)]
pub(crate) struct FeedbackOptions {
    /// Id of the call in `windlass history` (a unique prefix is enough), or the id that the model
    /// gave it.
    pub(crate) call: String,
    /// Rating of the call.
    #[arg(value_enum, required_unless_present = "clear", conflicts_with = "clear")]
    pub(crate) rating: Option<FeedbackRating>,
    /// Remark on the call, which `windlass show` prints.
    #[arg(conflicts_with = "clear")]
    pub(crate) note: Option<String>,
    /// Remove the rating.
    #[arg(long)]
    pub(crate) clear: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A person's rating of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackRating {
    /// The call did what you wanted.
    Good,
    /// The call did not do what you wanted.
    Bad,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no line of a session file was changed, removed, added or moved.
    ///
    /// Every line contains the hash of the line before it, and the index of calls stores the last
    /// known end of the file. The exit code is 1 if anything does not match.
    Verify {
        /// Id of the session, a unique prefix of it, its name, or one of its calls.
        session: String,
        /// Hash that an earlier `audit verify` printed as `head`. The file must still contain that
        /// line.
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Export a session as a bug report without secrets.
    ///
    /// The report is one JSON file with the session, the version of Windlass, what this machine can
    /// enforce, and the configuration.
    Export {
        /// Id of the session, a unique prefix of it, its name, or one of its calls.
        session: String,
        /// Replace secrets by labels (required; there is no other kind of report).
        #[arg(long, required = true)]
        redacted: bool,
        /// Write the report to this file, which must not exist yet. Default: stdout.
        #[arg(short = 'o', long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

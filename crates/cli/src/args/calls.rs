//! Options of what looks back: `history`, `stats`, `feedback`, `audit`, `undo`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// The ends a call can have, and that it has none.
const STATUSES: [&str; 7] =
    ["success", "error", "timeout", "rejected", "permission_denied", "not_found", "running"];

/// Take back what tools and commands have changed in files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass undo                    show the newest change here, ask, and take it back
  windlass undo --preview          only show it
  windlass undo 3fa2b1             take back one call, named as `windlass history` does
  windlass undo --to 3fa2b1        take back that call and all of its session since
  windlass redo                    take back the last undo")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct UndoOptions {
    /// The call to take back, as `--list` and `windlass history` name it, or the beginning of its name. Without it, the newest
    /// that is not undone. Undoing is a call as well, and can be taken back by its name.
    #[arg(conflicts_with_all = ["turn", "list", "to", "redo"])]
    pub(crate) call: Option<String>,
    /// Take back this call and everything of its session since, the newest first.
    #[arg(long, value_name = "CALL", conflicts_with_all = ["turn", "list", "redo"])]
    pub(crate) to: Option<String>,
    /// Take back everything of the newest turn that is not undone.
    #[arg(long, conflicts_with_all = ["list", "redo"])]
    pub(crate) turn: bool,
    /// Take back the last undo.
    #[arg(long, conflicts_with = "list")]
    pub(crate) redo: bool,
    /// Only show what there is to take back, the newest last.
    #[arg(long)]
    pub(crate) list: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "list")]
    pub(crate) preview: bool,
    /// Leave files that someone changed since, and take back the rest.
    #[arg(long, conflicts_with = "list")]
    pub(crate) keep_changed: bool,
    /// Do not ask. Without a terminal nothing is asked either.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print what there is to take back, or what was taken back, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Look in this session. Without it: in the newest of this directory, or in what was changed here without one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Take back the last undo, unless someone has changed the files since.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass redo                    show what the last undo took back, ask, and do it again
  windlass redo --preview          only show it")]
pub(crate) struct RedoOptions {
    /// Only show what would change.
    #[arg(long)]
    preview: bool,
    /// Do not ask. Without a terminal nothing is asked either.
    #[arg(long, short)]
    yes: bool,
    /// Print what was done again, or with `--preview` what would be, as JSON.
    #[arg(long)]
    json: bool,
    /// Look in this session. Without it: in the newest of this directory, or in what was changed here without one.
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

/// How often tools work, how long they take and how they fail.
#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// What calls are put together by.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = StatsBy::Tool)]
    pub(crate) by: StatsBy,
    /// Only calls since then: `30m`, `12h`, `7d`, `2w` ago, or a date such as `2026-11-01` (UTC).
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Count everything anew from the session files first. A damaged index is put aside.
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// What calls are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsBy {
    /// Their tool.
    Tool,
    /// Their session.
    Session,
    /// What kind of failure they were.
    Error,
}

/// Which calls there were.
#[derive(Debug, Args)]
pub(crate) struct HistoryOptions {
    /// Only of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only with this end.
    #[arg(long, value_name = "STATUS", value_parser = STATUSES)]
    pub(crate) status: Option<String>,
    /// Only with this text in the input or in the result. Case does not count.
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// Only calls since then: `30m`, `12h`, `7d`, `2w` ago, or a date such as `2026-11-01` (UTC).
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only of this session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only those you said this of.
    #[arg(long, value_enum, value_name = "RATING")]
    pub(crate) feedback: Option<FeedbackRating>,
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether a call was of use.
#[derive(Debug, Args)]
pub(crate) struct FeedbackOptions {
    /// The call: the name `windlass history` gives it (its beginning will do), or the one its model gave it.
    pub(crate) call: String,
    /// Whether it was.
    #[arg(value_enum, required_unless_present = "clear", conflicts_with = "clear")]
    pub(crate) rating: Option<FeedbackRating>,
    /// Why, for whoever reads `windlass show` later.
    #[arg(conflicts_with = "clear")]
    pub(crate) note: Option<String>,
    /// Take back what you said.
    #[arg(long)]
    pub(crate) clear: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a person says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackRating {
    /// It did what you wanted.
    Good,
    /// It did not.
    Bad,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no line of a session file was changed, removed, added or moved.
    ///
    /// Every line names the hash of the line before it, and the index of calls remembers where the file ended. The exit code
    /// is 1 if something does not fit.
    Verify {
        /// The session.
        session: String,
        /// Where the file once ended, as an earlier `audit verify` printed it: it must still have that line.
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a bug report from a session, without secrets.
    ///
    /// One JSON file: the session, this version, what this machine can enforce, and the configuration.
    Export {
        /// The session.
        session: String,
        /// Without secrets; there is no other kind of report.
        #[arg(long, required = true)]
        redacted: bool,
        /// Write it to this file, which must not exist yet. Without it, to stdout.
        #[arg(short = 'o', long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

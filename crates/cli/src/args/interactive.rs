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
#[command(after_help = "Examples:
  windlass resume                  choose a session of this directory
  windlass resume --last           go on with the newest one
  windlass resume --all            choose a session of any directory, and go on there
  windlass resume 0199f3a2-7c1e    go on with this session, in this directory
  windlass resume 'parser work'    the same by its name")]
pub(crate) struct ResumeOptions {
    #[command(flatten)]
    pub(crate) session: SessionOptions,
    /// The session: its id, a unique prefix of it, its name, or one of its calls. Without it, the
    /// sessions of this directory are listed to choose from.
    pub(crate) id: Option<String>,
    /// The newest session of this directory.
    #[arg(long, conflicts_with = "id")]
    pub(crate) last: bool,
    /// Also sessions of other directories. The session goes on in its own directory.
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
}

/// Begin a new session with the conversation of an earlier one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass fork 0199f3a2-7c1e           copy the whole conversation
  windlass fork --last --at 3           copy it up to message 3 of the newest session here, without
                                        that message (`windlass rewind` lists the messages)
  windlass fork 0199f3a2-7c1e -C ../b   copy it for another directory
  windlass resume $(windlass fork 0199f3a2-7c1e)")]
pub(crate) struct ForkOptions {
    /// The session: its id, a unique prefix of it, its name, or one of its calls.
    #[arg(required_unless_present = "last")]
    pub(crate) id: Option<String>,
    /// The newest session of this directory.
    #[arg(long, conflicts_with = "id")]
    pub(crate) last: bool,
    /// Leave out message N and everything after it.
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a session back to before a message: its conversation and its changes to files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windlass rewind                  list the messages of the newest session here
  windlass rewind 3                take back message 3 and everything after it
  windlass rewind 3 --dry-run      only show what that would change
  windlass rewind 3 --keep-files   take back only the conversation
  windlass rewind 3 --session 0199f3a2-7c1e")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct RewindOptions {
    /// Number of the first message to take back. Without it, the messages are listed.
    pub(crate) message: Option<usize>,
    /// The session: its id, a unique prefix of it, its name, or one of its calls. Default: the
    /// newest session of this directory.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only show what would be taken back.
    #[arg(long, requires = "message")]
    pub(crate) dry_run: bool,
    /// Leave the files as they are.
    #[arg(long, requires = "message")]
    pub(crate) keep_files: bool,
    /// Skip files that have changed since, and take back the rest.
    #[arg(long, requires = "message", conflicts_with = "keep_files")]
    pub(crate) keep_changed: bool,
    /// Do not ask for confirmation. Without a terminal, there is no question.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON. The messages are one object per line.
    #[arg(long)]
    pub(crate) json: bool,
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

//! Options of what decides, holds and hides: `policy`, `sandbox`, `redact`, `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SandboxFlag;

/// Run any command in the sandbox.
#[derive(Debug, Args)]
pub(crate) struct SandboxRun {
    /// How tightly it is held. The default is the configured sandbox mode.
    #[arg(long, value_name = "MODE", value_enum, conflicts_with = "sandbox")]
    pub(crate) policy: Option<SandboxFlag>,
    /// The workspace: where it starts and, with workspace-write, what it may write.
    #[arg(long, value_name = "DIR", conflicts_with = "cd")]
    pub(crate) cwd: Option<PathBuf>,
    /// Another directory it may write (with workspace-write). May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,
    /// A file or directory it may not read. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) deny_read: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    #[command(flatten)]
    pub(crate) preview: PreviewChoice,
    /// Let it use the network.
    #[arg(long)]
    pub(crate) network: bool,
    /// Write how it was held and what was denied as JSON: to a file, to a descriptor by its number, or to stderr.
    #[arg(long, value_name = "FILE|NUMBER", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    pub(crate) json: Option<String>,
    /// The command and its arguments, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Seeing changes before they are made.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct PreviewChoice {
    /// Show what commands would change in the workspace, and apply that only after a yes (see docs/preview.md).
    #[arg(long, global = true)]
    pub(crate) preview: bool,
    /// With --preview: apply the changes without asking.
    #[arg(long, requires = "preview", global = true)]
    pub(crate) yes: bool,
}

/// What commands may use.
#[derive(Debug, Clone, Args)]
pub(crate) struct LimitChoice {
    /// A limit for each command: pids, mem_mb, fsize_mb, disk_mb, out_kb, cpu_s, wall_s or nofile (see docs/sandbox.md). May
    /// be repeated.
    #[arg(long, value_name = "NAME=NUMBER", global = true)]
    pub(crate) limit: Vec<String>,
}

/// Take secrets out of text.
#[derive(Debug, Args)]
pub(crate) struct RedactOptions {
    /// Say on stderr what was found, where, and why: line and column of the input, never the secret.
    #[arg(long)]
    pub(crate) report: bool,
    /// With --report: as one JSON object per line.
    #[arg(long, requires = "report")]
    pub(crate) json: bool,
    /// Only by form and name: do not look at the values of the environment and of `.env` files.
    #[arg(long)]
    pub(crate) shapes_only: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every key with its value.
    Show {
        /// Say where each value comes from.
        #[arg(long)]
        origin: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// The JSON Schema of the configuration file.
    Schema,
    /// Where the configuration file is.
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Take a command apart, and say what would be decided about it.
    Explain {
        /// The command line, as one argument.
        command: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Decide about many commands, one line each.
    ///
    /// `{"id", "cmd"}` on stdin becomes `{"id", "decision", "why"}` on stdout; a decision is `safe`, `prompt` or
    /// `forbidden`. A line that makes no sense is answered with `prompt` and reported on stderr; then the exit code is 1.
    Classify {
        /// One JSON object per line, in and out; there is no other format.
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Check a table of commands and the decisions they must get.
    ///
    /// Decisions are `safe`, `prompt` and `forbidden`. The exit code is 1 if one is different.
    Test {
        /// TOML with `[[case]]`, or JSON lines (`.jsonl`); each with `command` and `decision`.
        file: PathBuf,
    },
    /// Propose rules from what was approved before.
    Suggest(SuggestOptions),
    /// List all rules in force, with where each comes from.
    Rules {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take a rule back: it is removed from its file, once you have seen it and said yes.
    Revoke {
        /// The rule, by its id in `windlass policy rules`, or the beginning of it.
        id: String,
        /// Say yes beforehand.
        #[arg(long)]
        yes: bool,
    },
}

/// Which rules are proposed, and what becomes of them.
#[derive(Debug, Args)]
pub(crate) struct SuggestOptions {
    /// Only from this session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// As JSON.
    #[arg(long, conflicts_with = "write")]
    pub(crate) json: bool,
    /// Add them to your rules, once you have seen them and said yes.
    #[arg(long)]
    pub(crate) write: bool,
    /// Say yes beforehand.
    #[arg(long, requires = "write")]
    pub(crate) yes: bool,
}

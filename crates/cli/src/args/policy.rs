//! Options of `policy`, `sandbox` and `redact`, and options about limits and previews.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SandboxFlag;

/// Run any command in the sandbox.
#[derive(Debug, Args)]
pub(crate) struct SandboxRun {
    /// Sandbox mode for the command. Default: `sandbox_mode` of the configuration, or read-only.
    #[arg(long, value_name = "MODE", value_enum, conflicts_with = "sandbox")]
    pub(crate) policy: Option<SandboxFlag>,
    /// Workspace: the working directory of the command, writable with workspace-write.
    #[arg(long, value_name = "DIR", conflicts_with = "cd")]
    pub(crate) cwd: Option<PathBuf>,
    /// Additional writable directory (with workspace-write). Repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,
    /// File or directory that the command must not read. Repeatable.
    #[arg(long, value_name = "PATH")]
    pub(crate) deny_read: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    #[command(flatten)]
    pub(crate) preview: PreviewChoice,
    /// Allow network access.
    #[arg(long)]
    pub(crate) network: bool,
    /// Write a JSON report about the sandbox and what it denied, to a file or a file descriptor.
    /// Without a value, to stderr.
    #[arg(long, value_name = "FILE|NUMBER", num_args = 0..=1, require_equals = true, default_missing_value = "2")]
    pub(crate) json: Option<String>,
    /// Command and its arguments, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Options of a preview of changes.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct PreviewChoice {
    /// Show what commands would change in the workspace, and apply it only after confirmation (see
    /// docs/preview.md).
    #[arg(long, global = true)]
    pub(crate) preview: bool,
    /// With --preview: apply the changes without asking.
    #[arg(long, requires = "preview", global = true)]
    pub(crate) yes: bool,
}

/// Resource limits of commands.
#[derive(Debug, Clone, Args)]
pub(crate) struct LimitChoice {
    /// Resource limit of each command, as in `--limit mem_mb=2048`. Names: pids, mem_mb, fsize_mb,
    /// disk_mb, out_kb, cpu_s, wall_s, nofile (see docs/sandbox.md). Repeatable.
    #[arg(long, value_name = "NAME=NUMBER", global = true)]
    pub(crate) limit: Vec<String>,
}

/// Replace secrets in text by labels.
#[derive(Debug, Args)]
pub(crate) struct RedactOptions {
    /// Report each secret on stderr: its line and column in the input and the reason, never its
    /// value.
    #[arg(long)]
    pub(crate) report: bool,
    /// With --report: print one JSON object per line.
    #[arg(long, requires = "report")]
    pub(crate) json: bool,
    /// Recognise secrets only by form and name, not by values in the environment and `.env` files.
    #[arg(long)]
    pub(crate) shapes_only: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Explain what would be decided about a command, and why.
    #[command(after_help = "Example:\n  windlass policy explain 'git log | xargs rm'")]
    Explain {
        /// Command line, as one argument.
        command: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Decide about many commands, as JSON Lines.
    ///
    /// Reads `{"id", "cmd"}` from stdin and prints `{"id", "decision", "why"}`. A decision is
    /// `safe`, `prompt` or `forbidden`. A malformed line is answered with `prompt` and reported on
    /// stderr; the exit code is then 1.
    Classify {
        /// Use JSON Lines for input and output (required; there is no other format).
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Check that the commands in a file get the expected decisions.
    ///
    /// Decisions are `safe`, `prompt` and `forbidden`. The exit code is 1 if any differs.
    Test {
        /// TOML file with `[[case]]` tables, or JSON Lines (`.jsonl`). Each case has `command` and
        /// `decision`.
        file: PathBuf,
    },
    /// Suggest rules from commands that were approved before.
    Suggest(SuggestOptions),
    /// List all rules in force, each with its source.
    Rules {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow commands that begin with these words, from now on, as an answer to a question does.
    ///
    /// Prints the rule, its file, and examples of what it matches and what it does not. A rule that
    /// would have no effect is not written, and the reason is shown.
    #[command(after_help = "Examples:
  windlass policy allow 'cargo test'
  windlass policy allow --user --dry-run 'npm run build'")]
    Allow(RuleOptions),
    /// Refuse commands that begin with these words, from now on.
    #[command(after_help = "Example:\n  windlass policy deny --user 'git push'")]
    Deny(RuleOptions),
    /// Remove a rule from its file, after confirmation.
    Revoke {
        /// Id of the rule in `windlass policy rules`, or a unique prefix.
        id: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// A rule to write.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct RuleOptions {
    /// Command, or its first words, as one argument.
    pub(crate) command: String,
    /// The rule applies in this project: the nearest directory upwards with a repository, or this
    /// one. This is the default.
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// The rule applies in all projects.
    #[arg(long)]
    pub(crate) user: bool,
    /// Only show the rule and what it matches.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Suggest rules from commands that were approved before.
#[derive(Debug, Args)]
pub(crate) struct SuggestOptions {
    /// Only commands of this session: its id, a unique prefix of it, or its name.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Print JSON.
    #[arg(long, conflicts_with = "write")]
    pub(crate) json: bool,
    /// Add the suggested rules to yours, after confirmation.
    #[arg(long)]
    pub(crate) write: bool,
    /// Do not ask for confirmation.
    #[arg(long, requires = "write")]
    pub(crate) yes: bool,
}

//! `windlass hooks`.

use clap::Subcommand;

/// Hooks: commands that are told about steps of a session, and may object (see docs/hooks.md).
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List all hooks, in the order in which they run.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run hooks once with a sample of their input, in their sandboxes, and show their answers.
    ///
    /// The exit code is 1 if a hook fails: it cannot run, hangs, or answers with something else.
    Test {
        /// Name of a hook. Default: all.
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

//! Options of the commands that set Windlass up: `init`, `login`, `logout`, `config`, `doctor`,
//! `completions`, `man`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Choose a model and write the configuration.
#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// Provider to use: a name in the configuration, a built-in one such as ollama or openai, or
    /// rules (offline, no model).
    #[arg(short = 'p', long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Model to use.
    #[arg(short = 'm', long, value_name = "MODEL", requires = "provider")]
    pub(crate) model: Option<String>,
    /// Do not ask: without --provider take the first model that is found, and replace an earlier
    /// choice.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Keep the API key of a provider.
#[derive(Debug, Args)]
pub(crate) struct LoginOptions {
    /// Provider of the key.
    #[arg(required_unless_present = "status", conflicts_with = "status")]
    pub(crate) provider: Option<String>,
    /// List the providers that take a key, and where it comes from.
    #[arg(long)]
    pub(crate) status: bool,
}

/// Remove the API key of a provider.
#[derive(Debug, Args)]
pub(crate) struct LogoutOptions {
    /// Provider of the key.
    pub(crate) provider: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its value.
    Show {
        /// Add the source of each value.
        #[arg(long)]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one key, or of all keys of a table. The exit code is 1 if it is not set.
    Get {
        /// Key, with dots between names.
        key: String,
        /// Add the source of the value.
        #[arg(long)]
        origin: bool,
    },
    /// Set a key in the configuration file. Comments and the order of keys stay.
    Set {
        /// Key, with dots between names.
        key: String,
        /// Value in TOML, or text.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a key from the configuration file. The exit code is 1 if it is not there.
    Unset {
        /// Key, with dots between names.
        key: String,
    },
    /// Edit the configuration file with `$VISUAL` or `$EDITOR`, and check it afterwards.
    ///
    /// The file is replaced only by a valid one.
    Edit,
    /// Print the JSON Schema of the configuration file.
    Schema,
    /// Print the path of the configuration file.
    Path,
}

/// Check this machine and the configuration.
#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also ask the server of the model for its models, which shows whether it is reachable and
    /// takes the key.
    #[arg(long)]
    pub(crate) network: bool,
}

/// Decide whether the configuration in a project is used.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct TrustOptions {
    /// Directory of the project. Default: this one.
    #[arg(value_name = "DIR", conflicts_with = "cd")]
    pub(crate) directory: Option<PathBuf>,
    /// List the directories that were decided about.
    #[arg(long, conflicts_with_all = ["directory", "revoke", "yes"])]
    pub(crate) list: bool,
    /// Forget the decision about the directory.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// Trust it without a question.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON. Without `--yes`, nothing is decided.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a completion script.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// Shell of the script.
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual.
#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Write one page for each command into this directory instead.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

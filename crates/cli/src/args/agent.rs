//! Options of what runs agents and tools: `exec`, `call`, `models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LimitChoice, PreviewChoice};

const PROBE_EXIT_CODES: &str = "\
Exit codes:
  0    the model calls tools, in the way that is recommended
  1    it does not, or its server could not be asked
  2    wrong usage or configuration
  4    the time was up
  130  interrupted";

/// Run an agent until it answers.
#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    /// What to do. Without it, or with `-`, it is read from stdin; with it, stdin is never read.
    pub(crate) prompt: Option<String>,
    #[command(subcommand)]
    pub(crate) action: Option<ExecAction>,
}

#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ExecOptions {
    /// Print one JSON event per line on stdout, and nothing else.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The same for client libraries that take every exit code but 0 for a crash: a completed turn exits with 0.
    #[arg(long, hide = true, global = true)]
    pub(crate) experimental_json: bool,
    /// With --json: also print every piece of text and output as it arrives.
    #[arg(long, global = true)]
    pub(crate) deltas: bool,
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Play back a script instead of asking a model (see docs/scripts.md).
    #[arg(long, value_name = "FILE", conflicts_with = "provider", global = true)]
    pub(crate) script: Option<PathBuf>,
    /// Another directory the agent may write to where it may write at all, as with `-s workspace-write`. May be repeated.
    #[arg(long = "add-dir", value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// A JSON Schema the final answer must fit.
    #[arg(long = "output-schema", value_name = "FILE", global = true)]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the final answer to this file as well.
    #[arg(short = 'o', long = "output-last-message", value_name = "FILE", global = true)]
    pub(crate) output_last_message: Option<PathBuf>,
    /// An image to show the model. May be repeated.
    #[arg(short = 'i', long = "image", value_name = "FILE", global = true)]
    pub(crate) image: Vec<PathBuf>,
    /// Tools of your own, as programs: one JSON object per line with `name`, `description`, `parameters` (a JSON Schema) and
    /// `command` (a list; the arguments of a call are added to it as JSON). See docs/tools.md.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) tools: Option<PathBuf>,
    /// End the turn after so many seconds (exit code 4).
    #[arg(long, value_name = "SECONDS", global = true)]
    pub(crate) time_limit: Option<u64>,
    /// End the turn after so many tokens (exit code 4).
    #[arg(long, value_name = "TOKENS", global = true)]
    pub(crate) token_limit: Option<u64>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    #[command(flatten)]
    pub(crate) preview: PreviewChoice,
    /// Accepted for compatibility: Windlass does not need a git repository to be safe.
    #[arg(long = "skip-git-repo-check", hide = true, global = true)]
    pub(crate) _skip_git_repo_check: bool,
    /// Accepted for compatibility.
    #[arg(long = "thread-source", hide = true, value_name = "NAME", global = true)]
    pub(crate) _thread_source: Option<String>,
    /// Accepted for compatibility.
    #[arg(long = "cyber-access-program", hide = true, value_name = "NAME", global = true)]
    pub(crate) _cyber_access_program: Option<String>,
}

/// Which model is asked.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelChoice {
    /// Which model.
    #[arg(short = 'm', long, value_name = "MODEL", global = true)]
    pub(crate) model: Option<String>,
    /// Which provider, as named in the configuration or built in: openai, ollama, lmstudio, llama.cpp, vllm,
    /// openrouter, scripted, rules (offline, no model).
    #[arg(short = 'p', long = "provider", value_name = "NAME", global = true)]
    pub(crate) provider: Option<String>,
}

/// What to know about a model.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Ask a model to call a few test tools, and find out how its calls must be read.
    ///
    /// Seven small tasks, first as the server itself sends calls and then, as needed, in the dialects that models write
    /// into their text. Nothing is run. Prints a score for each way that was tried and the lines of configuration for
    /// the best one.
    #[command(after_help = PROBE_EXIT_CODES)]
    Probe(ProbeOptions),
}

/// Ask a model to call a few test tools.
#[derive(Debug, Args)]
pub(crate) struct ProbeOptions {
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Stop after so many seconds, and tell what is known by then (exit code 4).
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) time_limit: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecAction {
    /// Go on with an earlier session.
    Resume {
        /// The session; `thread.started` and the line on stderr say it.
        session: Option<String>,
        /// What to do next. Without it, or with `-`, it is read from stdin.
        prompt: Option<String>,
        /// The newest session of this directory.
        #[arg(long)]
        last: bool,
    },
}

/// Run one tool through the whole pipeline, without a model.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// The tool, by name or alias.
    pub(crate) name: String,
    /// Its arguments as JSON (freeform tools: as text). Without it, or with `-`, read from stdin.
    pub(crate) input: Option<String>,
    /// Tools of your own, as programs (see docs/tools.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    #[command(flatten)]
    pub(crate) preview: PreviewChoice,
    /// Print the whole result as JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print the whole result as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Say on stderr how the result was judged: points, reasons, suggestions.
    #[arg(long)]
    pub(crate) judge: bool,
}

//! Options of the commands that run agents and tools: `exec`, `call`, `models`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LimitChoice, PreviewChoice};

const PROBE_EXIT_CODES: &str = "\
Exit codes:
  0    the model can call tools, with the printed settings
  1    it cannot, or the requests to its server failed
  2    invalid usage or configuration
  4    the time limit was reached
  130  interrupted

Example:
  windlass models probe -p ollama -m qwen3";

/// Run an agent on a prompt.
#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    /// Task for the agent. If omitted or `-`, read from stdin. Otherwise, text piped into stdin is
    /// added to it; `< /dev/null` adds nothing.
    pub(crate) prompt: Option<String>,
    #[command(subcommand)]
    pub(crate) action: Option<ExecAction>,
}

#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ExecOptions {
    /// Print events as JSON Lines on stdout, and nothing else.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Like --json, for client libraries that take every exit code but 0 for a crash: a completed
    /// turn exits with 0.
    #[arg(long, hide = true, global = true)]
    pub(crate) experimental_json: bool,
    /// With --json: also print each piece of text and output as it arrives.
    #[arg(long, global = true)]
    pub(crate) deltas: bool,
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Replay a script instead of asking a model (see docs/scripts.md).
    #[arg(long, value_name = "FILE", conflicts_with = "provider", global = true)]
    pub(crate) script: Option<PathBuf>,
    /// Additional writable directory, in sandbox modes that allow writes (`-s workspace-write`).
    /// Repeatable.
    #[arg(long = "add-dir", value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// File with a JSON Schema that the final answer must match.
    #[arg(long = "output-schema", value_name = "FILE", global = true)]
    pub(crate) output_schema: Option<PathBuf>,
    /// Also write the final answer to this file.
    #[arg(short = 'o', long = "output-last-message", value_name = "FILE", global = true)]
    pub(crate) output_last_message: Option<PathBuf>,
    /// Image file to attach to the prompt. Repeatable.
    #[arg(short = 'i', long = "image", value_name = "FILE", global = true)]
    pub(crate) image: Vec<PathBuf>,
    /// Add your own tools, which are programs, from this JSON Lines file. Each line has `name`,
    /// `description`, `parameters` (a JSON Schema) and `command` (a list; the arguments of a call
    /// are appended as JSON). See docs/tools.md.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) tools: Option<PathBuf>,
    /// Use a prompt of an MCP server as the request, before the task if there is one.
    #[arg(long, value_name = "SERVER/NAME", global = true)]
    pub(crate) mcp_prompt: Option<String>,
    /// Argument of that prompt. Repeatable.
    #[arg(
        long,
        value_name = "KEY=VALUE",
        requires = "mcp_prompt",
        value_parser = super::mcp::pair,
        global = true
    )]
    pub(crate) prompt_arg: Vec<(String, String)>,
    /// Never ask, as without a terminal or with `CI=true`: refuse what would need approval.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Stop the turn after this many seconds (exit code 4).
    #[arg(long, value_name = "SECONDS", global = true)]
    pub(crate) time_limit: Option<u64>,
    /// Stop the turn after this many tokens (exit code 4).
    #[arg(long, value_name = "TOKENS", global = true)]
    pub(crate) token_limit: Option<u64>,
    /// Make the conversation shorter when it fills this share of the context window; 0: never.
    #[arg(long, value_name = "PERCENT", global = true)]
    pub(crate) compact_at: Option<u8>,
    /// Stop after this many requests to the model (exit code 4).
    #[arg(long, value_name = "N", global = true)]
    pub(crate) max_requests: Option<u64>,
    /// Stop before a tool call beyond this number (exit code 4).
    #[arg(long, value_name = "N", global = true)]
    pub(crate) max_calls: Option<u64>,
    /// Stop when the model's tokens have cost this much (exit code 4).
    #[arg(long, value_name = "USD", global = true)]
    pub(crate) max_cost: Option<f64>,
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

/// The model to use.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelChoice {
    /// Model to use. Default: `model` of the configuration; for a server on this machine, its
    /// model if it has only one.
    #[arg(short = 'm', long, value_name = "MODEL", global = true)]
    pub(crate) model: Option<String>,
    /// Provider of the model: a name in the configuration, or anthropic, azure, deepseek, gemini,
    /// groq, llama.cpp, lmstudio, mistral, ollama, openai, openrouter, scripted, vllm, xai, rules
    /// (offline, no model).
    #[arg(short = 'p', long = "provider", value_name = "NAME", global = true)]
    pub(crate) provider: Option<String>,
}

/// Commands about models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Ask the server of a provider for the names of its models.
    List(ModelListOptions),
    /// Test whether a model can call tools, and print the settings it needs.
    ///
    /// Gives the model seven small tasks, first with the tool calls of the server's API. If needed,
    /// the tasks are repeated with the dialects in which models write calls into their text. No
    /// tool is run. Prints a score for each method and the configuration for the best one.
    #[command(after_help = PROBE_EXIT_CODES)]
    Probe(ProbeOptions),
}

/// Ask a server for the names of its models.
#[derive(Debug, Args)]
pub(crate) struct ModelListOptions {
    /// Provider: a name in the configuration, or a built-in one. Default: `model_provider` of the
    /// configuration, or openai.
    #[arg(short = 'p', long = "provider", value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Test whether a model can call tools.
#[derive(Debug, Args)]
pub(crate) struct ProbeOptions {
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Stop after this many seconds and print the results so far (exit code 4).
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) time_limit: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecAction {
    /// Continue an earlier session.
    Resume {
        /// Id of the session, as printed on stderr and in the event `thread.started`; or a unique
        /// prefix of it, its name, or one of its calls.
        session: Option<String>,
        /// Next task. If omitted or `-`, read from stdin.
        prompt: Option<String>,
        /// Continue the newest session of this directory.
        #[arg(long)]
        last: bool,
    },
}

/// Run one tool without a model.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct CallOptions {
    /// Name or alias of the tool.
    pub(crate) name: String,
    /// Arguments as JSON, or as text for freeform tools. If omitted or `-`, read from stdin.
    pub(crate) input: Option<String>,
    /// Add your own tools from this file (see docs/tools.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitChoice,
    #[command(flatten)]
    pub(crate) preview: PreviewChoice,
    /// Never ask, as without a terminal or with `CI=true`: refuse what would need approval.
    #[arg(long)]
    pub(crate) no_input: bool,
    /// Print the whole result as JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print the whole result as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Print the verdict on the result to stderr: scores, reasons and suggestions.
    #[arg(long)]
    pub(crate) judge: bool,
}

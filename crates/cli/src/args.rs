//! The command line. Its `--help` is the reference, so every doc comment here is user
//! documentation.

mod agent;
mod calls;
mod command;
mod context;
mod examples;
mod hooks;
mod instructions;
mod interactive;
mod mcp;
mod mcp_serve;
mod policy;
mod sessions;
mod setup;

pub(crate) use self::{
    agent::{
        CallOptions, ExecAction, ExecArguments, ExecOptions, ModelChoice, ModelListOptions, ModelsCommand,
        ProbeOptions,
    },
    calls::{
        AuditCommand, FeedbackOptions, FeedbackRating, HistoryOptions, RedoOptions, StatsBy, StatsOptions,
        UndoOptions,
    },
    command::command,
    context::{CompactOptions, ContextOptions},
    hooks::HooksCommand,
    instructions::{InstructionsOptions, PromptsCommand, SkillsCommand},
    interactive::{ChatOptions, ForkOptions, ResumeOptions, RewindOptions, SessionOptions},
    mcp::{McpAddOptions, McpCommand, McpPinsAction, McpPinsOptions, McpPromptsOptions},
    mcp_serve::{GatewaySearch, McpGatewayOptions, McpListening, McpServeOptions},
    policy::{
        LimitChoice, PolicyCommand, PreviewChoice, RedactOptions, RuleOptions, SandboxRun, SuggestOptions,
    },
    sessions::{
        CollectOptions, ExportOptions, RenameOptions, SearchOptions, SessionsCommand, TranscriptFormat,
    },
    setup::{
        CompletionsOptions, ConfigCommand, DoctorOptions, InitOptions, LoginOptions, LogoutOptions,
        ManOptions, TrustOptions,
    },
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass::{ApprovalPolicy, SandboxMode};

/// Tool-calling runtime for AI agents: checks, sandboxes, runs and records tool calls.
#[derive(Debug, Parser)]
#[command(
    name = "windlass",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    long_about = ABOUT,
    override_usage = "windlass [OPTIONS] [PROMPT]\n       windlass [OPTIONS] <COMMAND>"
)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Open an interactive session, as `windlass` alone does.
    #[command(after_help = CHAT_EXAMPLES)]
    Chat(Box<ChatOptions>),
    /// Continue an earlier session interactively.
    Resume(Box<ResumeOptions>),
    /// Begin a new session with the conversation of an earlier one. No file is changed.
    ///
    /// The earlier session stays as it is, and may be in use. Prints the id of the new one.
    Fork(ForkOptions),
    /// Take a session back to before a message: its conversation and its changes to files.
    ///
    /// Every change that tools and commands made since is undone, unless a file has changed since
    /// then: conflicts are shown before anything is changed. Effects outside the files, such as
    /// requests to servers, remain. Nothing is deleted from the session file.
    Rewind(RewindOptions),
    /// Run an agent on a prompt: progress on stderr, the answer on stdout.
    #[command(visible_alias = "e", after_help = EXEC_EXIT_CODES)]
    Exec(Box<ExecArguments>),
    /// Run one tool without a model, with the checks and the sandbox of an agent.
    #[command(after_help = CALL_EXIT_CODES)]
    Call(CallOptions),
    /// Apply a patch to files in this directory, completely or not at all.
    #[command(name = "apply-patch", alias = "apply_patch")]
    ApplyPatch {
        /// Patch text, or a unified diff as `git diff` prints it. If omitted or `-`, read from
        /// stdin.
        patch: Option<std::ffi::OsString>,
    },
    /// Undo changes made by tools and commands.
    Undo(UndoOptions),
    /// Reverse the last undo.
    Redo(RedoOptions),
    /// List, show and search tools.
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List the models of a server, and test how a model calls tools.
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Run any command in the sandbox; its input, output and exit code pass through.
    #[command(after_help = SANDBOX_EXIT_CODES)]
    Sandbox(SandboxRun),
    /// Choose a model and write the configuration.
    Init(InitOptions),
    /// Keep the API key of a provider in a private file.
    ///
    /// The key is read from the terminal without being shown, or from stdin. It is used if the
    /// environment variable of the provider is not set.
    Login(LoginOptions),
    /// Remove an API key that `login` keeps.
    Logout(LogoutOptions),
    /// Check this machine, the configuration and the data, and say how to fix problems.
    ///
    /// The exit code is 1 if a check fails.
    Doctor(DoctorOptions),
    /// Show and change the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Manage MCP servers: their tools are offered as `mcp__SERVER__TOOL`.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// List and test hooks: commands that are told about steps of a session, and may object.
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Show what the model is told at the start of a session: `AGENTS.md` and more.
    Instructions(InstructionsOptions),
    /// List and show skills: instructions that the model reads when a task needs them.
    ///
    /// A skill is a directory with a file `SKILL.md`, in `.agents/skills` or `.claude/skills` of
    /// the project, from the working directory upwards, or in `~/.agents/skills`. Those of a
    /// project are used after `windlass trust`. A message that contains `$NAME` loads a skill.
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List and show prompts: Markdown files that `/NAME ARGUMENTS` sends.
    ///
    /// They are in `prompts` of the home directory of Windlass, and after `windlass trust` in
    /// `.agents/prompts` of the project, from the working directory upwards. In a prompt, `$1` to
    /// `$9` and `$ARGUMENTS` stand for what follows its name.
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Decide whether the configuration in a project is used.
    ///
    /// It is in `.mcp.json` (MCP servers) and `.windlass/hooks.json` (hooks) at its root, and in
    /// its skills and prompts. Nothing in a repository is configuration before its directory is
    /// trusted. A decision counts for each part until it changes. The exit code is 3 if the project
    /// is not trusted.
    Trust(TrustOptions),
    /// Explain decisions about commands, and manage rules.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show success rates, durations and failures of tools.
    Stats(StatsOptions),
    /// List tool calls, newest first.
    History(HistoryOptions),
    /// Show everything on record about one call.
    Show {
        /// Id of the call in `windlass history` (a unique prefix is enough), or the id that the
        /// model gave it. For a session, `windlass sessions show` runs.
        call: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List, show, search, name, export and delete sessions.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Show what fills the context window of a session, and the use of the prompt cache.
    Context(ContextOptions),
    /// Make the conversation of a session shorter: a summary replaces its earlier part.
    ///
    /// The model of the session writes the summary; offline, rules do. The session file keeps
    /// everything.
    Compact(CompactOptions),
    /// Rate a call as good or bad; ratings affect the ranking of tools.
    Feedback(FeedbackOptions),
    /// Verify a session file, or export it as a bug report.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Copy stdin to stdout, with each secret replaced by a label.
    ///
    /// Secrets are recognised by their form and by the name they are assigned to. Values in the
    /// environment and in `.env` files of this directory that look like credentials are recognised,
    /// too.
    #[command(after_help = REDACT_EXIT_CODES)]
    Redact(RedactOptions),
    /// Print a completion script for a shell.
    Completions(CompletionsOptions),
    /// Print the manual page, or write all pages to a directory.
    Man(ManOptions),
    /// Print the version, as `--version` does.
    #[command(hide = true)]
    Version,
}

const ABOUT: &str = "\
Tool-calling runtime for AI agents: checks, sandboxes, runs and records tool calls

Without a command, it opens an interactive session. All options of `windlass chat` work there, such
as -m MODEL, --plan, --fullscreen and --plain:
  windlass \"why does the build fail?\"
  windlass -m qwen3 --plan \"add a test for the parser\"";

const CHAT_EXAMPLES: &str = "\
Examples:
  windlass
  windlass \"why does the build fail?\"
  windlass chat --provider ollama --model qwen3 --fullscreen
  windlass chat --plain";

const SANDBOX_EXIT_CODES: &str = "\
Exit codes are those of the command (128+N if signal N ended it), or:
  1    the command succeeded, but its preview could not be applied
  2    invalid usage or configuration
  3    the command succeeded, but its preview was not approved
  124  the time limit wall_s was reached
  125  the sandbox could not be set up, and nothing ran
  126  the command could not be started
  127  the command was not found
  130  interrupted
  137  the command was killed, as for the limits mem_mb, pids, disk_mb and out_kb

Examples:
  windlass sandbox --policy workspace-write -- make test
  windlass sandbox --policy workspace-write --preview -- ./install.sh";

const SELECT_EXIT_CODES: &str = "\
Exit codes:
  0    at least one tool fits
  1    no tool fits
  2    invalid usage or configuration";

const REDACT_EXIT_CODES: &str = "\
Exit codes:
  0    all of the input was processed, with or without secrets in it
  1    the input could not be read, or the output could not be written
  2    invalid usage

Example:
  windlass redact --report < build.log > clean.log";

const EXEC_EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the turn failed, or the offline rules declined the request
  2    invalid usage or configuration
  3    a call was refused because it needed approval, and no later call replaced it,
       or a preview was not applied
  4    a limit on time or tokens was reached, or a loop was detected
  130  interrupted

Examples:
  windlass exec -s workspace-write \"fix the failing test\"
  git diff | windlass exec \"review this\"
  windlass exec --json - < prompt.txt
  windlass exec resume --last \"now update the documentation\"";

const CALL_EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the call failed
  2    invalid usage or configuration, or an unknown tool
  3    the call was refused, or a preview was not applied
  4    the time limit of the call was reached
  130  interrupted

Examples:
  windlass call shell_command '{\"command\": \"date\"}'
  windlass call --json -s workspace-write shell_command '{\"command\": \"make\"}'";

/// The heading of options that every command has, so that the options of a command stand together.
const GLOBAL_OPTIONS: &str = "Global options";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonOptions {
    /// Set a configuration key, as in `-c model=gpt-5`. Repeatable; the last value wins.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", help_heading = GLOBAL_OPTIONS, global = true)]
    pub(crate) config: Vec<String>,
    /// Sandbox mode for commands. Default: `sandbox_mode` of the configuration, or read-only.
    #[arg(short = 's', long, value_name = "MODE", value_enum, help_heading = GLOBAL_OPTIONS, global = true)]
    pub(crate) sandbox: Option<SandboxFlag>,
    /// Approval policy. Default: `approval_policy` of the configuration, or on-request.
    /// Without a terminal, `exec` and `call` refuse what would need approval.
    #[arg(
        short = 'a',
        long = "ask-for-approval",
        alias = "approval",
        value_name = "POLICY",
        value_enum,
        help_heading = GLOBAL_OPTIONS,
        global = true
    )]
    pub(crate) approval: Option<ApprovalFlag>,
    /// Disable the sandbox and all questions. Only for machines that are themselves a sandbox.
    #[arg(
        long = "dangerously-bypass-approvals-and-sandbox",
        alias = "yolo",
        conflicts_with_all = ["sandbox", "approval"],
        help_heading = GLOBAL_OPTIONS,
        global = true
    )]
    pub(crate) bypass: bool,
    /// Change to this directory first.
    #[arg(short = 'C', long = "cd", value_name = "DIR", help_heading = GLOBAL_OPTIONS, global = true)]
    pub(crate) cd: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools, one per line.
    List {
        /// Add your own tools from this file (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one tool.
    Show {
        /// Name or alias of the tool.
        name: String,
        /// Add your own tools from this file (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Search tools by words and meaning, in English or Chinese, best match first.
    #[command(after_help = SELECT_EXIT_CODES)]
    Search(ToolQuery),
    /// Select the tool for a request, or report that none fits.
    ///
    /// Tools that the request forbids are left out: `do not change anything` leaves only read-only
    /// tools.
    #[command(after_help = SELECT_EXIT_CODES)]
    Select {
        #[command(flatten)]
        choosing: ToolQuery,
        /// Show how the request was understood, and the score of every candidate in detail.
        #[arg(long)]
        explain: bool,
    },
    /// Answer sets of requests in a directory, for a scorer to evaluate.
    Bench {
        /// Directory with the sets: `S.tools.jsonl`, `S.queries.jsonl`, `S_select.jsonl`,
        /// `S_irrel.jsonl`, `S_args.jsonl`, `S_params.jsonl`.
        dir: PathBuf,
        /// Directory for the predictions.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Show the token cost of tools in each request, and which ones are found by search.
    Cost {
        /// Add your own tools from this file (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print all tools by category, for a model or a person to read.
    Manifest {
        /// Add your own tools from this file (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl ToolsCommand {
    /// Returns true if the output is for programs.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Search(query) | Self::Select { choosing: query, .. } => query.json,
            Self::List { json, .. }
            | Self::Show { json, .. }
            | Self::Cost { json, .. }
            | Self::Manifest { json, .. } => *json,
            Self::Bench { .. } => false,
        }
    }
}

/// A request, and the tools to answer it with.
#[derive(Debug, Args)]
pub(crate) struct ToolQuery {
    /// Request in plain words, or the name of a tool. `-` reads it from stdin.
    pub(crate) request: String,
    /// Maximum number of tools.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Use the tools of this list instead: JSON Lines, or an array, of objects with `name` and
    /// optionally `description`, `parameters` (a JSON Schema), `category`, `server`, `examples`,
    /// `changes`.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The sandbox modes, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxFlag {
    /// No writes, no network.
    ReadOnly,
    /// Writes only in the workspace, no network.
    WorkspaceWrite,
    /// No sandbox.
    DangerFullAccess,
    /// No sandbox of its own: the whole program already runs in one.
    #[value(name = "external-sandbox", alias = "external")]
    External,
}

impl From<SandboxFlag> for SandboxMode {
    fn from(mode: SandboxFlag) -> Self {
        match mode {
            SandboxFlag::ReadOnly => Self::ReadOnly,
            SandboxFlag::WorkspaceWrite => Self::WorkspaceWrite,
            SandboxFlag::DangerFullAccess => Self::DangerFullAccess,
            SandboxFlag::External => Self::External,
        }
    }
}

/// The approval policies, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovalFlag {
    /// Ask before everything that is not known to be harmless.
    Untrusted,
    /// Ask when the sandbox has blocked something.
    OnFailure,
    /// Ask when the model requests more than the sandbox allows.
    OnRequest,
    /// Never ask; refuse what would need approval.
    Never,
}

impl From<ApprovalFlag> for ApprovalPolicy {
    fn from(policy: ApprovalFlag) -> Self {
        match policy {
            ApprovalFlag::Untrusted => Self::Untrusted,
            ApprovalFlag::OnFailure => Self::OnFailure,
            ApprovalFlag::OnRequest => Self::OnRequest,
            ApprovalFlag::Never => Self::Never,
        }
    }
}

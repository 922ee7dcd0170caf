//! The command line. Its `--help` is the reference, so every doc comment here is user documentation.

mod agent;
mod calls;
mod interactive;
mod policy;
mod sessions;

pub(crate) use self::{
    agent::{CallOptions, ExecAction, ExecArguments, ExecOptions, ModelChoice, ModelsCommand, ProbeOptions},
    calls::{
        AuditCommand, FeedbackOptions, FeedbackRating, HistoryOptions, RedoOptions, StatsBy, StatsOptions,
        UndoOptions,
    },
    interactive::{ChatOptions, ResumeOptions, SessionOptions},
    policy::{
        ConfigCommand, LimitChoice, PolicyCommand, PreviewChoice, RedactOptions, SandboxRun, SuggestOptions,
    },
    sessions::{CollectOptions, SessionsCommand},
};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass::{ApprovalPolicy, SandboxMode};

/// The tool-calling runtime for AI agents: a model asks for tools; Windlass decides, runs, records and answers.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true, arg_required_else_help = true)]
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
    /// Go on with an earlier session, interactively.
    Resume(Box<ResumeOptions>),
    /// Run an agent until it answers: progress on stderr, the answer on stdout.
    #[command(visible_alias = "e", after_help = EXIT_CODES)]
    Exec(Box<ExecArguments>),
    /// Run one tool through the whole pipeline, without a model.
    #[command(after_help = EXIT_CODES)]
    Call(CallOptions),
    /// Apply a patch to the files of this directory, all of it or nothing.
    #[command(name = "apply-patch", alias = "apply_patch")]
    ApplyPatch {
        /// The patch itself, or a unified diff as `git diff` writes it. Without it, or with `-`, it is read from stdin.
        patch: Option<std::ffi::OsString>,
    },
    /// Take back what tools have changed in files.
    Undo(UndoOptions),
    /// Take back the last undo.
    Redo(RedoOptions),
    /// See which tools there are.
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// See how a model calls tools.
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Run any command in the sandbox: input, output and exit code are its own.
    #[command(after_help = SANDBOX_EXIT_CODES)]
    Sandbox(SandboxRun),
    /// See what this machine can enforce, and what to do about the rest.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// See and check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// See what would happen to a command, and why.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// How often tools work, how long they take and how they fail.
    Stats(StatsOptions),
    /// Which calls there were, the newest first.
    History(HistoryOptions),
    /// All that is on record about one call.
    Show {
        /// The call: the name `windlass history` gives it (its beginning will do), or the one its model gave it.
        call: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// See which sessions there are, what they take on the disk, and remove what is too old.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Say whether a call was of use. Tools are ranked by it; the verdict stays what it was.
    Feedback(FeedbackOptions),
    /// Prove what a session file says, or make a bug report from it.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Take secrets out of text: stdin becomes stdout, with a label in the place of each.
    ///
    /// Secrets are known by their form, by the name they are given, and by their value if they are in the environment or
    /// in a `.env` file of this directory.
    #[command(after_help = REDACT_EXIT_CODES)]
    Redact(RedactOptions),
}

const CHAT_EXAMPLES: &str = "\
Examples:
  windlass
  windlass \"why does the build fail?\"
  windlass chat --provider ollama --model qwen3 --fullscreen";

const SANDBOX_EXIT_CODES: &str = "\
Exit codes are the command's own, 128 and the number of the signal that ended it, or:
  124  it took longer than wall_s
  137  it was killed, as it is for mem_mb, pids, disk_mb and out_kb
  125  the sandbox could not be set up, and nothing ran
  126  it could not be started
  127  it was not found
  1, 3 it ended with 0, and its preview could not be applied (1), or was not (3)

Examples:
  windlass sandbox --policy workspace-write -- make test
  windlass sandbox --policy workspace-write --preview -- ./install.sh";

const SELECT_EXIT_CODES: &str = "\
Exit codes:
  0    some tool fits
  1    none does
  2    wrong usage or configuration";

const REDACT_EXIT_CODES: &str = "\
Exit codes:
  0    all of the input was cleaned, whether or not there was something to hide
  1    the input could not be read or the output not written
  2    wrong usage";

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the turn or the call failed, or the offline rules did not do what they were asked
  2    wrong usage or configuration
  3    a call was refused because nobody could approve it, and nothing later made up for it; or a preview was not applied
  4    a limit on time or tokens was reached, or the model went in circles
  130  interrupted";

/// Settings that every command takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonOptions {
    /// Set a configuration key, as in `-c model_reasoning_effort="high"`. May be repeated; the last one counts.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", global = true)]
    pub(crate) config: Vec<String>,
    /// How tightly commands are held.
    #[arg(short = 's', long, value_name = "MODE", value_enum, global = true)]
    pub(crate) sandbox: Option<SandboxFlag>,
    /// When to ask a person. `exec` asks nobody: what would need a question is refused.
    #[arg(
        short = 'a',
        long = "ask-for-approval",
        alias = "approval",
        value_name = "POLICY",
        value_enum,
        global = true
    )]
    pub(crate) approval: Option<ApprovalFlag>,
    /// No sandbox and no questions. Only for machines that are themselves a sandbox.
    #[arg(
        long = "dangerously-bypass-approvals-and-sandbox",
        alias = "yolo",
        conflicts_with_all = ["sandbox", "approval"],
        global = true
    )]
    pub(crate) bypass: bool,
    /// Work in this directory.
    #[arg(short = 'C', long = "cd", value_name = "DIR", global = true)]
    pub(crate) cd: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Every tool in one line.
    List {
        /// With these tools of your own, as programs (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// All there is to know about one tool.
    Show {
        /// The tool, by name or alias.
        name: String,
        /// With these tools of your own, as programs (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find tools by words and meaning, in English or Chinese; the best first.
    #[command(after_help = SELECT_EXIT_CODES)]
    Search(ToolQuery),
    /// Choose the tool for a request, or say that none fits.
    ///
    /// What a request forbids is left out: `do not change anything` leaves only what looks.
    #[command(after_help = SELECT_EXIT_CODES)]
    Select {
        #[command(flatten)]
        choosing: ToolQuery,
        /// Show what was understood, and every candidate with the parts of its score.
        #[arg(long)]
        explain: bool,
    },
    /// Answer every set of requests in a directory, for a scorer to judge.
    Bench {
        /// Where the sets are: `S.tools.jsonl`, `S.queries.jsonl`, `S_select.jsonl`, `S_irrel.jsonl`, `S_args.jsonl`,
        /// `S_params.jsonl`.
        dir: PathBuf,
        /// Where the predictions go.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Tokens that telling the model about tools costs, and which it must find.
    Cost {
        /// With these tools of your own, as programs (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// All tools by category, for a model or a person to read.
    Manifest {
        /// With these tools of your own, as programs (see docs/tools.md).
        #[arg(long, value_name = "FILE")]
        tools: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is wanted, and from which tools.
#[derive(Debug, Args)]
pub(crate) struct ToolQuery {
    /// What is wanted, in plain words or as a tool's name. With `-`, it is read from stdin.
    pub(crate) request: String,
    /// How many tools at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Choose from this list instead: one JSON object per line, or an array of them, with `name`, and `description`,
    /// `parameters` (a JSON Schema), `category`, `server`, `examples`, `changes` as far as known.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The sandbox modes, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxFlag {
    /// Nothing may be written, no network.
    ReadOnly,
    /// The workspace may be written, no network.
    WorkspaceWrite,
    /// No sandbox at all.
    DangerFullAccess,
    /// No sandbox of ours: something outside already holds everything.
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
    /// Before everything that is not known to be harmless.
    Untrusted,
    /// When the sandbox has stopped something.
    OnFailure,
    /// When the model asks for more than the sandbox allows.
    OnRequest,
    /// Never.
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

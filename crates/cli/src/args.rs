//! The command line. Its `--help` is the reference, so every doc comment here is user documentation.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass::{ApprovalPolicy, SandboxMode};

/// The tool-calling runtime for AI agents: a model asks for tools; Windlass decides, runs, records and answers.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent until it answers: progress on stderr, the answer on stdout.
    #[command(visible_alias = "e", after_help = EXIT_CODES)]
    Exec(Box<Exec>),
    /// Run one tool through the whole pipeline, without a model.
    #[command(after_help = EXIT_CODES)]
    Call(Call),
    /// Apply a patch to the files of this directory, all of it or nothing.
    #[command(name = "apply-patch", alias = "apply_patch")]
    ApplyPatch {
        /// The patch itself. Without it, or with `-`, it is read from stdin.
        patch: Option<std::ffi::OsString>,
    },
    /// Take back what tools have changed in files.
    Undo(Undo),
    /// See which tools there are.
    #[command(subcommand)]
    Tools(Tools),
    /// See how a model calls tools.
    #[command(subcommand)]
    Models(Models),
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
    Config(Config),
    /// See what would happen to a command, and why.
    #[command(subcommand)]
    Policy(Policy),
    /// How often tools work, how long they take and how they fail.
    Stats(Stats),
    /// Which calls there were, the newest first.
    History(History),
    /// All that is on record about one call.
    Show {
        /// The call: the name `windlass history` gives it (its beginning will do), or the one its model gave it.
        call: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say whether a call was of use. Tools are ranked by it; the verdict stays what it was.
    Feedback(Feedback),
    /// Prove what a session file says, or make a bug report from it.
    #[command(subcommand)]
    Audit(Audit),
    /// Take secrets out of text: stdin becomes stdout, with a label in the place of each.
    ///
    /// Secrets are known by their form, by the name they are given, and by their value if they are in the environment or
    /// in a `.env` file of this directory.
    #[command(after_help = REDACT_EXIT_CODES)]
    Redact(Redact),
}

const SANDBOX_EXIT_CODES: &str = "\
Exit codes are the command's own, 128 and the number of the signal that ended it, or:
  124  it took longer than wall_s
  125  the sandbox could not be set up, and nothing ran
  126  it could not be started
  127  it was not found";

const SELECT_EXIT_CODES: &str = "\
Exit codes:
  0    some tool fits
  1    none does
  2    wrong usage or configuration";

const PROBE_EXIT_CODES: &str = "\
Exit codes:
  0    the model calls tools, in the way that is recommended
  1    it does not, or its server could not be asked
  2    wrong usage or configuration
  4    the time was up
  130  interrupted";

const REDACT_EXIT_CODES: &str = "\
Exit codes:
  0    all of the input was cleaned, whether or not there was something to hide
  1    the input could not be read or the output not written
  2    wrong usage";

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the turn or the call failed
  2    wrong usage or configuration
  3    a call was refused because nobody could approve it, and nothing later made up for it
  4    a limit on time or tokens was reached, or the model went in circles
  130  interrupted";

/// The ends a call can have, and that it has none.
const STATUSES: [&str; 7] =
    ["success", "error", "timeout", "rejected", "permission_denied", "not_found", "running"];

/// Settings that every command takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Common {
    /// Set a configuration key, as in `-c model_reasoning_effort="high"`. May be repeated; the last one counts.
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", global = true)]
    pub(crate) config: Vec<String>,
    /// How tightly commands are held.
    #[arg(short = 's', long, value_name = "MODE", value_enum, global = true)]
    pub(crate) sandbox: Option<Sandbox>,
    /// When to ask a person. `exec` asks nobody: what would need a question is refused.
    #[arg(
        short = 'a',
        long = "ask-for-approval",
        alias = "approval",
        value_name = "POLICY",
        value_enum,
        global = true
    )]
    pub(crate) approval: Option<Approval>,
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

/// Run an agent until it answers.
#[derive(Debug, Args)]
pub(crate) struct Exec {
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
    /// openrouter, scripted, builtin (rules, no model).
    #[arg(short = 'p', long = "provider", value_name = "NAME", global = true)]
    pub(crate) provider: Option<String>,
}

/// What to know about a model.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Ask a model to call a few test tools, and find out how its calls must be read.
    ///
    /// Seven small tasks, first as the server itself sends calls and then, as needed, in the dialects that models write
    /// into their text. Nothing is run. Prints a score for each way that was tried and the lines of configuration for
    /// the best one.
    #[command(after_help = PROBE_EXIT_CODES)]
    Probe(Probe),
}

/// Ask a model to call a few test tools.
#[derive(Debug, Args)]
pub(crate) struct Probe {
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
pub(crate) struct Call {
    /// The tool, by name or alias.
    pub(crate) name: String,
    /// Its arguments as JSON (freeform tools: as text). Without it, or with `-`, read from stdin.
    pub(crate) input: Option<String>,
    /// Tools of your own, as programs (see docs/tools.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
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

/// Take back what tools have changed in files.
#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The call to take back, as `--list` names it. Without it, the newest that is not undone. Undoing is a call as well,
    /// and can be taken back by its name.
    #[arg(conflicts_with_all = ["turn", "list"])]
    pub(crate) call: Option<String>,
    /// Take back everything of the newest turn that is not undone.
    #[arg(long, conflicts_with = "list")]
    pub(crate) turn: bool,
    /// Only show what there is to take back, the newest last.
    #[arg(long)]
    pub(crate) list: bool,
    /// Look in this session. Without it: in the newest of this directory, or in what was changed here without one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

/// Run any command in the sandbox.
#[derive(Debug, Args)]
pub(crate) struct SandboxRun {
    /// How tightly it is held. The default is the configured sandbox mode.
    #[arg(long, value_name = "MODE", value_enum, conflicts_with = "sandbox")]
    pub(crate) policy: Option<Sandbox>,
    /// The workspace: where it starts and, with workspace-write, what it may write.
    #[arg(long, value_name = "DIR", conflicts_with = "cd")]
    pub(crate) cwd: Option<PathBuf>,
    /// Another directory it may write (with workspace-write). May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,
    /// A file or directory it may not read. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) deny_read: Vec<PathBuf>,
    /// A limit: pids, mem_mb, fsize_mb, disk_mb, out_kb, cpu_s, wall_s or nofile. May be repeated.
    #[arg(long, value_name = "NAME=NUMBER")]
    pub(crate) limit: Vec<String>,
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

/// Take secrets out of text.
#[derive(Debug, Args)]
pub(crate) struct Redact {
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

/// How often tools work, how long they take and how they fail.
#[derive(Debug, Args)]
pub(crate) struct Stats {
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
pub(crate) struct History {
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
    pub(crate) feedback: Option<Said>,
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether a call was of use.
#[derive(Debug, Args)]
pub(crate) struct Feedback {
    /// The call: the name `windlass history` gives it (its beginning will do), or the one its model gave it.
    pub(crate) call: String,
    /// Whether it was.
    #[arg(value_enum, required_unless_present = "clear", conflicts_with = "clear")]
    pub(crate) rating: Option<Said>,
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
pub(crate) enum Said {
    /// It did what you wanted.
    Good,
    /// It did not.
    Bad,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
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

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Every tool in one line.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// All there is to know about one tool.
    Show {
        /// The tool, by name or alias.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find tools by words and meaning, in English or Chinese; the best first.
    #[command(after_help = SELECT_EXIT_CODES)]
    Search(Choosing),
    /// Choose the tool for a request, or say that none fits.
    ///
    /// What a request forbids is left out: `do not change anything` leaves only what looks.
    #[command(after_help = SELECT_EXIT_CODES)]
    Select {
        #[command(flatten)]
        choosing: Choosing,
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
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What is wanted, and from which tools.
#[derive(Debug, Args)]
pub(crate) struct Choosing {
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

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
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
pub(crate) enum Policy {
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
    Suggest(Suggest),
}

/// Which rules are proposed, and what becomes of them.
#[derive(Debug, Args)]
pub(crate) struct Suggest {
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

/// The sandbox modes, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
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

impl From<Sandbox> for SandboxMode {
    fn from(mode: Sandbox) -> Self {
        match mode {
            Sandbox::ReadOnly => Self::ReadOnly,
            Sandbox::WorkspaceWrite => Self::WorkspaceWrite,
            Sandbox::DangerFullAccess => Self::DangerFullAccess,
            Sandbox::External => Self::External,
        }
    }
}

/// The approval policies, as flags spell them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approval {
    /// Before everything that is not known to be harmless.
    Untrusted,
    /// When the sandbox has stopped something.
    OnFailure,
    /// When the model asks for more than the sandbox allows.
    OnRequest,
    /// Never.
    Never,
}

impl From<Approval> for ApprovalPolicy {
    fn from(policy: Approval) -> Self {
        match policy {
            Approval::Untrusted => Self::Untrusted,
            Approval::OnFailure => Self::OnFailure,
            Approval::OnRequest => Self::OnRequest,
            Approval::Never => Self::Never,
        }
    }
}

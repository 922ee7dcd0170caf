//! Windlass: the tool-calling runtime for AI agents.
//!
//! A model asks for tools; Windlass routes, decides, contains, runs, cleans, judges, records and
//! answers. This crate is the front door: everything an embedding program needs is re-exported
//! here, and nothing else is in it.
//!
//! ```
//! use windlass::{Agent, Output, ToolError, tool};
//!
//! /// Add two numbers.
//! #[tool(pure)]
//! async fn add(
//!     /// The first.
//!     a: f64,
//!     /// The second.
//!     b: f64,
//! ) -> Result<Output, ToolError> {
//!     Ok((a + b).to_string().into())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = r#"{"turns": [
//!     {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]},
//!     {"text": "The sum is 5."}
//! ]}"#;
//! let model = windlass::model::scripted(script)?;
//! let mut agent = Agent::builder().model(model).tool(add()).build()?;
//! assert_eq!(agent.ask("What is two and three?").await?, "The sum is 5.");
//! # Ok(())
//! # }
//! ```
//!
//! A message can join a turn that runs: [`SteeringInput`] is given to it from anywhere.
//!
//! ```
//! use windlass::{Agent, Content};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let script = r#"{"turns": [{"text": "Blue."}, {"text": "Or green."}]}"#;
//! # let model = windlass::model::scripted(script)?;
//! let mut agent = Agent::builder().model(model).build()?;
//! let steering = agent.steering().clone();
//! steering.push(vec![Content::Text("Not red.".to_owned())]);
//! assert_eq!(agent.ask("Which colour?").await?, "Blue.");
//! assert!(steering.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! An agent uses the tools of MCP servers. Each server runs in a sandbox of its own, which lets it
//! read and no more; the fields of its configuration widen that.
//!
//! ```no_run
//! use windlass::{Agent, McpServers, mcp::config::McpServerConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = windlass::model::scripted(r#"{"turns": []}"#)?;
//! let server = McpServerConfig {
//!     command: Some("mcp-server-git".to_owned()),
//!     args: vec!["--repository".to_owned(), ".".to_owned()],
//!     ..McpServerConfig::default()
//! };
//! let servers = McpServers::new("/home/u/project")
//!     .server("git", server)
//!     .environment(std::env::vars().collect())
//!     .start()?;
//! let mut agent = Agent::builder().model(model).tool_source(servers).build()?;
//! println!("{}", agent.ask("What has changed since yesterday?").await?);
//! # Ok(())
//! # }
//! ```
//!
//! Settings come in groups with defaults: [`TurnLimits`], [`ContextSettings`], [`StorageSettings`]
//! and [`ReviewSettings`]. A [`host::Machine`] has those of commands.
//!
//! ```
//! use std::time::Duration;
//!
//! use windlass::{Agent, ContextSettings, TurnLimits};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = windlass::model::scripted(r#"{"turns": []}"#)?;
//! let instructions = Some("You answer in one sentence.".to_owned());
//! let agent = Agent::builder()
//!     .model(model)
//!     .context(ContextSettings { instructions, ..ContextSettings::default() })
//!     .limits(TurnLimits { time: Some(Duration::from_secs(60)), ..TurnLimits::default() })
//!     .build()?;
//! # Ok(())
//! # }
//! ```

pub use windlass_agent::{
    Agent, AgentBuilder, AgentError, AgentRole, AnswerSchema, BudgetLimits, BudgetSpent, BuildError,
    CommandSessions, CompactAt, CompactionReport, ContextSettings, EditTools, Family, FileTools,
    ForkedSession, HookCommands, McpServers, MentionLoader, ModelEntry, ModelPrices, ModelTable,
    ModelTokenizer, MoneySpent, RequestParts, ReviewSettings, RunningCommand, SessionBudget, SessionFork,
    SessionForkError, ShellKind, StandingInstructions, SteeringInput, StorageSettings, SubAgentSettings,
    TOOL_CONTEXT_PERCENT, TokenCounter, TokenPrice, ToolBudget, Toolset, TurnDiff, TurnLimits, TurnReport,
    UndoRecording, Vocabulary, built_in_roles, image_url, index, program, recover_edits, usage,
};
pub use windlass_contract::{
    AnyTool, BoxFuture, CallId, Clean, Content, Cx, Denial, Effects, Event, Grant, Host, Input, Item, Meta,
    Outcome, Output, ParsedCall, Ready, Sandbox, Tool, ToolCall, ToolError, ToolName, ToolSpec, Verdict,
    approval::{Answer, AnsweredBy, Approver, Beyond, Offer, Question, QuestionDetails, Reach, Rulebook},
    call::InputKind,
    compaction::{CompactedHistory, CompactionMethod, CompactionReason, FileInUse, WorkNotes},
    edit::{Action, Archive, Change, Changed, CommitError, Expected, Version},
    effects::{CommandLine, Escalation, Network, OutwardEffect, Typed},
    elicitation::{
        Asker, ChoiceOption, ChoiceQuestion, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor,
    },
    erase,
    event::{ContextParts, EditKind, EventEmitter, EventSink, FileEdit, Plan, PlanStatus, PlanStep, Silent},
    files::{FileError, FileKind, Files, OpenFile},
    grant::{Confinement, DefaultLimits, DirectProgram, Held, Limits, Mechanism, Quota, SandboxRules},
    host::{ApartOutput, Command, ConfineError, Exit, FinishedCommand, HostError, Layer, Proof},
    id::ThreadId,
    item::{Body, Cached, Raw, Role},
    journal::{Feedback, ParentKind, ParentSession, Rating, Rewind},
    meta::{AliasMeaning, Category, Example, Format, ParameterAlias},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt, Retry, Usage},
    outcome::{Facts, Receipt, Refusal, Status, View},
    policy::{ApprovalPolicy, SandboxMode},
    program::{ProgramFile, ProgramFinder, ProgramSearch},
    program_message::is_of_program,
    report::{ProcessReport, SearchMatch, SearchReport, SessionReport, StreamReport, ToolReport},
    spec::{SpecKind, WebSearch},
    sub_agent::{AgentStatus, agent_news},
    tool::{ErrorKind, LookFirst, tool as tool_from},
    verdict::{Criteria, Gives, Marks, Must, Opinion, Reviewer},
    wording::{
        CallWords, OutputExcerpt, counted, duration_in_words, first_line, is_same_apart_from_numbers,
        outcome_words, progress_line, shell_quote, shell_script, shortened, split_shell,
    },
};
pub use windlass_macros::tool;
pub use windlass_runtime::{
    Batch, Budget, Deferral, DefinitionErrors, Exposure, FinishedCall, Gate, Indexer, LiveRules, Policy,
    PreparedCall, Quarantined, Reason, Registered, Registry, Review, SearchForm, SessionApprovals, Shaper,
    Stop, Toolbox, Verdicts,
};
pub use windlass_schema::{Schema, SchemaError};

/// The machine: processes and confinement.
pub mod host {
    pub use windlass_host::*;
}

/// Instruction files: documents of a project, skills and prompts.
pub mod instructions {
    pub use windlass_instructions::*;
}

/// The Model Context Protocol.
pub mod mcp {
    pub use windlass_contract::remote::*;
    pub use windlass_mcp::*;
}

/// Hooks: their configuration, and what they are told.
pub mod hooks {
    pub use windlass_contract::hooks::*;
    pub use windlass_hooks::*;
}

/// Clients of models.
pub mod model {
    pub use windlass_model::*;
}

/// Patches and diffs.
pub mod patch {
    pub use windlass_patch::*;
}

/// The policy: effects of command lines, and rules.
pub mod policy {
    pub use windlass_policy::*;
}

/// Session files, the index of calls and the edit log.
pub mod record {
    pub use windlass_record::*;
}

/// Tool selection for a request.
pub mod select {
    pub use windlass_select::*;
}

/// Redaction of secrets.
pub mod clean {
    pub use windlass_contract::secret_names::is_secret_name;
    pub use windlass_shape::{Cleaner, Finding, Secrets};
}

/// Insights into results.
pub mod insight {
    pub use windlass_contract::insight::{
        CommandInsight, Detail, Diagnostic, Diagnostics, ExitClass, FileInsight, Hits, Insight, Place,
        SearchInsight, Section, Severity, SlowTest, TestFailure, TestReport,
    };
}

/// Rendering of results for people and programs.
pub mod render {
    pub use windlass_shape::{CallReport, verdict};
}

/// Items that the code made by `#[tool]` refers to. Not a public interface.
#[doc(hidden)]
pub mod __macro {
    pub use schemars;
    pub use serde;
    pub use windlass_contract::*;
}

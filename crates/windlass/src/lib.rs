//! Windlass: the tool-calling runtime for AI agents.
//!
//! A model asks for tools; Windlass routes, decides, contains, runs, cleans, judges, records and answers. This crate is
//! the front door: everything an embedding program needs is re-exported here, and nothing else is in it.
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

pub use windlass_agent::{
    Agent, AgentBuilder, AgentError, AnswerSchema, BuildError, EditTools, Family, FileTools, ShellKind,
    TOOL_CONTEXT_PERCENT, Toolset, TurnReport, index, program, recover_edits, usage,
};
pub use windlass_contract::{
    Action, AliasMeaning, Answer, AnsweredBy, AnyTool, ApartOutput, ApprovalPolicy, Approver, Archive,
    Beyond, Body, BoxFuture, Cached, CallId, Category, Change, Changed, Command, CommandFacts, CommandLine,
    CommitError, ConfineError, Confinement, Content, Criteria, Cx, DefaultLimits, Denial, DirectProgram,
    EditKind, Effects, ErrorKind, Escalation, Event, EventSink, Example, Exit, Expected, Facts, Feedback,
    FileEdit, FileError, FileKind, Files, Finish, Finished, Format, Gives, Grant, Held, Host, HostError,
    Input, InputKind, Item, Layer, Limits, Look, Marks, Mechanism, Meta, ModelClient, ModelError, ModelEvent,
    ModelInfo, ModelStream, Must, Network, Offer, OpenFile, Opinion, Outcome, Output, OutwardEffect,
    ParameterAlias, Plan, PlanStatus, PlanStep, Profile, ProgramFile, ProgramFinder, ProgramSearch, Prompt,
    Proof, Question, Quota, Rating, Raw, Reach, Ready, Receipt, Refusal, Retry, Reviewer, Role, Rulebook,
    Sandbox, SandboxMode, SandboxRules, Schema, SchemaError, Silent, SpecKind, Status, ThreadId, Tool,
    ToolCall, ToolError, ToolName, ToolSpec, Typed, Usage, Verdict, Version, View, WebSearch, counted, erase,
    tool as tool_from,
};
pub use windlass_macros::tool;
pub use windlass_runtime::{
    Batch, Budget, Deferral, DefinitionErrors, Exposure, Gate, Indexer, Policy, Quarantined, Reason,
    Registered, Registry, Review, SearchForm, Shaper, Stop, Toolbox, Verdicts,
};

/// The machine: processes and confinement.
pub mod host {
    pub use windlass_host::*;
}

/// How models are spoken to.
pub mod model {
    pub use windlass_model::*;
}

/// Patches and diffs.
pub mod patch {
    pub use windlass_patch::*;
}

/// What a command line would do.
pub mod policy {
    pub use windlass_policy::*;
}

/// What is written down.
pub mod record {
    pub use windlass_record::*;
}

/// Which tools fit a request.
pub mod select {
    pub use windlass_select::*;
}

/// Secrets out of text.
pub mod clean {
    pub use windlass_shape::{Cleaner, Finding, Secrets};
}

/// What a result means.
pub mod insight {
    pub use windlass_contract::{
        CommandInsight, Detail, Diagnostic, Diagnostics, ExitClass, FileInsight, Hits, Insight, Place,
        SearchInsight, Section, Severity, SlowTest, TestFailure, TestReport,
    };
}

/// How results are written for people and programs.
pub mod render {
    pub use windlass_shape::{CallReport, verdict};
}

/// What the code made by `#[tool]` refers to. Not for people.
#[doc(hidden)]
pub mod __macro {
    pub use schemars;
    pub use serde;
    pub use windlass_contract::*;
}

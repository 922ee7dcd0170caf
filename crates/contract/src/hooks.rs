//! Hooks: programs of the user that are told about steps of a session, and may object.
//!
//! A hook can tighten: refuse a call, have it asked about, add a text for the model. It cannot
//! widen: no answer of a hook makes the gate skip anything.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{BoxFuture, grant::millis};

/// Runs the hooks of a session. Implemented by `hooks`, called by the runtime and the agent.
pub trait Hooks: Send + Sync {
    /// Returns true if a hook wants to be told about this step. `names` are what its matcher may
    /// match: the names of a tool, or the reason of the step. Must be cheap.
    fn listens(&self, event: HookEvent, names: &[&str]) -> bool;

    /// Returns true the first time that it is asked about a session: its start is to be told. An
    /// agent with other settings goes on with the same session.
    fn begins(&self, session: &str) -> bool;

    /// Tells all hooks of a step, one after the other, until one refuses. Each sees the input as
    /// the one before has changed it. Every run is bounded in time and output; nothing of it is
    /// left afterwards, also if the future is dropped.
    fn run<'a>(&'a self, step: &'a HookStep) -> BoxFuture<'a, Vec<HookRun>>;
}

/// A step that hooks are told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum HookEvent {
    /// A call is about to pass the gate.
    PreToolUse,
    /// A person is about to be asked about a call.
    PermissionRequest,
    /// A call has run.
    PostToolUse,
    /// The user has sent a message.
    UserPromptSubmit,
    /// A session begins, or goes on.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The conversation is about to be shortened.
    PreCompact,
    /// The agent has answered.
    Stop,
    /// An agent that another agent has started has answered.
    SubagentStop,
}

impl HookEvent {
    /// All steps, in the order of a session.
    pub const ALL: [Self; 9] = [
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PreCompact,
        Self::Stop,
        Self::SubagentStop,
        Self::SessionEnd,
    ];

    /// Returns the name on every wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::PreCompact => "PreCompact",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
        }
    }

    /// Returns true if a hook can prevent the step. Such a hook denies if it fails, unless its
    /// configuration says otherwise.
    pub fn is_guard(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A step of a session, as its hooks see it.
#[derive(Debug, Clone, PartialEq)]
pub struct HookStep {
    /// The step.
    pub event: HookEvent,
    /// The text that a matcher is compared with.
    pub names: Vec<String>,
    /// The object that a hook reads from its input.
    pub input: Map<String, Value>,
}

/// The run of one hook. Its texts are untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct HookRun {
    /// The step.
    pub event: HookEvent,
    /// Name of the hook.
    pub hook: String,
    /// The answer in one word.
    pub verdict: HookVerdict,
    /// Reason of the answer; for a failure, its cause. May be empty.
    pub reason: String,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// The arguments that the call is to have instead.
    pub updated_input: Option<Value>,
    /// The turn is to end, for this reason.
    pub end_turn: Option<String>,
    /// Running time.
    pub duration: Duration,
}

/// The answer of a hook in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookVerdict {
    /// It has no objection.
    Pass,
    /// A person is to be asked.
    Ask,
    /// It refuses.
    Deny,
    /// It failed, and its failure does not matter.
    FailedIgnored,
    /// It failed, and its failure refuses.
    FailedDenied,
}

impl HookVerdict {
    /// Returns true if the step must not happen.
    pub fn is_denial(self) -> bool {
        matches!(self, Self::Deny | Self::FailedDenied)
    }

    /// Returns the name used on every wire and screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::FailedIgnored => "failed_ignored",
            Self::FailedDenied => "failed_denied",
        }
    }
}

/// The run of one hook, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The step.
    pub step: HookEvent,
    /// Name of the hook.
    pub hook: String,
    /// The answer in one word.
    pub verdict: HookVerdict,
    /// Reason of the answer; for a failure, its cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Text that the model gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The arguments that the call has instead, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<String>,
    /// Running time.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
}

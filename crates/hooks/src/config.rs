//! The configuration of hooks.

use std::{collections::BTreeMap, num::NonZeroU64, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_contract::{
    hooks::HookEvent,
    remote::{ServerProfile, ServerSandbox},
};

use crate::command_hooks::HookMatcher;

/// Time limit of a hook that sets none.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_mins(1);

/// The hooks, by the step that they are told about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "PascalCase")]
pub struct HooksConfig {
    /// A session begins, or goes on. Matched: `startup`, `resume`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_start: Vec<HookGroup>,
    /// The user has sent a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_prompt_submit: Vec<HookGroup>,
    /// A call is about to pass the gate. Matched: the name of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_tool_use: Vec<HookGroup>,
    /// A person is about to be asked about a call. Matched: the name of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_request: Vec<HookGroup>,
    /// A call has run. Matched: the name of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub post_tool_use: Vec<HookGroup>,
    /// The conversation is about to be shortened. Matched: `auto`, `manual`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_compact: Vec<HookGroup>,
    /// The agent has answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<HookGroup>,
    /// An agent that another agent has started has answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagent_stop: Vec<HookGroup>,
    /// A session ends. Matched: the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_end: Vec<HookGroup>,
}

impl HooksConfig {
    /// Returns the groups of a step.
    pub fn groups(&self, event: HookEvent) -> &[HookGroup] {
        match event {
            HookEvent::SessionStart => &self.session_start,
            HookEvent::UserPromptSubmit => &self.user_prompt_submit,
            HookEvent::PreToolUse => &self.pre_tool_use,
            HookEvent::PermissionRequest => &self.permission_request,
            HookEvent::PostToolUse => &self.post_tool_use,
            HookEvent::PreCompact => &self.pre_compact,
            HookEvent::Stop => &self.stop,
            HookEvent::SubagentStop => &self.subagent_stop,
            HookEvent::SessionEnd => &self.session_end,
        }
    }

    /// Returns an error if a hook cannot be used.
    pub fn check(&self) -> Result<(), HookConfigError> {
        for event in HookEvent::ALL {
            for group in self.groups(event) {
                HookMatcher::parse(event, group.matcher.as_deref())?;
                if group.hooks.iter().any(|hook| hook.command.is_empty()) {
                    return Err(HookConfigError::NoCommand { event });
                }
            }
        }
        Ok(())
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        HookEvent::ALL.iter().all(|event| self.groups(*event).iter().all(|group| group.hooks.is_empty()))
    }
}

/// Hooks with the same matcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct HookGroup {
    /// Regular expression for the whole name of a tool, or for the reason of the step. Unset, empty
    /// or `*` matches everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The hooks, in the order in which they run.
    pub hooks: Vec<HookHandler>,
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct HookHandler {
    /// The kind of the hook: a command.
    #[serde(default, rename = "type")]
    pub kind: HandlerKind,
    /// Name for records and messages. The default is the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A line for `sh -c`, or a program with its arguments.
    pub command: HookCommand,
    /// Time limit in seconds; 60 if it is unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<NonZeroU64>,
    /// `deny` counts a failure of the hook as a refusal, `ignore` does not. The default is `deny`
    /// for the steps that a hook can prevent (`PreToolUse`, `PermissionRequest`,
    /// `UserPromptSubmit`), and `ignore` for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The sandbox of the hook: `read-only`, `workspace-write` or `none`.
    #[serde(default)]
    pub sandbox: ServerSandbox,
    /// Allows the network.
    #[serde(default)]
    pub network: bool,
    /// Directories that it may write in addition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// Additional variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl HookHandler {
    /// Creates a hook with the default settings.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            kind: HandlerKind::Command,
            name: None,
            command: HookCommand::Line(command.into()),
            timeout: None,
            on_failure: None,
            sandbox: ServerSandbox::ReadOnly,
            network: false,
            writable: Vec::new(),
            env: BTreeMap::new(),
        }
    }

    /// Returns the name for records and messages.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.command.to_string())
    }

    /// Returns the time limit.
    pub fn time_limit(&self) -> Duration {
        self.timeout.map_or(DEFAULT_TIME_LIMIT, |seconds| Duration::from_secs(seconds.get()))
    }

    /// Returns true if a failure counts as a refusal.
    pub fn denies_on_failure(&self, event: HookEvent) -> bool {
        self.on_failure.map_or(event.is_guard(), |choice| choice == OnFailure::Deny)
    }

    /// Returns its confinement.
    pub fn profile(&self) -> ServerProfile {
        ServerProfile {
            sandbox: self.sandbox,
            network: self.network,
            writable: self.writable.clone(),
            memory_bytes: None,
        }
    }

    /// Returns true if it has exactly the access that every hook has.
    pub fn is_confined_as_usual(&self) -> bool {
        self.profile() == ServerProfile::default() && self.env.is_empty()
    }
}

/// The kinds of hooks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HandlerKind {
    /// A command.
    #[default]
    Command,
}

/// The command of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum HookCommand {
    /// A line for `sh -c`.
    Line(String),
    /// A program with its arguments.
    Argv(Vec<String>),
}

impl HookCommand {
    /// Returns the program with its arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Line(line) => ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            Self::Argv(argv) => argv.clone(),
        }
    }

    /// Returns the first word of the command, if it is a plain word: the program, as far as that is
    /// known without a shell.
    pub fn program(&self) -> Option<&str> {
        let word = match self {
            Self::Line(line) => line.split_whitespace().next()?,
            Self::Argv(argv) => return argv.first().map(String::as_str),
        };
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | '@');
        word.chars().all(is_plain).then_some(word)
    }

    /// Returns true if there is nothing to run.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Line(line) => line.trim().is_empty(),
            Self::Argv(argv) => argv.first().is_none_or(String::is_empty),
        }
    }
}

impl std::fmt::Display for HookCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line),
            Self::Argv(argv) => f.write_str(&argv.join(" ")),
        }
    }
}

/// Meaning of a failure of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnFailure {
    /// It refuses.
    Deny,
    /// It does not matter.
    Ignore,
}

/// Reason that a configuration of hooks cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookConfigError {
    /// A matcher is not a regular expression.
    #[error("`hooks.{event}`: the matcher `{matcher}` is not a regular expression: {reason}")]
    Matcher {
        /// The step.
        event: HookEvent,
        /// The matcher.
        matcher: String,
        /// The error in it.
        reason: String,
    },
    /// A hook has no command.
    #[error("`hooks.{event}`: `command` is empty")]
    NoCommand {
        /// The step.
        event: HookEvent,
    },
}

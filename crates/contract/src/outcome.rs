//! Outcomes. Every call ends in an [`Outcome`]; running a call cannot fail in any other way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CallId, Content, Denial, ToolName, Verdict,
    grant::{Held, millis},
    host::{Exit, Whole},
    insight::Insight,
    meta::Format,
    report::{ProcessReport, RemoteReport, SessionReport, ToolReport, record_form::boxed_command},
};

mod for_model;

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Way it ended.
    pub status: Status,
    /// Its content, already cleaned and cut. [`for_model`](Self::for_model) writes it in the format
    /// that the tool's models know.
    pub content: Vec<Content>,
    /// Presentation of the content to a model.
    #[serde(default, skip_serializing_if = "View::is_default")]
    pub view: View,
    /// The result as data, if the tool returns any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ToolReport>,
    /// Observed facts.
    #[serde(default, skip_serializing_if = "Facts::is_none")]
    pub facts: Facts,
    /// Meaning of the facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insight: Option<Insight>,
    /// Judgement, from the facts, of whether the call did what was requested.
    pub verdict: Verdict,
    /// Record of how the call was decided, confined and run.
    pub receipt: Receipt,
}

impl Outcome {
    /// Builds an outcome that has nothing but a verdict and a text.
    pub fn plain(verdict: Verdict, text: impl Into<String>) -> Self {
        Self {
            status: if verdict.success { Status::Success } else { Status::Error },
            content: vec![Content::Text(text.into())],
            view: View::default(),
            data: None,
            facts: Facts::None,
            insight: None,
            verdict,
            receipt: Receipt::default(),
        }
    }

    /// Returns the text of all parts of the content, one part per line.
    pub fn text(&self) -> String {
        Content::join(&self.content)
    }
}

/// Presentation of a result to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Format that its tool uses.
    pub format: Format,
    /// Total number of lines, if some were cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// True if the model also reads the verdict, as one line at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verdict: bool,
}

impl View {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The six ends of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran and succeeded.
    Success,
    /// It ran and failed (for a command: exit code other than 0), or its input was invalid.
    Error,
    /// It exceeded its time limit.
    Timeout,
    /// A person or the policy refused it, or it was cancelled. It did not finish.
    Rejected,
    /// The system or the sandbox blocked it.
    PermissionDenied,
    /// The tool does not exist, or the file, directory or program that it was to use.
    NotFound,
}

impl Status {
    /// Returns the name used on every wire and screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Rejected => "rejected",
            Self::PermissionDenied => "permission_denied",
            Self::NotFound => "not_found",
        }
    }
}

/// Facts observed while a call ran: numbers and codes, never prose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Facts {
    /// None besides the content.
    #[default]
    None,
    /// A command ran.
    Command(#[serde(with = "boxed_command")] Box<ProcessReport>),
    /// A command ran or still runs as a session.
    Session(Box<SessionReport>),
    /// A tool of an MCP server ran.
    Remote(RemoteReport),
}

impl Facts {
    /// Returns the location of the full output, if it is long.
    pub fn whole(&self) -> Option<&Whole> {
        match self {
            Self::None => None,
            Self::Command(command) => command.whole.as_ref(),
            Self::Session(session) => session.report.whole.as_ref(),
            Self::Remote(remote) => remote.whole.as_ref(),
        }
    }

    /// Returns the end of the command, if it has ended.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::None | Self::Remote(_) => None,
            Self::Command(command) => Some(command.exit),
            Self::Session(session) => session.report.exit,
        }
    }

    /// Returns the names of the programs that still ran at the end and were killed.
    pub fn killed(&self) -> &[String] {
        match self {
            Self::None | Self::Remote(_) => &[],
            Self::Command(command) => &command.killed,
            Self::Session(session) => &session.report.killed,
        }
    }

    /// Returns what the sandbox blocked.
    pub fn denials(&self) -> &[Denial] {
        match self {
            Self::None | Self::Remote(_) => &[],
            Self::Command(command) => &command.denials,
            Self::Session(session) => &session.report.denials,
        }
    }

    /// Takes the parts that belong to the receipt: the denials, and the confinement of the process.
    pub fn take_confinement(&mut self) -> (Vec<Denial>, Option<Held>) {
        match self {
            Self::None | Self::Remote(_) => (Vec::new(), None),
            Self::Command(command) => command.take_confinement(),
            Self::Session(session) => session.report.take_confinement(),
        }
    }

    /// Returns the number of bytes printed, kept or not.
    pub fn output_bytes(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Command(command) => Some(command.output_bytes),
            Self::Session(session) => Some(session.report.output_bytes),
            Self::Remote(remote) => Some(remote.output_bytes),
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Record of how a call was decided, confined and run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Confinement that was enforced; absent if the call never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Reason that the call was allowed; empty if it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decision: String,
    /// Running time: from the router to the verdict, without the wait for an approval.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Accesses that the sandbox blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Reason that the call was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// True if no tool has the name that was called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_tool: bool,
    /// Differences between the arguments that ran and those the model wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// Hooks that were told about the call, each with its answer in one line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Texts that hooks have added for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hook_notes: Vec<String>,
    /// Changes of its command that cannot be undone, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo_limits: Vec<String>,
}

/// A refused call, as reported at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// Reason for the refusal.
    pub reason: String,
    /// True if it was done after all: the same call or command succeeded later, or a call that
    /// wrote the same files.
    pub made_up_for: bool,
}

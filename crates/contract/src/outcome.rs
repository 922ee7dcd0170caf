//! Outcomes. Every end of a call is an [`Outcome`]; running a call cannot fail in any other way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CallId, Content, Denial, ToolName, Verdict,
    grant::{Held, millis},
    host::{Exit, Whole},
    insight::Insight,
    meta::Format,
    report::{ProcessReport, SessionReport, ToolReport, record_form::boxed_command},
};

mod for_model;

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// What came of it, already cleaned and cut. [`for_model`](Self::for_model) writes it the way the tool's models
    /// know.
    pub content: Vec<Content>,
    /// How a model is shown the content.
    #[serde(default, skip_serializing_if = "View::is_default")]
    pub view: View,
    /// The result as data, where the tool has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ToolReport>,
    /// What was observed.
    #[serde(default, skip_serializing_if = "Facts::is_none")]
    pub facts: Facts,
    /// What that means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insight: Option<Insight>,
    /// Whether it did what was asked, judged from the facts.
    pub verdict: Verdict,
    /// How it was decided, held and run.
    pub receipt: Receipt,
}

impl Outcome {
    /// An outcome of which nothing is known but how it is judged and what is said of it.
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

    /// All text of the content, one part per line.
    pub fn text(&self) -> String {
        Content::join(&self.content)
    }
}

/// How a model is shown a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The form its tool uses.
    pub format: Format,
    /// How many lines there were, if some were cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// Whether the model reads the verdict too, as one line at the end.
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
    /// It ran and did what it does.
    Success,
    /// It ran and failed (a command: with another code than 0), or its input was wrong.
    Error,
    /// Its time was up.
    Timeout,
    /// Someone, or the policy for everyone, said no; or it was cancelled. It did not finish.
    Rejected,
    /// The system or the sandbox stopped it.
    PermissionDenied,
    /// There is no such tool, or no such file, directory or program as it was to work on.
    NotFound,
}

impl Status {
    /// The name used on every wire and screen.
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

/// What was observed while a call ran: numbers and codes, never prose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Facts {
    /// Nothing beyond the content.
    #[default]
    None,
    /// A command ran.
    Command(#[serde(with = "boxed_command")] Box<ProcessReport>),
    /// A command ran or still runs, as a session.
    Session(Box<SessionReport>),
}

impl Facts {
    /// Where all of a long output is.
    pub fn whole(&self) -> Option<&Whole> {
        match self {
            Self::None => None,
            Self::Command(command) => command.whole.as_ref(),
            Self::Session(session) => session.report.whole.as_ref(),
        }
    }

    /// How the command ended, if one did.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::None => None,
            Self::Command(command) => Some(command.exit),
            Self::Session(session) => session.report.exit,
        }
    }

    /// What was still running at the end and was killed, by name.
    pub fn killed(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::Command(command) => &command.killed,
            Self::Session(session) => &session.report.killed,
        }
    }

    /// What the sandbox stopped.
    pub fn denials(&self) -> &[Denial] {
        match self {
            Self::None => &[],
            Self::Command(command) => &command.denials,
            Self::Session(session) => &session.report.denials,
        }
    }

    /// Takes what belongs to the receipt: what the sandbox stopped, and what held the process.
    pub fn take_confinement(&mut self) -> (Vec<Denial>, Option<Held>) {
        match self {
            Self::None => (Vec::new(), None),
            Self::Command(command) => command.take_confinement(),
            Self::Session(session) => session.report.take_confinement(),
        }
    }

    /// How much was printed, kept or not.
    pub fn output_bytes(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Command(command) => Some(command.output_bytes),
            Self::Session(session) => Some(session.report.output_bytes),
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How a call was decided, held and run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What really held it; absent if it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Who let it run; empty if nobody did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decision: String,
    /// Time from the router to the verdict.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// What the sandbox stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Set if nobody said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Set if there is no tool of the name that was called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_tool: bool,
    /// In what the arguments that ran differ from those the model wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    /// The changes of its command that cannot be undone, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo_limits: Vec<String>,
}

/// A call that nobody allowed, as reported at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// Why it was refused.
    pub reason: String,
    /// Whether it was done after all: the same call or command succeeded later, or a call that wrote the same files.
    pub made_up_for: bool,
}

//! Verdicts: what a call is judged on, what its tool promises, and the judgement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Outcome, ToolCall};

/// Whether a call did what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Yes or no.
    pub success: bool,
    /// How sure that is, in per cent. What the system said is certain; what was weighed is as sure as its weight.
    #[serde(default = "certain")]
    pub confidence: u8,
    /// The points it got in each dimension. All zero if it did not come to weighing.
    #[serde(default, skip_serializing_if = "Marks::is_none")]
    pub marks: Marks,
    /// Why, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What to do about it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

impl Verdict {
    /// It did, without a doubt.
    pub fn success() -> Self {
        Self {
            success: true,
            confidence: certain(),
            marks: Marks::default(),
            reasons: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    /// It did not, and this is why.
    pub fn failure(reason: impl Into<String>) -> Self {
        Self { success: false, reasons: vec![reason.into()], ..Self::success() }
    }

    /// Takes in what somebody thinks who looked at it. An opinion makes a verdict worse or less sure, never better.
    pub fn lower(&mut self, opinion: Opinion) {
        let Opinion { success, confidence, reasons, suggestions } = opinion;
        let confidence = confidence.min(certain());
        match (self.success, success) {
            (true, true) => self.confidence = self.confidence.min(confidence),
            (true, false) => (self.success, self.confidence) = (false, confidence),
            (false, _) => return,
        }
        self.reasons.extend(reasons);
        self.suggestions.extend(suggestions);
    }

    /// One line for a model or a person.
    pub fn line(&self) -> String {
        let word = if self.success { "success" } else { "failure" };
        let sure = match self.confidence {
            100.. => String::new(),
            less => format!(" ({less} % sure)"),
        };
        let why =
            self.reasons.iter().chain(&self.suggestions).map(String::as_str).collect::<Vec<_>>().join("; ");
        let colon = if why.is_empty() { "" } else { ": " };
        format!("Verdict: {word}{sure}{colon}{why}")
    }
}

/// What somebody thinks of a call who looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Opinion {
    /// Whether it did what was asked.
    pub success: bool,
    /// How sure that is, in per cent.
    pub confidence: u8,
    /// Why, one line each.
    pub reasons: Vec<String>,
    /// What to do about it, one line each.
    pub suggestions: Vec<String>,
}

/// Looks at calls that seem to have gone well. Implemented by whoever can ask a model, called by the runtime for calls
/// that may have changed something.
pub trait Reviewer: Send + Sync {
    /// Forms an opinion, or says in one line why there is none.
    fn review<'a>(
        &'a self,
        call: &'a ToolCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Opinion, String>>;
}

fn certain() -> u8 {
    100
}

/// The six dimensions of a judgement: five with points, of a hundred together, and one that can only fail it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// It ended as it should.
    pub status: u8,
    /// It gave something back.
    pub data: u8,
    /// What it gave has the promised form.
    pub format: u8,
    /// It took no longer than usual.
    pub time: u8,
    /// What it gave is whole and readable, and nothing was stopped on the way.
    pub quality: u8,
    /// What its tool demands besides holds.
    pub criteria: bool,
}

impl Marks {
    /// All points together.
    pub fn total(self) -> u8 {
        let marks = [self.status, self.data, self.format, self.time, self.quality];
        marks.iter().fold(0, |sum, mark| sum.saturating_add(*mark))
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde's `skip_serializing_if` wants")]
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a tool promises of a call that went well. Its calls are judged by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Criteria {
    /// What it gives back.
    pub gives: Gives,
    /// How long it takes at most when all is well, if that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<Duration>,
    /// What must hold besides. One that does not makes the call a failure, whatever else it got.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub musts: Vec<Must>,
    /// Whether exit code 1 is an answer of its command (`grep` found nothing) and no failure. Said of one call.
    #[serde(skip)]
    pub one_is_an_answer: bool,
}

impl Criteria {
    /// A tool that gives this back and usually takes no longer than that.
    pub fn new(gives: Gives, usual: Duration) -> Self {
        Self { gives, usual: Some(usual), ..Self::default() }
    }
}

/// What a tool gives back when all is well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// Anything, also nothing: a command may be silent.
    #[default]
    Anything,
    /// A text that is not empty.
    Text,
    /// An image.
    Image,
    /// A text or an image.
    TextOrImage,
    /// Data: an object or a list.
    Data,
}

/// Something that must hold for a call to have done what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Must {
    /// No test failed, and some were run.
    PassTests,
}

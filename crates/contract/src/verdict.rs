//! Verdicts: the criteria of a tool, the scores of a call, and the judgement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Outcome, ToolCall};

/// Judgement of whether a call did what was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// True if it did.
    pub success: bool,
    /// Confidence in per cent. Facts from the system are certain; scores give a lower confidence.
    #[serde(default = "certain")]
    pub confidence: u8,
    /// Scores in each dimension. All zero if the call was not scored.
    #[serde(default, skip_serializing_if = "Marks::is_none")]
    pub marks: Marks,
    /// Reasons, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Advice, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
}

impl Verdict {
    /// Returns a certain success.
    pub fn success() -> Self {
        Self {
            success: true,
            confidence: certain(),
            marks: Marks::default(),
            reasons: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    /// Returns a certain failure with its reason.
    pub fn failure(reason: impl Into<String>) -> Self {
        Self { success: false, reasons: vec![reason.into()], ..Self::success() }
    }

    /// Merges a reviewer's opinion. It makes a verdict worse or less certain, never better.
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

    /// Formats the verdict as one line for a model or a person.
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

/// A reviewer's opinion of a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Opinion {
    /// True if the call did what was requested.
    pub success: bool,
    /// Confidence in per cent.
    pub confidence: u8,
    /// Reasons, one line each.
    pub reasons: Vec<String>,
    /// Advice, one line each.
    pub suggestions: Vec<String>,
}

/// Reviews calls that seem to have succeeded. Implemented by components that can ask a model,
/// called by the runtime for calls that may have changed something.
pub trait Reviewer: Send + Sync {
    /// Forms an opinion, or returns one line that says why there is none.
    fn review<'a>(
        &'a self,
        call: &'a ToolCall,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Opinion, String>>;
}

fn certain() -> u8 {
    100
}

/// The six dimensions of a judgement: five with scores that add up to at most 100, and one that can
/// only fail it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Score for ending as expected.
    pub status: u8,
    /// Score for returning a result.
    pub data: u8,
    /// Score for a result in the promised form.
    pub format: u8,
    /// Score for taking no longer than usual.
    pub time: u8,
    /// Score for a complete, readable result without denials.
    pub quality: u8,
    /// True if the further requirements of the tool are met.
    pub criteria: bool,
}

impl Marks {
    /// Returns the sum of the scores.
    pub fn total(self) -> u8 {
        let marks = [self.status, self.data, self.format, self.time, self.quality];
        marks.iter().fold(0, |sum, mark| sum.saturating_add(*mark))
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde's `skip_serializing_if` wants")]
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Properties that a tool promises for a successful call. Its calls are judged by them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Criteria {
    /// Kind of result.
    pub gives: Gives,
    /// Maximum duration of a normal call, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<Duration>,
    /// Further requirements. If one is not met, the call failed, whatever its scores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub musts: Vec<Must>,
    /// True if exit code 1 is a valid answer of the command (`grep` found nothing) and not a
    /// failure. Set for a single call.
    #[serde(skip)]
    pub one_is_an_answer: bool,
}

impl Criteria {
    /// Builds the criteria of a tool with this kind of result and this usual maximum duration.
    pub fn new(gives: Gives, usual: Duration) -> Self {
        Self { gives, usual: Some(usual), ..Self::default() }
    }
}

/// Kind of result that a tool returns on success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// Anything or nothing: a command may print nothing.
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

/// A requirement for a call to count as a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Must {
    /// Tests ran, and none failed.
    PassTests,
}

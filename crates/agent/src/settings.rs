//! The settings of an agent, in groups. The configuration builds a group, and the part that uses it
//! holds it.

use std::{collections::BTreeMap, num::NonZeroU64, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use windlass_host::SnapshotLimits;
use windlass_record::{DurabilityMode, Keep};
use windlass_runtime::{Budget, Verdicts};

use crate::Family;

/// Default share of the context window for tools that are not built in. Other agents use the same
/// share.
pub const TOOL_CONTEXT_PERCENT: u8 = 10;

/// Minimum budget of an output in a small window.
const MIN_OUTPUT_TOKENS: usize = 250;

/// Limits of each turn. By default there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnLimits {
    /// Maximum duration.
    pub time: Option<Duration>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
}

/// The share of the context window at which a conversation is made shorter by itself. In files it
/// is a number, and 0 stands for `Off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum CompactAt {
    /// In per cent of the window.
    Percent(u8),
    /// Never; only on request, or if the server refuses a request as too long.
    Off,
}

impl CompactAt {
    /// The share for models of which no other is known. The rest is for the answer, and for errors
    /// of the estimate.
    pub(crate) const USUAL: Self = Self::Percent(85);

    /// Maximum share: the answer needs some room.
    const MAX_PERCENT: u8 = 95;
}

impl TryFrom<u8> for CompactAt {
    type Error = &'static str;

    fn try_from(percent: u8) -> Result<Self, Self::Error> {
        match percent {
            0 => Ok(Self::Off),
            1..=Self::MAX_PERCENT => Ok(Self::Percent(percent)),
            _ => Err("not from 0 to 95"),
        }
    }
}

impl From<CompactAt> for u8 {
    fn from(at: CompactAt) -> Self {
        match at {
            CompactAt::Percent(percent) => percent,
            CompactAt::Off => 0,
        }
    }
}

/// The instructions of the model, and the use of its context window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSettings {
    /// Replaces the standing instructions.
    pub instructions: Option<String>,
    /// Adds instructions of the program around the agent.
    pub developer_instructions: Option<String>,
    /// Messages in the name of the user at the start of a session, such as the documents of a
    /// project.
    pub opening_messages: Vec<String>,
    /// The context window of the model in tokens. The default depends on the name of the model.
    pub window: Option<NonZeroU64>,
    /// The share of the window at which the conversation is made shorter. The default depends on
    /// the name of the model.
    pub compact_at: Option<CompactAt>,
    /// Maximum share of the context window for added tools, in percent. If they need more, the
    /// model searches for them instead.
    pub tool_percent: u8,
    /// Allows the model to request several calls at once. The default depends on the name of the
    /// model.
    pub parallel_calls: Option<bool>,
    /// The budget for a tool's output in the prompt. The default depends on the name of the model.
    pub output_budget: Option<Budget>,
    /// Budgets for single tools, by name.
    pub tool_output_budgets: BTreeMap<String, Budget>,
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            instructions: None,
            developer_instructions: None,
            opening_messages: Vec::new(),
            window: None,
            compact_at: None,
            tool_percent: TOOL_CONTEXT_PERCENT,
            parallel_calls: None,
            output_budget: None,
            tool_output_budgets: BTreeMap::new(),
        }
    }
}

impl ContextSettings {
    /// Returns the context window in tokens.
    pub(crate) fn window_tokens(&self, family: &Family) -> u64 {
        self.window.unwrap_or(family.context_window).get()
    }

    /// Returns the maximum number of tokens for tools that are not built in.
    pub(crate) fn tool_tokens(&self, family: &Family) -> usize {
        usize::try_from(self.window_tokens(family).saturating_mul(self.tool_percent.into()) / 100)
            .unwrap_or(usize::MAX)
    }

    /// Returns the budget of an output: the configured one, or else the usual one, which is at most
    /// an eighth of the window.
    pub(crate) fn output_budget(&self, usual: Budget, window: Option<u64>) -> Budget {
        let most = window.map_or(usize::MAX, |window| usize::try_from(window / 8).unwrap_or(usize::MAX));
        self.output_budget.unwrap_or(match usual {
            usual if usual.bytes() / 4 <= most => usual,
            _ => Budget::Tokens(most.max(MIN_OUTPUT_TOKENS)),
        })
    }

    /// Returns the size of the smallest output budget. `usual` applies if no budget is set.
    pub(crate) fn min_output_bytes(&self, usual: Budget) -> usize {
        let usual = self.output_budget.unwrap_or(usual).bytes();
        self.tool_output_budgets.values().fold(usual, |least, budget| least.min(budget.bytes()))
    }
}

/// The records of sessions and calls, on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageSettings {
    /// The directory below which everything is recorded.
    pub home: PathBuf,
    /// The retention of the index of calls.
    pub keep: Keep,
    /// The time at which the session file is flushed to disk.
    pub durability: DurabilityMode,
    /// Records the changes of commands within these limits, so that they can be undone.
    pub undo_commands: Option<SnapshotLimits>,
}

impl StorageSettings {
    /// Records below a directory, with the default retention and without changes of commands.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            keep: Keep::default(),
            durability: DurabilityMode::default(),
            undo_commands: None,
        }
    }

    /// Returns the directory of package manager caches for confined commands.
    pub fn package_caches(&self) -> PathBuf {
        self.home.join("cache/packages")
    }

    /// Returns the directory with records of running commands.
    pub fn running_notes(&self) -> PathBuf {
        self.home.join("running")
    }
}

/// The judgement of calls that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewSettings {
    /// The verdicts that the model gets to see.
    pub verdicts: Verdicts,
    /// Asks the model for its opinion of calls that may have changed something, with this time
    /// limit.
    pub model_patience: Option<Duration>,
}

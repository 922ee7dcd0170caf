//! Stops a turn, with a reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A switch that stops a turn and all its calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<Reason>>,
}

/// The reason why a turn was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Stopped by a person.
    Interrupted,
    /// The program was asked to end, or its terminal is gone.
    Terminated,
    /// The time limit of the turn was reached.
    TimeLimit,
    /// The token limit of the turn was reached.
    TokenLimit,
    /// The model repeated calls without progress.
    Looping,
    /// A hook of the user has ended the turn.
    Hook,
    /// The session's turns are used up.
    TurnBudget,
    /// The session's requests to the model are used up.
    RequestBudget,
    /// The session's calls are used up.
    CallBudget,
    /// The session's tokens are used up.
    TokenBudget,
    /// The session's money is used up.
    CostBudget,
    /// The session's time is used up.
    TimeBudget,
    /// The calls or the time of one tool are used up.
    ToolBudget,
}

impl Reason {
    /// Returns the message for the model and the user.
    pub fn message(self) -> &'static str {
        match self {
            Self::Interrupted => "aborted by user",
            Self::Terminated => "aborted: the program was ended",
            Self::TimeLimit => "aborted: the turn's time limit was reached",
            Self::TokenLimit => "aborted: the turn's token limit was reached",
            Self::Looping => "aborted: the model went in circles, and its calls brought nothing new",
            Self::Hook => "aborted: a hook of the user has ended the turn",
            Self::TurnBudget => "aborted: the budget's turns are used up (`budget.max_turns`)",
            Self::RequestBudget => "aborted: the budget's requests are used up (`budget.max_requests`)",
            Self::CallBudget => "aborted: the budget's calls are used up (`budget.max_calls`)",
            Self::TokenBudget => "aborted: the budget's tokens are used up (`budget.max_tokens`)",
            Self::CostBudget => "aborted: the budget's money is used up (`budget.max_cost_usd`)",
            Self::TimeBudget => "aborted: the budget's time is used up (`budget.max_time_sec`)",
            Self::ToolBudget => "aborted: the budget of a tool is used up (`budget.tools`)",
        }
    }

    /// Returns the name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
            Self::TimeLimit => "time_limit",
            Self::TokenLimit => "token_limit",
            Self::Looping => "looping",
            Self::Hook => "hook",
            Self::TurnBudget => "turn_budget",
            Self::RequestBudget => "request_budget",
            Self::CallBudget => "call_budget",
            Self::TokenBudget => "token_budget",
            Self::CostBudget => "cost_budget",
            Self::TimeBudget => "time_budget",
            Self::ToolBudget => "tool_budget",
        }
    }

    /// Returns true for a limit, and not a person or the system, as the reason.
    pub fn is_limit(self) -> bool {
        match self {
            Self::Interrupted | Self::Terminated | Self::Hook => false,
            Self::TimeLimit
            | Self::TokenLimit
            | Self::Looping
            | Self::TurnBudget
            | Self::RequestBudget
            | Self::CallBudget
            | Self::TokenBudget
            | Self::CostBudget
            | Self::TimeBudget
            | Self::ToolBudget => true,
        }
    }
}

impl Stop {
    /// Stops. The first reason counts.
    pub fn stop(&self, reason: Reason) {
        // Only the first reason counts, so the error of setting it twice is ignored.
        let _first = self.reason.set(reason);
        self.token.cancel();
    }

    /// Returns the reason if it was stopped.
    pub fn reason(&self) -> Option<Reason> {
        self.token.is_cancelled().then(|| self.reason.get().copied().unwrap_or(Reason::Interrupted))
    }

    /// Waits until it is stopped, and returns the reason.
    pub async fn stopped(&self) -> Reason {
        self.token.cancelled().await;
        self.reason.get().copied().unwrap_or(Reason::Interrupted)
    }

    /// Returns a token for running work, which is cancelled on stop.
    pub fn token(&self) -> CancellationToken {
        self.token.child_token()
    }
}

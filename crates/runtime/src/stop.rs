//! Stopping everything, and why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A switch that stops a turn and all its calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<Reason>>,
}

/// Why a turn was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A person wanted it.
    Interrupted,
    /// The turn's time was up.
    TimeLimit,
    /// The turn had used its tokens.
    TokenLimit,
    /// The model went in circles.
    Circles,
}

impl Reason {
    /// What the model and the person are told.
    pub fn message(self) -> &'static str {
        match self {
            Self::Interrupted => "aborted by user",
            Self::TimeLimit => "aborted: the turn's time limit was reached",
            Self::TokenLimit => "aborted: the turn's token limit was reached",
            Self::Circles => "aborted: the model went in circles, and its calls brought nothing new",
        }
    }
}

impl Stop {
    /// Stops. The first reason counts.
    pub fn stop(&self, reason: Reason) {
        // A second reason changes nothing, so the error of setting it twice means nothing either.
        let _first = self.reason.set(reason);
        self.token.cancel();
    }

    /// The reason, if it was stopped.
    pub fn reason(&self) -> Option<Reason> {
        self.token.is_cancelled().then(|| self.reason.get().copied().unwrap_or(Reason::Interrupted))
    }

    /// Waits until it is stopped.
    pub async fn stopped(&self) -> Reason {
        self.token.cancelled().await;
        self.reason.get().copied().unwrap_or(Reason::Interrupted)
    }

    /// For what runs: set when it is no longer wanted.
    pub fn token(&self) -> CancellationToken {
        self.token.child_token()
    }
}

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

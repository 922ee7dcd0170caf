//! The work of the agent, as the screen follows it.

use std::time::{Duration, Instant};

use windlass::Event;

use super::App;

/// The end of a turn that took longer rings the bell.
pub(super) const LONG_TURN: Duration = Duration::from_secs(10);

/// The work of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkKind {
    /// A turn, which a message can join.
    Turn,
    /// A command of the person, or a change of settings.
    Other,
}

/// The end of the last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastTurn {
    Answered,
    Failed,
    /// The turn runs, or the agent worked on something else, or the model declined.
    Unknown,
}

impl App {
    /// Takes from an event what the status line and the next turn depend on.
    pub(super) fn note_event(&mut self, event: &Event) {
        match event {
            Event::ThreadStarted { thread } => self.on_thread(thread),
            Event::UserMessage { text } => self.on_user_message(text),
            Event::Message { text } => self.notices.on_answer(text),
            Event::TurnStarted => (self.last_turn, self.turn_tokens) = (LastTurn::Unknown, 0),
            Event::TurnCompleted { declined, .. } => {
                self.last_turn = if *declined { LastTurn::Unknown } else { LastTurn::Answered };
                self.turn_tokens = 0;
            }
            Event::TurnFailed { .. } => (self.last_turn, self.turn_tokens) = (LastTurn::Failed, 0),
            Event::ContextUsed { tokens, window, .. } => {
                self.turn_tokens = self.turn_tokens.saturating_add(*tokens);
                self.show_context(*tokens, *window);
            }
            Event::CompactionEnded { tokens_after, window, .. } => self.show_context(*tokens_after, *window),
            _ => {}
        }
    }

    /// Shows how full the window is in the status line.
    fn show_context(&mut self, tokens: u64, window: Option<u64>) {
        let percent = |window: u64| tokens.saturating_mul(100) / window.max(1);
        self.info.status.context_percent =
            window.map(|window| u8::try_from(percent(window)).unwrap_or(u8::MAX));
    }

    /// Begins what waits for the agent.
    pub(super) fn on_idle(&mut self, now: Instant) {
        let was_long = |since: Instant| now.saturating_duration_since(since) >= LONG_TURN;
        self.notices.on_idle(self.working.is_some_and(was_long));
        (self.working, self.cancelled, self.work) = (None, false, WorkKind::Other);
        match std::mem::replace(&mut self.last_turn, LastTurn::Unknown) {
            // They were written for a turn that worked.
            LastTurn::Failed => self.take_all_back(),
            LastTurn::Unknown => self.send_next(now),
            LastTurn::Answered => {
                self.send_next(now);
                self.ask_about_plan();
            }
        }
    }
}

//! Messages that were sent while the agent worked.

use std::time::Instant;

use ratatui::text::Line;

use super::{App, WorkKind};
use crate::{
    prompt_images::{PromptContent, load_content},
    render::visible::visible_prose,
    text_lines::faint,
};

/// Maximum number of messages that wait.
const MAX_PENDING: usize = 32;

/// A message that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PendingMessage {
    /// It joins the running turn with the next request.
    Steering(String),
    /// It begins a turn of its own.
    Queued(String),
}

impl PendingMessage {
    fn text(&self) -> &str {
        match self {
            Self::Steering(text) | Self::Queued(text) => text,
        }
    }
}

impl App {
    /// Adds a message for the running turn. A command of the person waits for its end.
    pub(super) fn steer(&mut self, text: String) {
        if self.work == WorkKind::Other || text.trim_start().starts_with('!') {
            return self.queue(text);
        }
        if !self.has_room(&text) {
            return;
        }
        match load_content(text.clone(), &self.info.cwd, &self.info.settings.model) {
            Ok(PromptContent { content, warning }) => {
                if let Some(warning) = warning {
                    self.transcript.warning(&warning);
                }
                self.links.steering.push(content);
                self.pending.push_back(PendingMessage::Steering(text));
            }
            Err(problem) => {
                self.transcript.warning(&format!("{problem}; the message is in the input again"));
                self.composer.set_text(&text);
            }
        }
    }

    /// Adds a message for the next turn.
    pub(super) fn queue(&mut self, text: String) {
        if self.has_room(&text) {
            self.pending.push_back(PendingMessage::Queued(text));
        }
    }

    fn has_room(&mut self, text: &str) -> bool {
        let has_room = self.pending.len() < MAX_PENDING;
        if !has_room {
            self.transcript.warning("too many messages wait; this one is in the input again");
            self.composer.set_text(text);
        }
        has_room
    }

    /// Notes that the model got a message.
    pub(super) fn on_user_message(&mut self, text: &str) {
        let is_steering = |message: &PendingMessage| matches!(message, PendingMessage::Steering(_));
        if let Some(at) = self.pending.iter().position(is_steering) {
            self.pending.remove(at);
        }
        self.transcript.user(text);
    }

    /// Takes the last message back into the input. Returns false if there is none.
    pub(super) fn take_back(&mut self) -> bool {
        let taken = match self.pending.back() {
            None => None,
            Some(PendingMessage::Queued(_)) => self.pending.pop_back(),
            // The model may have got it at this moment.
            Some(PendingMessage::Steering(_)) => {
                self.links.steering.take_back().and_then(|_| self.pending.pop_back())
            }
        };
        if let Some(message) = &taken {
            self.composer.set_text(message.text());
        }
        taken.is_some()
    }

    /// Takes all messages back into the input: they were written for a turn that is stopped.
    pub(super) fn take_all_back(&mut self) {
        self.links.steering.take_all();
        if self.pending.is_empty() {
            return;
        }
        let waiting: Vec<_> = self.pending.drain(..).map(|message| message.text().to_owned()).collect();
        let text = waiting.into_iter().chain(Some(self.composer.text())).collect::<Vec<_>>().join("\n");
        self.composer.set_text(text.trim_end());
    }

    /// Begins the next turn if messages wait. Those that the ended turn did not take are first.
    pub(super) fn send_next(&mut self, now: Instant) {
        self.links.steering.take_all();
        let (left, queued): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|message| matches!(message, PendingMessage::Steering(_)));
        self.pending.extend(queued);
        if left.is_empty() {
            if let Some(next) = self.pending.pop_front() {
                self.send(next.text().to_owned(), now);
            }
            return;
        }
        let texts: Vec<_> = left.iter().map(PendingMessage::text).collect();
        self.send(texts.join("\n"), now);
    }

    /// Returns what waits, and how to take it back.
    pub(super) fn pending_lines(&self) -> Vec<Line<'static>> {
        let line = |message: &PendingMessage| {
            let place = match message {
                PendingMessage::Steering(_) => "this turn",
                PendingMessage::Queued(_) => "next turn",
            };
            faint(format!("  {place}: {}", visible_prose(&message.text().replace('\n', " "))))
        };
        let mut lines: Vec<_> = self.pending.iter().map(line).collect();
        if !lines.is_empty() {
            lines.push(faint("  (Alt-Up takes the last one back)".to_owned()));
        }
        lines
    }
}

//! The queue from the agent to the screen. Adding to it never blocks.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};
use windlass::{Answer, Clean, Elicitation, ElicitationAnswer, Event, EventSink, Question};

use crate::settings::{FetchedPrompt, SessionSettings};

/// Maximum size of pieces that wait to be shown. Of a longer output, the beginning is dropped: it
/// is shown whole when the call ends. A longer answer is announced whole as a message.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Something that the screen must know.
#[derive(Debug)]
pub enum SessionMessage {
    /// Something happened.
    Event(Box<Event>),
    /// A person is asked.
    Question(Box<PendingQuestion>),
    /// A person is asked by an MCP server.
    Elicitation(Box<PendingElicitation>),
    /// A prompt of an MCP server, or the reason why there is none.
    ServerPrompt(Box<Result<FetchedPrompt, String>>),
    /// The agent has other settings, or the reason why not.
    Changed(Box<Result<SessionSettings, String>>),
    /// The mechanism that confines commands.
    Mechanism(Option<&'static str>),
    /// The agent is free again.
    Idle,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub struct PendingQuestion {
    /// The question.
    pub question: Clean<Question>,
    /// Takes the answer. Closed if the call was cancelled meanwhile.
    pub answer: oneshot::Sender<Answer>,
}

/// A question of an MCP server or of the agent that waits for its answer.
#[derive(Debug)]
pub struct PendingElicitation {
    /// The question.
    pub question: Elicitation,
    /// Takes the answer. Closed if the question was taken back.
    pub answer: oneshot::Sender<ElicitationAnswer>,
}

/// A queue of messages, in order. Pieces of text that follow each other are merged, and bounded;
/// nothing else is ever dropped.
#[derive(Debug, Default)]
pub struct EventQueue {
    waiting: Mutex<VecDeque<SessionMessage>>,
    changed: Notify,
}

impl EventQueue {
    /// Adds a message.
    pub fn push(&self, message: SessionMessage) {
        let mut waiting = self.waiting();
        if let Some(message) = merge(&mut waiting, message) {
            waiting.push_back(message);
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Takes all messages.
    pub fn drain(&self) -> VecDeque<SessionMessage> {
        std::mem::take(&mut *self.waiting())
    }

    /// Waits until there may be messages.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<SessionMessage>> {
        // A panic between two operations on the list leaves it whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a piece to the last piece of the same text, or returns the message.
fn merge(waiting: &mut VecDeque<SessionMessage>, message: SessionMessage) -> Option<SessionMessage> {
    let SessionMessage::Event(event) = &message else { return Some(message) };
    if let Event::CallOutput { id, text } = &**event {
        // Pieces of parallel calls alternate, so the last piece of this call may not be the last.
        let mut events = waiting.iter_mut().rev().filter_map(as_event);
        let earlier = events.find_map(|event| match event {
            Event::CallOutput { id: other, text } if other == id => Some(text),
            _ => None,
        });
        let Some(earlier) = earlier else { return Some(message) };
        append(earlier, text);
        return None;
    }
    match (waiting.back_mut().and_then(as_event), &**event) {
        (Some(Event::TextDelta { text: earlier }), Event::TextDelta { text })
        | (Some(Event::ReasoningDelta { text: earlier }), Event::ReasoningDelta { text })
            if earlier.len() < MAX_PIECE_BYTES =>
        {
            earlier.push_str(text);
            None
        }
        _ => Some(message),
    }
}

fn as_event(message: &mut SessionMessage) -> Option<&mut Event> {
    match message {
        SessionMessage::Event(event) => Some(event),
        _ => None,
    }
}

fn append(earlier: &mut String, text: &str) {
    earlier.push_str(text);
    if earlier.len() > MAX_PIECE_BYTES {
        let start = earlier.ceil_char_boundary(earlier.len() - MAX_PIECE_BYTES / 2);
        earlier.drain(..start);
    }
}

/// Puts the events of an agent into a queue.
#[derive(Debug)]
pub struct QueueSink(pub Arc<EventQueue>);

impl EventSink for QueueSink {
    fn emit(&self, event: &Clean<Event>) {
        self.0.push(SessionMessage::Event(Box::new((**event).clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(id: &str, text: &str) -> SessionMessage {
        SessionMessage::Event(Box::new(Event::CallOutput { id: id.into(), text: text.to_owned() }))
    }

    fn delta(text: &str) -> SessionMessage {
        SessionMessage::Event(Box::new(Event::TextDelta { text: text.to_owned() }))
    }

    fn events(queue: &EventQueue) -> Vec<Event> {
        let event = |message| match message {
            SessionMessage::Event(event) => Some(*event),
            _ => None,
        };
        queue.drain().into_iter().filter_map(event).collect()
    }

    #[test]
    fn pieces_of_parallel_calls_are_merged_by_call() {
        let queue = EventQueue::default();
        for (id, text) in [("a", "1"), ("b", "x"), ("a", "2"), ("b", "y")] {
            queue.push(output(id, text));
        }
        let expected = [("a", "12"), ("b", "xy")]
            .map(|(id, text)| Event::CallOutput { id: id.into(), text: text.to_owned() });
        assert_eq!(events(&queue), expected);
    }

    #[test]
    fn a_flood_of_output_is_bounded_and_keeps_its_end() {
        let queue = EventQueue::default();
        for number in 0..100_000 {
            queue.push(output("a", &format!("line {number}\n")));
        }
        let events = events(&queue);
        let [Event::CallOutput { text, .. }] = &events[..] else { panic!("{}", events.len()) };
        assert!(text.len() <= MAX_PIECE_BYTES && text.ends_with("line 99999\n"));
    }

    #[test]
    fn text_is_merged_only_with_text_before_it_and_never_cut() {
        let queue = EventQueue::default();
        queue.push(delta("a"));
        queue.push(delta("b"));
        queue.push(SessionMessage::Event(Box::new(Event::TurnStarted)));
        queue.push(delta("c"));
        let text = |text: &str| Event::TextDelta { text: text.to_owned() };
        assert_eq!(events(&queue), [text("ab"), Event::TurnStarted, text("c")]);
    }
}

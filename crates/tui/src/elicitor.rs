//! Questions of MCP servers and of the agent, put to the person at the screen.

use std::sync::Arc;

use tokio::sync::oneshot;
use windlass::{BoxFuture, Elicitation, ElicitationAnswer, Elicitor};

use crate::event_queue::{EventQueue, PendingElicitation, SessionMessage};

/// Puts questions into the queue of the screen, and waits for the answers.
#[derive(Debug)]
pub struct QueueElicitor(pub Arc<EventQueue>);

impl Elicitor for QueueElicitor {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let (answer, given) = oneshot::channel();
            let pending = PendingElicitation { question: question.clone(), answer };
            self.0.push(SessionMessage::Elicitation(Box::new(pending)));
            given.await.unwrap_or(ElicitationAnswer::Cancel)
        })
    }
}

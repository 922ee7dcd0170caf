//! Questions of the gate, put to the person at the screen.

use std::sync::Arc;

use tokio::sync::oneshot;
use windlass::{Answer, Approver, BoxFuture, Clean, Question};

use crate::event_queue::{EventQueue, PendingQuestion, SessionMessage};

/// Puts questions into the queue of the screen, and waits for the answers.
#[derive(Debug)]
pub struct QueueApprover(pub Arc<EventQueue>);

impl Approver for QueueApprover {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (answer, given) = oneshot::channel();
            let pending = PendingQuestion { question: question.clone(), answer };
            self.0.push(SessionMessage::Question(Box::new(pending)));
            given.await.unwrap_or(Answer::Unavailable)
        })
    }
}

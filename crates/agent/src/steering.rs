//! Messages that the user sends while a turn runs.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass_contract::Content;

/// Messages for the running turn. Its clones share them, so that a front end can add a message from
/// another thread while [`Agent::run`](crate::Agent::run) works.
///
/// The model gets a message with the next request of the turn, after the outputs of its calls. A
/// turn does not end while a message waits, unless it fails or is stopped. What waits then is taken
/// by the next turn, or by [`take_all`](Self::take_all).
#[derive(Debug, Clone, Default)]
pub struct SteeringInput(Arc<Mutex<VecDeque<Vec<Content>>>>);

impl SteeringInput {
    /// Adds a message.
    pub fn push(&self, message: Vec<Content>) {
        self.waiting().push_back(message);
    }

    /// Takes back the message that was added last, unless the model has it already.
    pub fn take_back(&self) -> Option<Vec<Content>> {
        self.waiting().pop_back()
    }

    /// Takes back all messages, oldest first.
    pub fn take_all(&self) -> Vec<Vec<Content>> {
        self.waiting().drain(..).collect()
    }

    /// Returns true if no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Takes the oldest message, for the model.
    pub(crate) fn take_next(&self) -> Option<Vec<Content>> {
        self.waiting().pop_front()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Vec<Content>>> {
        // A panic between two operations on the list leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

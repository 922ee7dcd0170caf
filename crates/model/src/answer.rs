//! An answer as it arrives: the server's events in, the model's events out.

use std::collections::VecDeque;

use windlass_contract::{BoxFuture, ModelError, ModelEvent, ModelStream};

use crate::{http::Events, sse::Event};

/// Understands the events of one wire. Implemented for each wire, called by [`Answer`] alone; does no I/O.
pub(crate) trait Decoder: Send {
    /// Takes one event. An error ends the answer, after what has been put out before it.
    fn take(&mut self, event: &Event, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;

    /// The transfer is over, well or not. Puts out [`ModelEvent::Completed`] or says what is missing.
    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;
}

/// An answer on its way.
pub(crate) struct Answer<D> {
    events: Events,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    error: Option<ModelError>,
    over: bool,
}

impl<D: Decoder> Answer<D> {
    pub(crate) fn new(events: Events, decoder: D) -> Self {
        Self { events, decoder, ready: VecDeque::new(), error: None, over: false }
    }

    async fn advance(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        while !self.over {
            if let Some(ModelEvent::Completed { .. }) = self.ready.front() {
                // Before the event is taken: a caller may drop this future here and call again.
                self.events.drain().await;
                self.over = true;
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(error) = self.error.take() {
                self.over = true;
                return Err(error);
            }
            let step = match self.events.next().await {
                Ok(Some(event)) => self.decoder.take(&event, &mut self.ready),
                Ok(None) => self.decoder.end(Ok(()), &mut self.ready),
                Err(error) => self.decoder.end(Err(error), &mut self.ready),
            };
            self.error = step.err();
        }
        Ok(None)
    }
}

impl<D: Decoder> ModelStream for Answer<D> {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
}

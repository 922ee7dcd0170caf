//! An answer as it arrives: the server's events in, the model's events out.

use std::collections::VecDeque;

use windlass_contract::{
    BoxFuture,
    item::Body,
    model::{ModelError, ModelEvent, ModelStream},
};

use crate::{
    failure::{truncated_event, unreadable_event},
    http::EventStream,
    sse::ServerSentEvent,
};

/// Understands the events of one wire. Implemented for each wire, called by [`DecodedStream`] alone; does no I/O.
pub(crate) trait EventDecoder: Send {
    /// Takes one event. An error ends the answer, after what has been put out before it.
    fn take(
        &mut self,
        event: &ServerSentEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<EventValidity, ModelError>;

    /// The transfer is over, well or not. Puts out [`ModelEvent::Completed`] or says what is missing.
    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;
}

/// Whether an event made sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventValidity {
    /// It did, or is of a kind that does not concern us.
    Valid,
    /// It has not the form its kind has. Servers send such things between others, to keep a connection open.
    Malformed,
}

impl EventValidity {
    /// What to make of an event that is not JSON. One that begins as an object was a piece of the answer, and what is
    /// left of an answer without one of its pieces may be another command.
    pub(crate) fn from_non_json(data: &str, error: &serde_json::Error) -> Result<Self, ModelError> {
        match data.trim() {
            "" | "[DONE]" => Ok(Self::Valid),
            object if object.starts_with('{') && error.is_eof() => Err(truncated_event(object)),
            object if object.starts_with('{') => Err(unreadable_event(object)),
            _ => Ok(Self::Malformed),
        }
    }
}

/// An answer on its way.
pub(crate) struct DecodedStream<D> {
    events: EventStream,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    error: Option<ModelError>,
    progress: AnswerProgress,
    over: bool,
}

/// What is known of an answer so far.
#[derive(Debug, Default)]
struct AnswerProgress {
    /// The first event that made no sense, as an error.
    first_malformed: Option<ModelError>,
    /// Whether anything was said.
    has_content: bool,
}

impl AnswerProgress {
    fn record_validity(&mut self, event: &ServerSentEvent, validity: EventValidity) {
        if validity == EventValidity::Malformed && self.first_malformed.is_none() {
            self.first_malformed = Some(unreadable_event(&event.data));
        }
    }

    fn record_content(&mut self, out: &VecDeque<ModelEvent>) {
        self.has_content |= out.iter().any(|event| match event {
            ModelEvent::Item(item) => item.body != Body::Other,
            ModelEvent::TextDelta(_) | ModelEvent::ReasoningDelta(_) => true,
            ModelEvent::CallDelta(_) | ModelEvent::Completed { .. } | ModelEvent::Notice(_) => false,
        });
    }

    /// Why an answer that is over is none, although its end may look like one: nothing was said, and something was not
    /// understood.
    fn take_empty_error(&mut self) -> Option<ModelError> {
        self.first_malformed.take_if(|_| !self.has_content)
    }
}

impl<D: EventDecoder> DecodedStream<D> {
    pub(crate) fn new(events: EventStream, decoder: D) -> Self {
        Self {
            events,
            decoder,
            ready: VecDeque::new(),
            error: None,
            progress: AnswerProgress::default(),
            over: false,
        }
    }

    /// Puts something out before the answer itself.
    pub(crate) fn with_first_event(mut self, first: Option<ModelEvent>) -> Self {
        self.ready.extend(first);
        self
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
                Ok(Some(event)) => self.take(&event),
                Ok(None) => {
                    let end = self.decoder.end(Ok(()), &mut self.ready);
                    end.map_err(|error| self.progress.take_empty_error().unwrap_or(error))
                }
                Err(error) => self.decoder.end(Err(error), &mut self.ready),
            };
            self.error = step.err();
        }
        Ok(None)
    }

    fn take(&mut self, event: &ServerSentEvent) -> Result<(), ModelError> {
        let validity = self.decoder.take(event, &mut self.ready)?;
        self.progress.record_validity(event, validity);
        self.progress.record_content(&self.ready);
        if let Some(ModelEvent::Completed { .. }) = self.ready.back()
            && let Some(error) = self.progress.take_empty_error()
        {
            self.ready.clear();
            return Err(error);
        }
        Ok(())
    }
}

impl<D: EventDecoder> ModelStream for DecodedStream<D> {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
}

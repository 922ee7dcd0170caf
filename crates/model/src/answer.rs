//! Decodes an answer while it arrives: server-sent events in, model events out.

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

/// Decodes the events of one wire protocol. Implemented once per protocol and called only by
/// [`DecodedStream`]. Must not do I/O.
pub(crate) trait EventDecoder: Send {
    /// Decodes one event. An error ends the answer, after the events already in `out`.
    fn take(
        &mut self,
        event: &ServerSentEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<EventValidity, ModelError>;

    /// Handles the end of the transfer. Pushes [`ModelEvent::Completed`] or returns the error for
    /// an answer that is incomplete.
    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;
}

/// Validity of an event on its wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventValidity {
    /// The event is valid, or of a kind that this crate ignores.
    Valid,
    /// The event lacks a member that its kind requires. Some servers send such events to keep the
    /// connection open.
    Malformed,
}

impl EventValidity {
    /// Classifies an event that is not valid JSON. Text that begins like an object was part of the
    /// answer, so it is an error: an answer that lost a part may run a different command.
    pub(crate) fn from_non_json(data: &str, error: &serde_json::Error) -> Result<Self, ModelError> {
        match data.trim() {
            "" | "[DONE]" => Ok(Self::Valid),
            object if object.starts_with('{') && error.is_eof() => Err(truncated_event(object)),
            object if object.starts_with('{') => Err(unreadable_event(object)),
            _ => Ok(Self::Malformed),
        }
    }
}

/// A stream of model events, decoded from the server's events.
pub(crate) struct DecodedStream<D> {
    events: EventStream,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    error: Option<ModelError>,
    progress: AnswerProgress,
    over: bool,
}

/// Facts about the answer so far.
#[derive(Debug, Default)]
struct AnswerProgress {
    /// The first malformed event, as an error.
    first_malformed: Option<ModelError>,
    /// True once the answer has text, reasoning or an item.
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

    /// Returns the error of an answer that ended without any content after a malformed event. The
    /// end of such an answer may look normal.
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

    /// Adds an event that comes before the answer.
    pub(crate) fn with_first_event(mut self, first: Option<ModelEvent>) -> Self {
        self.ready.extend(first);
        self
    }

    async fn advance(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        while !self.over {
            if let Some(ModelEvent::Completed { .. }) = self.ready.front() {
                // Drain before popping: a caller may drop this future here and call again.
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

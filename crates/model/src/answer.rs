//! An answer as it arrives: the server's events in, the model's events out.

use std::collections::VecDeque;

use windlass_contract::{
    BoxFuture,
    item::Body,
    model::{ModelError, ModelEvent, ModelStream},
};

use crate::{
    failure::{broken, unreadable},
    http::Events,
    sse::Event,
};

/// Understands the events of one wire. Implemented for each wire, called by [`Answer`] alone; does no I/O.
pub(crate) trait Decoder: Send {
    /// Takes one event. An error ends the answer, after what has been put out before it.
    fn take(&mut self, event: &Event, out: &mut VecDeque<ModelEvent>) -> Result<Sense, ModelError>;

    /// The transfer is over, well or not. Puts out [`ModelEvent::Completed`] or says what is missing.
    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;
}

/// Whether an event made sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sense {
    /// It did, or is of a kind that does not concern us.
    Some,
    /// It has not the form its kind has. Servers send such things between others, to keep a connection open.
    None,
}

impl Sense {
    /// What to make of an event that is not JSON. One that begins as an object was a piece of the answer, and what is
    /// left of an answer without one of its pieces may be another command.
    pub(crate) fn of_other_than_json(data: &str, error: &serde_json::Error) -> Result<Self, ModelError> {
        match data.trim() {
            "" | "[DONE]" => Ok(Self::Some),
            object if object.starts_with('{') && error.is_eof() => Err(broken(object)),
            object if object.starts_with('{') => Err(unreadable(object)),
            _ => Ok(Self::None),
        }
    }
}

/// An answer on its way.
pub(crate) struct Answer<D> {
    events: Events,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    error: Option<ModelError>,
    heard: Heard,
    over: bool,
}

/// What is known of an answer so far.
#[derive(Debug, Default)]
struct Heard {
    /// The first event that made no sense, as an error.
    senseless: Option<ModelError>,
    /// Whether anything was said.
    said: bool,
}

impl Heard {
    fn note(&mut self, event: &Event, sense: Sense) {
        if sense == Sense::None && self.senseless.is_none() {
            self.senseless = Some(unreadable(&event.data));
        }
    }

    fn look(&mut self, out: &VecDeque<ModelEvent>) {
        self.said |= out.iter().any(|event| match event {
            ModelEvent::Item(item) => item.body != Body::Other,
            ModelEvent::TextDelta(_) | ModelEvent::ReasoningDelta(_) => true,
            ModelEvent::CallDelta(_) | ModelEvent::Completed { .. } | ModelEvent::Notice(_) => false,
        });
    }

    /// Why an answer that is over is none, although its end may look like one: nothing was said, and something was not
    /// understood.
    fn nothing(&mut self) -> Option<ModelError> {
        self.senseless.take_if(|_| !self.said)
    }
}

impl<D: Decoder> Answer<D> {
    pub(crate) fn new(events: Events, decoder: D) -> Self {
        Self { events, decoder, ready: VecDeque::new(), error: None, heard: Heard::default(), over: false }
    }

    /// Puts something out before the answer itself.
    pub(crate) fn after(mut self, first: Option<ModelEvent>) -> Self {
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
                    end.map_err(|error| self.heard.nothing().unwrap_or(error))
                }
                Err(error) => self.decoder.end(Err(error), &mut self.ready),
            };
            self.error = step.err();
        }
        Ok(None)
    }

    fn take(&mut self, event: &Event) -> Result<(), ModelError> {
        let sense = self.decoder.take(event, &mut self.ready)?;
        self.heard.note(event, sense);
        self.heard.look(&self.ready);
        if let Some(ModelEvent::Completed { .. }) = self.ready.back()
            && let Some(error) = self.heard.nothing()
        {
            self.ready.clear();
            return Err(error);
        }
        Ok(())
    }
}

impl<D: Decoder> ModelStream for Answer<D> {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async move { self.advance().await.transpose() })
    }
}

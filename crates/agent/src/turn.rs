//! One turn: from what the user said to the model's answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tracing::{Instrument, Span};
use windlass_contract::{
    Content, Event, Item,
    event::EventSink,
    id::ThreadId,
    item::{Body, Cached, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelStream, Prompt, Usage},
};
use windlass_runtime::{Batch, Reason, Stop, Toolbox};

use crate::{
    AgentError, AnswerSchema,
    answer_schema::asked_again,
    context_gauge::ContextGauge,
    history::History,
    loop_detector::LoopDetector,
    offered::Offered,
    refusals::Refusals,
    retries::{AnswerRetries, FailedStage, NextTry},
    reviewer::Shared,
    spans,
    spending::{self, Spending},
};

/// So many calls are taken from one answer. A model that asks for more has lost its way, or never stops; it sees what
/// came of these and can ask again.
const MOST_CALLS: usize = 128;

/// What a turn works with.
pub(crate) struct Turn<'a> {
    pub(crate) model: &'a dyn ModelClient,
    pub(crate) toolbox: &'a Arc<Toolbox>,
    pub(crate) events: &'a dyn EventSink,
    pub(crate) history: &'a mut History,
    pub(crate) offered: &'a mut Offered,
    pub(crate) fixed: Fixed<'a>,
    pub(crate) stop: &'a Stop,
    pub(crate) reviews: &'a Shared,
    pub(crate) spending: Spending,
    pub(crate) loop_detector: LoopDetector,
    pub(crate) gauge: &'a mut ContextGauge,
    pub(crate) refusals: Refusals,
    pub(crate) answer: String,
    /// Whether the answer says that what was asked for is not done.
    pub(crate) declined: bool,
}

/// What is the same in every request of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    pub(crate) thread: &'a ThreadId,
    pub(crate) instructions: &'a str,
    pub(crate) parallel_calls: bool,
    pub(crate) output_schema: Option<&'a AnswerSchema>,
}

impl Turn<'_> {
    /// Goes on until the model has nothing more to ask for.
    pub(crate) async fn run(&mut self) -> Result<(), AgentError> {
        self.run_to_answer().await?;
        if self.answer.is_empty() {
            let message = "the model ended its turn without an answer".to_owned();
            self.events.emit(&Event::Warning { message });
        }
        let Some(problem) = self.unfitness() else { return Ok(()) };
        let message = format!("the answer does not fit the output schema: {problem}; asking once more");
        self.events.emit(&Event::Warning { message });
        self.history.push(Item::message(Role::User, asked_again(&problem)))?;
        self.run_to_answer().await?;
        match self.unfitness() {
            None => Ok(()),
            Some(problem) => Err(AgentError::UnfitAnswer { problem }),
        }
    }

    async fn run_to_answer(&mut self) -> Result<(), AgentError> {
        while self.sample().await? {
            if self.spending.is_used_up() {
                return Err(AgentError::Stopped(Reason::TokenLimit));
            }
        }
        Ok(())
    }

    /// Why the answer does not fit the schema it must have, if it does not.
    fn unfitness(&self) -> Option<String> {
        self.fixed.output_schema.and_then(|schema| schema.problem(&self.answer))
    }

    /// One answer, with as many tries as the provider is worth. Tells whether there is more to come.
    async fn sample(&mut self) -> Result<bool, AgentError> {
        let mut retries = AnswerRetries::new(self.model.info());
        self.warn_of_length();
        loop {
            let span = spans::chat(self.fixed.thread, self.model.info());
            let began = Instant::now();
            let opened = self.open().instrument(span.clone()).await;
            let (error, stage) = match opened.inspect_err(|error| spans::failed(&span, error)) {
                Ok(stream) => match self.listen(stream, span.clone()).await {
                    Err(AgentError::Model(error)) => (error, FailedStage::Stream),
                    heard => {
                        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        span.in_scope(|| tracing::debug!(duration_ms, "answer and its calls ended"));
                        return heard;
                    }
                },
                Err(AgentError::Model(error)) => (error, FailedStage::Request),
                Err(error) => return Err(error),
            };
            let Some(NextTry { delay, event }) = retries.next(&error, stage) else {
                tracing::debug!(%error, ?stage, "the request is not sent again");
                return Err(error.into());
            };
            tracing::warn!(%error, ?stage, delay_ms = delay.as_millis(), "the request is sent again");
            self.events.emit(&event);
            self.pause(delay).await?;
        }
    }

    /// Warns before a request that fills the context window.
    fn warn_of_length(&mut self) {
        let Self { gauge, history, offered, fixed, spending, .. } = self;
        let estimate = || {
            let entries = history.entries().iter().map(Cached::get);
            spending::sent(fixed.instructions, entries, offered.specs().get()).max(spending.last_total())
        };
        if let Some(message) = gauge.note(estimate) {
            self.events.emit(&Event::Warning { message });
        }
    }

    async fn open(&self) -> Result<Box<dyn ModelStream>, AgentError> {
        let Fixed { thread, instructions, parallel_calls, output_schema } = self.fixed;
        let (history, tools) = (self.history.entries(), self.offered.specs());
        let output_schema = output_schema.map(AnswerSchema::sent);
        let prompt = Prompt { thread, instructions, history, tools, parallel_calls, output_schema };
        tokio::select! {
            opened = self.model.open(prompt) => Ok(opened?),
            reason = self.stop.stopped() => Err(AgentError::Stopped(reason)),
        }
    }

    /// Hears one answer out. Calls run while the rest of it still arrives. Whatever becomes of the stream, every call
    /// that was asked for is finished and has its output in history before anything else is said: that is why a call
    /// never runs twice.
    async fn listen(&mut self, stream: Box<dyn ModelStream>, span: Span) -> Result<bool, AgentError> {
        let mut batch = Batch::new(Arc::clone(self.toolbox), self.stop.clone());
        let heard = self.hear(stream, &mut batch).instrument(span.clone()).await;
        if let Err(error) = &heard {
            spans::failed(&span, error);
        }
        // The answer is heard; its calls may go on.
        drop(span);
        let done = batch.finish().await;
        self.spending.add(self.reviews.cost());
        for finished in &done {
            self.refusals.note(finished);
            self.offered.learn(&finished.call, &finished.outcome.content, &self.toolbox.registry);
        }
        self.history.answer(done.iter().map(|finished| (&finished.call, &finished.outcome)))?;
        let more = heard? || !done.is_empty();
        match self.loop_detector.note(&done, Instant::now()).filter(|_| more) {
            Some(message) => {
                self.events.emit(&Event::Warning { message });
                Err(AgentError::Stopped(Reason::Looping))
            }
            None => Ok(more),
        }
    }

    async fn hear(
        &mut self,
        mut stream: Box<dyn ModelStream>,
        batch: &mut Batch,
    ) -> Result<bool, AgentError> {
        // What was said before a call is a remark, not the answer to what came of it.
        self.answer.clear();
        self.spending.broke_off();
        let sent = self.history.entries().len();
        // What was said since the last call. If the stream breaks it is forgotten, because it will be said again.
        let mut unsaid = Vec::new();
        loop {
            let event = tokio::select! {
                reason = self.stop.stopped() => return Err(AgentError::Stopped(reason)),
                event = stream.next() => event,
                () = batch.step(), if !batch.is_idle() => continue,
            };
            match event {
                Some(Ok(ModelEvent::TextDelta(text))) => {
                    self.spending.piece(&text);
                    self.events.emit(&Event::TextDelta { text });
                }
                Some(Ok(ModelEvent::ReasoningDelta(text))) => {
                    self.spending.piece(&text);
                    self.events.emit(&Event::ReasoningDelta { text });
                }
                Some(Ok(ModelEvent::CallDelta(text))) => self.spending.piece(&text),
                Some(Ok(ModelEvent::Notice(message))) => self.events.emit(&Event::Warning { message }),
                Some(Ok(ModelEvent::Item(item))) => {
                    self.spending.item(&item);
                    let call = match &item.body {
                        Body::Call(call) => Some(call.clone()),
                        _ => None,
                    };
                    if call.is_some() && batch.len() == MOST_CALLS {
                        let message = format!(
                            "the model asked for more than {MOST_CALLS} calls at once; the rest was not heard"
                        );
                        self.events.emit(&Event::Warning { message });
                        self.say(&mut unsaid)?;
                        self.charge(None, sent);
                        return Ok(true);
                    }
                    unsaid.push(item);
                    if let Some(call) = call {
                        self.say(&mut unsaid)?;
                        batch.submit(call);
                    }
                }
                Some(Ok(ModelEvent::Completed { usage, finish })) => {
                    self.say(&mut unsaid)?;
                    spans::cost(&Span::current(), usage.unwrap_or_default());
                    self.charge(usage, sent);
                    self.declined = finish == Finish::Declined;
                    return Ok(finish == Finish::More);
                }
                Some(Err(error)) => {
                    if matches!(error, ModelError::Cut { .. } | ModelError::Unending { .. }) {
                        // It ends the turn, and so nobody will say it again.
                        self.say(&mut unsaid)?;
                    }
                    return Err(error.into());
                }
                None => {
                    return Err(
                        ModelError::StreamBroken { cause: "it ended without a word".to_owned() }.into()
                    );
                }
            }
            if self.spending.is_exceeded() {
                return Err(AgentError::Stopped(Reason::TokenLimit));
            }
        }
    }

    /// Counts what a complete answer to the first so many entries cost.
    fn charge(&mut self, reported: Option<Usage>, sent: usize) {
        let history = self.history.entries().iter().take(sent).map(Cached::get);
        let tools = self.offered.specs().get();
        self.spending.completed(reported, || spending::sent(self.fixed.instructions, history, tools));
    }

    /// Makes items history, and announces each once it is.
    fn say(&mut self, items: &mut Vec<Item>) -> Result<(), AgentError> {
        for item in items.drain(..) {
            let news = news(&item.body);
            self.history.push(item)?;
            let Some(event) = news else { continue };
            if let Event::Message { text } = &event
                && !text.trim().is_empty()
            {
                self.answer.clone_from(text);
            }
            self.events.emit(&event);
        }
        Ok(())
    }

    async fn pause(&self, delay: Duration) -> Result<(), AgentError> {
        tokio::select! {
            () = tokio::time::sleep(delay) => Ok(()),
            reason = self.stop.stopped() => Err(AgentError::Stopped(reason)),
        }
    }
}

/// What there is to announce about an item. Calls announce themselves.
fn news(body: &Body) -> Option<Event> {
    match body {
        Body::Message { role: Role::Assistant, content } => {
            Some(Event::Message { text: Content::join(content) })
        }
        Body::Reasoning { summary, text } => {
            let text = if summary.is_empty() { text.join("\n") } else { summary.join("\n") };
            Some(Event::Reasoning { text })
        }
        Body::WebSearch { query } => Some(Event::WebSearch { query: query.clone() }),
        Body::Message { .. } | Body::Call(_) | Body::Output { .. } | Body::Other => None,
    }
}

#[cfg(test)]
mod tests;

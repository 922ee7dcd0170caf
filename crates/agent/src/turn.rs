//! One turn: from the user's request to the model's answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tracing::{Instrument, Span};
use windlass_contract::{
    Content, Event, Item,
    event::{ContextParts, EventEmitter},
    id::ThreadId,
    item::{Body, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelStream, Prompt, Usage},
    wording::shortened,
};
use windlass_runtime::{Batch, Quarantined, Reason, Stop, Toolbox};

use crate::{
    AgentError, AnswerSchema, SteeringInput,
    answer_schema::retry_message,
    context_gauge::ContextGauge,
    history::ConversationHistory,
    loop_detector::LoopDetector,
    mentions::{MentionLoader, push_mentioned},
    offered_tools::OfferedTools,
    refusals::TurnRefusals,
    retries::{AnswerRetries, FailedStage, NextTry},
    reviewer::ReviewExchange,
    spans,
    spending::{TokenSpending, text_tokens},
    sub_agents::SubAgents,
    token_counter::{RequestParts, TokenCounter},
    turn_hooks::{TurnHooks, context_item},
};

/// Maximum number of calls taken from one answer. A model that asks for more is confused or never
/// stops; it sees the results of these and can ask again.
const MAX_CALLS: usize = 128;

/// Maximum length of the name of a tool in a warning. The name is that of another program.
const MAX_NAME_CHARS: usize = 64;

/// The state of a turn.
pub(crate) struct Turn<'a> {
    pub(crate) model: &'a dyn ModelClient,
    pub(crate) toolbox: &'a Arc<Toolbox>,
    pub(crate) events: &'a dyn EventEmitter,
    pub(crate) history: &'a mut ConversationHistory,
    pub(crate) offered: &'a mut OfferedTools,
    pub(crate) fixed: RequestConstants<'a>,
    pub(crate) stop: &'a Stop,
    pub(crate) steering: &'a SteeringInput,
    pub(crate) mentions: Option<&'a dyn MentionLoader>,
    pub(crate) sub_agents: Option<&'a SubAgents>,
    pub(crate) reviews: &'a ReviewExchange,
    pub(crate) spending: TokenSpending,
    pub(crate) loop_detector: LoopDetector,
    pub(crate) counter: &'a mut TokenCounter,
    pub(crate) gauge: &'a mut ContextGauge,
    pub(crate) refusals: TurnRefusals,
    pub(crate) answer: String,
    /// The answer says that the request is not done.
    pub(crate) declined: bool,
}

/// The parts that are the same in every request of a thread.
#[derive(Clone, Copy)]
pub(crate) struct RequestConstants<'a> {
    pub(crate) thread: &'a ThreadId,
    pub(crate) instructions: &'a str,
    pub(crate) parallel_calls: bool,
    pub(crate) output_schema: Option<&'a AnswerSchema>,
}

impl Turn<'_> {
    /// Runs until the model asks for no more calls.
    pub(crate) async fn run(&mut self) -> Result<(), AgentError> {
        self.run_to_answer().await?;
        let mut continued = 0;
        while let Some(reason) = self.hooks().answer(&self.answer, continued).await? {
            continued += 1;
            self.history.push(context_item(self.toolbox, &reason))?;
            self.run_to_answer().await?;
        }
        if self.answer.is_empty() {
            let message = "the model ended its turn without an answer".to_owned();
            self.events.emit(Event::Warning { message });
        }
        let Some(problem) = self.schema_problem() else { return Ok(()) };
        let message = format!("the answer does not fit the output schema: {problem}; asking once more");
        self.events.emit(Event::Warning { message });
        self.history.push(Item::message(Role::User, retry_message(&problem)))?;
        self.run_to_answer().await?;
        match self.schema_problem() {
            None => Ok(()),
            Some(problem) => Err(AgentError::UnfitAnswer { problem }),
        }
    }

    fn hooks(&self) -> TurnHooks<'_> {
        TurnHooks::new(self.toolbox, self.stop)
    }

    async fn run_to_answer(&mut self) -> Result<(), AgentError> {
        loop {
            self.take_steering().await?;
            self.take_new_tools();
            self.compact_if_full().await?;
            let more = self.sample().await? || !self.steering.is_empty();
            if !more {
                return Ok(());
            }
            if let Some(reason) = self.spending.reached() {
                return Err(AgentError::Stopped(reason));
            }
        }
    }

    /// Adds the messages that the user has sent since the last request.
    async fn take_steering(&mut self) -> Result<(), AgentError> {
        while let Some(content) = self.steering.take_next() {
            let text = Content::join(&content);
            match self.hooks().message(&content).await {
                Ok(context) => {
                    context.iter().try_for_each(|text| self.history.push(context_item(self.toolbox, text)))?
                }
                Err(error @ AgentError::BlockedMessage { .. }) => {
                    self.events.emit(Event::Warning { message: error.to_string() });
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.reviews.add(&text);
            // The model has something new to go by.
            self.loop_detector = LoopDetector::new(&self.toolbox.review.history());
            self.history.push(Body::Message { role: Role::User, content }.into())?;
            push_mentioned(self.mentions, &text, self.history, self.events)?;
            self.events.emit(Event::UserMessage { text });
        }
        Ok(())
    }

    /// Offers the tools that have joined since the last request.
    fn take_new_tools(&mut self) {
        let registry = &self.toolbox.registry;
        let joined = registry.join_new();
        self.offered.join(&joined, registry);
        for Quarantined { name, reason } in &joined.quarantined {
            let name: String = shortened(name.as_str(), MAX_NAME_CHARS).escape_debug().collect();
            let message = format!("the tool `{name}` is left out: {reason}");
            self.events.emit(Event::Warning { message });
        }
    }

    /// Returns the reason if the answer does not fit the output schema.
    fn schema_problem(&self) -> Option<String> {
        self.fixed.output_schema.and_then(|schema| schema.problem(&self.answer))
    }

    /// Gets one answer, with the provider's number of retries. Returns true if more is to come.
    async fn sample(&mut self) -> Result<bool, AgentError> {
        let mut retries = AnswerRetries::new(self.model.info());
        let mut is_compacted = false;
        self.spending.budget().begin_request().map_err(AgentError::Stopped)?;
        loop {
            let span = spans::chat(self.fixed.thread, self.model.info());
            let began = Instant::now();
            let opened = self.open().instrument(span.clone()).await;
            let (error, stage) = match opened.inspect_err(|error| spans::failed(&span, error)) {
                Ok(stream) => match self.stream_answer(stream, span.clone()).await {
                    Err(AgentError::Model(error)) => (error, FailedStage::Stream),
                    streamed => {
                        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        span.in_scope(|| tracing::debug!(duration_ms, "answer and its calls ended"));
                        return streamed;
                    }
                },
                Err(AgentError::Model(error)) => (error, FailedStage::Request),
                Err(error) => return Err(error),
            };
            if !is_compacted && self.compact_after_refusal(&error).await? {
                is_compacted = true;
                continue;
            }
            let Some(NextTry { delay, event }) = retries.next(&error, stage) else {
                tracing::debug!(%error, ?stage, "the request is not sent again");
                return Err(error.into());
            };
            tracing::warn!(%error, ?stage, delay_ms = delay.as_millis(), "the request is sent again");
            self.events.emit(event);
            self.pause(delay).await?;
        }
    }

    /// Returns the parts of the next request.
    pub(crate) fn request_parts(&self) -> RequestParts<'_> {
        RequestParts {
            instructions: self.fixed.instructions,
            entries: self.history.entries(),
            tools: self.offered.specs(),
        }
    }

    async fn open(&self) -> Result<Box<dyn ModelStream>, AgentError> {
        let RequestConstants { thread, instructions, parallel_calls, output_schema } = self.fixed;
        let (history, tools) = (self.history.entries(), self.offered.specs());
        let output_schema = output_schema.map(AnswerSchema::sent);
        let prompt = Prompt { thread, instructions, history, tools, parallel_calls, output_schema };
        tokio::select! {
            // First, because a turn that was stopped while its calls ran must not send a request.
            biased;
            reason = self.stop.stopped() => Err(AgentError::Stopped(reason)),
            opened = self.model.open(prompt) => Ok(opened?),
        }
    }

    /// Streams one answer. Calls run while the rest of it arrives. Even if the stream breaks, every
    /// requested call is finished and has its output in the history before the next request, so
    /// that no call runs twice.
    async fn stream_answer(&mut self, stream: Box<dyn ModelStream>, span: Span) -> Result<bool, AgentError> {
        let mut batch = Batch::new(Arc::clone(self.toolbox), self.stop.clone());
        let streamed = self.consume_events(stream, &mut batch).instrument(span.clone()).await;
        if let Err(error) = &streamed {
            spans::failed(&span, error);
        }
        // The answer is complete; its calls may still run.
        drop(span);
        let done = batch.finish().await;
        self.spending.add(self.reviews.cost());
        self.spending.add_of_agents(self.sub_agents.map(SubAgents::take_usage).unwrap_or_default());
        for finished in &done {
            let call = &finished.call;
            self.spending.budget().end_call(call.name.as_str(), finished.outcome.receipt.duration);
            self.refusals.note(finished);
            self.history.note(finished);
            self.offered.learn(&finished.call, &finished.outcome.content, &self.toolbox.registry);
        }
        self.history.push_outputs(done.iter().map(|finished| (&finished.call, &finished.outcome)))?;
        let more = streamed? || !done.is_empty();
        let looping = self.loop_detector.note(&done, &self.toolbox.review.history(), Instant::now());
        match looping.filter(|_| more) {
            Some(message) => {
                self.events.emit(Event::Warning { message });
                Err(AgentError::Stopped(Reason::Looping))
            }
            None => Ok(more),
        }
    }

    async fn consume_events(
        &mut self,
        mut stream: Box<dyn ModelStream>,
        batch: &mut Batch,
    ) -> Result<bool, AgentError> {
        // Text before a call is a remark, not the final answer.
        self.answer.clear();
        self.spending.count_broken_stream();
        let sent = self.history.entries().len();
        // Items since the last call. If the stream breaks they are dropped, because the model sends
        // them again.
        let mut uncommitted = Vec::new();
        loop {
            let event = tokio::select! {
                reason = self.stop.stopped() => return Err(AgentError::Stopped(reason)),
                event = stream.next() => event,
                () = batch.step(), if !batch.is_idle() => continue,
            };
            match event {
                Some(Ok(ModelEvent::TextDelta(text))) => {
                    self.spending.add_piece(&text);
                    self.events.emit(Event::TextDelta { text });
                }
                Some(Ok(ModelEvent::ReasoningDelta(text))) => {
                    self.spending.add_piece(&text);
                    self.events.emit(Event::ReasoningDelta { text });
                }
                Some(Ok(ModelEvent::CallDelta(text))) => self.spending.add_piece(&text),
                Some(Ok(ModelEvent::Notice(message))) => self.events.emit(Event::Warning { message }),
                Some(Ok(ModelEvent::Item(item))) => {
                    self.spending.add_item(&item);
                    let call = match &item.body {
                        Body::Call(call) => Some(call.clone()),
                        _ => None,
                    };
                    if call.is_some() && batch.len() == MAX_CALLS {
                        let message = format!(
                            "the model asked for more than {MAX_CALLS} calls at once; the rest was not heard"
                        );
                        self.events.emit(Event::Warning { message });
                        self.commit_items(&mut uncommitted)?;
                        self.charge(None, sent, 0);
                        return Ok(true);
                    }
                    if let Some(call) = &call
                        && let Err(reason) = self.spending.budget().begin_call(call.name.as_str())
                    {
                        self.spending.count_broken_stream();
                        return Err(AgentError::Stopped(reason));
                    }
                    uncommitted.push(item);
                    if let Some(call) = call {
                        self.commit_items(&mut uncommitted)?;
                        batch.submit(call);
                    }
                }
                Some(Ok(ModelEvent::Completed { usage, finish })) => {
                    spans::cost(&Span::current(), usage.unwrap_or_default());
                    // Before the last message, which is the answer to front ends.
                    self.charge(usage, sent, uncommitted.len());
                    self.commit_items(&mut uncommitted)?;
                    self.declined = finish == Finish::Declined;
                    return Ok(finish == Finish::More);
                }
                Some(Err(error)) => {
                    if matches!(error, ModelError::Cut { .. } | ModelError::Unending { .. }) {
                        // This error ends the turn, so the items are not sent again.
                        self.commit_items(&mut uncommitted)?;
                    }
                    return Err(error.into());
                }
                None => {
                    return Err(
                        ModelError::StreamBroken { cause: "it ended without a word".to_owned() }.into()
                    );
                }
            }
            if let Some(reason) = self.spending.exceeded() {
                return Err(AgentError::Stopped(reason));
            }
        }
    }

    /// Counts the cost of a complete answer to the first `sent` entries, with `uncommitted` items
    /// that are not in the history yet.
    fn charge(&mut self, reported: Option<Usage>, sent: usize, uncommitted: usize) {
        let Self { spending, counter, history, offered, fixed, gauge, .. } = self;
        let entries = history.entries();
        let request = RequestParts {
            instructions: fixed.instructions,
            entries: &entries[..sent],
            tools: offered.specs(),
        };
        let reported = reported.filter(|usage| usage.total() > 0);
        spending.complete_answer(reported, || counter.corrected(counter.request(&request)));
        if let Some(usage) = reported {
            counter.learn(usage, &request, entries.len() + uncommitted);
            let (tokens, window, parts) = (usage.total(), gauge.window(), Box::new(self.parts()));
            self.events.emit(Event::ContextUsed { tokens, window, usage: Some(usage), parts });
        }
    }

    /// Estimates the tokens of a request by their part.
    pub(crate) fn parts(&self) -> ContextParts {
        let mut parts = self.history.parts().clone();
        parts.instructions = parts.instructions.saturating_add(text_tokens(self.fixed.instructions));
        parts.tools.clone_from(self.offered.tokens_by_server());
        parts
    }

    /// Adds items to the history, and announces each one afterwards.
    fn commit_items(&mut self, items: &mut Vec<Item>) -> Result<(), AgentError> {
        for item in items.drain(..) {
            let event = item_event(&item.body);
            self.history.push(item)?;
            let Some(event) = event else { continue };
            if let Event::Message { text } = &event
                && !text.trim().is_empty()
            {
                self.answer.clone_from(text);
            }
            self.events.emit(event);
        }
        Ok(())
    }

    pub(crate) async fn pause(&self, delay: Duration) -> Result<(), AgentError> {
        tokio::select! {
            () = tokio::time::sleep(delay) => Ok(()),
            reason = self.stop.stopped() => Err(AgentError::Stopped(reason)),
        }
    }
}

/// Returns the event that announces an item. Calls announce themselves.
fn item_event(body: &Body) -> Option<Event> {
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

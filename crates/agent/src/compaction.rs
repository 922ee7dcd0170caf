//! Makes a conversation shorter, cheapest step first: old outputs become one line each; then the
//! earlier part becomes a summary, by the model or by rules.

mod ask;
mod division;
mod outputs;
mod rules;

use std::{io, path::Path, time::Duration};

use windlass_contract::{
    Event, Item,
    compaction::{CompactedHistory, CompactionMethod, CompactionReason, WorkNotes},
    event::PlanStatus,
    item::Role,
    model::{ModelError, Usage},
    program_message::SUMMARY_START,
};
use windlass_runtime::Budget;

use self::{
    ask::SummaryQuestion,
    division::{HistoryDivision, is_of_user},
    outputs::OutputShortener,
};
use crate::{
    AgentError,
    retries::{AnswerRetries, FailedStage},
    spending::{item_tokens, text_tokens},
    turn::Turn,
};

/// The frame of a summary in a history.
const SUMMARY_END: &str = "</conversation_summary>";
const SUMMARY_INTRODUCTION: &str = "The earlier part of this conversation was replaced by this summary to save \
                                    space. Go on from here, and do not repeat what is done.";
const NOTES_TITLE: &str = "State of the work, as recorded:";

/// Maximum tokens of the parts of a compacted history, for models with large windows.
const MAX_USER_TOKENS: u64 = 20_000;
const MAX_TAIL_TOKENS: u64 = 20_000;
const MAX_SUMMARY_TOKENS: u64 = 4000;

/// Minimum tokens of a compacted history, if instructions and tools fill the window alone.
const MIN_FREE_TOKENS: u64 = 1000;

/// Maximum number of requests for one summary. Rules take its place afterwards.
const MAX_SUMMARY_TRIES: u32 = 2;

/// Maximum pause before the second request for a summary.
const MAX_SUMMARY_PAUSE: Duration = Duration::from_secs(20);

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionReport {
    /// The way it was done.
    pub method: CompactionMethod,
    /// Estimated tokens of a request before.
    pub tokens_before: u64,
    /// Estimated tokens of a request after.
    pub tokens_after: u64,
    /// Tokens that the summary cost.
    pub usage: Usage,
}

/// The sizes of the parts of a compacted history, in tokens.
struct CompactionBudget {
    /// A whole request.
    ceiling: u64,
    /// The whole history.
    free: u64,
    user: u64,
    tail: u64,
    summary: u64,
}

impl CompactionBudget {
    /// Divides the room that instructions and tools leave.
    fn new(ceiling: u64, fixed: u64) -> Self {
        let free = ceiling.saturating_sub(fixed).max(MIN_FREE_TOKENS);
        Self {
            ceiling,
            free,
            user: (free / 5).min(MAX_USER_TOKENS),
            tail: (free / 5).min(MAX_TAIL_TOKENS),
            summary: (free / 5).min(MAX_SUMMARY_TOKENS),
        }
    }
}

impl Turn<'_> {
    /// Makes the conversation shorter if the next request would exceed the configured share of the
    /// window, or warns of it where that is switched off.
    pub(crate) async fn compact_if_full(&mut self) -> Result<(), AgentError> {
        let Some(threshold) = self.gauge.next_threshold() else { return Ok(()) };
        if !self.counter.may_exceed(&self.request_parts(), threshold) {
            return Ok(());
        }
        let tokens = self.context_tokens();
        let warning = if self.gauge.must_compact(tokens) {
            let report = self.compact(CompactionReason::Window, None).await?;
            self.gauge.note_compacted(report.tokens_after)
        } else {
            self.gauge.note(tokens)
        };
        if let Some(message) = warning {
            self.events.emit(Event::Warning { message });
        }
        Ok(())
    }

    /// Makes the conversation shorter after the server refused it. Returns false if that is not
    /// possible, or if there was another error.
    pub(crate) async fn compact_after_refusal(&mut self, error: &ModelError) -> Result<bool, AgentError> {
        let ModelError::ContextWindowExceeded { window, requested } = *error else { return Ok(false) };
        let tokens = self.context_tokens();
        // A server that refused the request because of this window counts more than that.
        let size = requested.or(window.filter(|window| *window >= tokens).map(|window| window + 1));
        if let Some(size) = size {
            let request = self.request_parts();
            let mut counter = self.counter.clone();
            counter.learn_refused(size, &request);
            counter.forget_report();
            *self.counter = counter;
        }
        self.gauge.note_refused(self.context_tokens(), window);
        let report = self.compact(CompactionReason::ContextError, None).await?;
        Ok(report.method != CompactionMethod::None)
    }

    /// Makes the conversation shorter.
    pub(crate) async fn compact(
        &mut self,
        reason: CompactionReason,
        wish: Option<&str>,
    ) -> Result<CompactionReport, AgentError> {
        let (tokens_before, window) = (self.context_tokens(), self.gauge.window());
        self.events.emit(Event::CompactionStarted { reason, tokens: tokens_before, window });
        let spent = self.spending.reported();
        let ended = self.shorten(reason, wish, tokens_before).await;
        let method = *ended.as_ref().unwrap_or(&CompactionMethod::None);
        let tokens_after = self.context_tokens();
        self.events.emit(Event::CompactionEnded { reason, method, tokens_before, tokens_after, window });
        let usage = self.spending.reported().since(spent);
        ended.map(|method| CompactionReport { method, tokens_before, tokens_after, usage })
    }

    async fn shorten(
        &mut self,
        reason: CompactionReason,
        wish: Option<&str>,
        tokens: u64,
    ) -> Result<CompactionMethod, AgentError> {
        // Sizes are estimated here; the server may count more.
        let estimate = self.fixed_tokens().saturating_add(self.history.tokens());
        let scale = Scale { tokens: tokens.max(1), estimate: estimate.max(1) };
        let ceiling = scale.to_estimate(self.gauge.ceiling(tokens));
        let budget = CompactionBudget::new(ceiling, self.fixed_tokens());
        let opening = self.history.opening_items();
        let items: Vec<Item> = self.history.entries().iter().map(|entry| entry.get().clone()).collect();
        if reason != CompactionReason::Request {
            let mut lighter = items.clone();
            self.shortener().shorten_old(&mut lighter, budget.free / 4);
            if total(&lighter) <= budget.free * 3 / 5 {
                return self.replace_history((reason, CompactionMethod::Outputs), scale, opening, lighter);
            }
        }
        let division = HistoryDivision::new(&items, opening, budget.tail);
        let (method, summary) = if division.head.is_empty() {
            (CompactionMethod::Outputs, None)
        } else {
            self.summary(&division, &budget, wish).await?
        };
        let history = self.compacted(&division, &budget, summary.as_deref());
        // A summary can be longer than a short conversation.
        if total(&history) >= self.history.tokens() {
            return Ok(CompactionMethod::None);
        }
        self.replace_history((reason, method), scale, division.opening.len(), history)
    }

    /// Returns a summary by the model, or else by rules.
    async fn summary(
        &mut self,
        division: &HistoryDivision<'_>,
        budget: &CompactionBudget,
        wish: Option<&str>,
    ) -> Result<(CompactionMethod, Option<String>), AgentError> {
        if self.model.info().answers_questions()
            && let Some(summary) = self.ask_for_summary(division, budget, wish).await?
        {
            return Ok((CompactionMethod::Summary, Some(summary)));
        }
        let mut summary = rules::summarize(division, self.history.digests(), budget.summary);
        if let Some(wish) = wish {
            summary.push_str("\nThe user asked to keep: ");
            summary.push_str(wish);
        }
        Ok((CompactionMethod::Rules, Some(summary)))
    }

    /// Asks the model for a summary. Returns `None` if it has none to give, or if the budget of the
    /// session allows no request.
    async fn ask_for_summary(
        &mut self,
        division: &HistoryDivision<'_>,
        budget: &CompactionBudget,
        wish: Option<&str>,
    ) -> Result<Option<String>, AgentError> {
        let session = self.spending.budget();
        if session.reached().is_some() || session.begin_request().is_err() {
            return Ok(None);
        }
        let mut retries = AnswerRetries::new(self.model.info());
        let mut record_tokens = budget.ceiling.saturating_sub(budget.summary) * 3 / 5;
        for attempt in 1..=MAX_SUMMARY_TRIES {
            let (model, thread, summary_tokens) = (self.model, self.fixed.thread, budget.summary);
            let question = SummaryQuestion { model, thread, record_tokens, summary_tokens, wish };
            let asked = tokio::select! {
                biased;
                reason = self.stop.stopped() => return Err(AgentError::Stopped(reason)),
                asked = question.ask(division, self.history.digests()) => asked,
            };
            let error = match asked {
                Ok((summary, usage)) => {
                    self.spending.add(usage);
                    return Ok(Some(summary).filter(|summary| !summary.is_empty()));
                }
                Err(error) => error,
            };
            record_tokens /= 2;
            let is_too_long = matches!(error, ModelError::ContextWindowExceeded { .. });
            let next = retries.next(&error, FailedStage::Request).map(|next| next.delay);
            match next.filter(|delay| *delay <= MAX_SUMMARY_PAUSE) {
                _ if attempt == MAX_SUMMARY_TRIES => {}
                Some(delay) => {
                    self.pause(delay).await?;
                    continue;
                }
                None if is_too_long => continue,
                None => {}
            }
            let message = format!("the model did not summarize the conversation, so rules do it: {error}");
            self.events.emit(Event::Warning { message });
            break;
        }
        Ok(None)
    }

    /// Builds the history after a compaction.
    fn compacted(
        &self,
        division: &HistoryDivision<'_>,
        budget: &CompactionBudget,
        summary: Option<&str>,
    ) -> Vec<Item> {
        let shortener = self.shortener();
        let mut left = budget.user;
        let mut recent = Vec::new();
        for item in division.user_messages().rev() {
            if left == 0 {
                break;
            }
            let mut item = item.clone();
            shortener.limit(&mut item, left);
            left = left.saturating_sub(item_tokens(&item));
            recent.push(item);
        }
        let summary = summary.map(|summary| self.summary_message(summary, budget));
        let tail = division.tail.iter().cloned().map(|mut item| {
            let tokens = if is_of_user(&item) { budget.user } else { budget.tail / 2 };
            shortener.limit(&mut item, tokens);
            item
        });
        let opening = division.opening.iter().map(|item| (*item).clone());
        opening.chain(recent.into_iter().rev()).chain(summary).chain(tail).collect()
    }

    /// Returns the message with the summary, the open plan and the files in use.
    fn summary_message(&self, summary: &str, budget: &CompactionBudget) -> Item {
        let notes = notes_text(self.history.notes());
        let notes = Budget::Tokens(usize::try_from(budget.summary / 2).unwrap_or(usize::MAX))
            .cut(&notes, "\n")
            .unwrap_or(notes);
        let text = format!("{SUMMARY_START}{SUMMARY_INTRODUCTION}\n\n{summary}\n{notes}{SUMMARY_END}");
        Item::message(Role::User, self.history.secrets().clean(&text))
    }

    fn replace_history(
        &mut self,
        (reason, method): (CompactionReason, CompactionMethod),
        scale: Scale,
        opening_items: usize,
        history: Vec<Item>,
    ) -> Result<CompactionMethod, AgentError> {
        let after = self.fixed_tokens().saturating_add(total(&history));
        self.history.replace(CompactedHistory {
            reason,
            method,
            tokens_before: scale.tokens,
            tokens_after: scale.to_tokens(after),
            history,
            opening_items,
            notes: self.history.notes().clone(),
            tools: self.offered.found(&self.toolbox.registry),
        })?;
        self.counter.forget_report();
        Ok(method)
    }

    fn shortener(&self) -> OutputShortener<'_> {
        OutputShortener { digests: self.history.digests(), stored: self.history.stored_outputs() }
    }

    /// Estimates the tokens of instructions and tools.
    fn fixed_tokens(&self) -> u64 {
        text_tokens(self.fixed.instructions).saturating_add(self.offered.tokens())
    }

    /// Returns the size of the next request, as the server would count it.
    fn context_tokens(&self) -> u64 {
        self.counter.context(&self.request_parts())
    }
}

/// The ratio between the tokens of a server and our estimate.
#[derive(Debug, Clone, Copy)]
struct Scale {
    tokens: u64,
    estimate: u64,
}

impl Scale {
    fn to_estimate(self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.estimate) / self.tokens
    }

    fn to_tokens(self, estimate: u64) -> u64 {
        estimate.saturating_mul(self.tokens) / self.estimate
    }
}

fn total(items: &[Item]) -> u64 {
    items.iter().map(item_tokens).sum()
}

/// Writes the open plan and the files in use.
fn notes_text(notes: &WorkNotes) -> String {
    let mut text = String::new();
    if let Some(plan) = notes.open_plan() {
        let mark = |status| match status {
            PlanStatus::Completed => "x",
            PlanStatus::InProgress => ">",
            PlanStatus::Pending => " ",
        };
        let steps = plan.plan.iter().map(|step| format!("- [{}] {}\n", mark(step.status), step.step));
        text.push_str(&format!("Plan:\n{}", steps.collect::<String>()));
    }
    let files = notes.files.iter().rev().map(|file| {
        let use_ = if file.changed { "changed" } else { "read" };
        format!("- {} ({use_}{})\n", file.path.display(), state_of(&file.path))
    });
    let files: String = files.collect();
    if !files.is_empty() {
        text.push_str(&format!("Files, the last used first:\n{files}"));
    }
    if text.is_empty() { text } else { format!("\n{NOTES_TITLE}\n{text}") }
}

/// Describes the present state of a file, after a comma.
fn state_of(path: &Path) -> String {
    if path.is_relative() {
        return String::new();
    }
    match path.metadata() {
        Ok(found) if found.is_file() => format!(", now {} bytes", found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => ", does not exist now".to_owned(),
        Ok(_) | Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;

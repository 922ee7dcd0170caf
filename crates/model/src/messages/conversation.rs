//! Encodes a history as messages that alternate between user and assistant.
//!
//! All items between two answers form one user message, with the results of calls first, as the
//! API demands. Each call has exactly one result in the message after it.

use std::{borrow::Cow, mem};

use windlass_contract::{
    CallId, Item,
    item::{Body, Cached, Role},
};

use super::{blocks, with_cache_control};
use crate::WireApi;

/// Text of a user message where the API demands one and the history has none.
const CONTINUE: &str = "Continue.";
/// Number of user messages that are marked for the cache. The earlier one was the last one of the
/// previous request, so its prefix is in the cache.
const CACHED_MESSAGES: usize = 2;

/// Handling of thoughts and other blocks that only their server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThoughtForm {
    /// Sent back unchanged.
    Kept,
    LeftOut,
}

/// Returns a history as the JSON of a request's `messages`.
pub(super) fn encode(history: &[Cached<Item>], form: ThoughtForm) -> String {
    let mut conversation = WireConversation::default();
    for cached in history {
        let kind = BlockKind::from_body(&cached.get().body);
        if form == ThoughtForm::LeftOut && matches!(kind, BlockKind::Thought | BlockKind::Hosted) {
            continue;
        }
        let encoded = cached.encoded(WireApi::Messages.name(), blocks::encode);
        if encoded.is_empty() {
            continue;
        }
        match &cached.get().body {
            Body::Message { role: Role::Assistant, .. } => conversation.answer().push_text(encoded),
            Body::Message { .. } => conversation.user().push(encoded),
            Body::Call(call) => conversation.answer().push_call(&call.id, encoded),
            Body::Output { call, .. } => conversation.push_result(call, encoded),
            Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {
                conversation.answer().push(kind, encoded);
            }
        }
    }
    conversation.finish()
}

/// Kinds of blocks in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Call,
    Thought,
    /// Of a tool that the server runs.
    Hosted,
}

impl BlockKind {
    fn from_body(body: &Body) -> Self {
        match body {
            Body::Message { .. } | Body::Output { .. } => Self::Text,
            Body::Call(_) => Self::Call,
            Body::Reasoning { .. } => Self::Thought,
            Body::WebSearch { .. } | Body::Other => Self::Hosted,
        }
    }
}

/// A user message and the answer to it.
#[derive(Default)]
struct WireExchange<'a> {
    user: Vec<Cow<'a, str>>,
    answer: AnswerBlocks<'a>,
}

/// The blocks of an answer.
#[derive(Default)]
struct AnswerBlocks<'a> {
    blocks: Vec<(BlockKind, Cow<'a, str>)>,
    /// Calls, and their results as far as these are known.
    calls: Vec<(&'a CallId, Option<Cow<'a, str>>)>,
}

impl<'a> AnswerBlocks<'a> {
    fn push(&mut self, kind: BlockKind, block: Cow<'a, str>) {
        self.blocks.push((kind, block));
    }

    /// Adds text, unless it repeats the previous block: a request that was retried may yield the
    /// same text twice.
    fn push_text(&mut self, block: Cow<'a, str>) {
        if self.blocks.last().is_none_or(|(_, last)| *last != block) {
            self.push(BlockKind::Text, block);
        }
    }

    fn push_call(&mut self, id: &'a CallId, block: Cow<'a, str>) {
        self.push(BlockKind::Call, block);
        self.calls.push((id, None));
    }

    /// Returns the place for the result of a call that has none.
    fn missing_result(&mut self, id: &CallId) -> Option<&mut Option<Cow<'a, str>>> {
        self.calls.iter_mut().find(|(call, found)| *call == id && found.is_none()).map(|(_, found)| found)
    }

    /// Removes thoughts that led to nothing: an answer must not end with one.
    fn trim(&mut self) {
        while self.blocks.last().is_some_and(|(kind, _)| *kind == BlockKind::Thought) {
            self.blocks.pop();
        }
    }

    /// Returns true if the server paused in the work of its own tools. It continues when it gets
    /// the answer back.
    fn is_paused(&self) -> bool {
        self.calls.is_empty() && self.blocks.last().is_some_and(|(kind, _)| *kind == BlockKind::Hosted)
    }
}

/// The conversation as it is built.
#[derive(Default)]
struct WireConversation<'a> {
    done: Vec<WireExchange<'a>>,
    current: WireExchange<'a>,
}

impl<'a> WireConversation<'a> {
    /// Returns the user message that comes after everything so far.
    fn user(&mut self) -> &mut Vec<Cow<'a, str>> {
        self.current.answer.trim();
        if !self.current.answer.blocks.is_empty() {
            self.done.push(mem::take(&mut self.current));
        }
        &mut self.current.user
    }

    fn answer(&mut self) -> &mut AnswerBlocks<'a> {
        &mut self.current.answer
    }

    /// Adds the result of a call. One without a call is left out: the API refuses it.
    fn push_result(&mut self, id: &CallId, result: Cow<'a, str>) {
        if let Some(place) = self.current.answer.missing_result(id) {
            *place = Some(result);
            self.user();
        } else if let Some(place) = self.done.last_mut().and_then(|last| last.answer.missing_result(id)) {
            *place = Some(result);
        }
    }

    /// Returns the messages as JSON. The last one is of the user, unless the server paused.
    fn finish(mut self) -> String {
        if !self.current.answer.is_paused() {
            self.user();
        }
        let mut messages: Vec<(&str, Vec<Cow<'_, str>>)> = Vec::new();
        let mut results = Vec::new();
        for exchange in self.done.into_iter().chain([self.current]) {
            let mut blocks = mem::take(&mut results);
            blocks.extend(exchange.user);
            if blocks.is_empty() {
                blocks.push(blocks::text_block(CONTINUE).into());
            }
            messages.push(("user", blocks));
            let AnswerBlocks { blocks, calls } = exchange.answer;
            if !blocks.is_empty() {
                messages.push(("assistant", blocks.into_iter().map(|(_, block)| block).collect()));
            }
            let result =
                |(id, found): (_, Option<_>)| found.unwrap_or_else(|| blocks::missing_result(id).into());
            results.extend(calls.into_iter().map(result));
        }
        mark_for_cache(&mut messages);
        let texts: Vec<_> = messages.iter().map(|(role, blocks)| message(role, blocks)).collect();
        format!("[{}]", texts.join(","))
    }
}

fn mark_for_cache(messages: &mut [(&str, Vec<Cow<'_, str>>)]) {
    let users = messages.iter_mut().rev().filter(|(role, _)| *role == "user");
    for (_, blocks) in users.take(CACHED_MESSAGES) {
        if let Some(last) = blocks.last_mut() {
            *last = with_cache_control(last).into();
        }
    }
}

fn message(role: &str, blocks: &[Cow<'_, str>]) -> String {
    format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
}

#[cfg(test)]
mod tests;

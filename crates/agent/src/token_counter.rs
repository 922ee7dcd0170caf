//! Counts the tokens of a conversation, and corrects the count by what servers report.

use std::sync::OnceLock;

use windlass_contract::{
    Content, Item, ToolSpec,
    item::{Body, Cached},
    model::Usage,
    spec::SpecKind,
};
use windlass_tokens::{Vocabulary, estimate};

/// Tokens around the text of an item: its role and its ends.
pub(crate) const ITEM_TOKENS: u64 = 4;

/// Tokens around name, description and parameters of a tool.
const TOOL_TOKENS: u64 = 15;

/// Approximate cost of an image. Its size does not matter: servers scale it down.
pub(crate) const IMAGE_TOKENS: u64 = 1000;

/// The correction is learned from requests of at least this size: smaller ones say little about
/// text. The tables of a vocabulary are not built for small conversations.
const MIN_ESTIMATED_BYTES: u64 = 4 * 1024;
const MIN_COUNTED_BYTES: u64 = 64 * 1024;

/// Bounds of the correction, in per mille. The lower one is for servers that cut off the beginning
/// of a long conversation and report what they have left of it.
const CORRECTION_PERMILLE: std::ops::RangeInclusive<u64> = 700..=4000;

/// Counts tokens: by the vocabulary of the model's family, or else by an estimate. It learns from
/// the usage that the server reports, for one session.
#[derive(Debug, Clone)]
pub struct TokenCounter {
    vocabulary: Option<Vocabulary>,
    /// Reported tokens per thousand counted ones.
    correction_permille: u64,
    last: Option<ReportedContext>,
    instructions: OnceLock<u64>,
}

/// The size of the conversation after the last answer, as its server reported it.
#[derive(Debug, Clone, Copy)]
struct ReportedContext {
    tokens: u64,
    /// The entries and tools that are part of it.
    entries: usize,
    tools: usize,
}

/// The parts that were added to a request since the server's last report.
struct AddedParts<'a> {
    reported: u64,
    entries: &'a [Cached<Item>],
    tools: &'a [ToolSpec],
}

/// The parts of a request that cost tokens.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// The standing instructions, the same in every request.
    pub instructions: &'a str,
    /// The conversation.
    pub entries: &'a [Cached<Item>],
    /// The tools that are offered.
    pub tools: &'a Cached<Vec<ToolSpec>>,
}

impl TokenCounter {
    /// Counts by a vocabulary; without one, estimates.
    pub fn new(vocabulary: Option<Vocabulary>) -> Self {
        Self { vocabulary, correction_permille: 1000, last: None, instructions: OnceLock::new() }
    }

    /// Counts the tokens of a text, without correction.
    pub fn text(&self, text: &str) -> u64 {
        self.vocabulary.map_or_else(|| estimate(text), |vocabulary| vocabulary.count(text))
    }

    /// Counts the tokens of an item, without correction. Each item is counted once.
    pub fn item(&self, item: &Cached<Item>) -> u64 {
        item.tokens(self.name(), |item| {
            let mut tokens = ITEM_TOKENS;
            for_each_part(item, |part| {
                tokens += match part {
                    ItemPart::Text(text) => self.text(text),
                    ItemPart::Image => IMAGE_TOKENS,
                    ItemPart::Tool(spec) => self.tool(spec),
                }
            });
            tokens
        })
    }

    /// Counts the tokens of a tool's description, without correction.
    pub fn tool(&self, spec: &ToolSpec) -> u64 {
        let texts = self.text(spec.name.as_str()) + self.text(&spec.description);
        TOOL_TOKENS + texts + self.text(&definition(spec))
    }

    /// Counts the tokens of all tools, without correction.
    pub fn tools(&self, tools: &Cached<Vec<ToolSpec>>) -> u64 {
        tools.tokens(self.name(), |specs| specs.iter().map(|spec| self.tool(spec)).sum())
    }

    /// Counts the tokens of a request, without correction.
    pub fn request(&self, request: &RequestParts<'_>) -> u64 {
        let RequestParts { instructions, entries, tools } = request;
        let instructions = *self.instructions.get_or_init(|| self.text(instructions));
        let entries: u64 = entries.iter().map(|entry| self.item(entry)).sum();
        instructions + entries + self.tools(tools)
    }

    /// Returns a count as the server would report it, judged by its last report.
    pub fn corrected(&self, counted: u64) -> u64 {
        counted.saturating_mul(self.correction_permille) / 1000
    }

    /// Returns the size of the next request: what the server reported last, with what was added
    /// since. It is at least the corrected count, since a server may report less than it was sent.
    pub fn context(&self, request: &RequestParts<'_>) -> u64 {
        let counted = self.corrected(self.request(request));
        let Some(added) = self.since_report(request) else { return counted };
        let entries: u64 = added.entries.iter().map(|entry| self.item(entry)).sum();
        let tools: u64 = added.tools.iter().map(|spec| self.tool(spec)).sum();
        counted.max(added.reported.saturating_add(self.corrected(entries + tools)))
    }

    /// Returns false if the next request is certainly smaller. That costs little, because no text
    /// has more tokens than bytes.
    pub fn may_exceed(&self, request: &RequestParts<'_>, tokens: u64) -> bool {
        let bound = |entries: &[Cached<Item>], tools: &[ToolSpec]| {
            let entries: u64 = entries.iter().map(|entry| max_item_tokens(entry.get())).sum();
            self.corrected(entries + tools.iter().map(max_tool_tokens).sum::<u64>())
        };
        let RequestParts { instructions, entries, tools } = request;
        let all = bound(entries, tools.get()).saturating_add(self.corrected(instructions.len() as u64));
        let added = self.since_report(request);
        let added = added.map_or(0, |new| new.reported.saturating_add(bound(new.entries, new.tools)));
        all.max(added) >= tokens
    }

    fn since_report<'a>(&self, request: &RequestParts<'a>) -> Option<AddedParts<'a>> {
        let last = self.last?;
        Some(AddedParts {
            reported: last.tokens,
            entries: request.entries.get(last.entries..)?,
            tools: request.tools.get().get(last.tools..).unwrap_or_default(),
        })
    }

    /// Learns from the usage that a server reported for a request. `answered` is the number of
    /// entries with those of the answer.
    pub(crate) fn learn(&mut self, usage: Usage, request: &RequestParts<'_>, answered: usize) {
        let least = self.vocabulary.map_or(MIN_ESTIMATED_BYTES, |_| MIN_COUNTED_BYTES);
        if self.may_exceed(request, self.corrected(least)) {
            let counted = self.request(request).max(1);
            let permille = usage.input_tokens.saturating_mul(1000) / counted;
            self.correction_permille =
                permille.clamp(*CORRECTION_PERMILLE.start(), *CORRECTION_PERMILLE.end());
        }
        let tools = request.tools.get().len();
        self.last = Some(ReportedContext { tokens: usage.total(), entries: answered, tools });
    }

    /// Learns the size of a request from the message with which its server refused it.
    pub(crate) fn learn_refused(&mut self, tokens: u64, request: &RequestParts<'_>) {
        let permille = tokens.saturating_mul(1000) / self.request(request).max(1);
        self.correction_permille = permille.clamp(*CORRECTION_PERMILLE.start(), *CORRECTION_PERMILLE.end());
    }

    /// Forgets the last report, because the conversation that it is about was replaced.
    pub(crate) fn forget_report(&mut self) {
        self.last = None;
    }

    fn name(&self) -> &'static str {
        self.vocabulary.map_or("estimate", Vocabulary::name)
    }
}

/// A part of an item that costs tokens.
pub(crate) enum ItemPart<'a> {
    Text(&'a str),
    Image,
    Tool(&'a ToolSpec),
}

/// Calls a function for every part of an item.
pub(crate) fn for_each_part<'a>(item: &'a Item, mut part: impl FnMut(ItemPart<'a>)) {
    match &item.body {
        Body::Message { content, .. } | Body::Output { content, .. } => {
            for content in content {
                part(match content {
                    Content::Text(text) => ItemPart::Text(text),
                    Content::Image(_) => ItemPart::Image,
                    Content::Tool(spec) => ItemPart::Tool(spec),
                });
            }
        }
        Body::Reasoning { summary, text } => {
            let bytes = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
            let lines = if bytes(summary) > bytes(text) { summary } else { text };
            for line in lines {
                part(ItemPart::Text(line));
            }
        }
        Body::Call(call) => {
            part(ItemPart::Text(call.name.as_str()));
            part(ItemPart::Text(call.input.as_str()));
        }
        Body::WebSearch { query } => part(ItemPart::Text(query)),
        Body::Other => {}
    }
}

/// Returns the part of a tool's description that is neither name nor prose.
fn definition(spec: &ToolSpec) -> String {
    match &spec.kind {
        SpecKind::Function { parameters } | SpecKind::Search { parameters } => {
            parameters.explicit().to_string()
        }
        SpecKind::Custom { grammar } => grammar.definition.clone(),
        SpecKind::LocalShell | SpecKind::WebSearch(_) => String::new(),
    }
}

fn max_item_tokens(item: &Item) -> u64 {
    let mut tokens = ITEM_TOKENS;
    for_each_part(item, |part| {
        tokens += match part {
            ItemPart::Text(text) => text.len() as u64,
            ItemPart::Image => IMAGE_TOKENS,
            ItemPart::Tool(spec) => max_tool_tokens(spec),
        }
    });
    tokens
}

fn max_tool_tokens(spec: &ToolSpec) -> u64 {
    // Its own estimate is a quarter of its bytes.
    TOOL_TOKENS + spec.tokens() as u64 * 4
}

#[cfg(test)]
mod tests;

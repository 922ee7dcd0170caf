//! Traits of models by name: a table that is built in, and entries of the user.

use std::{collections::BTreeMap, num::NonZeroU64, sync::LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::{Budget, SearchForm};
use windlass_tokens::Vocabulary;

use crate::{CompactAt, EditTools, Family, FileTools, ModelPrices, ShellKind, family::UNKNOWN};

/// Traits of a model, or of all models whose names begin alike. Unset keys keep what is known
/// otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelEntry {
    /// The context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<NonZeroU64>,
    /// The share of the context window, in percent, at which the conversation is made shorter; 0
    /// means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u8>", range(min = 0, max = 95))]
    pub compact_at: Option<CompactAt>,
    /// The tokenizer that counts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<ModelTokenizer>,
    /// The shell tool that it knows best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_tool: Option<ShellKind>,
    /// The tools for changing files that it knows best, and the form of patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit_tool: Option<EditTools>,
    /// The exposure of the tools that read files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_tools: Option<FileTools>,
    /// It may request several calls at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// It supports images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// It reasons before it answers, and can summarize its reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// It was trained on the search items of the Responses API, and not only on functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tool_search: Option<bool>,
    /// Maximum number of tokens of a tool's output that it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_output_tokens: Option<NonZeroU64>,
    /// The same limit in bytes. `tool_output_tokens` has precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_output_bytes: Option<NonZeroU64>,
    /// Its prices. Unset means that its cost is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
}

/// The tokenizer of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelTokenizer {
    /// `o200k_base`: GPT-4o and later models of OpenAI, and gpt-oss.
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
    /// None that is known: tokens are estimated by characters.
    Estimate,
}

/// Traits of models by name. Without entries of the user it is the built-in table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTable {
    /// Names with their entries; of those that match a model, a later one has precedence.
    builtin: Vec<(ModelPattern, ModelEntry)>,
    added: Vec<(ModelPattern, ModelEntry)>,
}

impl Default for ModelTable {
    fn default() -> Self {
        Self::builtin().clone()
    }
}

impl ModelTable {
    /// Returns the built-in table.
    pub fn builtin() -> &'static Self {
        static TABLE: LazyLock<ModelTable> = LazyLock::new(|| ModelTable {
            // A test reads it, too: it cannot be wrong here.
            builtin: parse(include_str!("../data/models.toml")).map(in_order).unwrap_or_default(),
            added: Vec::new(),
        });
        &TABLE
    }

    /// Adds entries by name, which have precedence. A name that ends with `*` stands for all names
    /// that begin with the rest.
    #[must_use]
    pub fn with(mut self, entries: BTreeMap<String, ModelEntry>) -> Self {
        self.added = in_order(entries);
        self
    }

    /// Returns the traits of a model. A provider's prefix (`openai/gpt-5`) may be part of the name
    /// in the table, or not.
    pub fn family(&self, model: &str) -> Family {
        let all = self.builtin.iter().chain(&self.added);
        let mut family = UNKNOWN;
        for (_, entry) in all.filter(|(pattern, _)| pattern.matches(model)) {
            entry.apply(&mut family);
        }
        family
    }

    /// Returns true if the context window of a model is in the table.
    pub fn knows_window(&self, model: &str) -> bool {
        let mut all = self.builtin.iter().chain(&self.added);
        all.any(|(pattern, entry)| entry.context_window.is_some() && pattern.matches(model))
    }
}

impl ModelEntry {
    fn apply(&self, family: &mut Family) {
        fn set<T: Copy>(to: &mut T, value: Option<T>) {
            *to = value.unwrap_or(*to);
        }
        set(&mut family.context_window, self.context_window);
        set(&mut family.compact_at, self.compact_at);
        set(&mut family.vocabulary, self.tokenizer.map(ModelTokenizer::vocabulary));
        set(&mut family.shell, self.shell_tool);
        set(&mut family.edits, self.edit_tool);
        set(&mut family.files, self.file_tools);
        set(&mut family.parallel_calls, self.parallel_calls);
        set(&mut family.shows_images, self.images);
        set(&mut family.reasoning, self.reasoning);
        let form = |native| if native { SearchForm::Wire } else { SearchForm::Function };
        set(&mut family.search, self.native_tool_search.map(form));
        let size = |number: NonZeroU64| usize::try_from(number.get()).unwrap_or(usize::MAX);
        set(&mut family.budget, self.tool_output_bytes.map(|bytes| Budget::Bytes(size(bytes))));
        set(&mut family.budget, self.tool_output_tokens.map(|tokens| Budget::Tokens(size(tokens))));
        let is_whole = |prices: &ModelPrices| prices.input.is_some() && prices.output.is_some();
        set(&mut family.prices, self.prices.filter(is_whole).map(Some));
    }
}

impl ModelTokenizer {
    fn vocabulary(self) -> Option<Vocabulary> {
        match self {
            Self::O200k => Some(Vocabulary::O200k),
            Self::Cl100k => Some(Vocabulary::Cl100k),
            Self::Estimate => None,
        }
    }
}

/// A name of a model, or the beginning of names. Those that match fewer models are greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ModelPattern {
    length: usize,
    is_exact: bool,
    text: String,
}

impl ModelPattern {
    fn new(name: &str) -> Self {
        let text = name.strip_suffix('*').unwrap_or(name).to_ascii_lowercase();
        Self { length: text.len(), is_exact: !name.ends_with('*'), text }
    }

    fn matches(&self, model: &str) -> bool {
        let model = model.to_ascii_lowercase();
        let last = model.rsplit('/').next().unwrap_or(&model);
        let fits = |name: &str| if self.is_exact { name == self.text } else { name.starts_with(&self.text) };
        fits(&model) || fits(last)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    models: BTreeMap<String, ModelEntry>,
}

fn parse(text: &str) -> Result<BTreeMap<String, ModelEntry>, toml::de::Error> {
    toml::from_str::<TableFile>(text).map(|file| file.models)
}

fn in_order(entries: BTreeMap<String, ModelEntry>) -> Vec<(ModelPattern, ModelEntry)> {
    let mut entries: Vec<_> =
        entries.into_iter().map(|(name, entry)| (ModelPattern::new(&name), entry)).collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}

#[cfg(test)]
mod tests;

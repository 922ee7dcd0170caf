//! Traits of models: the tools they were trained on, their abilities, limits and prices.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_runtime::{Budget, SearchForm};
use windlass_tokens::Vocabulary;

use crate::{CompactAt, ModelPrices, ModelTable};

/// The shell tool that a model is offered. The others can still be called, for models trained on
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// `shell`: program and arguments as a list.
    Shell,
    /// `shell_command`: one line for a shell.
    ShellCommand,
    /// `local_shell`: known to the model without a schema.
    LocalShell,
    /// `exec_command` and `write_stdin`: lines for a shell, which may run across calls.
    UnifiedExec,
    /// None.
    Disabled,
}

/// The exposure of the tools that read files: `read_file`, `grep_files` and `list_dir`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ModelFileTools")]
pub enum FileTools {
    /// Offered to the model.
    Offered,
    /// Not offered, because the model was trained to use a shell; calls still work.
    Callable,
    /// Not available.
    Disabled,
}

/// The tools for changing files that a model is offered. The others can still be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditTools {
    /// None.
    Disabled,
    /// `apply_patch`, with the patch as plain text under a grammar.
    #[serde(rename = "apply_patch_freeform")]
    FreeformPatch,
    /// `apply_patch` as a function.
    #[serde(rename = "apply_patch")]
    Patch,
    /// `edit_file` and `write_file`, for models that were not trained on patches.
    #[serde(rename = "edit_file")]
    Strings,
}

/// Traits of a family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The shell tool it knows best.
    pub shell: ShellKind,
    /// The tools for changing files it knows best.
    pub edits: EditTools,
    /// It may request several calls at once.
    pub parallel_calls: bool,
    /// The budget for an output.
    pub budget: Budget,
    /// The exposure of the tools that read files.
    pub files: FileTools,
    /// It supports images.
    pub shows_images: bool,
    /// It reasons before it answers, and can summarize its reasoning.
    pub reasoning: bool,
    /// The context window in tokens.
    pub context_window: NonZeroU64,
    /// The form of its tool search, if the wire protocol supports it.
    pub search: SearchForm,
    /// The vocabulary of its tokenizer, if it is known.
    pub vocabulary: Option<Vocabulary>,
    /// The share of the context window at which the conversation is made shorter.
    pub compact_at: CompactAt,
    /// Its prices, if they are set.
    pub prices: Option<ModelPrices>,
}

/// Traits of an unknown model. Every model has seen shell lines, but not lists of arguments. Tools
/// that read files are easier for small models than shell commands. Local models seldom read more.
pub(crate) const UNKNOWN: Family = Family {
    shell: ShellKind::ShellCommand,
    edits: EditTools::Strings,
    parallel_calls: true,
    budget: Budget::Bytes(10_000),
    files: FileTools::Offered,
    shows_images: true,
    reasoning: false,
    context_window: NonZeroU64::new(32_000).unwrap(),
    search: SearchForm::Function,
    vocabulary: None,
    compact_at: CompactAt::USUAL,
    prices: None,
};

impl Family {
    /// Returns the family of a model in the built-in table. A provider's prefix (`openai/gpt-5`) is
    /// ignored.
    pub fn of(model: &str) -> Self {
        ModelTable::builtin().family(model)
    }

    /// Returns true for a model that is in the table.
    pub(crate) fn is_known(model: &str) -> bool {
        ModelTable::builtin().knows_window(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Budget = Budget::Tokens(10_000);

    #[test]
    fn the_longest_prefix_counts() {
        assert_eq!(Family::of("gpt-5").shell, ShellKind::Shell);
        assert_eq!(Family::of("gpt-5.1").shell, ShellKind::ShellCommand);
        assert_eq!(Family::of("gpt-5.1-codex-max").budget, TOKENS);
        assert!(!Family::of("openai/gpt-4o-mini").reasoning);
        assert_eq!(Family::of("codex-mini-latest").shell, ShellKind::LocalShell);
        assert_eq!(Family::of("exp-anything").shell, ShellKind::UnifiedExec);
        assert_eq!(Family::of("qwen2.5-coder"), UNKNOWN);
        assert_eq!(Family::of("gpt-5-codex").files, FileTools::Callable);
        assert!(!Family::of("openai/gpt-oss-20b").shows_images);
    }

    #[test]
    fn patches_are_for_models_that_learned_them() {
        assert_eq!(Family::of("gpt-5.2-codex").edits, EditTools::FreeformPatch);
        assert_eq!(Family::of("gpt-oss:20b").edits, EditTools::Patch);
        assert_eq!(Family::of("llama3.2").edits, EditTools::Strings);
    }
}

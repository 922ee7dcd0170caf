//! Traits of models by name: the tools they were trained on, and their abilities.

use std::num::NonZeroU64;

use windlass_runtime::{Budget, SearchForm};
use windlass_tokens::Vocabulary;

/// The shell tool that a model is offered. The others can still be called, for models trained on
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTools {
    /// Offered to the model.
    Offered,
    /// Not offered, because the model was trained to use a shell; calls still work.
    Callable,
    /// Not available.
    Disabled,
}

/// The tools for changing files that a model is offered. The others can still be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditTools {
    /// None.
    Disabled,
    /// `apply_patch`, with the patch as plain text under a grammar.
    FreeformPatch,
    /// `apply_patch` as a function.
    Patch,
    /// `edit_file` and `write_file`, for models that were not trained on patches.
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
}

/// Default context window of current models.
const DEFAULT_WINDOW: NonZeroU64 = tokens(200_000);

const BYTES: Budget = Budget::Bytes(10_000);
const TOKENS: Budget = Budget::Tokens(10_000);
/// The offline rules read fast, pay no tokens, and must not miss a name in a listing.
const RULES: Budget = Budget::Bytes(2_000_000);

/// Prefix of a model's name and its traits. The first match counts, so longer prefixes come first.
#[rustfmt::skip]
const FAMILIES: &[(&str, Family)] = &[
    ("o3",                  family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true).counted_by(Vocabulary::O200k)),
    ("o4-mini",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true).counted_by(Vocabulary::O200k)),
    ("codex-mini-latest",   family(ShellKind::LocalShell,   EditTools::Patch,         false, BYTES,  true).counted_by(Vocabulary::O200k)),
    ("gpt-4.1",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).reading(1_000_000).counted_by(Vocabulary::O200k)),
    ("gpt-4o",              family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).reading(128_000).counted_by(Vocabulary::O200k)),
    ("gpt-3.5",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).without_images().reading(16_000).counted_by(Vocabulary::Cl100k)),
    ("gpt-oss",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).without_images().reading(128_000).counted_by(Vocabulary::O200k)),
    ("gpt-5.2-codex",       family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("gpt-5.1-codex",       family(ShellKind::ShellCommand, EditTools::FreeformPatch, false, TOKENS, true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("gpt-5-codex",         family(ShellKind::ShellCommand, EditTools::FreeformPatch, false, TOKENS, true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("gpt-5.4",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire().counted_by(Vocabulary::O200k)),
    ("gpt-5.5",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire().counted_by(Vocabulary::O200k)),
    ("gpt-5.6",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire().counted_by(Vocabulary::O200k)),
    ("exp-codex",           family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("exp-",                family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  BYTES,  true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("gpt-5.",              family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  BYTES,  true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("gpt-5",               family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true).reading(272_000).counted_by(Vocabulary::O200k)),
    ("claude-3-7",          family(ShellKind::ShellCommand, EditTools::Strings,       true,  BYTES,  true).with_file_tools()),
    ("claude-3",            family(ShellKind::ShellCommand, EditTools::Strings,       true,  BYTES,  false).with_file_tools()),
    ("claude-",             family(ShellKind::ShellCommand, EditTools::Strings,       true,  BYTES,  true).with_file_tools()),
    ("rules",               family(ShellKind::ShellCommand, EditTools::Strings,       false, RULES,  false).with_file_tools().without_images()),
];

/// Traits of an unknown model. Every model has seen shell lines, but not lists of arguments. Tools
/// that read files are easier for small models than shell commands. Local models seldom read more.
const UNKNOWN: Family =
    family(ShellKind::ShellCommand, EditTools::Strings, true, BYTES, false).with_file_tools().reading(32_000);

const fn family(
    shell: ShellKind,
    edits: EditTools,
    parallel_calls: bool,
    budget: Budget,
    reasoning: bool,
) -> Family {
    Family {
        shell,
        edits,
        parallel_calls,
        budget,
        files: FileTools::Callable,
        shows_images: true,
        reasoning,
        context_window: DEFAULT_WINDOW,
        search: SearchForm::Function,
        vocabulary: None,
    }
}

const fn tokens(count: u64) -> NonZeroU64 {
    match NonZeroU64::new(count) {
        Some(count) => count,
        None => NonZeroU64::MIN,
    }
}

impl Family {
    const fn with_file_tools(mut self) -> Self {
        self.files = FileTools::Offered;
        self
    }

    const fn reading(mut self, count: u64) -> Self {
        self.context_window = tokens(count);
        self
    }

    const fn searching_by_wire(mut self) -> Self {
        self.search = SearchForm::Wire;
        self
    }

    const fn counted_by(mut self, vocabulary: Vocabulary) -> Self {
        self.vocabulary = Some(vocabulary);
        self
    }

    const fn without_images(mut self) -> Self {
        self.shows_images = false;
        self
    }

    /// Returns the family of a model. A provider's prefix (`openai/gpt-5`) is ignored.
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        FAMILIES.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(UNKNOWN, |(_, family)| *family)
    }

    /// Returns true for a model that is in the table.
    pub(crate) fn is_known(model: &str) -> bool {
        FAMILIES.iter().any(|(prefix, _)| model.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn no_prefix_hides_a_longer_one_behind_it() {
        for (at, (prefix, _)) in FAMILIES.iter().enumerate() {
            let hidden = FAMILIES[at + 1..].iter().find(|(later, _)| later.starts_with(prefix));
            assert_eq!(hidden.map(|(name, _)| name), None, "hidden by {prefix}");
        }
    }
}

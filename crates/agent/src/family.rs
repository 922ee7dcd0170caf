//! What is known about a model from its name: which tools it was trained on, and what it can do.

use std::num::NonZeroU64;

use windlass_runtime::{Budget, SearchForm};

/// The shell tool a model is offered. The others stay callable, for models with old habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellKind {
    /// `shell`: program and arguments as a list.
    Shell,
    /// `shell_command`: one line for a shell.
    ShellCommand,
    /// `local_shell`: known to the model without a schema.
    LocalShell,
    /// `exec_command` and `write_stdin`: lines for a shell that may go on from call to call.
    UnifiedExec,
    /// None.
    Disabled,
}

/// Whether a model is offered the tools that read files: `read_file`, `grep_files` and `list_dir`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTools {
    /// It is told about them.
    Offered,
    /// It is not, because it was trained to use a shell for that; a call works all the same.
    Callable,
    /// They are not there.
    Disabled,
}

/// The tools for changing files that a model is offered. The others stay callable.
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
    /// Whether it may ask for several calls at once.
    pub parallel_calls: bool,
    /// How much of an output it is given.
    pub budget: Budget,
    /// Whether it reads files with tools of their own.
    pub files: FileTools,
    /// Whether it can be shown images.
    pub shows_images: bool,
    /// Whether it thinks before it answers, and can sum its thoughts up.
    pub reasoning: bool,
    /// How many tokens it can read at once.
    pub context_window: NonZeroU64,
    /// How it searches for tools, if its wire has a form for that.
    pub search: SearchForm,
}

/// How much models of today read at least, but for those below.
const WINDOW: NonZeroU64 = tokens(200_000);

const BYTES: Budget = Budget::Bytes(10_000);
const TOKENS: Budget = Budget::Tokens(10_000);
/// Rules read fast, pay for nothing, and must not miss a name in a listing.
const RULES: Budget = Budget::Bytes(2_000_000);

/// Prefix of a model's name and its traits; the first that fits counts, so longer prefixes come first.
#[rustfmt::skip]
const FAMILIES: &[(&str, Family)] = &[
    ("o3",                  family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true)),
    ("o4-mini",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true)),
    ("codex-mini-latest",   family(ShellKind::LocalShell,   EditTools::Patch,         false, BYTES,  true)),
    ("gpt-4.1",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).reading(1_000_000)),
    ("gpt-4o",              family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).reading(128_000)),
    ("gpt-3.5",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).without_images().reading(16_000)),
    ("gpt-oss",             family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  false).without_images().reading(128_000)),
    ("test-gpt-5",          family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  TOKENS, true).with_file_tools().reading(272_000)),
    ("gpt-5.2-codex",       family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000)),
    ("gpt-5.1-codex",       family(ShellKind::ShellCommand, EditTools::FreeformPatch, false, TOKENS, true).reading(272_000)),
    ("gpt-5-codex",         family(ShellKind::ShellCommand, EditTools::FreeformPatch, false, TOKENS, true).reading(272_000)),
    ("gpt-5.4",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire()),
    ("gpt-5.5",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire()),
    ("gpt-5.6",             family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000).searching_by_wire()),
    ("exp-codex",           family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  TOKENS, true).reading(272_000)),
    ("exp-",                family(ShellKind::UnifiedExec,  EditTools::FreeformPatch, true,  BYTES,  true).reading(272_000)),
    ("gpt-5.",              family(ShellKind::ShellCommand, EditTools::FreeformPatch, true,  BYTES,  true).reading(272_000)),
    ("gpt-5",               family(ShellKind::Shell,        EditTools::Patch,         false, BYTES,  true).reading(272_000)),
    ("rules",               family(ShellKind::ShellCommand, EditTools::Strings,       false, RULES,  false).with_file_tools().without_images()),
];

/// A model nobody here knows. One line for a shell is what every model has seen; a list of arguments is not. Tools that
/// read files are easier for small models than the right words for a shell. What runs at home seldom reads more.
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
        context_window: WINDOW,
        search: SearchForm::Function,
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

    const fn without_images(mut self) -> Self {
        self.shows_images = false;
        self
    }

    /// The family of a model. A provider's prefix (`openai/gpt-5`) does not count.
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        FAMILIES.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(UNKNOWN, |(_, family)| *family)
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
        assert_eq!(Family::of("test-gpt-5-codex").files, FileTools::Offered);
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

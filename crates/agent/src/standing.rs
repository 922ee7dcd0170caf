//! The standing instructions of a model, as data files: short ones for small models, which are slow
//! to read and pay for every word, and full ones for large models.

use crate::{EditTools, Family};

/// Instructions for small models.
const SMALL: &str = include_str!("../data/instructions/small.md");

/// Instructions for large models. `{edits}` stands for the part about the tools that change files.
const FULL: &str = include_str!("../data/instructions/full.md");

const PATCH: &str = include_str!("../data/instructions/patch.md");
const STRINGS: &str = include_str!("../data/instructions/strings.md");

/// The smallest number of parameters of a large model, in thousand millions. Smaller ones were seen
/// to repeat instructions instead of following them.
const LARGE_BILLIONS: f64 = 20.0;

/// Known models that are small although their names do not say it.
const SMALL_PREFIXES: [&str; 4] = ["gpt-3.5", "phi", "rules", "smollm"];

/// Unknown models that are large although their names do not say how large.
const LARGE_PREFIXES: [&str; 9] = [
    "gemini",
    "deepseek",
    "grok",
    "mistral-large",
    "mistral-medium",
    "devstral",
    "codestral",
    "kimi",
    "glm-4",
];

/// The standing instructions of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingInstructions {
    /// `small` or `full`.
    pub name: &'static str,
    /// The text.
    pub text: String,
}

impl StandingInstructions {
    /// Returns the instructions for a model, by its name, with these tools for changing files.
    pub fn of(model: &str, edits: EditTools) -> Self {
        if !is_large(model) {
            return Self { name: "small", text: SMALL.trim_end().to_owned() };
        }
        let edits = match edits {
            EditTools::FreeformPatch | EditTools::Patch => PATCH,
            EditTools::Strings => STRINGS,
            EditTools::Disabled => "\n",
        };
        Self { name: "full", text: FULL.replace("{edits}\n", edits).trim_end().to_owned() }
    }
}

fn is_large(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&SMALL_PREFIXES) {
        return false;
    }
    match billions(&name) {
        Some(billions) => billions >= LARGE_BILLIONS,
        None => Family::is_known(&name) || starts(&LARGE_PREFIXES),
    }
}

/// Returns the number of parameters that a name tells: `qwen2.5-coder:1.5b`, `llama-3.3-70b`.
fn billions(name: &str) -> Option<f64> {
    let words = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words.rev().find_map(|word| word.strip_suffix('b')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(model: &str) -> &'static str {
        StandingInstructions::of(model, EditTools::Strings).name
    }

    #[test]
    fn small_models_get_short_instructions() {
        for model in [
            "qwen2.5-coder:1.5b",
            "qwen-coder-0.5b",
            "llama3.2:3b-instruct-q4",
            "hf.co/x/phi-4-mini",
            "gemma3:12b",
            "my-model",
            "",
            "gpt-3.5-turbo",
            "rules",
            "Qwen2.5-7B-Instruct",
        ] {
            assert_eq!(name(model), "small", "{model}");
        }
        for model in [
            "gpt-5.2-codex",
            "openai/gpt-4.1",
            "claude-sonnet-4-5",
            "o4-mini",
            "llama-3.3-70b",
            "qwen3:32b",
            "gpt-oss:20b",
            "gemini-2.5-pro",
            "deepseek-chat",
            "Qwen3-235B-A22B",
        ] {
            assert_eq!(name(model), "full", "{model}");
        }
        // Names of large models that tell their small variants.
        for model in ["gpt-oss:2b", "deepseek-r1:1.5b", "glm-4-9b"] {
            assert_eq!(name(model), "small", "{model}");
        }
    }

    #[test]
    fn the_small_text_is_short_and_the_full_one_names_the_tools_on_offer() {
        // Some four bytes of English are a token.
        assert!(SMALL.len() < 250 * 4, "{}", SMALL.len());
        assert!(FULL.len() + PATCH.len().max(STRINGS.len()) < 1100 * 4, "{}", FULL.len());
        let text = |edits| StandingInstructions::of("gpt-5", edits).text;
        assert!(text(EditTools::Patch).contains("*** Begin Patch"));
        assert!(text(EditTools::Strings).contains("`edit_file`"));
        for edits in [EditTools::FreeformPatch, EditTools::Strings, EditTools::Disabled] {
            assert!(!text(edits).contains("{edits}"));
        }
        assert!(!text(EditTools::Strings).contains("apply_patch"));
    }
}

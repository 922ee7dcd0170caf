//! Limits of an answer and settings of thinking, by the name of the model.

use serde_json::{Value, json};

use super::conversation::ThoughtForm;
use crate::Options;

/// Output limit of a model that is not listed. Every current model can write this much.
const DEFAULT_MAX_TOKENS: u64 = 8_192;
/// Minimum budget for thinking that the API accepts.
const MIN_BUDGET_TOKENS: u64 = 1_024;

/// Part of a model's name, its output limit in tokens and its way of thinking. The first match
/// counts. Limits as published for each model; the request is refused if it asks for more.
#[rustfmt::skip]
const MODELS: &[(&str, u64, ThinkingKind)] = &[
    ("claude-3-haiku",     4_096, ThinkingKind::None),
    ("claude-3-opus",      4_096, ThinkingKind::None),
    ("claude-3-sonnet",    4_096, ThinkingKind::None),
    ("claude-3-5",         8_192, ThinkingKind::None),
    ("claude-3-7",        64_000, ThinkingKind::Budget),
    ("claude-opus-4-1",   32_000, ThinkingKind::Budget),
    ("claude-opus-4-0",   32_000, ThinkingKind::Budget),
    ("claude-opus-4-2025", 32_000, ThinkingKind::Budget),
    ("claude-opus-4-5",   64_000, ThinkingKind::Budget),
    ("claude-sonnet-4-0", 64_000, ThinkingKind::Budget),
    ("claude-sonnet-4-2025", 64_000, ThinkingKind::Budget),
    ("claude-sonnet-4-5", 64_000, ThinkingKind::Budget),
    ("claude-haiku-4-5",  64_000, ThinkingKind::Budget),
    // Everything later.
    ("claude-",           64_000, ThinkingKind::Adaptive),
];

/// Ways in which a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingKind {
    /// It does not think.
    None,
    /// With a number of tokens.
    Budget,
    /// As much as it decides, guided by an effort.
    Adaptive,
}

/// Settings of thinking for a request.
#[derive(Debug, PartialEq)]
pub(super) struct ThinkingOptions<'a> {
    pub(super) max_tokens: u64,
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<&'a str>,
}

impl<'a> ThinkingOptions<'a> {
    pub(super) fn from_options(options: &'a Options, form: ThoughtForm) -> Self {
        let (limit, kind) = traits_of(&options.model);
        let max_tokens = options.max_output_tokens.unwrap_or(limit);
        let plain = Self { max_tokens, thinking: None, effort: None };
        if form == ThoughtForm::LeftOut {
            return plain;
        }
        let shows_summary = options.reasoning_summary.as_deref().is_some_and(|style| style != "none");
        match (kind, options.reasoning_effort.as_deref()) {
            (ThinkingKind::None, _) | (ThinkingKind::Budget, None) => plain,
            (_, Some("none")) => Self { thinking: Some(json!({"type": "disabled"})), ..plain },
            (ThinkingKind::Adaptive, None) if !shows_summary => plain,
            (ThinkingKind::Adaptive, effort) => {
                let display = if shows_summary { "summarized" } else { "omitted" };
                let effort = effort.map(|effort| if effort == "minimal" { "low" } else { effort });
                Self { thinking: Some(json!({"type": "adaptive", "display": display})), effort, ..plain }
            }
            (ThinkingKind::Budget, Some(effort)) => {
                // Half is left for the answer itself.
                let budget = budget_tokens(effort).min(max_tokens / 2);
                let enabled = json!({"type": "enabled", "budget_tokens": budget});
                Self { thinking: (budget >= MIN_BUDGET_TOKENS).then_some(enabled), ..plain }
            }
        }
    }
}

fn traits_of(model: &str) -> (u64, ThinkingKind) {
    let known = MODELS.iter().find(|(name, ..)| model.contains(name));
    known.map_or((DEFAULT_MAX_TOKENS, ThinkingKind::Budget), |(_, limit, kind)| (*limit, *kind))
}

fn budget_tokens(effort: &str) -> u64 {
    match effort {
        "minimal" => MIN_BUDGET_TOKENS,
        "low" => 4_096,
        "medium" => 12_000,
        "high" => 24_000,
        _ => 32_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str, effort: Option<&str>, summary: Option<&str>) -> (u64, Value, Option<String>) {
        let options = Options {
            model: model.to_owned(),
            reasoning_effort: effort.map(str::to_owned),
            reasoning_summary: summary.map(str::to_owned),
            ..Options::default()
        };
        let asked = ThinkingOptions::from_options(&options, ThoughtForm::Kept);
        (asked.max_tokens, asked.thinking.unwrap_or_default(), asked.effort.map(str::to_owned))
    }

    #[test]
    fn each_generation_is_asked_to_think_in_its_own_way() {
        let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
        let adaptive = |display: &str| json!({"type": "adaptive", "display": display});
        let high = Some("high");
        assert_eq!(asked("claude-3-haiku-20240307", high, None), (4_096, Value::Null, None));
        assert_eq!(asked("claude-sonnet-4-5", high, None), (64_000, budget(24_000), None));
        assert_eq!(asked("claude-opus-4-20250514", Some("max"), None), (32_000, budget(16_000), None));
        assert_eq!(asked("claude-sonnet-4-5", None, Some("auto")), (64_000, Value::Null, None));
        let opus = "anthropic/claude-opus-4-6";
        assert_eq!(asked(opus, high, None), (64_000, adaptive("omitted"), high.map(str::to_owned)));
        assert_eq!(asked(opus, None, Some("auto")), (64_000, adaptive("summarized"), None));
        assert_eq!(asked(opus, None, Some("none")), (64_000, Value::Null, None));
        assert_eq!(asked(opus, Some("minimal"), None).2.as_deref(), Some("low"));
        assert_eq!(asked(opus, Some("none"), None).1, json!({"type": "disabled"}));
        assert_eq!(asked("qwen", high, None), (8_192, budget(4_096), None));
    }

    #[test]
    fn thinking_leaves_room_for_the_answer_or_is_left_out() {
        let asked = |max_output_tokens| {
            let options = Options {
                model: "claude-haiku-4-5".to_owned(),
                reasoning_effort: Some("low".to_owned()),
                max_output_tokens: Some(max_output_tokens),
                ..Options::default()
            };
            ThinkingOptions::from_options(&options, ThoughtForm::Kept).thinking
        };
        assert_eq!(asked(4_000), Some(json!({"type": "enabled", "budget_tokens": 2_000})));
        assert_eq!(asked(2_000), None);
    }
}

//! Token usage, which the two protocols report under different names.

use serde::Deserialize;
use windlass_contract::model::Usage;

use crate::json::LenientField;

/// Token counts as a server writes them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenCounts {
    #[serde(rename = "input_tokens", alias = "prompt_tokens")]
    input: LenientField<u64>,
    #[serde(rename = "input_tokens_details", alias = "prompt_tokens_details")]
    input_details: LenientField<TokenDetails>,
    #[serde(rename = "output_tokens", alias = "completion_tokens")]
    output: LenientField<u64>,
    #[serde(rename = "output_tokens_details", alias = "completion_tokens_details")]
    output_details: LenientField<TokenDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenDetails {
    #[serde(rename = "cached_tokens")]
    cached: LenientField<u64>,
    #[serde(rename = "cache_write_tokens")]
    cache_writes: LenientField<u64>,
    #[serde(rename = "reasoning_tokens")]
    reasoning: LenientField<u64>,
}

impl From<TokenCounts> for Usage {
    fn from(tokens: TokenCounts) -> Self {
        let input = tokens.input_details.0.unwrap_or_default();
        Self {
            input_tokens: tokens.input.0.unwrap_or(0),
            cached_input_tokens: input.cached.0.unwrap_or(0),
            cache_write_input_tokens: input.cache_writes.0.unwrap_or(0),
            output_tokens: tokens.output.0.unwrap_or(0),
            reasoning_output_tokens: tokens
                .output_details
                .0
                .and_then(|details| details.reasoning.0)
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_wires_names_are_read_and_slips_count_as_nothing() {
        let read = |text| Usage::from(serde_json::from_str::<TokenCounts>(text).unwrap());
        let expected = Usage {
            input_tokens: 10,
            cached_input_tokens: 4,
            cache_write_input_tokens: 3,
            output_tokens: 5,
            reasoning_output_tokens: 2,
        };
        let responses = r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens":5,
            "output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}"#;
        let chat = r#"{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"completion_tokens":5,
            "completion_tokens_details":{"reasoning_tokens":2}}"#;
        assert_eq!((read(responses), read(chat)), (expected, expected));
        let slips = r#"{"input_tokens":"many","output_tokens":-3,"output_tokens_details":null}"#;
        assert_eq!(read(slips), Usage::default());
    }
}

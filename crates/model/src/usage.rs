//! What an answer cost, as both wires report it under different names.

use serde::Deserialize;
use windlass_contract::Usage;

use crate::json::lenient;

/// Token counts as a server writes them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, rename = "input_tokens", alias = "prompt_tokens", deserialize_with = "lenient")]
    input: Option<u64>,
    #[serde(
        default,
        rename = "input_tokens_details",
        alias = "prompt_tokens_details",
        deserialize_with = "lenient"
    )]
    input_details: Option<Details>,
    #[serde(default, rename = "output_tokens", alias = "completion_tokens", deserialize_with = "lenient")]
    output: Option<u64>,
    #[serde(
        default,
        rename = "output_tokens_details",
        alias = "completion_tokens_details",
        deserialize_with = "lenient"
    )]
    output_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
struct Details {
    #[serde(default, rename = "cached_tokens", deserialize_with = "lenient")]
    cached: Option<u64>,
    #[serde(default, rename = "reasoning_tokens", deserialize_with = "lenient")]
    reasoning: Option<u64>,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input.unwrap_or(0),
            cached_input_tokens: tokens.input_details.and_then(|details| details.cached).unwrap_or(0),
            output_tokens: tokens.output.unwrap_or(0),
            reasoning_output_tokens: tokens.output_details.and_then(|details| details.reasoning).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_wires_names_are_read_and_slips_count_as_nothing() {
        let read = |text| Usage::from(serde_json::from_str::<Tokens>(text).unwrap());
        let expected =
            Usage { input_tokens: 10, cached_input_tokens: 4, output_tokens: 5, reasoning_output_tokens: 2 };
        let responses = r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,
            "output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}"#;
        let chat = r#"{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5,
            "completion_tokens_details":{"reasoning_tokens":2}}"#;
        assert_eq!((read(responses), read(chat)), (expected, expected));
        let slips = r#"{"input_tokens":"many","output_tokens":-3,"output_tokens_details":null}"#;
        assert_eq!(read(slips), Usage::default());
    }
}

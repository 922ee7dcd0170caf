//! Messages of servers about requests that are longer than the context window.

use serde_json::Value;

/// Phrases of such messages, in lower case. Many servers send no code of their own for them.
const TOO_LONG: [&str; 13] = [
    // OpenAI, vLLM, SGLang, DeepSeek and others.
    "maximum context length",
    "exceeds the context window",
    "context length exceeded",
    "reduce the length of the messages",
    // Anthropic.
    "prompt is too long",
    "`max_tokens` exceed context limit",
    // llama.cpp, Ollama and LM Studio.
    "available context size",
    "exceeds context size",
    "loaded with context length of only",
    "input length exceeds",
    // Gemini, xAI and others.
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "input is too long for requested model",
];

/// Phrases before the number of tokens that the model reads.
const WINDOW: [&str; 8] = [
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "available context size (",
    "context length of only ",
    "number of tokens allowed (",
    "tokens > ",
    "context limit: ",
];

/// Phrases before the number of tokens of the request.
const REQUESTED: [&str; 7] = [
    "resulted in ",
    "you requested ",
    "request contains ",
    "prompt contains ",
    "prompt is too long: ",
    "request (",
    "input token count (",
];

/// The size of a request and of the window that it exceeds, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestSizes {
    pub(super) window: Option<u64>,
    pub(super) requested: Option<u64>,
}

/// Returns true if a message says that a request is too long.
pub(super) fn is_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    TOO_LONG.iter().any(|phrase| message.contains(phrase))
}

impl RequestSizes {
    /// Finds the sizes in an error of llama.cpp.
    pub(super) fn from_fields(error: &Value) -> Self {
        let number = |name| error.get(name).and_then(Value::as_u64);
        Self { window: number("n_ctx"), requested: number("n_prompt_tokens") }
    }

    /// Finds the sizes in a message.
    pub(super) fn from_message(message: &str) -> Self {
        let message = message.to_lowercase();
        // `context limit: INPUT + OUTPUT > WINDOW`, of Anthropic.
        if let Some((sum, window)) =
            message.split_once("context limit: ").and_then(|(_, rest)| rest.split_once(" > "))
        {
            let requested = sum.split(" + ").map(leading_number).sum();
            return Self { window: leading_number(window), requested };
        }
        let after = |phrases: &[&str]| {
            phrases.iter().find_map(|phrase| leading_number(message.split_once(phrase)?.1))
        };
        Self { window: after(&WINDOW), requested: after(&REQUESTED) }
    }

    /// Returns these sizes, or else others.
    pub(super) fn or(self, other: Self) -> Self {
        Self { window: self.window.or(other.window), requested: self.requested.or(other.requested) }
    }
}

/// Returns the number at the beginning of a text, which may have separators.
fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    text[..end].replace(',', "").parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_in_the_messages_of_servers() {
        let rows = [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                Some(8192),
                Some(9000),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
                Some(4096),
                Some(5000),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000), Some(210_000)),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
                Some(200_000),
                Some(210_000),
            ),
            (
                "request (5001 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(4096),
                Some(5001),
            ),
            (
                "the request exceeds the available context size. try increasing the context size or enable context shift",
                None,
                None,
            ),
            (
                "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_048_577),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 133279 tokens.",
                Some(131_072),
                Some(133_279),
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                None,
                None,
            ),
            ("Please reduce the length of the messages or completion.", None, None),
        ];
        for (message, window, requested) in rows {
            assert!(is_too_long(message), "{message}");
            assert_eq!(RequestSizes::from_message(message), RequestSizes { window, requested }, "{message}");
        }
    }

    #[test]
    fn other_messages_are_not_about_the_length() {
        for message in
            ["no such model", "max_tokens must be positive", "the context is invalid", "overloaded"]
        {
            assert!(!is_too_long(message), "{message}");
        }
    }
}

//! Recognises the prompt of a program that seems to wait for an answer.

/// Maximum length of a line that counts as a prompt.
const MAX_PROMPT_CHARS: usize = 200;

/// Maximum length of the prompt of a shell or an interpreter, as in `mysql> `.
const MAX_SHELL_PROMPT_CHARS: usize = 40;

/// Phrases of prompts, in lower case.
const PHRASES: [&str; 9] = [
    "[y/n",
    "(y/n",
    "(yes/no",
    "[yes/no",
    "password",
    "passphrase",
    "press enter",
    "press any key",
    "--more--",
];

/// Returns the last line of an output if it has no end and reads like a question.
pub(super) fn prompt_at_end(output: &str) -> Option<&str> {
    let line = output.rsplit(['\n', '\r']).next()?.trim();
    let lower = line.to_lowercase();
    let length = line.chars().count();
    let asks = line.ends_with(['?', ':'])
        || line.ends_with('>') && length <= MAX_SHELL_PROMPT_CHARS
        || PHRASES.iter().any(|phrase| lower.contains(phrase));
    (asks && (1..=MAX_PROMPT_CHARS).contains(&length)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_line_that_asks_is_a_prompt() {
        for (output, prompt) in [
            ("Building\nContinue? [y/N] ", Some("Continue? [y/N]")),
            ("Password: ", Some("Password:")),
            ("[sudo] password for me", Some("[sudo] password for me")),
            ("welcome\nmysql> ", Some("mysql>")),
            (
                "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
                Some("Are you sure you want to continue connecting (yes/no/[fingerprint])?"),
            ),
            ("What is your name?\n", None),
            ("Listening on port 8080", None),
            ("[=====>     ] 40%", None),
            ("downloading 3/10", None),
            ("", None),
        ] {
            assert_eq!(prompt_at_end(output), prompt, "{output:?}");
        }
    }
}

//! Searches for texts that look like secrets. They find secrets in any file and in the history of a
//! repository.

/// Beginnings of tokens and keys, in lower case, and beginnings of regular expressions for them.
const LOOKS: &[&str] = &[
    "private key",
    "private.*key",
    "private[ _-]",
    "akia",
    "asia[",
    "a3t[",
    "aws_secret",
    "aws_access",
    "secret_access",
    "gh[",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat",
    "glpat-",
    "gldt-",
    "glrt-",
    "npm_[",
    "_authtoken",
    "pypi-ag",
    "hf_[",
    "xoxa",
    "xoxb",
    "xoxp",
    "xox[",
    "xapp-",
    "hooks.slack.com",
    "sk-ant",
    "sk-proj",
    "sk-[",
    "sk_live",
    "sk_test",
    "rk_live",
    "(sk|",
    "aiza",
    "ya29",
    "eyjh",
    "eyj[",
    "sg\\.",
    "dop_v1",
    "shpat_",
    "age-secret-key",
    "-----begin",
    "begin rsa",
    "begin openssh",
    "begin dsa",
    "begin ec ",
    "begin pgp",
    "begin private",
    "begin encrypted",
    "begin.*private",
    "begin.*key",
    "begin [",
];

/// Returns true if a text is a search for secrets.
pub(super) fn looks_for_secrets(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bytes = lower.as_bytes();
    // For a short text this is faster than preparing a searcher for each pattern.
    (0..bytes.len()).any(|at| LOOKS.iter().any(|each| bytes[at..].starts_with(each.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_tokens_and_keys_are_known_and_words_of_code_are_not() {
        for text in ["ghp_", "AKIA[0-9A-Z]{16}", "BEGIN RSA PRIVATE KEY", "gh[pousr]_", "sk-[a-zA-Z0-9]{20}"]
        {
            assert!(looks_for_secrets(text), "{text}");
        }
        for text in ["TODO", "fn main", "token", "BEGIN", "begin()", "sk", "risk-free", "high", "laugh"] {
            assert!(!looks_for_secrets(text), "{text}");
        }
    }
}

//! Searches for what secrets look like. They find them wherever they are, in files and in the history of a repository.

/// How tokens and keys begin, in lower case, and the beginnings of expressions that stand for them.
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

/// Returns whether a text looks for secrets.
pub(super) fn looks_for_secrets(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bytes = lower.as_bytes();
    // For a short text this is faster than preparing a search for each.
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

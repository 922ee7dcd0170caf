//! Names that secrets usually have: of variables, options, and keys in configuration files.

/// Substrings that mark the name of a secret.
const PARTS: [&str; 10] = [
    "key",
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "private",
    "connection_string",
    "database_url",
];

/// Words that mark the name of a secret if they end it, after another word.
const LAST_WORDS: [&str; 9] = ["pat", "dsn", "pass", "pwd", "pw", "psk", "creds", "salt", "pepper"];

/// Returns true if secrets usually have this name, in any case: `GITHUB_TOKEN`, `DB_PASS`,
/// `sentry.dsn`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    PARTS.iter().any(|part| name.contains(part))
        || name.rsplit_once(['_', '-', '.']).is_some_and(|(_, last)| LAST_WORDS.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_any_case() {
        for name in ["GITHUB_TOKEN", "DB_PASS", "sentry.dsn", "my-api-key", "GITHUB_PAT", "HASH_SALT"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "HOME", "SSH_ASKPASS", "COMPASS", "pattern", "dsn"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}

//! Names that secrets usually have: of variables, options and keys of configuration files.

/// Parts that make a name one of a secret wherever they are in it.
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

/// Words that do so at the end of a name, behind another word.
const LAST_WORDS: [&str; 9] = ["pat", "dsn", "pass", "pwd", "pw", "psk", "creds", "salt", "pepper"];

/// Returns whether a name is one that secrets usually have, in any case: `GITHUB_TOKEN`, `DB_PASS`, `sentry.dsn`.
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

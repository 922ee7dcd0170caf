//! Errors of logins. They hold no token, code or secret.

use std::io;

use rmcp::transport::auth::AuthError;

use crate::credentials::CredentialError;

/// Maximum length of a text of a server in a message.
const MAX_REASON_CHARS: usize = 300;

/// The reason why a login, a logout or a refresh failed.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// The server is not reached over HTTP, or has its own token.
    #[error("MCP server `{server}` has no login: {reason}")]
    NoLogin {
        /// The server.
        server: String,
        /// The setting that excludes a login.
        reason: &'static str,
    },
    /// The authorization server was not found.
    #[error("cannot find the authorization server: {reason}")]
    Discovery {
        /// The problem. Parts are from the server.
        reason: String,
    },
    /// Another authorization server answered than the one that was asked, or it cannot be told.
    #[error("the answer is from `{received}`, but the login was started at `{expected}`; nothing was sent")]
    WrongIssuer {
        /// The issuer that was asked.
        expected: String,
        /// The issuer that answered.
        received: String,
    },
    /// The authorization server has no S256 challenge.
    #[error("the authorization server does not support PKCE with S256")]
    NoPkce,
    /// The authorization server refused the login.
    #[error("the authorization server refused the login: {code}")]
    Refused {
        /// Error code of the server.
        code: String,
    },
    /// The pasted text is not the redirect of this login.
    #[error("this is not the address to which the browser was sent after this login")]
    WrongRedirect,
    /// Nobody has answered in time.
    #[error("the login was not completed within {seconds} s")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// A step of the protocol failed.
    #[error("{step}: {reason}")]
    Protocol {
        /// The step.
        step: &'static str,
        /// The problem. Parts are from the server.
        reason: String,
    },
    /// The listener on this machine could not be started.
    #[error("cannot listen on 127.0.0.1 for the end of the login")]
    Listen {
        /// The cause.
        source: io::Error,
    },
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
}

impl OAuthError {
    /// Converts an error of the protocol library.
    pub(crate) fn from_protocol(step: &'static str, error: AuthError) -> Self {
        match error {
            AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
                Self::WrongIssuer {
                    expected: reason_text(&expected_issuer),
                    received: reason_text(&received_issuer),
                }
            }
            AuthError::AuthorizationServerMissingIssuer { expected_issuer } => Self::WrongIssuer {
                expected: reason_text(&expected_issuer),
                received: "an unnamed issuer".to_owned(),
            },
            AuthError::PkceUnsupported => Self::NoPkce,
            // The parser of tokens can quote a token in its message.
            AuthError::TokenExchangeFailed(text) | AuthError::TokenRefreshFailed(text) => {
                let is_answer = text.starts_with("Server returned error response");
                let reason = if is_answer || text == "Request failed" {
                    reason_text(&text)
                } else {
                    "the answer of the token endpoint is not valid".to_owned()
                };
                Self::Protocol { step, reason }
            }
            other => Self::Protocol { step, reason: reason_text(&other.to_string()) },
        }
    }
}

/// Makes a text of a server fit for a message: one line without control or format characters.
pub(crate) fn reason_text(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let visible: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= MAX_REASON_CHARS {
        return words;
    }
    words.chars().take(MAX_REASON_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_server_becomes_one_bounded_line() {
        assert_eq!(reason_text("a\u{1b}[31m\r\n b\u{202e}c"), "a [31m b c");
        assert_eq!(reason_text(&"x".repeat(1000)).chars().count(), MAX_REASON_CHARS + 1);
    }

    #[test]
    fn a_failed_exchange_never_quotes_the_answer() {
        let text = "invalid type: string \"the-token\", expected u64 at line 1".to_owned();
        let error = OAuthError::from_protocol("login", AuthError::TokenExchangeFailed(text));
        assert!(!error.to_string().contains("the-token"));
    }
}

//! Access tokens of HTTP servers, between the pool that sends them and the store that has them.

use windlass_contract::BoxFuture;

/// The token of a server, or `None` if the user has never logged in.
pub type AccessTokenFuture<'a> = BoxFuture<'a, Result<Option<String>, LoginNeeded>>;

/// Supplies the access tokens of HTTP servers. Implemented by `oauth`, called by the pool.
/// It never prints or logs a token.
pub trait AccessTokens: Send + Sync {
    /// Returns the token of a server, refreshed if it is about to expire. `None` if the user has
    /// never logged in.
    fn access_token<'a>(&'a self, server: &'a str) -> AccessTokenFuture<'a>;

    /// Returns another token after the server has refused `refused`.
    fn token_after_refusal<'a>(
        &'a self,
        server: &'a str,
        refused: &'a str,
    ) -> BoxFuture<'a, Result<String, LoginNeeded>>;

    /// Notes the `WWW-Authenticate` header with which the server refused a request, so that the
    /// next login uses it. The pool calls this after a 401 that no other token can help, and after
    /// a 403 with `insufficient_scope`.
    fn note_challenge<'a>(&'a self, server: &'a str, challenge: &'a str) -> BoxFuture<'a, LoginNeeded> {
        let _ = (server, challenge);
        Box::pin(async { LoginNeeded { reason: "the server refused the request".to_owned() } })
    }
}

/// The user must log in again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a login is needed: {reason}")]
pub struct LoginNeeded {
    /// The reason.
    pub reason: String,
}

//! The access token of an HTTP server: from the environment, or from a login.

use std::sync::Arc;

use crate::access_tokens::{AccessTokens, LoginNeeded};

/// The source of the tokens of one server.
pub(crate) struct ServerAccess {
    server: String,
    source: AccessSource,
}

/// The place that a token comes from.
pub(crate) enum AccessSource {
    /// No token, or a header of the configuration.
    Nothing,
    /// The variable of `bearer_token_env_var`.
    Environment(String),
    /// A login.
    Login(Arc<dyn AccessTokens>),
}

impl ServerAccess {
    pub(crate) fn new(server: String, source: AccessSource) -> Self {
        Self { server, source }
    }

    /// Returns the token of the next request.
    pub(super) async fn token(&self) -> Result<Option<String>, LoginNeeded> {
        match &self.source {
            AccessSource::Nothing => Ok(None),
            AccessSource::Environment(token) => Ok(Some(token.clone())),
            AccessSource::Login(tokens) => tokens.access_token(&self.server).await,
        }
    }

    /// Returns another token after the server has refused one.
    pub(super) async fn other_token(&self, refused: Option<&str>, challenge: &str) -> Option<String> {
        let (AccessSource::Login(tokens), Some(refused)) = (&self.source, refused) else {
            return None;
        };
        match tokens.token_after_refusal(&self.server, refused).await {
            Ok(token) => Some(token),
            Err(error) => {
                let has_challenge = !challenge.is_empty();
                tracing::debug!(server = self.server, %error, has_challenge, "no other token");
                None
            }
        }
    }

    /// Notes the challenge of a refusal for the next login.
    pub(super) async fn note(&self, challenge: &str) {
        if let (AccessSource::Login(tokens), false) = (&self.source, challenge.is_empty()) {
            let needed = tokens.note_challenge(&self.server, challenge).await;
            tracing::debug!(server = self.server, %needed, "the server refused the request");
        }
    }

    /// Returns the explanation of a refusal that no login can help.
    pub(super) fn fixed_refused(&self) -> Option<&'static str> {
        match &self.source {
            AccessSource::Environment(_) => Some("the server refused the token of `bearer_token_env_var`"),
            AccessSource::Nothing | AccessSource::Login(_) => None,
        }
    }
}

//! The tokens that an authorization server has granted, between the protocol library and the file.

use rmcp::transport::auth::{CredentialStore, InMemoryCredentialStore, StoredCredentials};
use serde::Deserialize;
use serde_json::json;

use super::OAuthError;
use crate::credentials::{SecretText, StoredLogin};

/// Maximum length of a token. It must fit into a header.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
const STEP: &str = "the authorization server has granted no usable token";

/// A grant, checked.
pub(crate) struct GrantedTokens {
    stored: StoredGrant,
    answer: TokenAnswer,
}

#[derive(Deserialize)]
struct StoredGrant {
    client_id: String,
    token_response: Option<TokenAnswer>,
    #[serde(default)]
    granted_scopes: Vec<String>,
    #[serde(default)]
    issuer: Option<String>,
}

#[derive(Clone, Deserialize)]
struct TokenAnswer {
    access_token: SecretText,
    token_type: String,
    #[serde(default)]
    refresh_token: Option<SecretText>,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl GrantedTokens {
    /// Takes the grant that the protocol library has stored, and checks it.
    pub(crate) async fn take(store: &InMemoryCredentialStore) -> Result<Self, OAuthError> {
        let wrong = |reason: &str| OAuthError::Protocol { step: STEP, reason: reason.to_owned() };
        let loaded = store.load().await.map_err(|error| OAuthError::from_protocol(STEP, error))?;
        let stored = loaded.ok_or_else(|| wrong("there is none"))?;
        // The message of the parser could quote a token.
        let mut stored: StoredGrant = serde_json::to_value(&stored)
            .and_then(serde_json::from_value)
            .map_err(|_| wrong("the answer of the token endpoint is not valid"))?;
        let answer = stored.token_response.take().ok_or_else(|| wrong("there is none"))?;
        if !answer.token_type.eq_ignore_ascii_case("bearer") {
            return Err(wrong("it is no bearer token"));
        }
        let tokens = [Some(&answer.access_token), answer.refresh_token.as_ref()];
        if !tokens.into_iter().flatten().all(|token| is_token(token.reveal())) {
            return Err(wrong("it has characters or a length that no token has"));
        }
        Ok(Self { stored, answer })
    }

    /// Makes the login to be kept.
    pub(crate) fn into_login(self, resource: &str) -> StoredLogin {
        StoredLogin {
            issuer: self.stored.issuer,
            scopes: self.stored.granted_scopes,
            refresh_token: self.answer.refresh_token,
            expires_in: self.answer.expires_in,
            ..StoredLogin::new(resource, self.stored.client_id, self.answer.access_token)
        }
    }
}

/// Gives a login back to the protocol library, to be refreshed.
pub(crate) async fn give_back(login: &StoredLogin) -> Result<InMemoryCredentialStore, OAuthError> {
    let wrong = |error| OAuthError::from_protocol("the login cannot be refreshed", error);
    let stored = json!({
        "client_id": login.client_id,
        "token_response": {
            "access_token": login.access_token,
            "token_type": "bearer",
            "refresh_token": login.refresh_token,
            "expires_in": login.expires_in,
        },
        "granted_scopes": login.scopes,
        "token_received_at": login.received_at,
        "issuer": login.issuer,
    });
    let stored: StoredCredentials = serde_json::from_value(stored).map_err(|_| OAuthError::Protocol {
        step: STEP,
        reason: "the stored login is not valid".to_owned(),
    })?;
    let store = InMemoryCredentialStore::new();
    store.save(stored).await.map_err(wrong)?;
    Ok(store)
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

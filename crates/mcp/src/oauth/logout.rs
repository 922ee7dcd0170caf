//! The end of a login, and its state.

use std::path::Path;

use reqwest::Url;
use serde::Serialize;

use super::{
    LOCK_TIMEOUT, OAuthError, REQUEST_TIMEOUT, error::reason_text, http::GuardedClient, resource_of,
};
use crate::{
    config::McpServerConfig,
    credentials::{LoginStore, StoredLogin},
};

/// The end of the tokens at the authorization server. Here they are deleted in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Revocation {
    /// There was no login.
    NotLoggedIn,
    /// The authorization server has revoked them.
    Revoked,
    /// The authorization server has no address for that. They stay valid until they expire.
    NotOffered,
    /// The authorization server did not confirm it. They may stay valid until they expire.
    Failed(String),
}

/// The login of the user at a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "login", rename_all = "snake_case")]
pub enum LoginState {
    /// There is none.
    NotLoggedIn,
    /// There is one.
    LoggedIn {
        /// Authorization server.
        #[serde(skip_serializing_if = "Option::is_none")]
        issuer: Option<String>,
        /// Client.
        client_id: String,
        /// Granted scopes.
        scopes: Vec<String>,
        /// Scopes that the server has demanded since; the next login asks for them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        demanded_scopes: Vec<String>,
        /// End of the access token, in seconds since 1970.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<u64>,
        /// True if the token is renewed without the user.
        renews: bool,
    },
    /// The token has expired and cannot be renewed.
    Expired,
}

/// Returns the state of the login at a server.
pub async fn login_status(
    server: &str,
    config: &McpServerConfig,
    pool_directory: &Path,
) -> Result<LoginState, OAuthError> {
    let resource = resource_of(server, config)?;
    let login = LoginStore::new(pool_directory).load(resource.as_str()).await?;
    Ok(login.map_or(LoginState::NotLoggedIn, state_of))
}

fn state_of(login: StoredLogin) -> LoginState {
    let renews = login.refresh_token.is_some();
    if !renews && !login.is_valid_for(std::time::Duration::ZERO) {
        return LoginState::Expired;
    }
    let expires_at = login.expires_at();
    let StoredLogin { issuer, client_id, scopes, demanded_scopes, .. } = login;
    LoginState::LoggedIn { issuer, client_id, scopes, demanded_scopes, expires_at, renews }
}

/// Deletes the login at a server, and revokes its tokens if the authorization server can do that.
pub async fn logout(
    server: &str,
    config: &McpServerConfig,
    pool_directory: &Path,
) -> Result<Revocation, OAuthError> {
    let resource = resource_of(server, config)?;
    let store = LoginStore::new(pool_directory);
    if store.load(resource.as_str()).await?.is_none() {
        return Ok(Revocation::NotLoggedIn);
    }
    let lock = store.lock(resource.as_str(), LOCK_TIMEOUT).await?;
    let Some(login) = store.load(resource.as_str()).await? else {
        return Ok(Revocation::NotLoggedIn);
    };
    // Deleted first: if this process ends during the request, the user is logged out all the same.
    store.delete(&lock, resource.as_str()).await?;
    Ok(revoke(&login, &resource).await)
}

async fn revoke(login: &StoredLogin, resource: &Url) -> Revocation {
    let Some(endpoint) = &login.revocation_endpoint else { return Revocation::NotOffered };
    let failed = |reason: &str| Revocation::Failed(reason_text(reason));
    let Ok(endpoint) = Url::parse(endpoint) else { return failed("its address is not valid") };
    let client = match GuardedClient::new(resource, REQUEST_TIMEOUT) {
        Ok(client) => client,
        Err(error) => return failed(&error.without_url().to_string()),
    };
    // The refresh token comes first: its end also ends the access tokens made from it.
    let refresh = login.refresh_token.as_ref().map(|token| (token, "refresh_token"));
    let tokens = refresh.into_iter().chain([(&login.access_token, "access_token")]);
    for (token, kind) in tokens {
        let fields =
            [("token", token.reveal()), ("token_type_hint", kind), ("client_id", login.client_id.as_str())];
        let secret = login.client_secret.as_ref().map(|secret| (login.client_id.as_str(), secret.reveal()));
        match client.post_form(endpoint.clone(), &fields, secret).await {
            Ok(status) if status.is_success() => {}
            Ok(status) => return failed(&format!("it answered with {status}")),
            Err(error) => return failed(&error.to_string()),
        }
    }
    Revocation::Revoked
}

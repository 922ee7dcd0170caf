//! Finds the authorization server of a server, and checks its addresses before they are used.

use std::{sync::Arc, time::Duration};

use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
};

use super::{OAuthError, error::reason_text, http::GuardedClient};

/// Maximum time of the whole discovery, in multiples of the time of one request. It takes up to
/// twelve requests, and a slow server must not use the full time for each.
const DISCOVERY_REQUESTS: u32 = 3;

/// The authorization server of a server.
pub(crate) struct FoundAuthorization {
    /// Holds the metadata.
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
}

impl FoundAuthorization {
    /// Asks the server for its authorization server, beginning with the challenge of a refused
    /// request if there is one.
    pub(crate) async fn discover(
        server: &Url,
        challenge: Option<&str>,
        request_limit: Duration,
    ) -> Result<Self, OAuthError> {
        let client = GuardedClient::new(server, request_limit).map_err(|error| OAuthError::Discovery {
            reason: reason_text(&error.without_url().to_string()),
        })?;
        client.check(server).map_err(|error| discovery(&error.to_string()))?;
        let http_client = Arc::new(client.clone());
        let mut manager = AuthorizationManager::new_with_oauth_http_client(server.clone(), http_client)
            .await
            .map_err(|error| discovery(&error.to_string()))?;
        let found = manager.resolve_metadata_from_challenge(challenge);
        let resolution = tokio::time::timeout(request_limit * DISCOVERY_REQUESTS, found)
            .await
            .map_err(|_| discovery("the server did not answer in time"))?
            .map_err(discovery_error)?;
        let metadata = resolution.metadata;
        let is_published = resolution.source != AuthorizationMetadataSource::LegacyEndpointFallback;
        if is_published && metadata.issuer.is_none() {
            return Err(discovery("the metadata of the authorization server name no issuer"));
        }
        check_endpoints(&client, &metadata)?;
        manager.set_metadata(metadata.clone());
        Ok(Self { manager, metadata })
    }

    /// Returns true if the metadata have a flag, and it is true.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        self.metadata.additional_fields.get(name).and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// Returns the address at which tokens are revoked.
    pub(crate) fn revocation_endpoint(&self) -> Option<&str> {
        self.metadata.additional_fields.get("revocation_endpoint").and_then(serde_json::Value::as_str)
    }
}

/// Refuses addresses that a person or a request must not be sent to.
fn check_endpoints(client: &GuardedClient, metadata: &AuthorizationMetadata) -> Result<(), OAuthError> {
    let others = [metadata.registration_endpoint.as_deref(), metadata.issuer.as_deref()];
    let all = [Some(metadata.authorization_endpoint.as_str()), Some(metadata.token_endpoint.as_str())];
    for address in all.into_iter().chain(others).flatten() {
        let url = Url::parse(address)
            .map_err(|_| discovery("the metadata of the authorization server have an invalid address"))?;
        client.check(&url).map_err(|error| discovery(&error.to_string()))?;
    }
    Ok(())
}

fn discovery(reason: &str) -> OAuthError {
    OAuthError::Discovery { reason: reason_text(reason) }
}

fn discovery_error(error: AuthError) -> OAuthError {
    match OAuthError::from_protocol("the discovery of the authorization server failed", error) {
        OAuthError::Protocol { reason, .. } => OAuthError::Discovery { reason },
        other => other,
    }
}

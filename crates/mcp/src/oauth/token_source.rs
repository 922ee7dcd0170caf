//! Supplies the access tokens of servers, refreshed before they expire.
//!
//! All processes share the logins. A refresh holds the lock of its server, and reads the file again
//! under it: a refresh token is often good for one use only.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::Url;
use rmcp::transport::auth::{AuthError, OAuthClientConfig, WWWAuthenticateParams};
use windlass_contract::BoxFuture;

use super::{
    LOCK_TIMEOUT, OAuthError, REQUEST_TIMEOUT,
    discovery::FoundAuthorization,
    error::reason_text,
    granted::{GrantedTokens, give_back},
    resource_of,
};
use crate::{
    access_tokens::{AccessTokenFuture, AccessTokens, LoginNeeded},
    config::McpServerConfig,
    credentials::{LoginLock, LoginStore, StoredLogin},
};

/// A token is refreshed this long before its end, so that no request carries one that ends on the
/// way.
const REFRESH_MARGIN: Duration = Duration::from_mins(1);
/// Time after a failed refresh in which a token that is still valid is used without another try.
/// Otherwise every call would wait for an authorization server that does not answer.
const REFRESH_PAUSE: Duration = Duration::from_secs(20);
/// Maximum number of scopes that a server can add to the next login.
const MAX_DEMANDED_SCOPES: usize = 64;
/// Maximum length of such a scope.
const MAX_SCOPE_BYTES: usize = 256;

/// The access tokens of all servers of a pool.
pub struct TokenSource {
    store: LoginStore,
    resources: BTreeMap<String, Url>,
    request_limit: Duration,
    /// Logins as they were read last. A server that refuses a token causes a new reading.
    read: Mutex<HashMap<String, StoredLogin>>,
    challenges: Mutex<HashMap<String, String>>,
    failed_at: Mutex<HashMap<String, Instant>>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("store", &self.store).finish_non_exhaustive()
    }
}

impl TokenSource {
    /// Creates the source for the servers of a pool with this directory.
    pub fn new(pool_directory: &Path, servers: &BTreeMap<String, McpServerConfig>) -> Self {
        let resources =
            servers.iter().filter_map(|(name, config)| Some((name.clone(), resource_of(name, config).ok()?)));
        Self {
            store: LoginStore::new(pool_directory),
            resources: resources.collect(),
            request_limit: REQUEST_TIMEOUT,
            read: Mutex::default(),
            challenges: Mutex::default(),
            failed_at: Mutex::default(),
        }
    }

    /// Sets the time limit of one request to an authorization server.
    #[must_use]
    pub fn with_request_limit(mut self, request_limit: Duration) -> Self {
        self.request_limit = request_limit;
        self
    }

    /// Returns the last `WWW-Authenticate` header of a server, for [`super::OAuthLogin::start`].
    pub fn last_challenge(&self, server: &str) -> Option<String> {
        let challenges = self.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        challenges.get(server).cloned()
    }

    async fn valid_token(&self, server: &str) -> Result<Option<String>, LoginNeeded> {
        let Some(resource) = self.resources.get(server) else { return Ok(None) };
        if let Some(login) = self.remembered(server).filter(|login| login.is_valid_for(REFRESH_MARGIN)) {
            return Ok(Some(login.access_token.reveal().to_owned()));
        }
        let Some(login) = self.store.load(resource.as_str()).await.map_err(needed)? else {
            self.remember(server, None);
            return Ok(None);
        };
        if login.is_valid_for(REFRESH_MARGIN) {
            return Ok(Some(self.use_login(server, login)));
        }
        let is_still_valid = login.is_valid_for(Duration::ZERO);
        if is_still_valid && self.has_just_failed(server) {
            return Ok(Some(login.access_token.reveal().to_owned()));
        }
        match self.refresh(resource, |login| login.is_valid_for(REFRESH_MARGIN)).await {
            Ok(login) => Ok(Some(self.use_login(server, login))),
            // Without a network the token is still good for the rest of its time.
            Err(_) if is_still_valid => {
                let mut failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
                failed_at.insert(server.to_owned(), Instant::now());
                Ok(Some(login.access_token.reveal().to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn has_just_failed(&self, server: &str) -> bool {
        let failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.get(server).is_some_and(|at| at.elapsed() < REFRESH_PAUSE)
    }

    async fn another_token(&self, server: &str, refused: &str) -> Result<String, LoginNeeded> {
        let never = || LoginNeeded { reason: "there is no login".to_owned() };
        let resource = self.resources.get(server).ok_or_else(never)?;
        self.remember(server, None);
        let login = self.refresh(resource, |login| login.access_token.reveal() != refused).await?;
        Ok(self.use_login(server, login))
    }

    /// Refreshes a login, unless another process has made it good in the meantime.
    async fn refresh(
        &self,
        resource: &Url,
        is_good: impl Fn(&StoredLogin) -> bool,
    ) -> Result<StoredLogin, LoginNeeded> {
        let lock = self.store.lock(resource.as_str(), LOCK_TIMEOUT).await.map_err(needed)?;
        let login = self.store.load(resource.as_str()).await.map_err(needed)?;
        let login = login.ok_or_else(|| LoginNeeded { reason: "the user has logged out".to_owned() })?;
        if is_good(&login) {
            return Ok(login);
        }
        if login.refresh_token.is_none() {
            let reason = "the access token has ended and cannot be renewed".to_owned();
            return Err(LoginNeeded { reason });
        }
        match self.request_refresh(resource, &login).await {
            Ok(refreshed) => {
                self.store.save(&lock, refreshed.clone()).await.map_err(needed)?;
                Ok(refreshed)
            }
            Err(RefreshError::Rejected) => self.forget_refresh_token(&lock, login).await,
            Err(RefreshError::Failed(error)) => Err(needed(error)),
        }
    }

    async fn request_refresh(
        &self,
        resource: &Url,
        login: &StoredLogin,
    ) -> Result<StoredLogin, RefreshError> {
        const STEP: &str = "the login could not be renewed";
        let mut found = FoundAuthorization::discover(resource, None, self.request_limit).await?;
        if found.metadata.issuer != login.issuer {
            // The tokens belong to the earlier authorization server. The new one must not see them.
            let reason = "the server has changed its authorization server".to_owned();
            return Err(OAuthError::Protocol { step: STEP, reason }.into());
        }
        let mut client = OAuthClientConfig::new(&login.client_id, resource.as_str());
        if let Some(secret) = &login.client_secret {
            client = client.with_client_secret(secret.reveal());
        }
        let wrong = |error| OAuthError::from_protocol(STEP, error);
        found.manager.configure_client(client).map_err(wrong)?;
        let granted = give_back(login).await?;
        found.manager.set_credential_store(granted.clone());
        match found.manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::TokenRefreshRejected(_)) => return Err(RefreshError::Rejected),
            Err(error) => return Err(wrong(error).into()),
        }
        let refreshed = GrantedTokens::take(&granted).await?.into_login(resource.as_str());
        Ok(StoredLogin {
            client_secret: login.client_secret.clone(),
            demanded_scopes: login.demanded_scopes.clone(),
            revocation_endpoint: login.revocation_endpoint.clone(),
            ..refreshed
        })
    }

    /// Forgets a refresh token that the authorization server has rejected, so that it is not asked
    /// again before every call.
    async fn forget_refresh_token(
        &self,
        lock: &LoginLock,
        login: StoredLogin,
    ) -> Result<StoredLogin, LoginNeeded> {
        let login = StoredLogin { refresh_token: None, ..login };
        self.store.save(lock, login).await.map_err(needed)?;
        Err(LoginNeeded { reason: "the authorization server has ended the login".to_owned() })
    }

    async fn keep_challenge(&self, server: &str, challenge: &str) -> LoginNeeded {
        let refused = || LoginNeeded { reason: "the server refused the request".to_owned() };
        let Some(resource) = self.resources.get(server) else { return refused() };
        let parameters = WWWAuthenticateParams::parse(challenge, resource);
        let challenges = || self.challenges.lock().unwrap_or_else(PoisonError::into_inner);
        challenges().insert(server.to_owned(), challenge.to_owned());
        self.remember(server, None);
        let Some(scope) = parameters.scope.as_deref().filter(|_| parameters.is_insufficient_scope()) else {
            return refused();
        };
        if let Err(error) = self.demand_scopes(resource, scope).await {
            return needed(error);
        }
        LoginNeeded { reason: format!("the server demands the scope `{}`", reason_text(scope)) }
    }

    /// Notes demanded scopes in the file, so that a login by another process asks for them.
    async fn demand_scopes(&self, resource: &Url, scope: &str) -> Result<(), OAuthError> {
        let lock = self.store.lock(resource.as_str(), LOCK_TIMEOUT).await?;
        let Some(mut login) = self.store.load(resource.as_str()).await? else { return Ok(()) };
        // The characters of a scope are those of RFC 6749, section 3.3.
        let is_scope_byte = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        let is_scope = |scope: &&str| scope.len() <= MAX_SCOPE_BYTES && scope.bytes().all(is_scope_byte);
        for scope in scope.split_whitespace().filter(is_scope) {
            let demanded = &mut login.demanded_scopes;
            if demanded.len() < MAX_DEMANDED_SCOPES && !demanded.iter().any(|known| known == scope) {
                demanded.push(scope.to_owned());
            }
        }
        Ok(self.store.save(&lock, login).await?)
    }

    fn use_login(&self, server: &str, login: StoredLogin) -> String {
        let token = login.access_token.reveal().to_owned();
        self.remember(server, Some(login));
        token
    }

    fn remembered(&self, server: &str) -> Option<StoredLogin> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }

    fn remember(&self, server: &str, login: Option<StoredLogin>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match login {
            Some(login) => read.insert(server.to_owned(), login),
            None => read.remove(server),
        };
    }
}

impl AccessTokens for TokenSource {
    fn access_token<'a>(&'a self, server: &'a str) -> AccessTokenFuture<'a> {
        Box::pin(self.valid_token(server))
    }

    fn token_after_refusal<'a>(
        &'a self,
        server: &'a str,
        refused: &'a str,
    ) -> BoxFuture<'a, Result<String, LoginNeeded>> {
        Box::pin(self.another_token(server, refused))
    }

    fn note_challenge<'a>(&'a self, server: &'a str, challenge: &'a str) -> BoxFuture<'a, LoginNeeded> {
        Box::pin(self.keep_challenge(server, challenge))
    }
}

enum RefreshError {
    /// The authorization server has ended the login.
    Rejected,
    /// Something else, which may pass.
    Failed(OAuthError),
}

impl From<OAuthError> for RefreshError {
    fn from(error: OAuthError) -> Self {
        Self::Failed(error)
    }
}

fn needed(error: impl Into<OAuthError>) -> LoginNeeded {
    LoginNeeded { reason: error.into().to_string() }
}

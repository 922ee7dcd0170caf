//! OAuth logins of HTTP servers.
//!
//! A login needs no browser on this machine: it gives an address, and ends with the redirect to a
//! port of this machine or with the address that the person pastes, whichever comes first.

mod callback;
mod discovery;
mod error;
mod granted;
mod http;
mod logout;
mod token_source;

use std::{collections::BTreeSet, fmt, path::PathBuf, time::Duration};

use reqwest::Url;
use rmcp::transport::auth::{InMemoryCredentialStore, OAuthClientConfig, WWWAuthenticateParams};

use self::{
    callback::{CallbackListener, RedirectParameters},
    discovery::FoundAuthorization,
    granted::GrantedTokens,
};
pub use self::{
    error::OAuthError,
    logout::{LoginState, Revocation, login_status, logout},
    token_source::TokenSource,
};
use crate::{
    config::McpServerConfig,
    credentials::{LoginStore, SecretText, StoredLogin},
};

/// Default time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Default time in which the person has to complete the login.
const PERSON_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time to wait for another process that refreshes the same login.
const LOCK_TIMEOUT: Duration = Duration::from_secs(90);
/// Name that the authorization server shows to the person.
const CLIENT_NAME: &str = "Windlass";

/// The log filter that every program with logins must have: below this level, the protocol library
/// logs authorization codes and the answers that hold tokens.
pub const QUIET_LOGS: &str = "rmcp::transport::auth=warn";

/// Settings of logins.
#[derive(Debug, Clone)]
pub struct LoginSettings {
    /// The directory of the pool, below which the credentials are kept.
    pub directory: PathBuf,
    /// Address of a public document that describes this client, for authorization servers that
    /// read such documents.
    pub client_metadata_url: Option<String>,
    /// Secret that belongs to the configured client id: the value of `oauth_client_secret_env_var`.
    pub client_secret: Option<SecretText>,
    /// Time limit of one request.
    pub request_limit: Duration,
    /// Time in which the person has to complete the login.
    pub person_limit: Duration,
}

impl LoginSettings {
    /// Creates the usual settings.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            client_metadata_url: None,
            client_secret: None,
            request_limit: REQUEST_TIMEOUT,
            person_limit: PERSON_TIMEOUT,
        }
    }
}

/// A login that has been started.
pub struct OAuthLogin {
    found: FoundAuthorization,
    granted: InMemoryCredentialStore,
    client: OAuthClientConfig,
    listener: CallbackListener,
    resource: Url,
    address: Url,
    state: String,
    store: LoginStore,
    person_limit: Duration,
}

impl fmt::Debug for OAuthLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthLogin").field("resource", &self.resource.as_str()).finish_non_exhaustive()
    }
}

impl OAuthLogin {
    /// Finds the authorization server, obtains a client there, and prepares the address for the
    /// person. `challenge` is the `WWW-Authenticate` header of a refused request, if one is known.
    pub async fn start(
        server: &str,
        config: &McpServerConfig,
        challenge: Option<&str>,
        settings: &LoginSettings,
    ) -> Result<Self, OAuthError> {
        let resource = resource_of(server, config)?;
        let store = LoginStore::new(&settings.directory);
        // A damaged file must be seen before the person logs in, not after.
        let earlier = store.load(resource.as_str()).await?;
        let mut found = FoundAuthorization::discover(&resource, challenge, settings.request_limit).await?;
        let port = config.oauth_callback_port.unwrap_or_default();
        let listener = CallbackListener::bind(port).await;
        let listener = listener.map_err(|source| OAuthError::Listen { source })?;
        let scopes = select_scopes(&found, config, challenge, &resource, earlier.as_ref()).await;
        let client = choose_client(&mut found, config, settings, listener.address(), &scopes).await?;
        let granted = InMemoryCredentialStore::new();
        found.manager.set_credential_store(granted.clone());
        let failed = |reason: &str| OAuthError::Protocol {
            step: "the login cannot be started",
            reason: error::reason_text(reason),
        };
        let requested: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let address = found.manager.get_authorization_url(&requested).await;
        let address =
            address.map_err(|error| OAuthError::from_protocol("the login cannot be started", error))?;
        let address = Url::parse(&address).map_err(|error| failed(&error.to_string()))?;
        let state = address.query_pairs().find(|(key, _)| key == "state");
        let state = state.ok_or_else(|| failed("no state"))?.1.into_owned();
        let person_limit = settings.person_limit;
        Ok(Self { found, granted, client, listener, resource, address, state, store, person_limit })
    }

    /// Returns the address that the person opens in a browser.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Returns the address to which the browser is sent after the login.
    pub fn redirect_address(&self) -> &str {
        self.listener.address().as_str()
    }

    /// Waits until the browser comes back, or until the person pastes the address to which it was
    /// sent. Then obtains the tokens and keeps them. After [`OAuthError::WrongRedirect`] this can
    /// be called again.
    pub async fn finish(
        &mut self,
        pasted: impl Future<Output = String> + Send,
    ) -> Result<StoredLogin, OAuthError> {
        let seconds = self.person_limit.as_secs();
        let received = tokio::time::timeout(self.person_limit, async {
            tokio::select! {
                received = self.listener.receive(&self.state) => Some(received),
                pasted = pasted => self.listener.parse_pasted(&pasted, &self.state),
            }
        });
        let received = received.await.map_err(|_| OAuthError::TimedOut { seconds })?;
        self.exchange(received.ok_or(OAuthError::WrongRedirect)?).await
    }

    async fn exchange(&self, received: RedirectParameters) -> Result<StoredLogin, OAuthError> {
        let Some(code) = received.code else {
            return Err(self.refusal(&received));
        };
        let manager = &self.found.manager;
        manager
            .exchange_code_for_token_with_issuer(&code, &received.state, received.issuer.as_deref())
            .await
            .map_err(|error| OAuthError::from_protocol("the login failed", error))?;
        let tokens = GrantedTokens::take(&self.granted).await?;
        let revocation_endpoint = self.found.revocation_endpoint().map(str::to_owned);
        let login = StoredLogin {
            client_secret: self.client.client_secret.clone().map(SecretText::from),
            revocation_endpoint,
            ..tokens.into_login(self.resource.as_str())
        };
        let lock = self.store.lock(self.resource.as_str(), LOCK_TIMEOUT).await?;
        self.store.save(&lock, login.clone()).await?;
        Ok(login)
    }

    /// Returns the error of the authorization server, unless another server may have sent it.
    fn refusal(&self, received: &RedirectParameters) -> OAuthError {
        match (&received.issuer, &self.found.metadata.issuer) {
            (Some(received), Some(expected)) if received != expected => OAuthError::WrongIssuer {
                expected: error::reason_text(expected),
                received: error::reason_text(received),
            },
            _ => OAuthError::Refused {
                code: error::reason_text(received.error.as_deref().unwrap_or_default()),
            },
        }
    }
}

/// Returns the address of a server that can have a login.
fn resource_of(server: &str, config: &McpServerConfig) -> Result<Url, OAuthError> {
    let none = |reason| OAuthError::NoLogin { server: server.to_owned(), reason };
    let url = config.url.as_deref().ok_or_else(|| none("it has no `url`"))?;
    if config.bearer_token_env_var.is_some() {
        return Err(none("it has `bearer_token_env_var`"));
    }
    if config.unix_socket.is_some() {
        return Err(none("it has `unix_socket`"));
    }
    let mut url = Url::parse(url).map_err(|_| none("its `url` is not valid"))?;
    url.set_fragment(None);
    Ok(url)
}

/// Chooses the scopes: those of the configuration, else those of the challenge, else those of the
/// server's metadata. Scopes that the server demanded later are added to the earlier ones.
async fn select_scopes(
    found: &FoundAuthorization,
    config: &McpServerConfig,
    challenge: Option<&str>,
    resource: &Url,
    earlier: Option<&StoredLogin>,
) -> Vec<String> {
    let mut scopes = if config.scopes.is_empty() {
        found.manager.select_initial_scopes(&[]).await
    } else {
        config.scopes.clone()
    };
    let challenge = challenge.map(|challenge| WWWAuthenticateParams::parse(challenge, resource));
    let demanded = challenge.filter(WWWAuthenticateParams::is_insufficient_scope);
    let demanded = demanded.and_then(|challenge| challenge.scope).unwrap_or_default();
    scopes.extend(demanded.split_whitespace().map(str::to_owned));
    let same_issuer = |login: &&StoredLogin| login.issuer == found.metadata.issuer;
    if let Some(earlier) = earlier.filter(same_issuer)
        && !(earlier.demanded_scopes.is_empty() && demanded.is_empty())
    {
        scopes.extend(earlier.scopes.iter().chain(&earlier.demanded_scopes).cloned());
    }
    let supported = found.metadata.scopes_supported.iter().flatten();
    if !scopes.is_empty() && supported.into_iter().any(|scope| scope == "offline_access") {
        scopes.push("offline_access".to_owned());
    }
    let mut seen = BTreeSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// Chooses the client: the configured one, else the document that describes this client, else one
/// that is registered now.
async fn choose_client(
    found: &mut FoundAuthorization,
    config: &McpServerConfig,
    settings: &LoginSettings,
    redirect: &Url,
    scopes: &[String],
) -> Result<OAuthClientConfig, OAuthError> {
    const STEP: &str = "no client could be registered (`oauth_client_id` names one)";
    let redirect = redirect.as_str();
    let reads_documents = found.has_flag("client_id_metadata_document_supported");
    let document = settings.client_metadata_url.as_ref().filter(|_| reads_documents);
    let client = match (&config.oauth_client_id, document) {
        (Some(id), _) => {
            let client = OAuthClientConfig::new(id, redirect);
            match &settings.client_secret {
                Some(secret) => client.with_client_secret(secret.reveal()),
                None => client,
            }
        }
        (None, Some(document)) => OAuthClientConfig::new(document, redirect),
        (None, None) => {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered = found.manager.register_client(CLIENT_NAME, redirect, &scopes).await;
            return registered.map_err(|error| OAuthError::from_protocol(STEP, error));
        }
    };
    let configured = found.manager.configure_client(client.clone());
    configured.map_err(|error| OAuthError::from_protocol(STEP, error))?;
    Ok(client)
}

//! A server that needs a login, together with its authorization server, on a loopback port.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::{
    Request, Response, StatusCode,
    body::{Body, Bytes, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use windlass_mcp::config::McpServerConfig;

/// Deviations of the two servers.
#[derive(Clone, Default)]
pub(crate) struct Deviations {
    /// The `iss` of the redirect, instead of the issuer.
    pub(crate) redirect_issuer: Option<&'static str>,
    /// The redirect has no `iss`.
    pub(crate) no_redirect_issuer: bool,
    /// The `state` of the redirect, instead of the one of the request.
    pub(crate) redirect_state: Option<&'static str>,
    /// The `resource` of the protected resource metadata.
    pub(crate) resource: Option<&'static str>,
    /// The `issuer` of the authorization server metadata.
    pub(crate) metadata_issuer: Option<&'static str>,
    /// The address of the token endpoint.
    pub(crate) token_endpoint: Option<&'static str>,
    /// A path that redirects to another origin.
    pub(crate) leads_away: Option<&'static str>,
    /// A path that answers with 10 MB.
    pub(crate) floods: Option<&'static str>,
    /// A path that never answers.
    pub(crate) hangs: Option<&'static str>,
    /// Lifetime of the first access token. Refreshed ones live for an hour.
    pub(crate) first_lifetime: u64,
    /// Refuses every refresh with this error.
    pub(crate) refuses_refresh: Option<&'static str>,
    /// The secret that registered clients get.
    pub(crate) client_secret: Option<&'static str>,
    /// Neither server publishes metadata, as servers of 2025-03-26 may do.
    pub(crate) no_metadata: bool,
    /// Clients can be described by documents.
    pub(crate) reads_documents: bool,
    /// Method of the protocol for which every token is refused.
    pub(crate) refuses_method: Option<&'static str>,
    /// The scope that calls of tools demand.
    pub(crate) demands_scope: Option<&'static str>,
    /// The type of the tokens, instead of `Bearer`.
    pub(crate) token_type: Option<&'static str>,
}

/// Requests and tokens of the servers.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) requests: Vec<(String, BTreeMap<String, String>)>,
    pub(crate) refresh_tokens: Vec<String>,
    pub(crate) deviations: Deviations,
    challenges: BTreeMap<String, String>,
    /// The access token that is valid, and its scopes.
    access: (String, String),
    asked_scopes: String,
    issued: u32,
}

pub(crate) struct TestAuthority {
    pub(crate) origin: String,
    pub(crate) records: Arc<Mutex<Records>>,
    task: JoinHandle<()>,
}

impl Drop for TestAuthority {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestAuthority {
    pub(crate) async fn start(deviations: Deviations) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let records = Arc::new(Mutex::new(Records { deviations, ..Records::default() }));
        let (served, base) = (records.clone(), origin.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (served, base) = (served.clone(), base.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(base.clone(), served.clone(), request));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { origin, records, task }
    }

    pub(crate) fn config(&self) -> McpServerConfig {
        McpServerConfig { url: Some(format!("{}/mcp", self.origin)), ..McpServerConfig::default() }
    }

    /// Returns the parameters of every request to a path.
    pub(crate) fn requests(&self, path: &str) -> Vec<BTreeMap<String, String>> {
        let records = self.records.lock().unwrap();
        let of_path = records.requests.iter().filter(|(requested, _)| requested == path);
        of_path.map(|(_, parameters)| parameters.clone()).collect()
    }

    pub(crate) fn refreshes(&self) -> usize {
        let is_refresh = |parameters: &BTreeMap<String, String>| parameters["grant_type"] == "refresh_token";
        self.requests("/as/token").iter().filter(|parameters| is_refresh(parameters)).count()
    }

    /// Makes the access token invalid before its time.
    pub(crate) fn end_token(&self) {
        self.records.lock().unwrap().access.0.clear();
    }

    pub(crate) fn deviate(&self, change: impl FnOnce(&mut Deviations)) {
        change(&mut self.records.lock().unwrap().deviations);
    }
}

async fn answer(
    origin: String,
    records: Arc<Mutex<Records>>,
    request: Request<Incoming>,
) -> Result<Response<String>, Infallible> {
    let deviations = records.lock().unwrap().deviations.clone();
    let path = match request.uri().path() {
        path if deviations.no_metadata && path.starts_with("/.well-known/") => "/none".to_owned(),
        path @ ("/authorize" | "/token" | "/register") => format!("/as{path}"),
        path => path.to_owned(),
    };
    let query = request.uri().query().unwrap_or_default().to_owned();
    let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().replace("Bearer ", "");
    let body = read(request.into_body()).await;
    if deviations.hangs == Some(&path) {
        std::future::pending::<()>().await;
    }
    if deviations.floods == Some(&path) {
        return Ok(json_answer(200, &json!({"issuer": "x".repeat(10_000_000)})));
    }
    if deviations.leads_away == Some(&path) {
        return Ok(redirect("http://127.0.0.1:9/away"));
    }
    let parameters = if body.starts_with('{') {
        let object: BTreeMap<String, Value> = serde_json::from_str(&body).unwrap();
        object.into_iter().map(|(key, value)| (key, value.to_string())).collect()
    } else {
        fields(if body.is_empty() { &query } else { &body })
    };
    let mut records = records.lock().unwrap();
    records.requests.push((path.clone(), parameters.clone()));
    Ok(match path.as_str() {
        "/mcp" if deviations.no_metadata => json_answer(401, &json!({})),
        "/mcp" => protected(&origin, &records, &sent, &body),
        "/.well-known/oauth-protected-resource/mcp" => json_answer(
            200,
            &json!({
                "resource": deviations.resource.map_or(format!("{origin}/mcp"), str::to_owned),
                "authorization_servers": [format!("{origin}/as")],
            }),
        ),
        "/.well-known/oauth-authorization-server/as" => metadata(&origin, &deviations),
        "/as/register" => {
            let mut client = json!({"client_id": "registered", "redirect_uris": []});
            if let Some(secret) = deviations.client_secret {
                client["client_secret"] = secret.into();
            }
            json_answer(201, &client)
        }
        "/as/authorize" => authorize(&origin, &mut records, &parameters),
        "/as/token" => token(&mut records, &parameters),
        "/as/revoke" => json_answer(200, &json!({})),
        _ => json_answer(404, &json!({})),
    })
}

async fn read(mut body: Incoming) -> String {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await {
        bytes.extend(frame.unwrap().into_data().unwrap_or_else(|_| Bytes::new()));
    }
    String::from_utf8(bytes).unwrap()
}

fn fields(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://form/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn json_answer(status: u16, value: &Value) -> Response<String> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(value.to_string()).unwrap()
}

fn redirect(location: &str) -> Response<String> {
    let response = Response::builder().status(StatusCode::FOUND).header(LOCATION, location);
    response.body(String::new()).unwrap()
}

/// Answers a message of the protocol, if its token is valid.
fn protected(origin: &str, records: &Records, token: &str, body: &str) -> Response<String> {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    let deviations = &records.deviations;
    let (valid, scopes) = &records.access;
    if token.is_empty() || token != valid || deviations.refuses_method == Some(method) {
        return challenge(origin);
    }
    let result = match method {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
            "cacheScope": "private", "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "locked", "version": "1"}},
        }),
        "tools/list" => json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{"name": "open", "inputSchema": {"type": "object"}}],
        }),
        "tools/call" if deviations.demands_scope.is_some_and(|scope| !scopes.contains(scope)) => {
            let scope = deviations.demands_scope.unwrap_or_default();
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            let response = Response::builder().status(403).header(WWW_AUTHENTICATE, challenge);
            return response.body(String::new()).unwrap();
        }
        "tools/call" => json!({
            "resultType": "complete", "content": [{"type": "text", "text": format!("by {token}")}],
        }),
        _ => return json_answer(202, &Value::Null),
    };
    json_answer(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn challenge(origin: &str) -> Response<String> {
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"read\"");
    let response = Response::builder().status(401).header(WWW_AUTHENTICATE, challenge);
    response.body(String::new()).unwrap()
}

fn metadata(origin: &str, deviations: &Deviations) -> Response<String> {
    let token_endpoint = deviations.token_endpoint.map_or(format!("{origin}/as/token"), str::to_owned);
    let issuer = deviations.metadata_issuer.map_or(format!("{origin}/as"), str::to_owned);
    json_answer(
        200,
        &json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{origin}/as/authorize"),
            "token_endpoint": token_endpoint,
            "registration_endpoint": format!("{origin}/as/register"),
            "revocation_endpoint": format!("{origin}/as/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": deviations.reads_documents,
            "scopes_supported": ["read", "write", "offline_access"],
        }),
    )
}

fn authorize(origin: &str, records: &mut Records, asked: &BTreeMap<String, String>) -> Response<String> {
    let deviations = records.deviations.clone();
    records.challenges.insert("the-code".to_owned(), asked["code_challenge"].clone());
    records.asked_scopes = asked.get("scope").cloned().unwrap_or_default();
    let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
    let issuer = format!("{origin}/as");
    back.query_pairs_mut()
        .append_pair("code", "the-code")
        .append_pair("state", deviations.redirect_state.unwrap_or(&asked["state"]));
    if !deviations.no_redirect_issuer {
        back.query_pairs_mut().append_pair("iss", deviations.redirect_issuer.unwrap_or(&issuer));
    }
    redirect(back.as_str())
}

fn token(records: &mut Records, asked: &BTreeMap<String, String>) -> Response<String> {
    let refused = |error: &str| json_answer(400, &json!({"error": error}));
    let is_refresh = asked["grant_type"] == "refresh_token";
    let is_valid = if is_refresh {
        // Every refresh token is good for one use.
        let used = records.refresh_tokens.iter().position(|token| *token == asked["refresh_token"]);
        used.map(|position| records.refresh_tokens.remove(position)).is_some()
    } else {
        let digest = ring::digest::digest(&ring::digest::SHA256, asked["code_verifier"].as_bytes());
        let challenge = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, digest);
        records.challenges.remove(&asked["code"]) == Some(challenge)
    };
    if !is_valid {
        return refused("invalid_grant");
    }
    if let Some(error) = records.deviations.refuses_refresh.filter(|_| is_refresh) {
        return refused(error);
    }
    records.issued += 1;
    let number = records.issued;
    records.refresh_tokens.push(format!("refresh-{number}"));
    records.access = (format!("access-{number}"), records.asked_scopes.clone());
    json_answer(
        200,
        &json!({
            "access_token": format!("access-{number}"),
            "refresh_token": format!("refresh-{number}"),
            "token_type": records.deviations.token_type.unwrap_or("Bearer"),
            "expires_in": if is_refresh { 3600 } else { records.deviations.first_lifetime },
        }),
    )
}

/// Opens an address as a browser does, and follows one redirect.
pub(crate) async fn browse(address: &str) -> String {
    let location = redirect_of(address).await;
    client().get(&location).send().await.unwrap().text().await.unwrap()
}

/// Opens an address, and returns the address to which it redirects.
pub(crate) async fn redirect_of(address: &str) -> String {
    let answer = client().get(address).send().await.unwrap();
    answer.headers()[LOCATION].to_str().unwrap().to_owned()
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30));
    builder.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

//! Logins and logouts.

use std::{path::Path, time::Duration};

use windlass_mcp::{
    config::McpServerConfig,
    credentials::{SecretText, StoredLogin},
    oauth::{LoginSettings, LoginState, OAuthError, OAuthLogin, Revocation, login_status, logout},
};

use crate::authority::{Deviations, TestAuthority, browse, redirect_of};

pub(crate) fn settings(home: &Path) -> LoginSettings {
    let limit = Duration::from_secs(20);
    LoginSettings { request_limit: limit, person_limit: limit, ..LoginSettings::new(home.to_owned()) }
}

pub(crate) async fn log_in(authority: &TestAuthority, home: &Path) -> Result<StoredLogin, OAuthError> {
    log_in_with(&authority.config(), &settings(home)).await
}

async fn log_in_with(config: &McpServerConfig, settings: &LoginSettings) -> Result<StoredLogin, OAuthError> {
    let mut login = OAuthLogin::start("a", config, None, settings).await?;
    let address = login.address().to_owned();
    let browser = tokio::spawn(async move { browse(&address).await });
    let finished = login.finish(std::future::pending()).await;
    browser.abort();
    finished
}

fn first() -> Deviations {
    Deviations { first_lifetime: 3600, ..Deviations::default() }
}

#[tokio::test]
async fn a_login_ends_with_the_redirect_and_is_kept() {
    let authority = TestAuthority::start(first()).await;
    let home = tempfile::tempdir().unwrap();
    let login = log_in(&authority, home.path()).await.unwrap();
    assert_eq!(login.access_token, SecretText::from("access-1".to_owned()));
    let asked = authority.requests("/as/authorize").remove(0);
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], format!("{}/mcp", authority.origin));
    assert_eq!(asked["scope"], "read offline_access", "the scope of the challenge, and to renew");
    let registered = authority.requests("/as/register").remove(0);
    assert_eq!(registered["application_type"], "\"native\"");
    let exchanged = authority.requests("/as/token").remove(0);
    assert_eq!(exchanged["resource"], format!("{}/mcp", authority.origin));
    assert_eq!(exchanged["redirect_uri"], asked["redirect_uri"]);
    let state = login_status("a", &authority.config(), home.path()).await.unwrap();
    let LoginState::LoggedIn { issuer, renews, .. } = state else { panic!("{state:?}") };
    assert_eq!((issuer, renews), (Some(format!("{}/as", authority.origin)), true));
}

#[tokio::test]
async fn a_login_ends_with_the_pasted_address() {
    let authority = TestAuthority::start(first()).await;
    let home = tempfile::tempdir().unwrap();
    let config = authority.config();
    let mut login = OAuthLogin::start("a", &config, None, &settings(home.path())).await.unwrap();
    let pasted = redirect_of(login.address()).await;
    let wrong = login.finish(async { "http://127.0.0.1:9/callback?code=a&state=b".to_owned() }).await;
    assert!(matches!(wrong, Err(OAuthError::WrongRedirect)));
    assert!(login.finish(async { format!("{pasted}\n") }).await.is_ok());
}

#[tokio::test]
async fn the_configured_client_comes_before_the_document_and_the_document_before_a_registration() {
    let authority = TestAuthority::start(Deviations { reads_documents: true, ..first() }).await;
    let home = tempfile::tempdir().unwrap();
    let document = "https://client.example/windlass.json".to_owned();
    let settings = LoginSettings { client_metadata_url: Some(document.clone()), ..settings(home.path()) };
    let config = McpServerConfig { scopes: vec!["write".to_owned()], ..authority.config() };
    let login = log_in_with(&config, &settings).await.unwrap();
    assert_eq!(login.client_id, document);
    let configured = McpServerConfig { oauth_client_id: Some("ours".to_owned()), ..config };
    let login = log_in_with(&configured, &settings).await.unwrap();
    assert_eq!(login.client_id, "ours");
    assert!(authority.requests("/as/register").is_empty());
    assert_eq!(authority.requests("/as/authorize")[0]["scope"], "write offline_access");
}

#[tokio::test]
async fn a_client_that_was_registered_beforehand_has_its_secret_and_its_port() {
    let authority = TestAuthority::start(first()).await;
    let home = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let oauth_client_id = Some("ours".to_owned());
    let config = McpServerConfig { oauth_client_id, oauth_callback_port: Some(port), ..authority.config() };
    let client_secret = Some(SecretText::from("our-secret".to_owned()));
    let settings = LoginSettings { client_secret: client_secret.clone(), ..settings(home.path()) };
    let error = log_in_with(&config, &settings).await.unwrap_err();
    assert!(matches!(error, OAuthError::Listen { .. }), "{error}");
    drop(taken);
    let login = log_in_with(&config, &settings).await.unwrap();
    assert_eq!(login.client_secret, client_secret);
    let redirect = &authority.requests("/as/authorize")[0]["redirect_uri"];
    assert_eq!(*redirect, format!("http://127.0.0.1:{port}/callback"));
    assert!(!authority.requests("/as/token")[0].contains_key("client_id"), "it is in the header");
}

#[tokio::test]
async fn a_redirect_from_another_issuer_or_without_one_sends_no_code() {
    let other = Deviations { redirect_issuer: Some("https://evil.example"), ..first() };
    let none = Deviations { no_redirect_issuer: true, ..first() };
    for deviations in [other, none] {
        let authority = TestAuthority::start(deviations).await;
        let home = tempfile::tempdir().unwrap();
        let error = log_in(&authority, home.path()).await.unwrap_err();
        assert!(matches!(error, OAuthError::WrongIssuer { .. }), "{error}");
        assert!(authority.requests("/as/token").is_empty());
    }
}

#[tokio::test]
async fn a_redirect_with_another_state_is_not_used() {
    let authority = TestAuthority::start(Deviations { redirect_state: Some("other"), ..first() }).await;
    let home = tempfile::tempdir().unwrap();
    let config = authority.config();
    let mut login = OAuthLogin::start("a", &config, None, &settings(home.path())).await.unwrap();
    let address = login.address().to_owned();
    // The pasted text comes after the redirect of the browser, which must not have ended the login.
    let after_browser = async move {
        let page = browse(&address).await;
        assert!(page.contains("not the page of a running login"), "{page}");
        redirect_of(&address).await
    };
    let error = login.finish(after_browser).await.unwrap_err();
    assert!(matches!(error, OAuthError::WrongRedirect), "{error}");
    assert!(authority.requests("/as/token").is_empty());
}

#[tokio::test]
async fn metadata_that_belong_to_another_server_are_refused() {
    let resource = Deviations { resource: Some("https://other.example/mcp"), ..first() };
    let issuer = Deviations { metadata_issuer: Some("https://other.example"), ..first() };
    let token_endpoint = Deviations { token_endpoint: Some("http://other.example/token"), ..first() };
    for deviations in [resource, issuer, token_endpoint] {
        let authority = TestAuthority::start(deviations).await;
        let home = tempfile::tempdir().unwrap();
        let error = log_in(&authority, home.path()).await.unwrap_err();
        assert!(authority.requests("/as/register").is_empty(), "{error}");
    }
}

const PAGES: [&str; 4] = [
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server/as",
    "/as/register",
    "/as/token",
];

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    for page in PAGES {
        let authority = TestAuthority::start(Deviations { leads_away: Some(page), ..first() }).await;
        let home = tempfile::tempdir().unwrap();
        let error = log_in(&authority, home.path()).await.unwrap_err();
        assert!(!matches!(error, OAuthError::TimedOut { .. }), "{page}: {error}");
    }
}

#[tokio::test]
async fn an_answer_without_end_or_of_ten_megabytes_ends_the_login() {
    for page in PAGES {
        for deviations in
            [Deviations { floods: Some(page), ..first() }, Deviations { hangs: Some(page), ..first() }]
        {
            let authority = TestAuthority::start(deviations).await;
            let home = tempfile::tempdir().unwrap();
            let request_limit = Duration::from_secs(1);
            let settings = LoginSettings { request_limit, ..settings(home.path()) };
            let error = log_in_with(&authority.config(), &settings).await.unwrap_err();
            assert!(!matches!(error, OAuthError::TimedOut { .. }), "{page}: {error}");
            assert!(error.to_string().len() < 600, "{error}");
        }
    }
}

#[tokio::test]
async fn a_server_without_metadata_is_its_own_authorization_server() {
    let deviations = Deviations { no_metadata: true, no_redirect_issuer: true, ..first() };
    let authority = TestAuthority::start(deviations).await;
    let home = tempfile::tempdir().unwrap();
    let login = log_in(&authority, home.path()).await.unwrap();
    assert_eq!(login.issuer, None);
    assert_eq!(authority.requests("/as/authorize")[0]["resource"], format!("{}/mcp", authority.origin));
    let named = Some("https://other.example");
    authority.deviate(|deviations| {
        (deviations.no_redirect_issuer, deviations.redirect_issuer) = (false, named);
    });
    let home = tempfile::tempdir().unwrap();
    assert!(log_in(&authority, home.path()).await.is_err(), "an issuer that cannot be checked");
}

#[tokio::test]
async fn a_token_of_another_type_is_refused() {
    let authority = TestAuthority::start(Deviations { token_type: Some("DPoP"), ..first() }).await;
    let home = tempfile::tempdir().unwrap();
    let error = log_in(&authority, home.path()).await.unwrap_err();
    assert!(error.to_string().contains("no bearer token"), "{error}");
    let state = login_status("a", &authority.config(), home.path()).await.unwrap();
    assert_eq!(state, LoginState::NotLoggedIn);
}

#[tokio::test]
async fn a_logout_revokes_both_tokens_and_deletes_the_login() {
    let authority = TestAuthority::start(first()).await;
    let (home, config) = (tempfile::tempdir().unwrap(), authority.config());
    log_in(&authority, home.path()).await.unwrap();
    assert_eq!(logout("a", &config, home.path()).await.unwrap(), Revocation::Revoked);
    let revoked = authority.requests("/as/revoke");
    let tokens: Vec<&str> = revoked.iter().map(|request| request["token"].as_str()).collect();
    assert_eq!(tokens, ["refresh-1", "access-1"]);
    assert_eq!(login_status("a", &config, home.path()).await.unwrap(), LoginState::NotLoggedIn);
    assert_eq!(logout("a", &config, home.path()).await.unwrap(), Revocation::NotLoggedIn);
}

#[tokio::test]
async fn a_damaged_file_stops_the_login_before_the_person_acts() {
    let authority = TestAuthority::start(first()).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let files = std::fs::read_dir(home.path().join("credentials")).unwrap();
    let is_login = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "json");
    let file = files.map(|entry| entry.unwrap().path()).find(is_login).unwrap();
    std::fs::write(&file, "{").unwrap();
    let error = log_in(&authority, home.path()).await.unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}

//! Tokens that end, by one process and by several.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use windlass_mcp::{
    access_tokens::AccessTokens,
    config::McpServerConfig,
    oauth::{LoginState, OAuthLogin, TokenSource, login_status},
};

use crate::{
    authority::{Deviations, TestAuthority},
    login::{log_in, settings},
};

fn lives(first_lifetime: u64) -> Deviations {
    Deviations { first_lifetime, ..Deviations::default() }
}

fn source(config: McpServerConfig, home: &Path) -> TokenSource {
    let servers = BTreeMap::from([("a".to_owned(), config)]);
    TokenSource::new(home, &servers).with_request_limit(Duration::from_secs(10))
}

#[tokio::test]
async fn a_token_is_refreshed_before_it_ends_and_once() {
    let authority = TestAuthority::start(lives(59)).await;
    let home = tempfile::tempdir().unwrap();
    let tokens = Arc::new(source(authority.config(), home.path()));
    assert_eq!(tokens.access_token("a").await, Ok(None));
    log_in(&authority, home.path()).await.unwrap();
    let (first, second) = tokio::join!(tokens.access_token("a"), tokens.access_token("a"));
    assert_eq!((first, second), (Ok(Some("access-2".into())), Ok(Some("access-2".into()))));
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-2".into())));
    assert_eq!(authority.refreshes(), 1);
    let refreshed = authority.requests("/as/token").pop().unwrap();
    assert_eq!(refreshed["resource"], format!("{}/mcp", authority.origin));
}

#[tokio::test]
async fn a_token_that_lives_long_is_used_as_it_is() {
    let authority = TestAuthority::start(lives(3600)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let tokens = source(authority.config(), home.path());
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-1".into())));
    assert_eq!(authority.refreshes(), 0);
}

#[tokio::test]
async fn a_refused_token_is_replaced_and_a_token_replaced_by_others_is_found() {
    let authority = TestAuthority::start(lives(3600)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let (one, two) = (source(authority.config(), home.path()), source(authority.config(), home.path()));
    assert_eq!(two.access_token("a").await, Ok(Some("access-1".into())));
    assert_eq!(one.token_after_refusal("a", "access-1").await, Ok("access-2".into()));
    assert_eq!(two.token_after_refusal("a", "access-1").await, Ok("access-2".into()));
    assert_eq!(authority.refreshes(), 1);
}

#[tokio::test]
async fn a_rejected_refresh_needs_a_login_and_is_not_tried_again() {
    let authority = TestAuthority::start(lives(0)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    authority.deviate(|deviations| deviations.refuses_refresh = Some("invalid_grant"));
    let tokens = source(authority.config(), home.path());
    assert!(tokens.access_token("a").await.is_err());
    assert!(tokens.access_token("a").await.is_err());
    assert_eq!(authority.refreshes(), 1);
    let state = login_status("a", &authority.config(), home.path()).await.unwrap();
    assert_eq!(state, LoginState::Expired);
}

#[tokio::test]
async fn a_failed_refresh_does_not_take_away_a_token_that_is_still_valid() {
    let authority = TestAuthority::start(lives(59)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    authority.deviate(|deviations| deviations.floods = Some("/as/token"));
    let tokens = source(authority.config(), home.path());
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-1".into())));
    let probes = authority.requests("/mcp").len();
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-1".into())));
    assert_eq!(authority.requests("/mcp").len(), probes, "it is not tried again at once");
    let error = tokens.token_after_refusal("a", "access-1").await.unwrap_err();
    assert!(!error.reason.contains("access-1") && !error.reason.contains("refresh-1"), "{error}");
    authority.deviate(|deviations| deviations.floods = None);
    let tokens = source(authority.config(), home.path());
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-2".into())), "the login has survived");
}

#[tokio::test]
async fn tokens_are_not_sent_to_a_new_authorization_server() {
    let authority = TestAuthority::start(lives(0)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let elsewhere = TestAuthority::start(lives(0)).await;
    let files = std::fs::read_dir(home.path().join("credentials")).unwrap();
    // The file now says that the tokens are from another issuer than the metadata name.
    for path in files.map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let issuer = format!("\"issuer\": \"{}/as\"", authority.origin);
        let other = format!("\"issuer\": \"{}/as\"", elsewhere.origin);
        std::fs::write(&path, text.replace(&issuer, &other)).unwrap();
    }
    let tokens = source(authority.config(), home.path());
    let error = tokens.access_token("a").await.unwrap_err();
    assert!(error.reason.contains("changed its authorization server"), "{error}");
    assert_eq!((authority.refreshes(), elsewhere.refreshes()), (0, 0));
}

#[tokio::test]
async fn the_secret_of_a_registered_client_is_kept_for_the_refresh() {
    let authority = TestAuthority::start(Deviations { client_secret: Some("s"), ..lives(0) }).await;
    let home = tempfile::tempdir().unwrap();
    let login = log_in(&authority, home.path()).await.unwrap();
    assert!(login.client_secret.is_some());
    let tokens = source(authority.config(), home.path());
    assert_eq!(tokens.access_token("a").await, Ok(Some("access-2".into())));
    let refreshed = authority.requests("/as/token").pop().unwrap();
    assert!(!refreshed.contains_key("client_id"), "the secret is in the header, and the id with it");
}

#[tokio::test]
async fn the_next_login_asks_for_the_scope_that_a_server_has_demanded() {
    let authority = TestAuthority::start(lives(3600)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let tokens = source(authority.config(), home.path());
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let needed = tokens.note_challenge("a", challenge).await;
    assert!(needed.reason.contains("`write`"), "{needed}");
    let login = OAuthLogin::start("a", &authority.config(), None, &settings(home.path())).await.unwrap();
    assert!(login.address().contains("scope=read+offline_access+write"), "{}", login.address());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_refresh_at_once_refresh_once() {
    let authority = TestAuthority::start(lives(0)).await;
    let home = tempfile::tempdir().unwrap();
    log_in(&authority, home.path()).await.unwrap();
    let url = authority.config().url.unwrap();
    let found = tokio::task::spawn_blocking({
        let home = home.path().to_owned();
        move || {
            let mut children = [start_child(&home, &url), start_child(&home, &url)];
            let mut lines = children.each_mut().map(|child| {
                let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
                assert!(lines.any(|line| line.unwrap().contains("ready")));
                lines
            });
            for child in &mut children {
                child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            }
            let found = lines.each_mut().map(|lines| {
                lines.map(Result::unwrap).find(|line| line.contains("token ")).unwrap_or_default()
            });
            for mut child in children {
                assert!(child.wait().unwrap().success());
            }
            found
        }
    });
    let found = tokio::time::timeout(Duration::from_mins(1), found).await.unwrap().unwrap();
    assert!(found.iter().all(|line| line.ends_with("token access-2")), "{found:?}");
    assert_eq!(authority.refreshes(), 1);
}

fn start_child(home: &Path, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "refresh::a_child_process_asks_for_its_token", "--nocapture"])
        .env("WINDLASS_TEST_HOME", home)
        .env("WINDLASS_TEST_URL", url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// One of the two processes above. Without them it has nothing to do.
#[tokio::test]
async fn a_child_process_asks_for_its_token() {
    let Some(home) = std::env::var_os("WINDLASS_TEST_HOME") else { return };
    let url = std::env::var("WINDLASS_TEST_URL").unwrap();
    let config = McpServerConfig { url: Some(url), ..McpServerConfig::default() };
    let tokens = source(config, Path::new(&home));
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("token {}", tokens.access_token("a").await.unwrap().unwrap());
}

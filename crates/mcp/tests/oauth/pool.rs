//! Servers of a pool that need a login.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::Map;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture,
    host::HostError,
    remote::{LaunchedServer, ServerCommand, ServerLauncher},
};
use windlass_mcp::{
    oauth::{OAuthLogin, TokenSource},
    pool::{PoolSettings, RemoteError, RemoteToolCall, ServerPool},
    result::RemoteContent,
    status::ServerState,
};

use crate::{
    authority::{Deviations, TestAuthority, redirect_of},
    login::{log_in, settings},
};

struct NoLauncher;

impl ServerLauncher for NoLauncher {
    fn launch<'a>(&'a self, _command: &'a ServerCommand) -> BoxFuture<'a, Result<LaunchedServer, HostError>> {
        Box::pin(async { Err(HostError::EmptyCommand) })
    }
}

fn pool_of(authority: &TestAuthority, home: &Path) -> (Arc<ServerPool>, Arc<TokenSource>) {
    let servers = BTreeMap::from([("a".to_owned(), authority.config())]);
    let tokens = Arc::new(TokenSource::new(home, &servers));
    let pool = ServerPool::new(PoolSettings {
        servers,
        environment: BTreeMap::new(),
        directory: Some(home.to_owned()),
        workspace: home.to_owned(),
        launcher: Arc::new(NoLauncher),
        tokens: Some(tokens.clone()),
    });
    (pool, tokens)
}

async fn call(pool: &ServerPool) -> Result<String, RemoteError> {
    let request = RemoteToolCall {
        server: "a",
        tool: "open",
        arguments: &Map::new(),
        progress: &|_| (),
        elicitor: None,
        cancel: &CancellationToken::new(),
    };
    let result = pool.call(request).await?;
    Ok(match &result.content[..] {
        [RemoteContent::Text { text, .. }] => text.clone(),
        other => format!("{other:?}"),
    })
}

fn lives_long() -> Deviations {
    Deviations { first_lifetime: 3600, ..Deviations::default() }
}

#[tokio::test]
async fn a_server_is_used_after_the_login_and_its_tokens_are_renewed() {
    let authority = TestAuthority::start(lives_long()).await;
    let home = tempfile::tempdir().unwrap();
    let (pool, _) = pool_of(&authority, home.path());
    assert!(matches!(pool.start("a").await, Err(RemoteError::NeedsLogin { .. })));
    assert_eq!(pool.status()[0].state, ServerState::NeedsLogin);
    log_in(&authority, home.path()).await.unwrap();
    assert_eq!(call(&pool).await.unwrap(), "by access-1");
    authority.end_token();
    assert_eq!(call(&pool).await.unwrap(), "by access-2");
    assert_eq!(authority.refreshes(), 1);
}

#[tokio::test]
async fn a_login_that_ends_during_the_start_is_no_failed_start() {
    let deviations = Deviations { refuses_method: Some("tools/list"), ..lives_long() };
    let authority = TestAuthority::start(deviations).await;
    let home = tempfile::tempdir().unwrap();
    let (pool, _) = pool_of(&authority, home.path());
    log_in(&authority, home.path()).await.unwrap();
    let error = pool.start("a").await.unwrap_err();
    assert!(matches!(error, RemoteError::NeedsLogin { .. }), "{error}");
    assert_eq!(pool.status()[0].state, ServerState::NeedsLogin);
}

#[tokio::test]
async fn a_call_that_needs_another_scope_works_after_the_next_login() {
    let authority = TestAuthority::start(lives_long()).await;
    authority.deviate(|deviations| deviations.demands_scope = Some("write"));
    let home = tempfile::tempdir().unwrap();
    let (pool, _) = pool_of(&authority, home.path());
    log_in(&authority, home.path()).await.unwrap();
    let error = call(&pool).await.unwrap_err();
    assert!(matches!(error, RemoteError::NeedsLogin { .. }), "{error}");
    // The login of another process: it knows the scope from the file.
    let config = authority.config();
    let mut login = OAuthLogin::start("a", &config, None, &settings(home.path())).await.unwrap();
    let redirect = redirect_of(login.address()).await;
    let login = login.finish(async { redirect }).await.unwrap();
    assert!(login.scopes.contains(&"write".to_owned()), "{:?}", login.scopes);
    assert_eq!(call(&pool).await.unwrap(), "by access-2");
}

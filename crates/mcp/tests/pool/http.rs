//! Servers behind an address: headers, tokens, redirects and unix sockets.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};
use windlass_contract::BoxFuture;
use windlass_mcp::{
    access_tokens::{AccessTokenFuture, AccessTokens, LoginNeeded},
    pool::RemoteError,
    status::ServerState,
};

use crate::{TestPool, text};

/// A request as the server got it.
#[derive(Clone)]
struct SeenRequest {
    path: String,
    headers: BTreeMap<String, String>,
    message: Value,
}

/// Answers with a status, further headers, and a body.
type Responder = dyn Fn(&SeenRequest) -> (u16, String, String) + Send + Sync;

/// An HTTP server on this machine.
struct WebServer {
    address: String,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    task: JoinHandle<()>,
}

impl WebServer {
    async fn start(respond: impl Fn(&SeenRequest) -> (u16, String, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (respond, log): (Arc<Responder>, _) = (Arc::new(respond), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&respond), Arc::clone(&log)));
            }
        });
        Self { address, seen, task }
    }

    fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    fn methods(&self) -> Vec<String> {
        let method = |seen: &SeenRequest| seen.message["method"].as_str().unwrap_or("").to_owned();
        self.seen().iter().map(method).collect()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    respond: Arc<Responder>,
    log: Arc<Mutex<Vec<SeenRequest>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream).await {
        log.lock().unwrap().push(request.clone());
        let (status, headers, body) = respond(&request);
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<SeenRequest> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(SeenRequest { path, headers, message: serde_json::from_slice(&body).unwrap_or_default() })
}

/// Answers as a server of 2025-11-25 without sessions.
fn plain(request: &SeenRequest) -> (u16, String, String) {
    let message = &request.message;
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "over HTTP"}]}),
        "server/discover" => {
            let error = json!({"code": -32601, "message": "unknown"});
            return json_answer(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
        _ => return (202, String::new(), String::new()),
    };
    json_answer(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn json_answer(message: &Value) -> (u16, String, String) {
    (200, "Content-Type: application/json\r\n".to_owned(), message.to_string())
}

fn unauthorized() -> (u16, String, String) {
    (401, "WWW-Authenticate: Bearer realm=\"x\"\r\n".to_owned(), String::new())
}

fn pool(config: Value, tokens: Option<Arc<dyn AccessTokens>>) -> TestPool {
    let config = serde_json::from_value(config).unwrap();
    TestPool::of(BTreeMap::from([("web".to_owned(), config)]), None, tokens)
}

/// Hands out `old` first, and `new` after a refusal.
#[derive(Default)]
struct TwoTokens {
    has_login: bool,
    is_renewed: Mutex<bool>,
    challenges: Mutex<Vec<String>>,
}

impl AccessTokens for TwoTokens {
    fn access_token<'a>(&'a self, _server: &'a str) -> AccessTokenFuture<'a> {
        let token = if *self.is_renewed.lock().unwrap() { "new" } else { "old" };
        Box::pin(async move { Ok(self.has_login.then(|| token.to_owned())) })
    }

    fn token_after_refusal<'a>(
        &'a self,
        _server: &'a str,
        refused: &'a str,
    ) -> BoxFuture<'a, Result<String, LoginNeeded>> {
        let is_first = refused == "old";
        *self.is_renewed.lock().unwrap() = is_first;
        let refused_twice = || LoginNeeded { reason: "refused twice".to_owned() };
        let renewed = is_first.then(|| "new".to_owned()).ok_or_else(refused_twice);
        Box::pin(async move { renewed })
    }

    fn note_challenge<'a>(&'a self, _server: &'a str, challenge: &'a str) -> BoxFuture<'a, LoginNeeded> {
        self.challenges.lock().unwrap().push(challenge.to_owned());
        Box::pin(async { LoginNeeded { reason: "a test".to_owned() } })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_is_sent_once_the_server_could_ask_a_question() {
    let is_open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&is_open);
    let web = WebServer::start(move |request| {
        let (status, headers, body) = plain(request);
        match request.message["method"].as_str() {
            Some("initialize") => (status, format!("{headers}Mcp-Session-Id: s\r\n"), body),
            Some("tools/call") if !opened.load(Ordering::SeqCst) => (500, String::new(), String::new()),
            // The stream on which a server sends its own requests.
            None => {
                std::thread::sleep(Duration::from_millis(300));
                opened.store(true, Ordering::SeqCst);
                (405, String::new(), String::new())
            }
            Some(_) => (status, headers, body),
        }
    })
    .await;
    let test = pool(json!({"url": web.address}), None);
    assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
    assert!(is_open.load(Ordering::SeqCst));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_carries_the_headers_of_the_configuration() {
    let web = WebServer::start(plain).await;
    let test = pool(
        json!({"url": format!("{}/mcp", web.address), "http_headers": {"X-One": "1"},
            "env_http_headers": {"X-Two": "FROM_US"}, "bearer_token_env_var": "FROM_US"}),
        None,
    );
    assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
    for request in web.seen().iter().filter(|request| !request.message.is_null()) {
        assert_eq!(request.path, "/mcp");
        assert_eq!(request.headers["x-one"], "1");
        assert_eq!(request.headers["x-two"], "inherited");
        assert_eq!(request.headers["authorization"], "Bearer inherited");
    }
    assert_eq!(test.status("web").pid, None);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_variable_that_is_not_set_is_named() {
    let keys = [("bearer_token_env_var", json!("ABSENT")), ("env_http_headers", json!({"X": "ABSENT"}))];
    for (key, value) in keys {
        let test = pool(json!({"url": "http://127.0.0.1:9/", key: value}), None);
        let error = test.call("web", "echo").await.unwrap_err();
        assert!(error.to_string().contains("`ABSENT` is not set"), "{error}");
        test.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_of_the_environment_is_explained() {
    let web = WebServer::start(|_| unauthorized()).await;
    let test = pool(json!({"url": web.address, "bearer_token_env_var": "FROM_US"}), None);
    let error = test.call("web", "echo").await.unwrap_err();
    assert!(error.to_string().contains("refused the token of `bearer_token_env_var`"), "{error}");
    assert!(!error.to_string().contains("inherited"), "{error}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_token_is_renewed_once() {
    let web = WebServer::start(|request| {
        let token = request.headers.get("authorization").map(String::as_str);
        if token == Some("Bearer new") { plain(request) } else { unauthorized() }
    })
    .await;
    let tokens = Arc::new(TwoTokens { has_login: true, ..TwoTokens::default() });
    let test = pool(json!({"url": web.address}), Some(Arc::clone(&tokens) as _));
    assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
    let calls = web.methods().iter().filter(|method| *method == "tools/call").count();
    assert_eq!(calls, 1);
    assert!(tokens.challenges.lock().unwrap().is_empty());
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_demands_a_login_is_in_that_state() {
    for (has_login, challenge) in [(false, true), (true, true), (false, false)] {
        let web = WebServer::start(move |_| {
            let bare = (401, String::new(), "go away".to_owned());
            if challenge { unauthorized() } else { bare }
        })
        .await;
        let tokens = Arc::new(TwoTokens { has_login, ..TwoTokens::default() });
        let test = pool(json!({"url": web.address}), Some(Arc::clone(&tokens) as _));
        let error = test.call("web", "echo").await.unwrap_err();
        assert!(matches!(error, RemoteError::NeedsLogin { .. }), "{error}");
        assert_eq!(test.status("web").state, ServerState::NeedsLogin);
        let noted = tokens.challenges.lock().unwrap().first().cloned();
        assert_eq!(noted, challenge.then(|| "Bearer realm=\"x\"".to_owned()));
        test.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_ends_during_a_session_is_noticed() {
    let web = WebServer::start(|request| match request.message["method"].as_str() {
        Some("tools/call") => unauthorized(),
        _ => plain(request),
    })
    .await;
    let test = pool(json!({"url": web.address}), Some(Arc::new(TwoTokens::default())));
    let error = test.call("web", "echo").await.unwrap_err();
    assert!(matches!(error, RemoteError::NeedsLogin { .. }), "{error}");
    test.wait_for("web", |state| *state == ServerState::NeedsLogin).await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_redirects_to_the_same_origin_are_followed() {
    let other = WebServer::start(plain).await;
    let target = format!("{}/stolen", other.address);
    let web = WebServer::start(move |_| (307, format!("Location: {target}\r\n"), String::new())).await;
    let test = pool(json!({"url": web.address, "bearer_token_env_var": "FROM_US"}), None);
    test.call("web", "echo").await.unwrap_err();
    assert!(other.seen().is_empty());
    test.close().await;

    let web = WebServer::start(|request| match request.path.as_str() {
        "/mcp" => (307, "Location: /mcp/\r\n".to_owned(), String::new()),
        _ => plain(request),
    })
    .await;
    let test = pool(json!({"url": format!("{}/mcp", web.address)}), None);
    assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_behind_a_unix_socket_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("mcp.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::new(plain), Arc::clone(&log)));
        }
    });
    let test = pool(json!({"url": "http://behind/mcp", "unix_socket": socket}), None);
    assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
    assert_eq!(seen.lock().unwrap()[0].headers["host"], "behind");
    test.close().await;
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_server_fails_without_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let test = pool(json!({"url": format!("http://{address}/?key=s3cret")}), None);
    let error = test.call("web", "echo").await.unwrap_err();
    assert!(matches!(error, RemoteError::NotStarted { .. }), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
    assert!(matches!(test.status("web").state, ServerState::Failed { .. }));
    test.close().await;
}

/// The same answer as JSON, or as an event of a stream.
fn flood(request: &SeenRequest, as_event: bool) -> (u16, String, String) {
    let text = "x".repeat(33 * 1024 * 1024);
    let result = json!({"content": [{"type": "text", "text": text}]});
    let answer = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
    if as_event {
        let headers = "Content-Type: text/event-stream\r\n".to_owned();
        return (200, headers, format!("data: {answer}\n\n"));
    }
    json_answer(&answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_large_is_an_error_of_the_call_alone() {
    for as_event in [false, true] {
        let web = WebServer::start(move |request| {
            let arguments = &request.message["params"]["arguments"];
            if arguments["flood"] == true { flood(request, as_event) } else { plain(request) }
        });
        let web = web.await;
        let test = pool(json!({"url": web.address}), None);
        let error = test.call_with("web", "echo", json!({"flood": true})).await.unwrap_err();
        assert!(error.to_string().len() < 1000, "{error}");
        assert_eq!(text(&test.call("web", "echo").await.unwrap()), "over HTTP");
        test.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_page_without_end_is_quoted_and_not_read_whole() {
    let web = WebServer::start(|request| {
        let is_call = request.message["method"] == "tools/call";
        if is_call { (404, String::new(), "<p>\u{1b}[31m".repeat(1_000_000)) } else { plain(request) }
    });
    let web = web.await;
    let test = pool(json!({"url": web.address}), None);
    let error = test.call("web", "echo").await.unwrap_err().to_string();
    assert!(error.contains("404") && !error.contains('\u{1b}') && error.len() < 2000, "{error}");
    test.close().await;
}

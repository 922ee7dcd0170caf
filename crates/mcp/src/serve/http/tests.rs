//! Attacks on a server over HTTP, written to its socket byte by byte.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinHandle,
    time::timeout,
};

use super::*;
use crate::serve::{
    ServedTools, ToolServer,
    tests::{PATIENCE, TestTools},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Running {
    address: SocketAddr,
    tools: Arc<TestTools>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

async fn running(limits: ServeLimits) -> Running {
    let server = HttpServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (address, stop, tools) = (server.address, CancellationToken::new(), Arc::new(TestTools::default()));
    let handler = ToolServer::new(Arc::clone(&tools) as Arc<dyn ServedTools>, limits);
    let handler = Box::new(move || handler.for_connection());
    let endpoint = TokenEndpoint { token: Some(BearerToken::parse(TOKEN).unwrap()), handler };
    let stopped = stop.clone();
    let serving = tokio::spawn(async move { server.serve(vec![endpoint], limits, &stopped).await });
    Running { address, tools, stop, serving }
}

/// Headers of a valid request except its length.
fn headers(address: SocketAddr) -> Vec<(String, String)> {
    let headers = [
        ("Host", address.to_string()),
        ("Authorization", format!("Bearer {TOKEN}")),
        ("Accept", "application/json, text/event-stream".into()),
        ("Content-Type", "application/json".into()),
        ("Connection", "close".into()),
    ];
    headers.map(|(name, value)| (name.to_owned(), value)).into()
}

fn with(mut headers: Vec<(String, String)>, name: &str, value: &str) -> Vec<(String, String)> {
    headers.retain(|(other, _)| other != name);
    if !value.is_empty() {
        headers.push((name.to_owned(), value.to_owned()));
    }
    headers
}

async fn sent(address: SocketAddr, headers: &[(String, String)], length: usize, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses early closes the connection while the body is written.
    let _refused = stream.write_all(body).await;
    stream
}

/// Sends a request, and returns the status and everything that came back.
async fn exchange(address: SocketAddr, headers: &[(String, String)], body: &[u8]) -> (u16, String) {
    let mut stream = sent(address, headers, body.len(), body).await;
    let mut answer = Vec::new();
    // A reset after the answer does not make it less of an answer.
    let _ended = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, answer)
}

fn initialize() -> Vec<u8> {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string().into_bytes()
}

fn modern(method: &str, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into_bytes()
}

#[tokio::test]
async fn only_the_right_token_is_let_in() {
    let Running { address, .. } = running(ServeLimits::default()).await;
    let right = headers(address);
    assert_eq!(exchange(address, &right, &initialize()).await.0, 200);
    for wrong in ["", "Bearer ", "Bearer 0123456789abcdef0123456789abcdee", TOKEN, "Basic YTpi"] {
        let (status, answer) = exchange(address, &with(right.clone(), "Authorization", wrong), b"{}").await;
        assert_eq!(status, 401, "{wrong}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let Running { address, .. } = running(ServeLimits::default()).await;
    let right = headers(address);
    let own = format!("http://{address}");
    assert_eq!(exchange(address, &with(right.clone(), "Origin", &own), &initialize()).await.0, 200);
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1.evil.example"),
        ("Host", "evil.example"),
        ("Host", "127.0.0.1.evil.example:80"),
    ] {
        let (status, answer) = exchange(address, &with(right.clone(), name, value), &initialize()).await;
        assert_eq!(status, 403, "{name} {value}: {answer}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_the_limit() {
    let limits = ServeLimits { max_message_bytes: 1024 * 1024, ..ServeLimits::default() };
    let Running { address, .. } = running(limits).await;
    let right = headers(address);
    let announced = sent(address, &right, 1 << 40, b"").await;
    let chunked = with(right.clone(), "Transfer-Encoding", "chunked");
    let mut unannounced = TcpStream::connect(address).await.unwrap();
    let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in &chunked {
        head += &format!("{name}: {value}\r\n");
    }
    unannounced.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let chunk =
        [format!("{:x}\r\n", 64 * 1024).into_bytes(), vec![b' '; 64 * 1024], b"\r\n".to_vec()].concat();
    for _ in 0..20 {
        let _refused = unannounced.write_all(&chunk).await;
    }
    for mut stream in [announced, unannounced] {
        let mut answer = Vec::new();
        let _ended = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("limit of 1 MiB"), "{answer}");
    }
}

#[tokio::test]
async fn messages_that_are_no_messages_are_answered_and_the_server_lives() {
    let Running { address, .. } = running(ServeLimits::default()).await;
    let right = headers(address);
    let nested = "[".repeat(200_000);
    let bodies: [&[u8]; 6] = [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        nested.as_bytes(),
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
    ];
    for body in bodies {
        let (status, answer) = exchange(address, &right, body).await;
        assert!((400..500).contains(&status), "{answer}");
    }
    let (status, answer) = exchange(address, &with(right, "Mcp-Session-Id", "guessed"), &initialize()).await;
    assert_eq!(status, 404, "{answer}");
    assert_eq!(exchange(address, &headers(address), &initialize()).await.0, 200);
}

#[tokio::test]
async fn sessions_are_bounded() {
    let Running { address, .. } = running(ServeLimits { max_sessions: 3, ..ServeLimits::default() }).await;
    for _ in 0..3 {
        assert_eq!(exchange(address, &headers(address), &initialize()).await.0, 200);
    }
    let (status, answer) = exchange(address, &headers(address), &initialize()).await;
    assert!(status == 503 && answer.contains("limit of 3 sessions"), "{answer}");
}

#[tokio::test]
async fn a_connection_dropped_in_mid_call_cancels_the_call() {
    let Running { address, tools, .. } = running(ServeLimits::default()).await;
    let call = modern("tools/call", json!({"name": "wait", "arguments": {}}));
    let mut right = headers(address);
    for (name, value) in
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "wait")]
    {
        right = with(right, name, value);
    }
    let stream = sent(address, &right, call.len(), &call).await;
    timeout(PATIENCE, tools.started.notified()).await.unwrap();
    drop(stream);
    timeout(PATIENCE, tools.cancelled.notified()).await.unwrap();
}

#[tokio::test]
async fn stopping_the_server_closes_its_connections() {
    let Running { address, stop, serving, .. } = running(ServeLimits::default()).await;
    let idle = TcpStream::connect(address).await.unwrap();
    assert_eq!(exchange(address, &headers(address), &initialize()).await.0, 200);
    stop.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap();
    drop(idle);
    assert!(TcpStream::connect(address).await.is_err());
}

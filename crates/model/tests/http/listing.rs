//! Lists of models.

use std::time::Duration;

use windlass_contract::model::ModelError;
use windlass_model::{Provider, WireApi, list_models};

use crate::server::{Reply, Server, Step};

const LIMIT: Duration = Duration::from_secs(20);

fn provider(server: &Server) -> Provider {
    Provider {
        base_url: Some(server.url.clone()),
        env_key: Some("THE_KEY".to_owned()),
        ..Provider::default()
    }
}

async fn list(reply: Reply, limit: Duration) -> (Result<Vec<String>, ModelError>, Vec<String>) {
    let server = Server::start([reply]).await;
    let listed = list_models("mine", &provider(&server), &|_| Some("sk-1".to_owned()), limit).await;
    (listed, server.requests().into_iter().map(|request| request.head).collect())
}

#[tokio::test]
async fn names_come_in_the_order_of_the_server_and_the_key_is_sent() {
    let body = r#"{"object":"list","data":[{"id":"b","created":1},{"id":"a"}]}"#;
    let (listed, heads) = list(Reply::plain("200 OK", "", body), LIMIT).await;
    assert_eq!(listed.unwrap(), ["b", "a"]);
    assert!(heads[0].starts_with("GET /v1/models HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains("authorization: Bearer sk-1\r\n"), "{heads:?}");
    assert!(heads[0].contains("accept: application/json\r\n"), "{heads:?}");
}

#[tokio::test]
async fn a_server_of_the_messages_api_is_asked_for_all_at_once() {
    let body = r#"{"data":[{"type":"model","id":"claude-x","display_name":"X"}],"has_more":false}"#;
    let server = Server::start([Reply::plain("200 OK", "", body)]).await;
    let provider = Provider { wire_api: WireApi::Messages, ..provider(&server) };
    let listed = list_models("mine", &provider, &|_| Some("sk-1".to_owned()), LIMIT).await;
    assert_eq!(listed.unwrap(), ["claude-x"]);
    let head = server.requests().remove(0).head;
    assert!(head.starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-api-key: sk-1\r\n"), "{head}");
}

#[tokio::test]
async fn what_is_not_a_list_is_an_error() {
    for body in ["", "<html>", "[]", r#"{"data":[{"name":"x"}]}"#, r#"{"data":[{"id":"x"}"#] {
        let (listed, _) = list(Reply::plain("200 OK", "", body), LIMIT).await;
        let error = listed.unwrap_err().to_string();
        assert!(error.contains("its list of models cannot be read"), "{body}: {error}");
    }
    let refused = Reply::plain("401 Unauthorized", "", r#"{"error":{"message":"wrong key"}}"#);
    let (listed, _) = list(refused, LIMIT).await;
    assert!(matches!(listed, Err(ModelError::Unauthorized { status: 401, .. })), "{listed:?}");
    // A redirect could send the key elsewhere.
    let moved = Reply::plain("302 Found", "location: http://127.0.0.1:9/\r\n", "");
    assert!(list(moved, LIMIT).await.0.is_err());
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let (listed, _) = list(Reply(vec![Step::Hang]), Duration::from_millis(50)).await;
    assert!(matches!(listed, Err(ModelError::Idle { .. })), "{listed:?}");
    let begun = Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":".to_vec());
    let (listed, _) = list(Reply(vec![begun, Step::Hang]), Duration::from_millis(50)).await;
    assert!(listed.is_err(), "{listed:?}");
}

//! Connections: kept, lost and replaced.

use tokio::{io::AsyncWriteExt, net::TcpListener};
use windlass_model::WireApi;

use crate::{
    ask::{ask, client, provider},
    server::{Reply, Server, Step},
    talk::{CHAT_OK, OK, RESPONSES_OK},
};

#[tokio::test]
async fn one_connection_serves_many_requests() {
    for (wire, reply) in [(WireApi::Responses, RESPONSES_OK), (WireApi::Chat, CHAT_OK)] {
        let server = Server::start((0..5).map(|_| Reply::events(reply))).await;
        let client = client(&provider(&server.url, wire));
        for _ in 0..5 {
            assert_eq!(ask(client.as_ref()).await, OK);
        }
        assert_eq!((server.requests().len(), server.connections()), (5, 1));
    }
}

#[tokio::test]
async fn a_refusal_does_not_cost_the_connection() {
    let busy = Reply::plain(
        "404 Not Found",
        "content-type: application/json\r\n",
        r#"{"error":{"message":"no model"}}"#,
    );
    let server = Server::start([busy, Reply::events(RESPONSES_OK)]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    let url = format!("{}/responses", server.url);
    assert_eq!(
        ask(client.as_ref()).await,
        [format!(
            "error: {url} answered HTTP 404: no model; check the model's name and the provider's settings"
        )]
    );
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_request_is_sent_once_even_if_its_connection_is_lost() {
    // The server takes a request on an old and then on a new connection, and hangs up without a
    // word.
    let lost = || Reply(vec![Step::Close]);
    let replies = [Reply::events(RESPONSES_OK), lost(), lost(), Reply::events(RESPONSES_OK)];
    let server = Server::start(replies).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    assert_eq!(ask(client.as_ref()).await, OK);
    for sent in [2, 3] {
        let lines = ask(client.as_ref()).await;
        assert!(lines[0].starts_with("error: cannot reach "), "{lines:?}");
        assert_eq!(server.requests().len(), sent);
    }
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!((server.requests().len(), server.connections()), (4, 3));
}

#[tokio::test]
async fn a_connection_the_server_closed_meanwhile_is_no_problem() {
    let server =
        Server::start([Reply::events(RESPONSES_OK).then(Step::Close), Reply::events(RESPONSES_OK)]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_that_never_ends_its_transfer_only_loses_its_connection() {
    let server =
        Server::start([Reply::begun(RESPONSES_OK).then(Step::Hang), Reply::events(RESPONSES_OK)]).await;
    let client = client(&provider(&server.url, WireApi::Responses));
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(ask(client.as_ref()).await, OK);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_failure_is_told_and_not_repeated() {
    let said = r#"{"error":{"message":"not now"}}"#;
    for (status, headers, expected) in [
        (
            "500 Internal Server Error",
            "",
            "URL/chat/completions answered HTTP 500: not now; try again later, or check the server's log",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 0\r\n",
            "the server is limiting requests (HTTP 429): not now; try again later",
        ),
        (
            "503 Service Unavailable",
            "date: Wed, 21 Oct 2015 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2015 08:28:00 GMT\r\n",
            "URL/chat/completions answered HTTP 503: not now; the server asks to wait 3600 s, or check the server's log",
        ),
        (
            "408 Request Timeout",
            "",
            "URL/chat/completions answered HTTP 408: not now; try again later, or check the server's log",
        ),
    ] {
        let server = Server::start([Reply::plain(status, headers, said), Reply::events(CHAT_OK)]).await;
        let lines = ask(client(&provider(&server.url, WireApi::Chat)).as_ref()).await;
        assert_eq!(lines, [format!("error: {expected}").replace("URL", &server.url)]);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_used_up_quota_is_called_one() {
    let body = r#"{"error":{"message":"pay first","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let server = Server::start([Reply::plain("429 Too Many Requests", "retry-after: 0\r\n", body)]).await;
    let expected = "error: the account's quota is used up: pay first; check its plan and billing";
    assert_eq!(ask(client(&provider(&server.url, WireApi::Chat)).as_ref()).await, [expected]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cause() {
    let url = {
        let server = Server::start([]).await;
        server.url.clone()
    };
    // The listener is gone once its task has been dropped.
    tokio::task::yield_now().await;
    let line = ask(client(&provider(&url, WireApi::Responses)).as_ref()).await.remove(0);
    let cause = line.strip_prefix(&format!("error: cannot reach {url}/responses: ")).unwrap();
    assert!(cause.starts_with("Connection refused"), "{line}");
    assert!(cause.ends_with("; is the server running, and is `base_url` right?"), "{line}");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_not_just_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream.flush().await.unwrap();
        std::future::pending::<()>().await;
    });
    let lines = ask(client(&provider(&url, WireApi::Responses)).as_ref()).await;
    plain.abort();
    let expected =
        format!("error: provider `test` cannot be used: no secure connection to {url}/responses: ");
    assert!(lines[0].starts_with(&expected), "{lines:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = Server::start([Reply::events(RESPONSES_OK)]).await;
    let moved = format!("location: {}/responses\r\n", elsewhere.url);
    let server = Server::start([Reply::plain("307 Temporary Redirect", &moved, "")]).await;
    let lines = ask(client(&provider(&server.url, WireApi::Responses)).as_ref()).await;
    assert!(lines[0].contains(&format!("a redirect to {}/responses (HTTP 307)", elsewhere.url)), "{lines:?}");
    assert_eq!(elsewhere.requests().len(), 0);
}

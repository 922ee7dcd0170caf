//! Calls: results, progress, errors, time limits and cancellation.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{pool::RemoteError, status::ServerState};

use crate::{TestPool, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_arrives_in_order_before_the_result() {
    let test = TestPool::new(&["plain"]);
    let seen = Mutex::new(Vec::new());
    let progress = |progress: windlass_mcp::pool::RemoteProgress| {
        seen.lock().unwrap().push((progress.progress, progress.message.unwrap()));
    };
    let cancel = CancellationToken::new();
    let result = test.cancellable("plain", "progress", json!({}), &cancel, &progress).await;
    assert_eq!(text(&result.unwrap()), "done");
    let steps: Vec<(f64, String)> = (1..=5).map(|step| (f64::from(step), format!("step {step}"))).collect();
    assert_eq!(*seen.lock().unwrap(), steps);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_protocol_is_clean() {
    let test = TestPool::new(&["plain"]);
    let error = test.call("plain", "error").await.unwrap_err();
    assert!(
        matches!(&error, RemoteError::Protocol { code: -32000, message, .. }
        if message == "no[31m way"),
        "{error}"
    );
    let error = test.call("plain", "wrong_type").await.unwrap_err();
    assert!(matches!(error, RemoteError::BadAnswer { .. }), "{error}");
    let error = test.call("absent", "echo").await.unwrap_err();
    assert!(matches!(error, RemoteError::UnknownServer { .. }), "{error}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_returns_and_a_server_that_reads_goes_on() {
    let test = TestPool::new(&["plain"]);
    let pid = text(&test.call("plain", "pid").await.unwrap()).to_owned();
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(test.cancellable("plain", "hang", json!({}), &cancel, &|_| {}), async {
        while test.status("plain").calls_in_flight == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert!(matches!(result, Err(RemoteError::Cancelled)), "{result:?}");
    assert_eq!(text(&test.call("plain", "pid").await.unwrap()), pid);
    assert_eq!(test.status("plain").calls_in_flight, 0);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_read_a_cancellation_is_ended() {
    let test = TestPool::with(&["plain"], &json!({"tool_timeout_sec": 0.3}));
    test.call("plain", "echo").await.unwrap();
    let began = Instant::now();
    let error = test.call("plain", "deaf").await.unwrap_err();
    assert!(matches!(error, RemoteError::TimedOut { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    test.wait_for("plain", |state| matches!(state, ServerState::Failed { .. })).await;
    test.launcher.assert_all_gone().await;
    test.call("plain", "echo").await.unwrap();
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_no_longer_than_its_limit() {
    let test = TestPool::with(&["plain"], &json!({"tool_timeout_sec": 0.3}));
    let error = test.call("plain", "hang").await.unwrap_err();
    assert!(error.to_string().contains("`tool_timeout_sec`"), "{error}");
    assert_eq!(test.status("plain").state, ServerState::Ready);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_list_of_tools_is_listed_again() {
    let test = TestPool::new(&["changes", "modern_changes"]);
    for server in ["changes", "modern_changes"] {
        assert_eq!(test.pool.start(server).await.unwrap().tools.len(), 1);
        let mut changes = test.pool.changes();
        let listed = async {
            // The subscription may not be there yet at the first change.
            while test.pool.listing(server).unwrap().tools.len() < 2 {
                test.call(server, "change").await.unwrap();
                let wait = tokio::time::timeout(Duration::from_secs(1), changes.changed());
                assert!(!matches!(wait.await, Ok(Err(_))));
            }
        };
        tokio::time::timeout(crate::PATIENCE, listed).await.expect("the new list");
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_needs_input_is_sent_again_and_counts_once() {
    let test = TestPool::new(&["modern"]);
    let result = test.call_with("modern", "input", json!({"rounds": 3})).await.unwrap();
    assert_eq!(text(&result), r#"{"who":{"action":"decline"}}"#);
    let error = test.call("modern", "input").await.unwrap_err();
    assert!(error.to_string().contains("more than 8 times"), "{error}");
    test.close().await;
}

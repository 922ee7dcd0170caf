//! Calls that the server turns into tasks.

use std::sync::Mutex;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_mcp::pool::{RemoteError, RemoteProgress};

use crate::{TestPool, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_polled_until_its_result_and_shows_progress() {
    let test = TestPool::new(&["modern"]);
    let seen = Mutex::new(Vec::new());
    let progress = |progress: RemoteProgress| seen.lock().unwrap().push(progress.message.unwrap());
    let plan = json!({"polls": 2, "outcome": "completed"});
    let cancel = CancellationToken::new();
    let result = test.cancellable("modern", "task", plan, &cancel, &progress).await.unwrap();
    assert_eq!(text(&result), "task done null");
    assert_eq!(*seen.lock().unwrap(), ["begun", "poll 1", "poll 2", "ended"]);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_needs_input_gets_it_once() {
    let test = TestPool::new(&["modern"]);
    let result = test.call_with("modern", "task", json!({"polls": 1, "outcome": "input"})).await;
    assert_eq!(text(&result.unwrap()), r#"task done {"who":{"action":"decline"}}"#);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_is_the_error_of_its_call() {
    let test = TestPool::new(&["modern"]);
    let error = test.call_with("modern", "task", json!({"polls": 1, "outcome": "failed"})).await;
    let error = error.unwrap_err();
    assert!(matches!(error, RemoteError::Protocol { code: -32055, .. }), "{error}");
    let error = test.call_with("modern", "task", json!({"polls": 1, "outcome": "cancelled"})).await;
    assert!(error.unwrap_err().to_string().contains("cancelled the task"));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_or_dropped_call_cancels_its_task() {
    let test = TestPool::new(&["modern"]);
    for is_dropped in [false, true] {
        let cancel = CancellationToken::new();
        let begun = tokio::sync::Notify::new();
        let progress = |_| begun.notify_one();
        let call = test.cancellable("modern", "task", json!({"outcome": "never"}), &cancel, &progress);
        if is_dropped {
            tokio::select! { _ = call => panic!("the task never ends"), () = begun.notified() => {} }
        } else {
            let (result, ()) = tokio::join!(call, async {
                begun.notified().await;
                cancel.cancel();
            });
            assert!(matches!(result, Err(RemoteError::Cancelled)), "{result:?}");
        }
        let cancelled = async {
            while text(&test.call("modern", "task_state").await.unwrap()) != "cancelled" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::PATIENCE, cancelled).await.expect("a cancelled task");
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_has_the_time_limit_of_its_call() {
    let test = TestPool::with(&["modern"], &json!({"tool_timeout_sec": 0.3}));
    // New messages extend the limit, at most to five times.
    let error = test.call_with("modern", "task", json!({"outcome": "never"})).await.unwrap_err();
    assert!(matches!(error, RemoteError::TimedOut { .. }), "{error}");
    assert_eq!(text(&test.call("modern", "task_state").await.unwrap()), "cancelled");
    test.close().await;
}

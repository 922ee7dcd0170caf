//! Servers that lie, flood, hang and fork.

use windlass_mcp::{pool::RemoteError, schemas::unusable_schemas};

use crate::{TestPool, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_answer_ends_the_server_and_not_us() {
    let test = TestPool::new(&["plain"]);
    for tool in ["big", "values"] {
        let error = test.call("plain", tool).await.unwrap_err();
        let is_named = |reason: &str| reason.contains("32 MiB or too many values");
        assert!(matches!(&error, RemoteError::BadAnswer { reason, .. } if is_named(reason)), "{error}");
    }
    test.call("plain", "echo").await.unwrap();
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_standard_error_stops_nothing() {
    let test = TestPool::new(&["floods_stderr"]);
    assert_eq!(text(&test.call("floods_stderr", "flood_stderr").await.unwrap()), "flooded");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_messages_and_wrong_ids_do_not_confuse_a_call() {
    let test = TestPool::new(&["plain"]);
    assert_eq!(text(&test.call("plain", "garbage").await.unwrap()), "after garbage");
    assert_eq!(text(&test.call("plain", "ids").await.unwrap()), "right");
    assert_eq!(text(&test.call("plain", "calls").await.unwrap()), "3");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_keeps_the_pipes_open_does_not_hold_a_call() {
    let test = TestPool::new(&["plain"]);
    let error = test.call("plain", "fork").await.unwrap_err();
    assert!(matches!(error, RemoteError::Died { .. }), "{error}");
    test.launcher.assert_all_gone().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_questions_is_bounded() {
    let test = TestPool::new(&["plain"]);
    // Either every question was declined, or the server was ended because it did not read.
    match test.call("plain", "requests").await {
        Ok(result) => assert_eq!(text(&result), "asked"),
        Err(error) => assert!(error.to_string().contains("too many requests"), "{error}"),
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_without_end_are_an_error() {
    let test = TestPool::new(&["endless_pages", "repeats_cursor", "many_tools"]);
    let error = test.pool.start("endless_pages").await.unwrap_err();
    assert!(error.to_string().contains("more than 100 pages"), "{error}");
    let error = test.pool.start("repeats_cursor").await.unwrap_err();
    assert!(error.to_string().contains("repeats a cursor"), "{error}");
    let listing = test.pool.start("many_tools").await.unwrap();
    assert_eq!(listing.tools.len(), 1000);
    assert!(listing.unusable[0].reason.contains("more than 1000"));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tools_do_not_cost_the_good_ones() {
    let test = TestPool::new(&["bad_tools"]);
    let listing = test.pool.start("bad_tools").await.unwrap();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good", "last"]);
    assert_eq!(listing.unusable.len(), 5, "{:?}", listing.unusable);
    assert!(listing.unusable.iter().all(|tool| tool.name.len() <= 128));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_nested_too_deep_costs_neither_other_tools_nor_the_answer() {
    let test = TestPool::new(&["deep_tools"]);
    let listing = test.pool.start("deep_tools").await.unwrap();
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good", "deep", "last"]);
    let unusable = unusable_schemas(&listing);
    let names: Vec<&str> = unusable.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["deep"], "{unusable:?}");
    let structured = test.call("deep_tools", "deep").await.unwrap().structured_content.unwrap();
    assert!(structured.to_string().contains("left out: nested more than 120 deep"), "{structured}");
    test.close().await;
}

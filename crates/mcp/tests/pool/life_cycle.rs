//! Starts, restarts and ends of servers.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{pool::RemoteError, status::ServerState};

use crate::{TestPool, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_with_the_first_call_and_serves_the_next_ones() {
    let test = TestPool::new(&["plain"]);
    assert_eq!(test.status("plain").state, ServerState::Known);
    assert_eq!(test.launcher.launches(), 0);
    let result = test.call_with("plain", "echo", json!({"a": 1})).await.unwrap();
    assert_eq!(text(&result), r#"{"a":1}"#);
    let status = test.status("plain");
    assert_eq!((status.state, status.tools, status.restarts), (ServerState::Ready, Some(1), 0));
    test.call("plain", "echo").await.unwrap();
    // The probe with `server/discover` and the older first message share one process.
    assert_eq!(test.launcher.launches(), 1);
    let listing = test.pool.listing("plain").unwrap();
    assert_eq!(listing.instructions.as_deref(), Some("Be kind."));
    assert_eq!(listing.protocol_version, "2025-11-25");
    assert!(listing.is_private);
    assert_eq!(listing.tools[0].hints.read_only, Some(true));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_of_the_protocol_works() {
    let versions = ["v2024-11-05", "v2025-03-26", "v2025-06-18", "v2025-11-25"];
    let test = TestPool::new(&versions);
    for version in versions {
        let listing = test.pool.start(version).await.unwrap();
        assert_eq!(listing.protocol_version, version[1..]);
    }
    test.close().await;
    let test = TestPool::new(&["modern", "dies_at_discover", "unknown_version"]);
    assert_eq!(test.pool.start("modern").await.unwrap().protocol_version, "2026-07-28");
    assert_eq!(test.launcher.launches(), 1);
    test.call("modern", "echo").await.unwrap();
    assert_eq!(test.pool.start("dies_at_discover").await.unwrap().protocol_version, "2025-11-25");
    let error = test.pool.start("unknown_version").await.unwrap_err();
    assert!(error.to_string().contains("`1999-01-01`"), "{error}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_version_and_the_tools_are_known_in_the_next_session() {
    let directory = tempfile::tempdir().unwrap();
    let test = TestPool::kept_in(&["dies_at_discover"], &json!({}), Some(directory.path()));
    let listed = test.pool.start("dies_at_discover").await.unwrap();
    assert_eq!(test.launcher.launches(), 2);
    test.close().await;
    let test = TestPool::kept_in(&["dies_at_discover"], &json!({}), Some(directory.path()));
    assert_eq!(test.pool.listing("dies_at_discover"), Some(listed));
    test.pool.start_in_background();
    assert_eq!(test.launcher.launches(), 0);
    test.call("dies_at_discover", "echo").await.unwrap();
    assert_eq!(test.launcher.launches(), 1);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_servers_do_not_delay_others_in_the_background() {
    let test = TestPool::with(
        &["silent", "exits", "hangs_at_start", "hangs_at_list", "plain"],
        &json!({"startup_timeout_sec": 2.0}),
    );
    test.pool.start_in_background();
    for server in ["silent", "exits", "hangs_at_start", "hangs_at_list"] {
        test.wait_for(server, |state| matches!(state, ServerState::Failed { .. })).await;
    }
    test.wait_for("plain", |state| *state == ServerState::Ready).await;
    let ServerState::Failed { error, stderr, .. } = test.status("exits").state else { panic!() };
    assert!(error.contains("exited with code 3"), "{error}");
    assert!(stderr.contains("cannot find [31mmodule x"), "{stderr}");
    let ServerState::Failed { error, .. } = test.status("silent").state else { panic!() };
    assert!(error.contains("`startup_timeout_sec`"), "{error}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_start_is_not_repeated_at_once() {
    let test = TestPool::new(&["exits"]);
    let error = test.call("exits", "echo").await.unwrap_err();
    assert!(
        matches!(&error, RemoteError::NotStarted { reason, .. }
        if reason.contains("exited with code 3") && reason.contains("module x")),
        "{error}"
    );
    let launches = test.launcher.launches();
    for _ in 0..20 {
        test.call("exits", "echo").await.unwrap_err();
    }
    assert_eq!(test.launcher.launches(), launches);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_server_fails_its_calls_at_once_and_starts_with_the_next_call() {
    let test = TestPool::new(&["plain"]);
    test.call("plain", "echo").await.unwrap();
    let (waiting, dying) = tokio::join!(test.call("plain", "hang"), test.call("plain", "die"));
    for error in [waiting.unwrap_err(), dying.unwrap_err()] {
        assert!(
            matches!(&error, RemoteError::Died { reason, .. }
            if reason.contains("exited with code 7") && reason.contains("last words")),
            "{error}"
        );
    }
    test.wait_for("plain", |state| matches!(state, ServerState::Failed { .. })).await;
    assert!(test.pool.listing("plain").is_some());
    let calls = test.call("plain", "calls").await.unwrap();
    // Nothing was sent again.
    assert_eq!(text(&calls), "1");
    assert_eq!(test.status("plain").restarts, 1);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_is_stopped_and_its_tools_stay_known() {
    let test = TestPool::with(&["plain"], &json!({"idle_timeout_sec": 0.3}));
    test.call("plain", "echo").await.unwrap();
    test.wait_for("plain", |state| *state == ServerState::Known).await;
    test.launcher.assert_all_gone().await;
    assert_eq!(test.pool.listing("plain").unwrap().tools.len(), 1);
    test.call("plain", "echo").await.unwrap();
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_pool_leaves_no_process() {
    let test = TestPool::new(&["plain", "silent", "ignores_eof"]);
    test.call("plain", "echo").await.unwrap();
    test.call("ignores_eof", "echo").await.unwrap();
    test.pool.start_in_background();
    test.wait_for("silent", |state| *state == ServerState::Starting).await;
    drop(test.pool);
    test.launcher.assert_all_gone().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shut_down_pool_ends_stubborn_servers_and_starts_none() {
    let test = TestPool::new(&["plain", "ignores_eof"]);
    test.call("ignores_eof", "echo").await.unwrap();
    let began = Instant::now();
    test.pool.shut_down().await;
    assert!(began.elapsed() < Duration::from_secs(10));
    let error = test.call("plain", "echo").await.unwrap_err();
    assert!(error.to_string().contains("shut down"), "{error}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_users_share_one_process() {
    let test = TestPool::new(&["plain"]);
    let calls = (0..8).map(|_| test.call("plain", "pid"));
    let pids: Vec<String> = futures_util::future::join_all(calls)
        .await
        .into_iter()
        .map(|result| text(&result.unwrap()).to_owned())
        .collect();
    assert!(pids.windows(2).all(|pair| pair[0] == pair[1]), "{pids:?}");
    assert_eq!(test.launcher.launches(), 1);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_is_what_the_configuration_says() {
    let test = TestPool::with(&["plain"], &json!({"env_vars": ["FROM_US", "NOT_SET"]}));
    for (name, value) in [("FROM_US", "inherited"), ("FAKE_MODE", "plain"), ("NOT_SET", "")] {
        let result = test.call_with("plain", "env", json!({"name": name})).await.unwrap();
        assert_eq!(text(&result), value, "{name}");
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_end_with_the_pool() {
    let test = TestPool::new(&["plain"]);
    let (result, ()) = tokio::join!(test.call("plain", "hang"), async {
        while test.status("plain").calls_in_flight == 0 {
            tokio::task::yield_now().await;
        }
        test.pool.shut_down().await;
    });
    // The end may come before the call was sent.
    let error = result.unwrap_err();
    let is_end = matches!(error, RemoteError::Died { .. } | RemoteError::NotStarted { .. });
    assert!(is_end, "{error}");
    assert_eq!(test.status("plain").state, ServerState::Known);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_denials_of_the_sandbox_are_part_of_the_failure() {
    let test = TestPool::new(&["exits"]);
    let denial = "`/x` is not writable: add it to `writable`".to_owned();
    test.launcher.denials.lock().unwrap().push(denial.clone());
    let error = test.pool.start("exits").await.unwrap_err();
    assert!(error.to_string().contains(&denial), "{error}");
    let ServerState::Failed { denials, .. } = test.status("exits").state else { panic!() };
    assert_eq!(denials, [denial]);
    test.close().await;
}

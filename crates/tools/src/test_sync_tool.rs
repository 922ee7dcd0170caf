//! `test_sync_tool`: waits and meets other calls, so that tests can observe overlapping calls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    sync::Barrier,
    time::{sleep, timeout},
};
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    meta::{Category, Example},
};

/// Wait, and meet other calls at a barrier. Only for tests of the tool-calling system; never useful
/// in a task.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TestSyncArgs {
    /// How many milliseconds to wait first.
    sleep_before_ms: Option<u64>,
    /// How many milliseconds to wait at the end.
    sleep_after_ms: Option<u64>,
    /// Where to meet other calls in between.
    barrier: Option<BarrierArgs>,
}

/// Where calls meet.
#[derive(Debug, Deserialize, JsonSchema)]
struct BarrierArgs {
    /// The name of the barrier; calls with the same name meet.
    id: String,
    /// How many calls must be there before all of them go on.
    participants: usize,
    /// How many milliseconds to wait for the others.
    #[serde(default = "default_timeout_ms")]
    timeout_ms: u64,
}

fn default_timeout_ms() -> u64 {
    1000
}

#[derive(Default)]
pub(crate) struct TestSync {
    open: Mutex<HashMap<String, OpenBarrier>>,
}

/// A barrier that is not full yet.
struct OpenBarrier {
    participants: usize,
    arrived: usize,
    barrier: Arc<Barrier>,
}

impl Tool for TestSync {
    const NAME: &'static str = "test_sync_tool";
    type Args = TestSyncArgs;

    fn effects(&self, _args: &TestSyncArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &TestSyncArgs, cx: &Cx) -> Result<Output, ToolError> {
        cx.cancel.run_until_cancelled(self.run(args)).await.unwrap_or_else(|| Err(ToolError::cancelled()))
    }

    fn meta(&self) -> Meta {
        let input = r#"{"sleep_before_ms":10,"barrier":{"id":"a","participants":2,"timeout_ms":5000}}"#;
        Meta {
            category: Category::Testing,
            examples: vec![Example { request: "meet one other call", input }],
            returns: "ok".to_owned(),
            ..Meta::default()
        }
    }
}

impl TestSync {
    async fn run(&self, args: &TestSyncArgs) -> Result<Output, ToolError> {
        sleep(Duration::from_millis(args.sleep_before_ms.unwrap_or(0))).await;
        if let Some(meeting) = &args.barrier {
            self.meet(meeting).await?;
        }
        sleep(Duration::from_millis(args.sleep_after_ms.unwrap_or(0))).await;
        Ok("ok".into())
    }

    async fn meet(&self, meeting: &BarrierArgs) -> Result<(), ToolError> {
        if meeting.participants == 0 {
            return Err(ToolError::bad_input("barrier participants must be greater than zero"));
        }
        if meeting.timeout_ms == 0 {
            return Err(ToolError::bad_input("barrier timeout must be greater than zero"));
        }
        let seat = self.arrive(meeting)?;
        let limit = Duration::from_millis(meeting.timeout_ms);
        let met = timeout(limit, seat.barrier.wait()).await;
        met.map(drop).map_err(|_| ToolError::failed("test_sync_tool barrier wait timed out"))
    }

    /// Takes a slot. The last caller closes the barrier, so that later calls begin a new one.
    fn arrive(&self, meeting: &BarrierArgs) -> Result<BarrierSlot<'_>, ToolError> {
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(meeting.id.clone()).or_insert_with(|| OpenBarrier {
            participants: meeting.participants,
            arrived: 0,
            barrier: Arc::new(Barrier::new(meeting.participants)),
        });
        if open.participants != meeting.participants {
            let (id, participants) = (&meeting.id, open.participants);
            return Err(ToolError::bad_input(format!(
                "barrier {id} already registered with {participants} participants"
            )));
        }
        open.arrived += 1;
        let seat = BarrierSlot { tool: self, id: meeting.id.clone(), barrier: Arc::clone(&open.barrier) };
        if open.arrived == open.participants {
            all.remove(&meeting.id);
        }
        Ok(seat)
    }
}

/// A slot at a barrier. Dropping it early closes the barrier, because it can no longer fill up.
struct BarrierSlot<'a> {
    tool: &'a TestSync,
    id: String,
    barrier: Arc<Barrier>,
}

impl Drop for BarrierSlot<'_> {
    fn drop(&mut self) {
        let mut all = self.tool.open.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&self.id).is_some_and(|open| Arc::ptr_eq(&open.barrier, &self.barrier)) {
            all.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{join, time::Instant};
    use windlass_contract::{AnyTool, erase, tool::ErrorKind};

    use super::*;
    use crate::fakes::ToolHarness;

    fn tool() -> Arc<dyn AnyTool> {
        erase(TestSync::default())
    }

    async fn call(tool: &Arc<dyn AnyTool>, input: &str) -> Result<Output, String> {
        ToolHarness::idle().call(Arc::clone(tool), input).await.map_err(|error| error.message)
    }

    #[tokio::test(start_paused = true)]
    async fn calls_meet_and_the_barrier_can_be_used_again() {
        let tool = tool();
        let meet = r#"{"barrier":{"id":"a","participants":2}}"#;
        for _ in 0..2 {
            let (one, other) = join!(call(&tool, meet), call(&tool, meet));
            assert_eq!((one, other), (Ok("ok".into()), Ok("ok".into())));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_in_vain_gives_up_and_leaves_the_name_free() {
        let tool = tool();
        let begun = Instant::now();
        let alone = call(&tool, r#"{"barrier":{"id":"a","participants":2}}"#).await;
        assert_eq!(alone, Err("test_sync_tool barrier wait timed out".to_owned()));
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        assert_eq!(call(&tool, r#"{"barrier":{"id":"a","participants":1}}"#).await, Ok("ok".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn meetings_that_make_no_sense_are_told_so() {
        let tool = tool();
        let cases = [
            (r#"{"barrier":{"id":"a","participants":0}}"#, "barrier participants must be greater than zero"),
            (
                r#"{"barrier":{"id":"a","participants":1,"timeout_ms":0}}"#,
                "barrier timeout must be greater than zero",
            ),
        ];
        for (input, expected) in cases {
            assert_eq!(call(&tool, input).await, Err(expected.to_owned()));
        }
        let (_, other) = join!(
            call(&tool, r#"{"barrier":{"id":"a","participants":2}}"#),
            call(&tool, r#"{"barrier":{"id":"a","participants":3}}"#)
        );
        assert_eq!(other, Err("barrier a already registered with 2 participants".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_before_and_after() {
        let begun = Instant::now();
        call(&tool(), r#"{"sleep_before_ms":30,"sleep_after_ms":12}"#).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_millis(42));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_ends_at_once() {
        let desk = ToolHarness::idle();
        desk.cx.cancel.cancel();
        let error = desk.call(tool(), r#"{"sleep_before_ms":1000000}"#).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled);
    }
}

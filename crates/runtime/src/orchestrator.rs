//! One attempt at a call that was let through.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use windlass_contract::{
    Cx, Denial, ErrorKind, EventSink, Grant, Held, Layer, Output, Proof, Ready, Sandbox, ToolCall, ToolError,
};
use windlass_shape::Failure;

use crate::Stop;

/// How long a stopped tool may take to wind up before it is dropped.
const GRACE: Duration = Duration::from_millis(100);

/// Confines, then acts. What really held it comes back beside the result.
pub(crate) async fn attempt(
    sandbox: &dyn Sandbox,
    grant: &Grant,
    (call, ready): (&ToolCall, &dyn Ready),
    events: &Arc<dyn EventSink>,
    stop: &Stop,
) -> (Option<Held>, Result<Output, Failure>) {
    let host = match sandbox.confine(grant) {
        Ok(host) => host,
        Err(error) => {
            let need = ready.effects();
            let denial = Denial {
                layer: Layer::Setup,
                what: error.to_string(),
                rule: "nothing runs with less than was asked for".to_owned(),
                need,
                proof: Proof::Observed,
            };
            let kind = ErrorKind::Denied(Box::new(denial));
            return (
                None,
                Err(Failure::Tool(ToolError {
                    kind,
                    message: error.to_string(),
                    source: Some(Box::new(error)),
                })),
            );
        }
    };
    let cx =
        Cx { id: call.id.clone(), host: Arc::clone(&host), cancel: stop.token(), events: Arc::clone(events) };
    // A panic in one tool ends that call, not the session.
    let work = AssertUnwindSafe(ready.run(&cx)).catch_unwind();
    let result = match until_stopped(work, stop).await {
        Some(Ok(Ok(output))) => Ok(output),
        Some(Ok(Err(error))) if error.kind == ErrorKind::Cancelled => Err(aborted(stop)),
        Some(Ok(Err(error))) => Err(Failure::Tool(error)),
        Some(Err(panic)) => {
            let said = panic.downcast_ref::<&str>().map(ToString::to_string);
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
            tracing::error!(call.id = %call.id, tool.name = %call.name, panic = said, "the tool crashed");
            Err(Failure::Tool(ToolError::failed("the tool crashed; this is a bug in the tool")))
        }
        None => Err(aborted(stop)),
    };
    (Some(host.held()), result)
}

/// The work's result, or `None` if it was stopped and did not end by itself within the grace.
async fn until_stopped<T>(work: impl Future<Output = T>, stop: &Stop) -> Option<T> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => Some(done),
        _reason = stop.stopped() => tokio::time::timeout(GRACE, work).await.ok(),
    }
}

/// Why a stopped call has no result.
pub(crate) fn aborted(stop: &Stop) -> Failure {
    Failure::Aborted(stop.reason().unwrap_or(crate::Reason::Interrupted).message().to_owned())
}

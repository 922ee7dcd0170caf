//! The background of a running server: its end, its idle time, and changes of its tools.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{ServerSlot, SlotPhase};
use crate::connection::{ConnectionRun, ServerConnection};

/// Time to wait for further changes before the tools are listed again.
const RELIST_DELAY: Duration = Duration::from_millis(200);
/// Minimum time between two lists that the server asked for.
const RELIST_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two lists because the last one is no longer fresh.
const REFRESH_INTERVAL: Duration = Duration::from_secs(30);

impl ServerSlot {
    /// Runs the connection until it has ended.
    pub(super) async fn supervise(
        self: Arc<Self>,
        connection: Arc<ServerConnection>,
        mut run: ConnectionRun,
    ) {
        let report = tokio::select! {
            report = &mut run => report,
            () = self.watch_tools(&connection) => run.await,
            () = self.stop_when_idle(&connection) => run.await,
            () = connection.follow_changes() => run.await,
        };
        self.note_end(&connection, &report);
    }

    /// Lists the tools again when they change, or when the list is no longer fresh.
    async fn watch_tools(&self, connection: &ServerConnection) {
        let mut next_refresh = Instant::now() + REFRESH_INTERVAL;
        loop {
            tokio::select! {
                () = connection.list_changed() => {}
                () = async {
                    sleep_until(next_refresh).await;
                    self.refresh.notified().await;
                } => {}
            }
            sleep(RELIST_DELAY).await;
            match timeout(self.config.startup_timeout(), connection.list_tools()).await {
                Ok(Ok(listing)) => {
                    let (listing, has_changed) = self.note_listing(listing);
                    if has_changed {
                        self.save(listing).await;
                    }
                }
                Ok(Err(error)) => {
                    tracing::debug!(server = self.name, %error, "the tools were not listed again");
                }
                Err(_) => {
                    tracing::debug!(server = self.name, "the tools were not listed again in time");
                }
            }
            next_refresh = Instant::now() + REFRESH_INTERVAL;
            sleep(RELIST_INTERVAL).await;
        }
    }

    /// Stops the server when it has had no calls for the idle time.
    async fn stop_when_idle(&self, connection: &ServerConnection) {
        let idle = self.config.idle_timeout();
        loop {
            let until = {
                let state = self.state();
                let is_running = matches!(state.phase, SlotPhase::Running(_));
                let since = if state.calls == 0 { state.last_used } else { Instant::now() };
                let until = since.checked_add(idle);
                if is_running && until.is_some_and(|until| until <= Instant::now()) {
                    // Under the lock: no call can begin between the check and the stop.
                    connection.stop();
                    return;
                }
                until
            };
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }
}

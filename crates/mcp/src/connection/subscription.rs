//! Changes of the list of tools. Servers of 2026-07-28 tell them only on a subscription.

use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use tokio::time::{sleep, timeout};

use super::ServerConnection;

/// Maximum time until a subscription is acknowledged.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of subscriptions on one connection.
const MAX_SUBSCRIPTIONS: u32 = 10;
/// Time before the second subscription. It doubles with each one.
const FIRST_DELAY: Duration = Duration::from_secs(1);

impl ServerConnection {
    /// Subscribes to changes of the tools if the server offers that. Never returns.
    pub(crate) async fn follow_changes(&self) {
        if let Some(filter) = self.offered_changes() {
            for attempt in 0..MAX_SUBSCRIPTIONS {
                self.follow_once(filter.clone()).await;
                sleep(FIRST_DELAY.saturating_mul(1 << attempt)).await;
            }
        }
        std::future::pending().await
    }

    /// Returns the filter of a subscription; `None` for servers that tell changes without one.
    fn offered_changes(&self) -> Option<SubscriptionFilter> {
        let info = self.peer.peer_info()?;
        if info.protocol_version.has_initialize() {
            return None;
        }
        let mut wanted = SubscriptionFilter::new();
        wanted.tools_list_changed = Some(true);
        let offered = wanted.supported_by(&info.capabilities);
        (offered.tools_list_changed == Some(true)).then_some(offered)
    }

    async fn follow_once(&self, filter: SubscriptionFilter) {
        let subscription = timeout(ACKNOWLEDGE_TIMEOUT, self.peer.listen(filter)).await;
        let Ok(Ok(mut subscription)) = subscription else {
            tracing::debug!(server = self.server, "the subscription to changes of tools failed");
            return;
        };
        while let Ok(Some(_)) = subscription.next().await {
            self.list_changed.notify_one();
        }
        tracing::debug!(server = self.server, "the subscription to changes of tools has ended");
    }
}

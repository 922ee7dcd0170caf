//! Notifications of clients when the list of tools changes.

use std::sync::Arc;

use rmcp::{
    ErrorData, Peer, RoleServer,
    service::{SubscriptionContext, SubscriptionSendError},
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The connection of a client. Its token is cancelled when the connection has ended.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLife {
    pub(super) token: CancellationToken,
    _ended_on_drop: Arc<DropGuard>,
}

impl ConnectionLife {
    /// Begins a connection, which ends at the latest with `parent`.
    pub(super) fn new(parent: &CancellationToken) -> Self {
        let token = parent.child_token();
        Self { _ended_on_drop: Arc::new(token.clone().drop_guard()), token }
    }
}

/// Notifies a client of an older version until its connection ends.
pub(super) async fn notify_peer(
    peer: Peer<RoleServer>,
    mut changes: watch::Receiver<u64>,
    ended: CancellationToken,
) {
    loop {
        tokio::select! {
            news = changes.changed() => if news.is_err() { return },
            () = ended.cancelled() => return,
        }
        if let Err(error) = peer.notify_tool_list_changed().await {
            tracing::debug!(%error, "a client was not told that the tools have changed");
            return;
        }
    }
}

/// Serves a subscription until the client cancels it.
pub(super) async fn notify_subscription(
    subscription: SubscriptionContext,
    mut changes: watch::Receiver<u64>,
) -> Result<(), ErrorData> {
    loop {
        tokio::select! {
            news = changes.changed() => if news.is_err() { return Ok(()) },
            () = subscription.cancelled() => return Ok(()),
        }
        match subscription.sink().notify_tool_list_changed().await {
            // The client has not subscribed to this kind of change.
            Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted { .. }) => {}
            Err(error) => {
                tracing::debug!(%error, "a client was not told that the tools have changed");
                return Ok(());
            }
        }
    }
}

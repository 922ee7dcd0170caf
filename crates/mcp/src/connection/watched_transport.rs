//! Watches the messages of a connection on their way to rmcp: passes progress on in order, drops
//! log messages, notes the end, and bounds the requests of a server.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, GetMeta, RequestId, ServerJsonRpcMessage,
        ServerNotification,
    },
    transport::Transport,
};
use tokio::sync::Notify;

use super::{
    ending::{ConnectionEnd, EndCause},
    running_calls::RunningCalls,
};

/// Maximum number of requests of the server that are not answered yet.
const MAX_SERVER_REQUESTS: usize = 64;

/// The parts of a connection that see its messages.
#[derive(Clone)]
pub(crate) struct MessageWatch {
    /// The end of the connection.
    pub(crate) end: Arc<ConnectionEnd>,
    /// The calls that run, for their progress.
    pub(crate) calls: Arc<RunningCalls>,
    /// Notified when the list of tools has changed.
    pub(crate) list_changed: Arc<Notify>,
}

/// A transport whose messages are watched.
pub(crate) struct WatchedTransport<T> {
    inner: T,
    watch: MessageWatch,
    unanswered: Arc<AtomicUsize>,
    /// The request of the handshake that was sent last; `None` after the handshake.
    handshake: Arc<Mutex<Option<RequestId>>>,
}

impl<T> WatchedTransport<T> {
    pub(crate) fn new(inner: T, watch: MessageWatch) -> Self {
        Self { inner, watch, unanswered: Arc::default(), handshake: Arc::default() }
    }

    /// Returns true if rmcp gets the message.
    fn admit(&self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            ServerJsonRpcMessage::Request(_) => {
                let is_excess = self.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_SERVER_REQUESTS;
                if is_excess {
                    self.watch.end.note(EndCause::TooManyRequests);
                }
                !is_excess
            }
            ServerJsonRpcMessage::Notification(notification) => {
                self.admit_notification(&notification.notification)
            }
            ServerJsonRpcMessage::Response(response) => self.is_expected(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref().is_none_or(|id| self.is_expected(id)),
        }
    }

    fn admit_notification(&self, notification: &ServerNotification) -> bool {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                self.watch.calls.progress(&progress.params);
                false
            }
            ServerNotification::LoggingMessageNotification(_) => false,
            ServerNotification::ToolListChangedNotification(_)
                if notification.get_meta().subscription_id().is_none() =>
            {
                self.watch.list_changed.notify_one();
                false
            }
            ServerNotification::CancelledNotification(_) => true,
            // The rest is of use only on a subscription.
            _ => notification.get_meta().subscription_id().is_some(),
        }
    }

    /// Returns true if an answer may be to the request that was sent last, or if the handshake is
    /// over. A late answer to the probe of a slow server would otherwise fail the handshake.
    fn is_expected(&self, id: &RequestId) -> bool {
        let handshake = self.handshake.lock().unwrap_or_else(PoisonError::into_inner);
        // Some servers answer with the number of the request as a string.
        handshake.as_ref().is_none_or(|expected| expected.to_string() == id.to_string())
    }

    fn note_sent(&self, message: &ClientJsonRpcMessage) {
        let is_handshake = |request: &rmcp::model::ClientRequest| {
            use rmcp::model::ClientRequest::{DiscoverRequest, InitializeRequest};
            matches!(request, DiscoverRequest(_) | InitializeRequest(_))
        };
        let mut handshake = self.handshake.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            ClientJsonRpcMessage::Request(request) => {
                *handshake = is_handshake(&request.request).then(|| request.id.clone());
            }
            ClientJsonRpcMessage::Notification(notification)
                if matches!(notification.notification, ClientNotification::InitializedNotification(_)) =>
            {
                *handshake = None;
            }
            _ => {}
        }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for WatchedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note_sent(&item);
        let is_answer = matches!(item, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        let sent = self.inner.send(item);
        let unanswered = Arc::clone(&self.unanswered);
        async move {
            let result = sent.await;
            if is_answer {
                // An answer without a request, such as to a malformed one, does not count.
                let less_one = |count: usize| count.checked_sub(1);
                let _ = unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one);
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.watch.end.is_noted() {
                return None;
            }
            match self.inner.receive().await {
                Some(message) if self.admit(&message) => return Some(message),
                Some(_) => {}
                None => {
                    self.watch.end.note(EndCause::Closed);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

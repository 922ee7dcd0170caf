//! Requests on their way: sent, cancelled, and their errors.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
        DiscoverRequest, DiscoverRequestParams, ErrorData, NumberOrString, PingRequest,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
    transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError},
};
use tokio::time::timeout;

use super::{
    AbandonedWork, ServerConnection,
    ending::EndCause,
    handshake::causes,
    running_calls::{InFlightCall, RequestEntry},
};
use crate::{pool::RemoteError, untrusted_text::visible_line};

/// Time for a server to show that it has read a cancellation.
pub(super) const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// Maximum size of the message of an error.
const MAX_ERROR_MESSAGE: usize = 2048;

impl ServerConnection {
    /// Sends a request that is cancelled when it is dropped before its answer.
    pub(super) async fn send(
        &self,
        request: ClientRequest,
        running: &Arc<InFlightCall>,
    ) -> Result<SentRequest<'_>, RemoteError> {
        let entry = self.calls.register(Arc::clone(running));
        let options = PeerRequestOptions::no_options();
        let handle = tokio::select! {
            biased;
            handle = self.peer.send_cancellable_request(request, options) => handle,
            report = self.end.report() => return Err(report.error(&self.server)),
        };
        let handle = match handle {
            Ok(handle) => handle,
            Err(error) => return Err(self.error(error).await),
        };
        entry.identify(handle.id.clone(), handle.progress_token.clone());
        Ok(SentRequest { connection: self, handle, entry, is_answered: false })
    }

    /// Cancels a request. A server that does not show within a second that it has read the
    /// cancellation is ended. One that has read it goes on serving other calls.
    pub(super) async fn abort(&self, sent: &mut SentRequest<'_>) {
        sent.is_answered = true;
        let id = sent.handle.id.clone();
        let acknowledged = async {
            self.send_cancelled(id, "cancelled by the client").await;
            if self.process.is_some() {
                self.probe().await;
            }
        };
        if timeout(CANCEL_GRACE, acknowledged).await.is_err() && self.process.is_some() {
            self.end.note(EndCause::Unresponsive);
            self.kill();
        }
    }

    /// Asks for anything, and waits for the answer: messages are read in order.
    async fn probe(&self) {
        let has_ping = self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize());
        let request = if has_ping {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        };
        if let Err(error) = self.peer.send_request(request).await {
            // An error is an answer too.
            tracing::debug!(server = self.server, %error, "the probe was answered with an error");
        }
    }

    /// Tells the server that the answer to a request is not needed any more.
    pub(super) async fn send_cancelled(&self, id: NumberOrString, reason: &str) {
        let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let notification = ClientNotification::CancelledNotification(CancelledNotification::new(params));
        let sent = timeout(CANCEL_GRACE, self.peer.send_notification(notification)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(server = self.server, "a cancellation could not be sent");
        }
    }

    /// Returns the error of a request.
    pub(super) async fn error(&self, error: ServiceError) -> RemoteError {
        let server = self.server.clone();
        match error {
            ServiceError::McpError(error) => self.protocol_error(&error),
            ServiceError::UnexpectedResponse => self.bad_answer("the answer has another type"),
            ServiceError::TransportClosed if self.process.is_some() || self.peer.is_transport_closed() => {
                self.end.note(EndCause::Closed);
                self.end.report().await.error(&self.server)
            }
            // One stream of an HTTP server.
            ServiceError::TransportClosed => {
                let reason = "it closed the stream before the answer".to_owned();
                RemoteError::Died { server, reason }
            }
            ServiceError::TransportSend(error) => self.send_failed(error.error.as_ref()).await,
            other => self.bad_answer(&visible_line(&other.to_string(), MAX_ERROR_MESSAGE)),
        }
    }

    /// Returns an error that the server answered.
    pub(super) fn protocol_error(&self, error: &ErrorData) -> RemoteError {
        RemoteError::Protocol {
            server: self.server.clone(),
            code: error.code.0,
            message: visible_line(&error.message, MAX_ERROR_MESSAGE),
        }
    }

    /// Returns the error of a request that could not be sent.
    async fn send_failed(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> RemoteError {
        let (cause, reason) = (send_failure(error), causes(error));
        if let Some(cause) = cause.or(self.process.is_some().then_some(EndCause::Closed)) {
            self.end.note(cause);
            return self.end.report().await.error(&self.server);
        }
        RemoteError::Died { server: self.server.clone(), reason: visible_line(&reason, MAX_ERROR_MESSAGE) }
    }

    pub(super) fn bad_answer(&self, reason: &str) -> RemoteError {
        RemoteError::BadAnswer { server: self.server.clone(), reason: reason.to_owned() }
    }
}

/// Returns the cause of the end of a connection whose requests are refused for want of a login.
fn send_failure(error: &(dyn std::error::Error + 'static)) -> Option<EndCause> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<AuthRequiredError>() || error.is::<InsufficientScopeError>() {
            return Some(EndCause::LoginNeeded);
        }
        cause = error.source();
    }
    None
}

/// A request that waits for its answer. Dropped before, it is cancelled.
pub(super) struct SentRequest<'a> {
    connection: &'a ServerConnection,
    pub(super) handle: RequestHandle<RoleClient>,
    pub(super) entry: RequestEntry,
    pub(super) is_answered: bool,
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // A full queue means that the server does not read; then nothing helps.
            let _ = self.connection.abandoned.try_send(AbandonedWork::Request(self.handle.id.clone()));
        }
    }
}

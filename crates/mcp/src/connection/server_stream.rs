//! The stream on which a server with sessions sends requests of its own.
//!
//! It is opened at the side, while the first call may already be on its way. A server that asks a
//! question during that call has nowhere to send it before, and some drop it and wait for ever.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum time that a call waits for the stream. Some servers send nothing before their first
/// request, and call it open nevertheless.
const MAX_OPENING: Duration = Duration::from_secs(1);

/// The state of the stream of one connection.
#[derive(Debug, Default)]
pub(crate) struct ServerStream {
    answered: CancellationToken,
}

impl ServerStream {
    /// Notes that the server has opened the stream, or refused to.
    pub(crate) fn note_answer(&self) {
        self.answered.cancel();
    }

    /// Waits until the server has answered, but only once and not for long.
    pub(crate) async fn settled(&self) {
        if timeout(MAX_OPENING, self.answered.cancelled()).await.is_err() {
            self.note_answer();
        }
    }
}

//! Reads the events of one answer as they arrive.

use std::{collections::VecDeque, time::Duration};

use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};
use windlass_contract::model::ModelError;

use super::{StreamTimeouts, cause};
use crate::sse::{ServerSentEvent, SseParser};

/// Maximum size of one answer. A long answer (100,000 tokens with 300 bytes of framing each) needs
/// a quarter of it.
const MAX_ANSWER_BYTES: usize = 128 * 1024 * 1024;
/// Factor by which comments can extend the idle limit. Services send comments while a model is
/// queued; a server that hangs may send them forever.
const MAX_IDLE_EXTENSION: u32 = 3;
/// Maximum time for a finished answer to end its transfer. Only then can the connection be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// A stream of events. Dropping it ends the request.
pub(crate) struct EventStream {
    response: Response,
    parser: SseParser,
    ready: VecDeque<ServerSentEvent>,
    timeouts: StreamTimeouts,
    /// Time at which the request was sent.
    begun: Instant,
    /// Time of the last event, or of the start of the answer.
    last_event: Instant,
    /// Time of the last bytes of any kind.
    last_bytes: Instant,
    received_bytes: usize,
    has_begun: bool,
    ended: bool,
}

impl EventStream {
    /// Starts with a response whose first bytes may have been read already.
    pub(super) fn new(
        response: Response,
        first: &[u8],
        begun: Instant,
        timeouts: StreamTimeouts,
    ) -> Result<Self, ModelError> {
        let now = Instant::now();
        let mut events = Self {
            response,
            parser: SseParser::default(),
            ready: VecDeque::new(),
            timeouts,
            begun,
            last_event: now,
            last_bytes: now,
            received_bytes: 0,
            has_begun: false,
            ended: false,
        };
        events.take(first)?;
        Ok(events)
    }

    /// Returns the next event, or `None` at the end of the transfer. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerSentEvent>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            let (deadline, late) = self.deadline();
            let chunk = timeout_at(deadline, self.response.chunk()).await.map_err(|_| late)?;
            let chunk = chunk.map_err(|error| ModelError::StreamBroken { cause: cause(error) })?;
            if let Some(bytes) = chunk {
                self.take(&bytes)?;
            } else {
                self.ended = true;
                self.parser.finish(&mut self.ready)?;
            }
        }
    }

    /// Returns the deadline for the next bytes, and the error if they do not arrive.
    fn deadline(&self) -> (Instant, ModelError) {
        let StreamTimeouts { idle, whole } = self.timeouts;
        let by_bytes = self.last_bytes + idle;
        let by_event = self.last_event + idle.saturating_mul(MAX_IDLE_EXTENSION);
        let (idle_end, whole_end) = (by_bytes.min(by_event), self.begun + whole);
        if whole_end < idle_end {
            (whole_end, ModelError::Unending { after: whole })
        } else {
            let after = idle_end.duration_since(self.last_event);
            (idle_end, ModelError::Idle { after, begun: self.has_begun })
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.received_bytes = self.received_bytes.saturating_add(bytes.len());
        if self.received_bytes > MAX_ANSWER_BYTES {
            return Err(ModelError::TooLarge { what: "an answer", limit_bytes: MAX_ANSWER_BYTES });
        }
        self.parser.feed(bytes, &mut self.ready)?;
        self.last_bytes = Instant::now();
        // Events without data only keep the connection open.
        if self.ready.iter().any(|event| !event.data.trim().is_empty()) {
            self.last_event = self.last_bytes;
            self.has_begun = true;
        }
        Ok(())
    }

    /// Reads the rest of a finished answer, so that its connection can be reused. The rest has
    /// usually arrived already; a connection that takes longer is closed.
    pub(crate) async fn drain(&mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
            tracing::debug!("the server did not end its answer; the connection is given up");
        }
    }
}

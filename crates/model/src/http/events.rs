//! The events of one answer, as they arrive.

use std::{collections::VecDeque, time::Duration};

use reqwest::Response;
use tokio::time::timeout;
use windlass_contract::ModelError;

use super::cause;
use crate::sse::{Event, Parser};

/// The most bytes one answer may have. A long one, 100,000 tokens with 300 bytes of framing each, has a quarter of it.
const ANSWER_LIMIT_BYTES: usize = 128 * 1024 * 1024;
/// How long a finished answer may take to end its transfer; only then can the connection be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// A stream of events. Dropping it ends the request.
pub(crate) struct Events {
    response: Response,
    parser: Parser,
    ready: VecDeque<Event>,
    idle: Duration,
    received_bytes: usize,
    ended: bool,
}

impl Events {
    /// Takes over an answer of which the first bytes may have been read already.
    pub(super) fn new(response: Response, first: &[u8], idle: Duration) -> Result<Self, ModelError> {
        let (mut parser, mut ready) = (Parser::default(), VecDeque::new());
        parser.feed(first, &mut ready)?;
        Ok(Self { response, parser, ready, idle, received_bytes: first.len(), ended: false })
    }

    /// The next event, or `None` when the transfer is over. May be dropped and called again at any time.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            let chunk = timeout(self.idle, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| ModelError::Idle { after: self.idle })?;
            let chunk = chunk.map_err(|error| ModelError::StreamBroken { cause: cause(error) })?;
            if let Some(bytes) = chunk {
                self.take(&bytes)?;
            } else {
                self.ended = true;
                self.parser.finish(&mut self.ready)?;
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.received_bytes = self.received_bytes.saturating_add(bytes.len());
        if self.received_bytes > ANSWER_LIMIT_BYTES {
            return Err(ModelError::TooLarge { what: "an answer", limit_bytes: ANSWER_LIMIT_BYTES });
        }
        self.parser.feed(bytes, &mut self.ready)
    }

    /// Reads to the end of an answer that has said all it has to say, so that its connection can be kept. The end is
    /// mostly there already; a server that lingers loses its connection instead.
    pub(crate) async fn drain(&mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        if timeout(DRAIN_TIMEOUT, rest).await.is_err() {
            tracing::debug!("the server did not end its answer; the connection is given up");
        }
    }
}

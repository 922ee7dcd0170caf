//! What a command prints, shown while it runs.

use std::sync::Arc;

use windlass_contract::{CallId, Cx, Event, event::EventSink};

use super::text::{lossy, unfinished};

/// Pieces shown per call. One piece is what one read from the pipe gives, so a busy command fills large ones.
const MAX_PIECES: usize = 10_000;

/// Bytes shown per call. Nobody reads more as it flies by, and all that is kept is in the result.
const MAX_BYTES: usize = 1024 * 1024;

/// Turns bytes into events. A character that arrives in two halves is shown once it is whole.
pub(crate) struct Live {
    id: CallId,
    events: Arc<dyn EventSink>,
    held_back: Vec<u8>,
    pieces_left: usize,
    bytes_left: usize,
}

impl Live {
    pub(crate) fn new(cx: &Cx) -> Self {
        let (id, events) = (cx.id.clone(), Arc::clone(&cx.events));
        Self { id, events, held_back: Vec::new(), pieces_left: MAX_PIECES, bytes_left: MAX_BYTES }
    }

    /// Shows the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.pieces_left == 0 || self.bytes_left == 0 {
            return;
        }
        self.held_back.extend_from_slice(&bytes[..bytes.len().min(self.bytes_left)]);
        self.bytes_left = self.bytes_left.saturating_sub(bytes.len());
        let later = self.held_back.split_off(self.held_back.len() - unfinished(&self.held_back));
        let now = std::mem::replace(&mut self.held_back, later);
        self.show(&now);
    }

    /// Shows what is still held back, because nothing more will come.
    pub(crate) fn flush(&mut self) {
        let rest = std::mem::take(&mut self.held_back);
        self.show(&rest);
    }

    fn show(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.pieces_left == 0 {
            return;
        }
        self.pieces_left -= 1;
        self.events.emit(&Event::CallOutput { id: self.id.clone(), text: lossy(bytes) });
    }
}

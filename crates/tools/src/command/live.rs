//! Emits the output of a command while it runs.

use std::sync::Arc;

use windlass_contract::{CallId, Cx, Event, event::EventEmitter};

use super::text::{lossy, unfinished};

/// Maximum number of events per call. One event holds one read from the pipe, so a busy command
/// fills large ones.
const MAX_PIECES: usize = 10_000;

/// Maximum number of bytes emitted per call. A person cannot read more at that speed, and the
/// result has all that is kept.
const MAX_BYTES: usize = 1024 * 1024;

/// Turns bytes into events. A character that arrives in two halves is emitted once it is complete.
pub(crate) struct OutputEvents {
    id: CallId,
    events: Arc<dyn EventEmitter>,
    held_back: Vec<u8>,
    pieces_left: usize,
    bytes_left: usize,
}

impl OutputEvents {
    pub(crate) fn new(cx: &Cx) -> Self {
        let (id, events) = (cx.id.clone(), Arc::clone(&cx.events));
        Self { id, events, held_back: Vec::new(), pieces_left: MAX_PIECES, bytes_left: MAX_BYTES }
    }

    /// Emits the next bytes.
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

    /// Emits the bytes still held back, at the end of the output.
    pub(crate) fn flush(&mut self) {
        let rest = std::mem::take(&mut self.held_back);
        self.show(&rest);
    }

    fn show(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.pieces_left == 0 {
            return;
        }
        self.pieces_left -= 1;
        self.events.emit(Event::CallOutput { id: self.id.clone(), text: lossy(bytes) });
    }
}

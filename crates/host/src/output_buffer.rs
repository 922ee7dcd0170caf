//! Buffers an output: its beginning and end in memory, and a long output in full in a file.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass_contract::host::Printed;

use crate::{
    capture::HeadTail,
    outputs::{OutputDirectory, OutputSpill},
};

/// The buffer of one output, which can be taken in pieces while it grows.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    limit_bytes: usize,
    outputs: Option<Arc<OutputDirectory>>,
    piece: Mutex<OutputPiece>,
}

/// The output since the last piece was taken.
#[derive(Debug)]
struct OutputPiece {
    ends: HeadTail,
    spill: Option<OutputSpill>,
}

impl OutputPiece {
    fn new(limit_bytes: usize, outputs: Option<&Arc<OutputDirectory>>) -> Self {
        let spill = outputs.map(|outputs| OutputSpill::new(Arc::clone(outputs)));
        Self { ends: HeadTail::new(limit_bytes), spill }
    }
}

impl OutputBuffer {
    /// Keeps at most `limit_bytes` of each piece in memory. Long pieces go to `outputs` in full.
    pub(crate) fn new(limit_bytes: usize, outputs: Option<Arc<OutputDirectory>>) -> Self {
        let piece = Mutex::new(OutputPiece::new(limit_bytes, outputs.as_ref()));
        Self { limit_bytes, outputs, piece }
    }

    /// Returns the maximum number of bytes of a piece in memory.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    fn piece(&self) -> MutexGuard<'_, OutputPiece> {
        self.piece.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next bytes can be stored. Cancel safe: dropping the future loses nothing.
    pub(crate) async fn ready(&self) {
        let Some(full) = self.piece().spill.as_ref().and_then(OutputSpill::waits_for) else { return };
        let room = full.reserve_owned().await;
        if let Some(spill) = &mut self.piece().spill {
            spill.go_on(room);
        }
    }

    /// Stores the next bytes.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut piece = self.piece();
        piece.ends.push(bytes);
        if let Some(spill) = &mut piece.spill {
            spill.push(bytes);
        }
    }

    /// Takes the output since the last call. If it is longer than `shown_bytes`, it is in a file in
    /// full.
    pub(crate) async fn take(&self, shown_bytes: usize) -> Printed {
        let next = OutputPiece::new(self.limit_bytes, self.outputs.as_ref());
        let OutputPiece { ends, spill } = mem::replace(&mut *self.piece(), next);
        let (bytes, gap) = ends.finish();
        let whole = match spill {
            Some(spill) => spill.finish(shown_bytes).await,
            None => None,
        };
        Printed { bytes, gap, whole }
    }

    /// Returns a copy of the bytes in memory without taking them.
    pub(crate) fn look(&self) -> Vec<u8> {
        let ends = self.piece().ends.clone();
        ends.finish().0
    }
}

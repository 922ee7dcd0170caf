//! What is kept of an output: its beginning and its end in memory, and all of a long one in a file.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use windlass_contract::host::Printed;

use crate::{
    capture::HeadTail,
    outputs::{Outputs, Spill},
};

/// One output. It may be taken piece by piece while it grows.
#[derive(Debug)]
pub(crate) struct Kept {
    limit_bytes: usize,
    outputs: Option<Arc<Outputs>>,
    piece: Mutex<Piece>,
}

/// What has come since a piece was last taken.
#[derive(Debug)]
struct Piece {
    ends: HeadTail,
    spill: Option<Spill>,
}

impl Piece {
    fn new(limit_bytes: usize, outputs: Option<&Arc<Outputs>>) -> Self {
        let spill = outputs.map(|outputs| Spill::new(Arc::clone(outputs)));
        Self { ends: HeadTail::new(limit_bytes), spill }
    }
}

impl Kept {
    /// At most so many bytes of each piece in memory, and whole long ones where `outputs` says.
    pub(crate) fn new(limit_bytes: usize, outputs: Option<Arc<Outputs>>) -> Self {
        let piece = Mutex::new(Piece::new(limit_bytes, outputs.as_ref()));
        Self { limit_bytes, outputs, piece }
    }

    /// How much of a piece is kept in memory.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    fn piece(&self) -> MutexGuard<'_, Piece> {
        self.piece.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next bytes can be kept. Dropping the future loses nothing.
    pub(crate) async fn ready(&self) {
        let Some(full) = self.piece().spill.as_ref().and_then(Spill::waits_for) else { return };
        let room = full.reserve_owned().await;
        if let Some(spill) = &mut self.piece().spill {
            spill.go_on(room);
        }
    }

    /// Takes the next bytes in.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut piece = self.piece();
        piece.ends.push(bytes);
        if let Some(spill) = &mut piece.spill {
            spill.push(bytes);
        }
    }

    /// What has come since this was last asked; all of it is in a file if it is more than what will be shown.
    pub(crate) async fn take(&self, shown_bytes: usize) -> Printed {
        let next = Piece::new(self.limit_bytes, self.outputs.as_ref());
        let Piece { ends, spill } = mem::replace(&mut *self.piece(), next);
        let (bytes, gap) = ends.finish();
        let whole = match spill {
            Some(spill) => spill.finish(shown_bytes).await,
            None => None,
        };
        Printed { bytes, gap, whole }
    }

    /// What would be taken now, as far as it is in memory.
    pub(crate) fn look(&self) -> Vec<u8> {
        let ends = self.piece().ends.clone();
        ends.finish().0
    }
}

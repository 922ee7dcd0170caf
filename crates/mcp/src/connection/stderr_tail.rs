//! The last lines of the standard error of a server. It is read for as long as the server runs,
//! because a full pipe would stop it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::untrusted_text::visible_text;

/// Size of the tail that is kept.
const MAX_TAIL: usize = 8 * 1024;
/// Size of one read.
const READ_SIZE: usize = 16 * 1024;

/// The last bytes of a standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Reads to the end.
    pub(crate) async fn drain(self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; READ_SIZE];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            self.push(buffer.get(..read).unwrap_or_default());
        }
    }

    /// Returns the tail without control characters.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        visible_text(&String::from_utf8_lossy(&bytes))
    }

    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = bytes.get(bytes.len().saturating_sub(MAX_TAIL)..).unwrap_or_default();
        let excess = (tail.len() + kept.len()).saturating_sub(MAX_TAIL);
        tail.drain(..excess);
        tail.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_end_is_kept_without_control_characters() {
        let mut written = vec![b'x'; 100_000];
        written.extend(b"\x1b[31mlast\x07 line\n");
        let tail = StderrTail::default();
        tail.clone().drain(&written[..]).await;
        let text = tail.text();
        assert!(text.ends_with("x[31mlast line\n"), "{text}");
        assert!(text.len() <= MAX_TAIL, "{}", text.len());
    }
}

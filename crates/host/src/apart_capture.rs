//! Captures standard output and standard error of a command separately, besides the joined output.

use std::io;

use tokio::net::unix::pipe;
use windlass_contract::host::ApartOutput;

use crate::capture::HeadTail;

/// The pipe of standard error, and the bytes captured from both streams.
pub(crate) struct ApartCapture {
    errors: pipe::Receiver,
    is_open: [bool; 2],
    kept: [HeadTail; 2],
}

impl ApartCapture {
    /// Keeps at most `limit_bytes` of each stream.
    pub(crate) fn new(errors: pipe::Receiver, limit_bytes: usize) -> Self {
        let kept = [HeadTail::new(limit_bytes), HeadTail::new(limit_bytes)];
        Self { errors, is_open: [true; 2], kept }
    }

    /// Reads the next bytes of either stream. Returns 0 when both have ended. Cancel safe: dropping
    /// the future loses nothing.
    pub(crate) async fn read(&mut self, output: &pipe::Receiver, chunk: &mut [u8]) -> io::Result<usize> {
        while self.is_open != [false; 2] {
            let at = tokio::select! {
                biased;
                ready = output.readable(), if self.is_open[0] => ready.map(|()| 0)?,
                ready = self.errors.readable(), if self.is_open[1] => ready.map(|()| 1)?,
            };
            match if at == 0 { output.try_read(chunk) } else { self.errors.try_read(chunk) } {
                Ok(0) => self.is_open[at] = false,
                Ok(length) => {
                    self.kept[at].push(&chunk[..length]);
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    /// Returns the bytes captured from each stream.
    pub(crate) fn finish(self) -> ApartOutput {
        let [stdout, stderr] = self.kept.map(|kept| kept.finish().0);
        ApartOutput { stdout, stderr }
    }
}

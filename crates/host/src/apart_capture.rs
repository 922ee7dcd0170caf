//! Standard output and error of a command, each kept for itself beside the output as a whole.

use std::io;

use tokio::net::unix::pipe;
use windlass_contract::host::ApartOutput;

use crate::capture::HeadTail;

/// The pipe that standard error goes to, and what came through it and through the other.
pub(crate) struct ApartCapture {
    errors: pipe::Receiver,
    is_open: [bool; 2],
    kept: [HeadTail; 2],
}

impl ApartCapture {
    /// Keeps at most so many bytes of each stream.
    pub(crate) fn new(errors: pipe::Receiver, limit_bytes: usize) -> Self {
        let kept = [HeadTail::new(limit_bytes), HeadTail::new(limit_bytes)];
        Self { errors, is_open: [true; 2], kept }
    }

    /// The next bytes of either stream; none once both have ended. Dropping the future loses nothing.
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

    /// What came through each.
    pub(crate) fn finish(self) -> ApartOutput {
        let [stdout, stderr] = self.kept.map(|kept| kept.finish().0);
        ApartOutput { stdout, stderr }
    }
}

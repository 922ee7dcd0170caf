//! Bounds the size of one message before anything buffers it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::ending::{ConnectionEnd, EndCause};

/// Maximum size of one message of a server.
pub(crate) const MAX_MESSAGE: usize = 32 * 1024 * 1024;
/// Maximum cost of the values of one message. 15 million numbers in 30 MiB took 2 GiB and 13 s to
/// parse.
const MAX_VALUE_COST: usize = 1_000_000;
/// Cost of an array, of which an empty one is as large as a number.
const ARRAY_COST: usize = 2;
/// Cost of an object, whose first member allocates a whole node.
const OBJECT_COST: usize = 8;

/// Reads lines, and ends the stream if one exceeds a limit.
pub(crate) struct FrameLimiter<R> {
    inner: R,
    cost: LineCost,
    end: Arc<ConnectionEnd>,
}

/// Size and values of the line so far.
#[derive(Default)]
struct LineCost {
    bytes: usize,
    values: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl LineCost {
    /// Adds what was read. Returns true if the line is too large.
    fn add(&mut self, read: &[u8]) -> bool {
        for byte in read {
            self.add_byte(*byte);
            if self.bytes > MAX_MESSAGE || self.values > MAX_VALUE_COST {
                return true;
            }
        }
        false
    }

    fn add_byte(&mut self, byte: u8) {
        if byte == b'\n' {
            *self = Self::default();
            return;
        }
        self.bytes += 1;
        if self.is_in_string {
            let is_end = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.is_in_string = !is_end;
            return;
        }
        match byte {
            b'"' => self.is_in_string = true,
            b',' => self.values += 1,
            b'[' => self.values += ARRAY_COST,
            b'{' => self.values += OBJECT_COST,
            _ => {}
        }
    }
}

impl<R> FrameLimiter<R> {
    pub(crate) fn new(inner: R, end: Arc<ConnectionEnd>) -> Self {
        Self { inner, cost: LineCost::default(), end }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FrameLimiter<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.is_noted() {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        if self.cost.add(read) {
            self.end.note(EndCause::MessageTooLarge);
            buf.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, repeat};

    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_cut_off_at_the_limit() {
        let end = ConnectionEnd::new();
        let mut limiter = FrameLimiter::new(repeat(b'x'), Arc::clone(&end));
        let read = tokio::io::copy(&mut limiter, &mut tokio::io::sink()).await.unwrap();
        assert!(read <= MAX_MESSAGE as u64, "{read}");
        assert_eq!(end.noted().await, EndCause::MessageTooLarge);
    }

    #[tokio::test]
    async fn many_lines_may_exceed_the_limit_together() {
        let line = [&[b'y'; 1023][..], b"\n"].concat();
        let all = line.repeat(MAX_MESSAGE / 1024 + 10);
        let end = ConnectionEnd::new();
        let mut limiter = FrameLimiter::new(&all[..], Arc::clone(&end));
        let mut read = Vec::new();
        limiter.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), all.len());
        assert!(!end.is_noted());
    }

    #[test]
    fn values_are_bounded_and_texts_are_not_counted() {
        let text = format!("{{\"text\":\"{}\\\"[[[[\"}}\n", "a,[{".repeat(MAX_VALUE_COST));
        assert!(!LineCost::default().add(text.as_bytes()));
        for values in ["0,".repeat(MAX_VALUE_COST + 1), "{".repeat(MAX_VALUE_COST / 8 + 1)] {
            assert!(LineCost::default().add(values.as_bytes()));
        }
    }
}

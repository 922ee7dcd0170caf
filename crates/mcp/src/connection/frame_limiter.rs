//! Bounds the size and the depth of one message before anything buffers it.

use std::{
    io::{self, Cursor},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::{
    ending::{ConnectionEnd, EndCause},
    message_cost::MessageCost,
    nesting::NestingLimiter,
};

/// Reads lines, and ends the stream if one is too large. Leaves out what is nested too deep.
pub(crate) struct FrameLimiter<R> {
    inner: R,
    cost: MessageCost,
    nesting: NestingLimiter,
    /// Bytes that were read, and then rewritten.
    rewritten: Cursor<Vec<u8>>,
    end: Arc<ConnectionEnd>,
}

impl<R> FrameLimiter<R> {
    pub(crate) fn new(inner: R, end: Arc<ConnectionEnd>) -> Self {
        let (cost, nesting) = (MessageCost::default(), NestingLimiter::by_line());
        Self { inner, cost, nesting, rewritten: Cursor::default(), end }
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
        loop {
            ready!(Pin::new(&mut self.rewritten).poll_read(cx, buf))?;
            if buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
            let read = buf.filled().get(before..).unwrap_or_default();
            let is_end = read.is_empty();
            if self.cost.add_lines(read) {
                self.end.note(EndCause::MessageTooLarge);
                buf.set_filled(before);
                return Poll::Ready(Ok(()));
            }
            match self.nesting.rewritten(read) {
                // No bytes would mean the end.
                Some(bytes) if !is_end => {
                    buf.set_filled(before);
                    self.rewritten = Cursor::new(bytes);
                }
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, repeat};

    use super::*;
    use crate::connection::message_cost::MAX_MESSAGE;

    #[tokio::test]
    async fn a_line_without_end_is_cut_off_at_the_limit() {
        let end = ConnectionEnd::new();
        let mut limiter = FrameLimiter::new(repeat(b'x'), Arc::clone(&end));
        let read = tokio::io::copy(&mut limiter, &mut tokio::io::sink()).await.unwrap();
        assert!(read <= MAX_MESSAGE as u64, "{read}");
        assert_eq!(end.noted().await, EndCause::MessageTooLarge);
    }

    #[tokio::test]
    async fn a_line_that_is_nested_too_deep_is_shortened_and_the_next_one_stays() {
        let deep = format!("{{\"a\":{}1{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
        let all = format!("{deep}{{\"b\":[2]}}\n");
        let mut limiter = FrameLimiter::new(all.as_bytes(), ConnectionEnd::new());
        let mut read = String::new();
        limiter.read_to_string(&mut read).await.unwrap();
        let lines: Vec<serde_json::Value> =
            read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines[0].to_string().contains("left out"), "{read}");
        assert_eq!(lines[1], serde_json::json!({"b": [2]}));
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
}

//! Bounds the size of one message before anything buffers it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::{
    ending::{ConnectionEnd, EndCause},
    message_cost::MessageCost,
};

/// Reads lines, and ends the stream if one exceeds a limit.
pub(crate) struct FrameLimiter<R> {
    inner: R,
    cost: MessageCost,
    end: Arc<ConnectionEnd>,
}

impl<R> FrameLimiter<R> {
    pub(crate) fn new(inner: R, end: Arc<ConnectionEnd>) -> Self {
        Self { inner, cost: MessageCost::default(), end }
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
        if self.cost.add_lines(read) {
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

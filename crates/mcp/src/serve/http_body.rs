//! Bodies of requests and responses, bounded in size and time.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    Response, StatusCode,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    header,
};
use tokio::time::timeout;

/// Maximum time in which a client sends a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// A body that is in memory.
#[derive(Debug)]
pub(super) struct WholeBody(pub(super) Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The body of a response: a message of ours, or what the protocol sends.
#[derive(Debug)]
pub(super) enum ResponseBody<B> {
    Message(WholeBody),
    Protocol(B),
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Message(body) => Pin::new(body).poll_frame(cx),
            Self::Protocol(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Message(body) => body.is_end_stream(),
            Self::Protocol(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Message(body) => body.size_hint(),
            Self::Protocol(body) => body.size_hint(),
        }
    }
}

/// A request that is refused before the protocol sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl HttpRefusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Returns the response. The connection is closed if a body may be left on it.
    pub(super) fn response<B>(self) -> Response<ResponseBody<B>> {
        let bytes = Bytes::from(format!("{}\n", self.message));
        let mut response = Response::new(ResponseBody::Message(WholeBody(Some(bytes))));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// Reads a whole body, up to a limit.
pub(super) async fn read_body(mut body: Incoming, limit: usize) -> Result<Bytes, HttpRefusal> {
    let too_large = || {
        let message = format!("the body is larger than the limit of {} MiB", limit / (1024 * 1024));
        HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let read = async {
        let mut whole = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame =
                frame.map_err(|error| HttpRefusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            if whole.len() + data.len() > limit {
                return Err(too_large());
            }
            whole.extend_from_slice(&data);
        }
        Ok(Bytes::from(whole))
    };
    timeout(BODY_TIMEOUT, read).await.unwrap_or_else(|_elapsed| {
        Err(HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"))
    })
}

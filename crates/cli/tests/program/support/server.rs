//! The server of the model's own tests, for tests that run a program instead of awaiting: it has a
//! thread of its own.

use std::{sync::mpsc, thread};

use serde_json::Value;
use tokio::sync::oneshot;

#[path = "../../../../model/tests/http/server.rs"]
mod http;

pub(crate) use http::{Reply, Step, chunk, repeated};

/// A running server; dropping it ends it.
pub(crate) struct Server {
    server: http::Server,
    _end: oneshot::Sender<()>,
}

/// What the server was asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    head: String,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.into_iter().find(|(each, _)| *each == name).map(|(_, value)| value)
    }
}

impl Server {
    /// Starts a server that gives these answers, one per request. After the last it hangs up on
    /// whoever asks.
    pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<_> = replies.into_iter().collect();
        let (started, server) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                started.send(http::Server::start(replies).await).ok();
                // Nothing is ever sent: the other side is dropped with the server.
                ended.await.ok()
            })
        });
        Self { server: server.recv().unwrap(), _end: end }
    }

    /// The address to configure.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let parsed = |http::Request { head, body }| {
            // A request for a list has no body.
            let body = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() };
            Request { head, body }
        };
        self.server.requests().into_iter().map(parsed).collect()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.server.connections()
    }
}

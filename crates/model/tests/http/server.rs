//! A server on loopback that answers as it is told: in pieces, late, half, or not at all.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::{JoinHandle, JoinSet},
};

/// A running server; dropping it ends it and all its connections.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
    connections: usize,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// One step of an answer.
pub(crate) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes so many times, each time after a pause.
    Repeat(Vec<u8>, Duration, usize),
    /// Waits for a signal.
    Wait(Arc<Notify>),
    /// Sends nothing more and keeps the connection open.
    Hang,
    /// Closes the connection.
    Close,
}

/// An answer; the connection is kept unless a step says otherwise.
pub(crate) struct Reply(pub(crate) Vec<Step>);

impl Reply {
    /// A stream of events, each its own chunk, with an end.
    pub(crate) fn events(events: &[&str]) -> Self {
        let mut reply = Self::begun(events);
        reply.0.push(Step::Send(b"0\r\n\r\n".to_vec()));
        reply
    }

    /// A stream of events without an end.
    pub(crate) fn begun(events: &[&str]) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut steps = vec![Step::Send(head.into())];
        steps.extend(events.iter().map(|data| chunk(format!("data: {data}\n\n").as_bytes())));
        Self(steps)
    }

    /// A plain answer.
    pub(crate) fn plain(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Self(vec![Step::Send(text.into_bytes())])
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }
}

/// A piece of a body of unknown length.
pub(crate) fn chunk(bytes: &[u8]) -> Step {
    Step::Send(framed(bytes))
}

/// The same piece so many times, each time after a pause.
pub(crate) fn repeated(bytes: &[u8], pause: Duration, times: usize) -> Step {
    Step::Repeat(framed(bytes), pause, times)
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}

impl Server {
    /// Starts a server that gives these answers, one per request, over all connections.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state =
            Arc::new(Mutex::new(State { replies: replies.into_iter().collect(), ..State::default() }));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.lock().unwrap().connections += 1;
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { url, state, task }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut input = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut input).await {
        let reply = {
            let mut state = state.lock().unwrap();
            state.requests.push(request);
            state.replies.pop_front()
        };
        let Some(Reply(steps)) = reply else { return };
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Repeat(bytes, pause, times) => {
                    for _ in 0..times {
                        tokio::time::sleep(pause).await;
                        if stream.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                }
                Step::Wait(signal) => signal.notified().await,
                Step::Hang => std::future::pending().await,
                Step::Close => return,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<Request> {
    loop {
        let text = String::from_utf8_lossy(input).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                let request = Request { head: head.to_owned(), body: body[..length].to_owned() };
                input.drain(..head.len() + 4 + length);
                return Some(request);
            }
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
}

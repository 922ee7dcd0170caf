//! A running MCP server: its errors on their way, its end, and the reasons its sandbox gives.

use std::{collections::VecDeque, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    sync::watch,
    task::JoinHandle,
    time,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, Denial,
    grant::Held,
    host::{Exit, Layer},
    remote::{ServerEnd, ServerProcess, ServerProfile, ServerSandbox},
};
use windlass_sandbox::denials::{self, BlockedWrite, WritablePlace};

use crate::{denial_check::DenialCheck, spawner::RunningChild};

/// Size of one read of the errors.
const CHUNK_BYTES: usize = 16 * 1024;

/// Number of bytes at the end of the errors that are searched for what the sandbox blocked.
const TAIL_BYTES: usize = 16 * 1024;

/// Grace period of a server that is to be killed: its first process reports what it saw.
const KILL_GRACE: Duration = Duration::from_millis(300);

/// Maximum time to wait for a killed server. It takes longer only if it is stuck in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time to read the errors of a server that is gone.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// The data of the task of a server.
pub(crate) struct ServerTask {
    pub(crate) child: RunningChild,
    pub(crate) errors: pipe::Receiver,
    /// The errors go on to the reader of the server; absent once it has closed its end.
    pub(crate) relay: Option<pipe::Sender>,
    /// Holds the temporary directory of the server, too.
    pub(crate) check: DenialCheck,
    pub(crate) profile: ServerProfile,
}

impl ServerTask {
    /// Stays with the server to its end.
    async fn attend(mut self, requests: EndRequests) -> ServerEnd {
        let mut tail = ErrorTail::default();
        self.follow(&requests, &mut tail).await;
        // Before the child is reaped: its number might pass to others afterwards.
        self.child.kill();
        let _late = time::timeout(KILL_TIMEOUT, self.child.ended()).await;
        let _late = time::timeout(DRAIN_TIMEOUT, pass_on(&mut self.errors, &mut self.relay, &mut tail)).await;
        let Self { mut child, check, profile, .. } = self;
        let ended = child.try_reap().ok();
        let exit = ended.as_ref().and_then(|ended| ended.exit);
        let report = ended.map(|ended| ended.report).unwrap_or_default();
        let held = child.held().clone();
        let failure = exit.unwrap_or(Exit::KILLED);
        let mut observed = denials::observed(failure, &report, &held);
        let text: Vec<u8> = tail.0.into();
        let writes = check.blocked_writes(&mut observed, failure, &text, held).await;
        observed.extend(child.check_workspace().await);
        ServerEnd { exit, denials: denial_lines(&observed, &writes, &profile) }
    }

    /// Forwards errors until the server has ended, as it wishes or as it must.
    async fn follow(&mut self, requests: &EndRequests, tail: &mut ErrorTail) {
        let Self { child, errors, relay, .. } = self;
        let mut forward = std::pin::pin!(async {
            pass_on(errors, relay, tail).await;
            std::future::pending::<()>().await;
        });
        let mut is_asked = false;
        loop {
            tokio::select! {
                // If it cannot be waited for, it is killed.
                _lost = child.ended() => return,
                () = &mut forward => {}
                () = requests.terminate.cancelled(), if !is_asked => {
                    is_asked = true;
                    child.terminate();
                }
                () = requests.kill.cancelled() => break,
            }
        }
        child.terminate();
        tokio::select! {
            _ended = time::timeout(KILL_GRACE, child.ended()) => {}
            () = &mut forward => {}
        }
    }
}

/// Requests to end a server.
#[derive(Debug, Clone, Default)]
struct EndRequests {
    terminate: CancellationToken,
    kill: CancellationToken,
}

/// Forwards errors to the reader and keeps their end. If the reader is gone, they are still read,
/// so that the server does not block.
async fn pass_on(errors: &mut pipe::Receiver, relay: &mut Option<pipe::Sender>, tail: &mut ErrorTail) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = errors.read(&mut chunk).await {
        let bytes = chunk.get(..length).unwrap_or_default();
        tail.push(bytes);
        if let Some(reader) = relay
            && reader.write_all(bytes).await.is_err()
        {
            *relay = None;
        }
    }
    // The reader finds the end of the errors when the server has closed them.
    *relay = None;
}

/// The end of the errors of a server.
#[derive(Debug, Default)]
struct ErrorTail(VecDeque<u8>);

impl ErrorTail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.drain(..self.0.len().saturating_sub(TAIL_BYTES));
    }
}

/// A running server. Its task holds the child, which is killed when the task is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pid: u32,
    held: Held,
    requests: EndRequests,
    end: watch::Receiver<Option<ServerEnd>>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// Stays with a server that was started.
    pub(crate) fn attend(task: ServerTask) -> Self {
        let (pid, mut held) = (task.child.pid().number(), task.child.held().clone());
        if task.profile.sandbox == ServerSandbox::None && task.profile.memory_bytes.is_some() {
            held.not_covered.push("the limit on memory: a server without a sandbox has none".to_owned());
        }
        let requests = EndRequests::default();
        let (report, end) = watch::channel(None);
        let attendant = task.attend(requests.clone());
        let task = tokio::spawn(async move {
            let end = attendant.await;
            // Without a reader it is of no interest.
            let _unread = report.send(Some(end));
        });
        Self { pid, held, requests, end, task }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ServerProcess for RunningServer {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn held(&self) -> Held {
        self.held.clone()
    }

    fn terminate(&self) {
        self.requests.terminate.cancel();
    }

    fn kill(&self) {
        self.requests.kill.cancel();
    }

    fn ended(&self) -> BoxFuture<'_, ServerEnd> {
        let mut end = self.end.clone();
        Box::pin(async move {
            let known = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
            // The task has panicked or its runtime is gone; the child was killed with it.
            known.unwrap_or(ServerEnd { exit: None, denials: Vec::new() })
        })
    }
}

/// Describes blocked accesses, each with the setting of the server that would allow it.
fn denial_lines(observed: &[Denial], writes: &[BlockedWrite], profile: &ServerProfile) -> Vec<String> {
    let observed = observed.iter().map(|denial| match denial.layer {
        Layer::Network => format!("blocked: network access to {} (allow with: network = true)", denial.what),
        Layer::Limit if denial.what == "memory" => {
            format!("{} (raise it with: memory_mb = N)", denial.rule)
        }
        Layer::Limit => denial.rule.clone(),
        Layer::Setup | Layer::Files | Layer::SystemCall => {
            format!("blocked: {}: {}", denial.what, denial.rule)
        }
    });
    let lines = observed.chain(writes.iter().map(|write| write_line(write, profile)));
    lines.map(|line| line.replace(char::is_control, "\u{fffd}")).collect()
}

fn write_line(BlockedWrite { path, place }: &BlockedWrite, profile: &ServerProfile) -> String {
    let path = path.display();
    let writable = |directory: &PathBuf| {
        let all: Vec<_> =
            profile.writable.iter().chain([directory]).map(|path| path.to_string_lossy()).collect();
        format!("writable = {all:?}")
    };
    let remedy = match place {
        None => return format!("blocked: writing {path}"),
        Some(WritablePlace::Workspace) => "sandbox = \"workspace-write\"".to_owned(),
        Some(WritablePlace::Directory(directory)) => writable(directory),
        Some(WritablePlace::Missing(directory)) => {
            format!("{}; make the directory first", writable(directory))
        }
    };
    format!("blocked: writing {path} (allow with: {remedy})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_errors_is_kept_and_no_more() {
        let mut tail = ErrorTail::default();
        tail.push(&vec![b'a'; TAIL_BYTES]);
        tail.push(b"end");
        assert_eq!(tail.0.len(), TAIL_BYTES);
        assert!(Vec::from(tail.0).ends_with(b"aend"));
    }

    #[test]
    fn a_line_names_the_setting_and_has_no_control_characters() {
        let profile = ServerProfile { writable: vec!["/data".into()], ..ServerProfile::default() };
        let line = |place| {
            let path = "/home/u/.npm/\u{1b}[31m".into();
            denial_lines(&[], &[BlockedWrite { path, place }], &profile).remove(0)
        };
        assert_eq!(
            line(Some(WritablePlace::Directory("/home/u/.npm".into()))),
            "blocked: writing /home/u/.npm/\u{fffd}[31m (allow with: writable = [\"/data\", \"/home/u/.npm\"])"
        );
        assert_eq!(line(None), "blocked: writing /home/u/.npm/\u{fffd}[31m");
        assert!(line(Some(WritablePlace::Workspace)).contains("sandbox = \"workspace-write\""));
    }
}

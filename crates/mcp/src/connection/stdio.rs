//! The pipes of a stdio server, and its end.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use rmcp::{RoleClient, transport::async_rw::AsyncRwTransport};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::{
    net::unix::pipe::{Receiver, Sender},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use windlass_contract::remote::{LaunchedServer, ServerEnd, ServerProcess};

use super::{
    ending::{ConnectionEnd, ConnectionReport, EndCause, end_reason},
    frame_limiter::FrameLimiter,
    stderr_tail::StderrTail,
};

/// Time for a server that closed its output to end by itself.
const CLOSED_GRACE: Duration = Duration::from_millis(300);
/// Time between the end of the standard input and `SIGTERM`.
const INPUT_CLOSED_GRACE: Duration = Duration::from_millis(500);
/// Time between `SIGTERM` and `SIGKILL`.
const TERMINATE_GRACE: Duration = Duration::from_millis(1500);
/// Time between `SIGKILL` and the end.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// Time for the rest of the standard error after the end.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// The transport of rmcp over the pipes of a process.
pub(crate) type PipeTransport = AsyncRwTransport<RoleClient, FrameLimiter<Receiver>, Sender>;

/// A running process, and the tail of its standard error. Dropping it kills the process tree.
pub(crate) struct StdioProcess {
    process: Arc<dyn ServerProcess>,
    tail: StderrTail,
    drained: watch::Receiver<()>,
    drain: JoinHandle<()>,
}

impl StdioProcess {
    /// Takes over the pipes of a process.
    pub(crate) fn attach(
        launched: LaunchedServer,
        end: &Arc<ConnectionEnd>,
    ) -> io::Result<(Self, PipeTransport)> {
        let LaunchedServer { stdin, stdout, stderr, process } = launched;
        let stdin = Sender::from_owned_fd_unchecked(nonblocking(stdin)?)?;
        let stdout = Receiver::from_owned_fd_unchecked(nonblocking(stdout)?)?;
        let stderr = Receiver::from_owned_fd_unchecked(nonblocking(stderr)?)?;
        let tail = StderrTail::default();
        // The sender goes with the task; the receiver sees its end.
        let (draining, drained) = watch::channel(());
        let drain = tokio::spawn({
            let tail = tail.clone();
            async move {
                tail.drain(stderr).await;
                drop(draining);
            }
        });
        let limiter = FrameLimiter::new(stdout, Arc::clone(end));
        // The limiter is the bound: it ends the connection instead of skipping a message.
        let transport = AsyncRwTransport::new_client(limiter, stdin).with_max_line_length(usize::MAX);
        Ok((Self { process, tail, drained, drain }, transport))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Waits for the end of the server itself, which a child that keeps its pipes open may outlive.
    pub(crate) async fn main_ended(&self) {
        main_process_ended(self.process.pid()).await;
    }

    /// Ends the process tree and reports its end. Never waits longer than five seconds.
    pub(crate) async fn finish(&self, cause: EndCause) -> ConnectionReport {
        let process = &self.process;
        let end = match cause {
            EndCause::Closed => {
                let by_itself = timeout(CLOSED_GRACE, process.ended()).await.ok();
                if by_itself.is_some() { by_itself } else { self.killed().await }
            }
            EndCause::Stopped => {
                // Its standard input is closed by now. Many servers end with it.
                let mut by_itself = timeout(INPUT_CLOSED_GRACE, process.ended()).await.ok();
                if by_itself.is_none() {
                    process.terminate();
                    by_itself = timeout(TERMINATE_GRACE, process.ended()).await.ok();
                }
                if by_itself.is_some() { by_itself } else { self.killed().await }
            }
            EndCause::MessageTooLarge
            | EndCause::TooManyRequests
            | EndCause::LoginNeeded
            | EndCause::Unresponsive => self.killed().await,
        };
        let mut drained = self.drained.clone();
        // An error means that all is read. Beyond the time, what was read so far is shown.
        let _ = timeout(STDERR_GRACE, drained.changed()).await;
        let denials = end.as_ref().map(|end| end.denials.clone()).unwrap_or_default();
        ConnectionReport { cause, reason: end_reason(cause, end.as_ref()), stderr: self.tail.text(), denials }
    }

    async fn killed(&self) -> Option<ServerEnd> {
        self.process.kill();
        timeout(KILL_GRACE, self.process.ended()).await.ok()
    }
}

impl Drop for StdioProcess {
    fn drop(&mut self) {
        self.process.kill();
        self.drain.abort();
    }
}

fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    Ok(fd)
}

/// Waits for the end of one process. Where that cannot be seen, it never returns: the end of the
/// pipes tells it too.
#[cfg(target_os = "linux")]
async fn main_process_ended(pid: u32) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Only the readiness of the descriptor is used, which is that of any pollable one.
    let watched = pidfd.and_then(|pidfd| Receiver::from_owned_fd_unchecked(pidfd).ok());
    match watched {
        Some(watched) if watched.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

#[cfg(not(target_os = "linux"))]
async fn main_process_ended(_pid: u32) {
    std::future::pending().await
}

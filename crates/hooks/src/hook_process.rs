//! One run of a hook: a confined process with bounded time and output.

use std::{future, io, os::fd::OwnedFd, time::Duration};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::{Receiver, Sender},
    time::{Instant, timeout, timeout_at},
};
use windlass_contract::{
    host::Exit,
    remote::{LaunchedServer, ServerCommand, ServerEnd, ServerLauncher},
};

use crate::answer::EndedHook;

/// Maximum size of an answer. A hook that prints more is killed.
const MAX_STDOUT_BYTES: usize = 1024 * 1024;

/// Number of bytes of the errors that are kept: their end.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// Maximum time to wait for a killed hook. It takes longer only if it is stuck in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum time to read the rest of the output of a hook that has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs a hook to its end or its time limit. Nothing that it started is left afterwards. The error
/// is one line.
pub(crate) async fn run(
    launcher: &dyn ServerLauncher,
    command: &ServerCommand,
    input: &[u8],
    time_limit: Duration,
) -> Result<EndedHook, String> {
    let deadline = Instant::now() + time_limit;
    let too_late = || format!("it did not end within {} s and was killed", time_limit.as_secs());
    let started = timeout_at(deadline, launcher.launch(command)).await.map_err(|_late| too_late())?;
    let LaunchedServer { stdin, stdout, stderr, process } = started.map_err(|error| chain(&error))?;
    let pipes = nonblocking(stdin).and_then(Sender::from_owned_fd_unchecked).and_then(|stdin| {
        let stdout = nonblocking(stdout).and_then(Receiver::from_owned_fd_unchecked)?;
        let stderr = nonblocking(stderr).and_then(Receiver::from_owned_fd_unchecked)?;
        Ok((stdin, stdout, stderr))
    });
    let (stdin, stdout, stderr) = pipes.map_err(|error| format!("its pipes cannot be used: {error}"))?;
    let mut output = BoundedOutput::default();
    let mut errors = Vec::new();
    let ended = {
        let writes = write_all(stdin, input);
        let reads = output.read(stdout);
        let mut followed = std::pin::pin!(async {
            let overflow = async {
                match reads.await {
                    OutputEnd::Closed => future::pending().await,
                    OutputEnd::TooLong => {}
                }
            };
            tokio::select! {
                () = overflow => {}
                () = async { tokio::join!(writes, read_tail(stderr, &mut errors)); future::pending::<()>().await } => {}
            }
        });
        tokio::select! {
            biased;
            end = process.ended() => {
                // What it printed last may still be in the pipe.
                let _drained = timeout(DRAIN_TIMEOUT, &mut followed).await;
                Ok(end)
            }
            () = &mut followed => Err(format!("it printed more than {MAX_STDOUT_BYTES} bytes and was killed")),
            () = tokio::time::sleep_until(deadline) => Err(too_late()),
        }
    };
    let end = match ended {
        Ok(end) => end,
        Err(problem) => {
            process.kill();
            let _late = timeout(KILL_TIMEOUT, process.ended()).await;
            return Err(problem);
        }
    };
    if output.is_too_long {
        return Err(format!("it printed more than {MAX_STDOUT_BYTES} bytes"));
    }
    let ServerEnd { exit, denials } = end;
    let blocked = denials.first().map(|line| format!("; {line}")).unwrap_or_default();
    match exit {
        Some(Exit::Code(code)) => {
            if code != 0 && !blocked.is_empty() {
                errors.extend(blocked.as_bytes());
            }
            Ok(EndedHook { code, stdout: output.bytes, stderr: errors })
        }
        Some(Exit::Signal(signal)) => Err(format!("it was ended by signal {signal}{blocked}")),
        Some(Exit::TimedOut | Exit::Cancelled) | None => Err(format!("it was ended{blocked}")),
    }
}

/// The output of a hook, up to its limit.
#[derive(Debug, Default)]
struct BoundedOutput {
    bytes: Vec<u8>,
    is_too_long: bool,
}

enum OutputEnd {
    Closed,
    TooLong,
}

impl BoundedOutput {
    async fn read(&mut self, mut pipe: Receiver) -> OutputEnd {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            let Ok(length @ 1..) = pipe.read(&mut chunk).await else { return OutputEnd::Closed };
            self.bytes.extend(chunk.get(..length).unwrap_or_default());
            if self.bytes.len() > MAX_STDOUT_BYTES {
                self.is_too_long = true;
                return OutputEnd::TooLong;
            }
        }
    }
}

/// Reads all errors, so that the hook does not block, and keeps their end.
async fn read_tail(mut pipe: Receiver, tail: &mut Vec<u8>) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        tail.extend(chunk.get(..length).unwrap_or_default());
        tail.drain(..tail.len().saturating_sub(MAX_STDERR_BYTES));
    }
}

/// Writes the input. A hook need not read it.
async fn write_all(mut pipe: Sender, input: &[u8]) {
    let _unread = pipe.write_all(input).await;
}

fn nonblocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    let flags = fcntl_getfl(&fd)?;
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    Ok(fd)
}

/// Returns an error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

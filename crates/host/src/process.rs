//! One command from its start to its end: capture, time limit, cancellation, and nothing left behind.

use std::{
    io,
    os::fd::OwnedFd,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::{io::AsyncReadExt, net::unix::pipe, time};
use tokio_util::sync::CancellationToken;
use windlass_contract::{Exit, Finished, HostError};

use crate::{
    capture::HeadTail,
    keeper::{Child, Keeper},
    program::Program,
};

/// How much is read at once: what a pipe holds by default.
const CHUNK_BYTES: usize = 64 * 1024;

/// How long processes that still hold the pipe when the command has ended may finish writing, as the `tee` in
/// `make > >(tee log)` must. Nobody else pays for it: without them the pipe is closed.
const SETTLING_TIME: Duration = Duration::from_millis(50);

/// How long a killed command is waited for. It needs more only if it is stuck in the kernel.
const DYING_TIME: Duration = Duration::from_secs(2);

/// A command that is about to run.
pub(crate) struct Run<'a> {
    pub(crate) program: Program,
    pub(crate) time_limit: Duration,
    pub(crate) output_limit_bytes: usize,
    pub(crate) output: &'a (dyn Fn(&[u8]) + Send + Sync),
}

impl Run<'_> {
    /// Runs it until it has ended by itself or must end. Dropping the future kills the whole group, too.
    pub(crate) async fn complete(
        self,
        keeper: &Keeper,
        cancel: &CancellationToken,
    ) -> Result<Finished, HostError> {
        let name = self.program.name().to_owned();
        let (reader, writer) = pipe().map_err(|source| HostError::Spawn { program: name.clone(), source })?;
        let mut capture = Capture::new(reader, self.output_limit_bytes, self.output);
        let begun = Instant::now();
        let mut stop = pin!(stop(self.time_limit, cancel));
        let child = tokio::select! {
            biased;
            forced = &mut stop => return Ok(capture.finish(forced, begun.elapsed())),
            child = keeper.start(self.program, writer) => child?,
        };
        let lost = |source| HostError::Wait { program: name.clone(), source };
        let forced = tokio::select! {
            biased;
            forced = &mut stop => Some(forced),
            ended = follow(&child, &mut capture) => {
                ended.map_err(lost)?;
                None
            }
        };
        let duration = begun.elapsed();
        let exit = wind_up(child, &mut capture, forced).await.map_err(lost)?;
        Ok(capture.finish(exit, duration))
    }
}

/// The pipe for all output; only our end knows how not to block.
fn pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// Waits for a reason to end the command.
async fn stop(time_limit: Duration, cancel: &CancellationToken) -> Exit {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Exit::Cancelled,
        () = time::sleep(time_limit) => Exit::TimedOut,
    }
}

/// Reads until the child has ended, which may be before or after it has closed its outputs.
async fn follow(child: &Child, capture: &mut Capture<'_>) -> io::Result<()> {
    let mut ended = pin!(child.ended());
    tokio::select! {
        biased;
        result = &mut ended => return result,
        result = capture.read_to_end() => result?,
    }
    ended.await
}

/// Takes what is left to read, and leaves no process behind.
async fn wind_up(child: Child, capture: &mut Capture<'_>, forced: Option<Exit>) -> io::Result<Exit> {
    if forced.is_some() {
        child.kill_group();
        if let Ok(ended) = time::timeout(DYING_TIME, child.ended()).await {
            ended?;
        }
    }
    if let Ok(read) = time::timeout(SETTLING_TIME, capture.read_to_end()).await {
        read?;
    }
    // Before the child is collected: its number, and with it the group's, might pass to others afterwards.
    child.kill_group();
    let exit = child.collect()?;
    forced.or(exit).ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// What a command writes: passed on as it comes, and kept within bounds.
struct Capture<'a> {
    pipe: pipe::Receiver,
    chunk: Box<[u8]>,
    kept: HeadTail,
    output: &'a (dyn Fn(&[u8]) + Send + Sync),
}

impl<'a> Capture<'a> {
    fn new(pipe: pipe::Receiver, limit_bytes: usize, output: &'a (dyn Fn(&[u8]) + Send + Sync)) -> Self {
        Self { pipe, chunk: vec![0; CHUNK_BYTES].into(), kept: HeadTail::new(limit_bytes), output }
    }

    /// Reads until nobody can write any more. Dropping the future between two reads loses nothing.
    async fn read_to_end(&mut self) -> io::Result<()> {
        loop {
            let length = self.pipe.read(&mut self.chunk).await?;
            let Some(bytes) = self.chunk.get(..length).filter(|bytes| !bytes.is_empty()) else {
                return Ok(());
            };
            (self.output)(bytes);
            self.kept.push(bytes);
        }
    }

    fn finish(self, exit: Exit, duration: Duration) -> Finished {
        let (output, gap) = self.kept.finish();
        Finished { exit, output, gap, duration }
    }
}

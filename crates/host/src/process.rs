//! One command from its start to its end: capture, time limit, cancellation, and nothing left
//! behind.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::{io::AsyncReadExt, net::unix::pipe, time};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    host::{Exit, FinishedCommand, HostError, OutputListener, Printed},
    report::ProcessReport,
};
use windlass_sandbox::{ChildStdio, Program, denials};

#[cfg(target_os = "linux")]
use crate::input_wait;
use crate::{
    apart_capture::ApartCapture,
    denial_check::DenialCheck,
    job_control::StopSignals,
    launch::CommandLaunch,
    output_buffer::OutputBuffer,
    spawner::{ChildEnd, ChildSpawner, RunningChild, SpawnRequest},
    spending::TimeMeter,
};

/// Size of one read: the default capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

/// Maximum time for processes that still hold the pipe when the command has ended to finish
/// writing, as the `tee` in `make > >(tee log)` must. Other commands do not wait: their pipe is
/// closed.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// Grace period of a command that was asked to end. The first process has a shorter one of its own.
const TERMINATION_GRACE: Duration = Duration::from_millis(300);

/// Maximum time to wait for a killed command. It takes longer only if it is stuck in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// A command to run.
pub(crate) struct CommandRun<'a> {
    pub(crate) program: Program,
    pub(crate) launch: CommandLaunch,
    pub(crate) time_limit: Duration,
    pub(crate) buffer: OutputBuffer,
    /// Maximum number of bytes it may print. It is ended when it prints more.
    pub(crate) output_limit: Option<u64>,
    pub(crate) cpu: TimeMeter,
    pub(crate) streams: OutputStreams,
    pub(crate) output: OutputListener<'a>,
}

impl CommandRun<'_> {
    /// Runs it until it ends or must be ended. Dropping the future also kills the whole process
    /// tree.
    pub(crate) async fn complete(
        self,
        spawner: &ChildSpawner,
        cancel: &CancellationToken,
    ) -> Result<FinishedCommand, HostError> {
        let name = self.program.name().to_owned();
        let lost = |source| HostError::Spawn { program: name.clone(), source };
        let (reader, writer) = pipe().map_err(lost)?;
        let (error, apart) = match self.streams {
            OutputStreams::Joined => (writer.try_clone().map_err(lost)?, None),
            OutputStreams::Apart => {
                let (errors, writer) = pipe().map_err(lost)?;
                (writer, Some(ApartCapture::new(errors, self.buffer.limit_bytes())))
            }
        };
        let input = null_device().map_err(lost)?;
        let stdio = ChildStdio { input, output: writer, error };
        let check = DenialCheck::new(&self.program, &self.launch);
        let mut capture = OutputCapture::new(reader, &self.buffer, self.output_limit, self.output);
        capture.apart = apart;
        let request = SpawnRequest { program: self.program, stdio, launch: self.launch };
        let CommandEnd { mut report, cpu } =
            attend(request, self.time_limit, spawner, cancel, CommandStreams::Captured(&mut capture)).await?;
        self.cpu.settle(cpu);
        let apart = capture.apart.take().map(ApartCapture::finish);
        let printed = self.buffer.take(usize::MAX).await;
        report.output_bytes = printed.total_bytes();
        let Printed { bytes: output, gap, whole } = printed;
        report.whole = whole;
        if let Some(held) = report.held.clone() {
            report.denials = check.complete(report.denials, report.exit, &output, held).await;
        }
        Ok(FinishedCommand { report, output, gap, apart })
    }
}

/// The capture of the two output streams of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OutputStreams {
    /// Both are one pipe, which keeps the order in which they were written.
    #[default]
    Joined,
    /// Each is a pipe of its own and is also captured separately.
    Apart,
}

/// The end of a command.
#[derive(Debug)]
pub(crate) struct CommandEnd {
    /// Says nothing of its output.
    pub(crate) report: ProcessReport,
    /// CPU time of the command and its descendants, if known.
    pub(crate) cpu: Option<Duration>,
}

/// The standard descriptors of a command.
pub(crate) enum CommandStreams<'a, 'buffer> {
    /// Empty input, and a pipe to this process.
    Captured(&'a mut OutputCapture<'buffer>),
    /// Those of this process. The command stops with this process when a terminal asks for it.
    Ours(StopSignals),
}

/// Starts a command and waits for its end.
pub(crate) async fn attend(
    request: SpawnRequest,
    time_limit: Duration,
    spawner: &ChildSpawner,
    cancel: &CancellationToken,
    streams: CommandStreams<'_, '_>,
) -> Result<CommandEnd, HostError> {
    let name = request.program.name().to_owned();
    let begun = Instant::now();
    if cancel.is_cancelled() {
        let report = ProcessReport { duration: begun.elapsed(), ..ProcessReport::new(Exit::Cancelled) };
        return Ok(CommandEnd { report, cpu: Some(Duration::ZERO) });
    }
    let stop = stop(time_limit, cancel);
    // Not cancelled here: a start is short, and the program may already have printed something.
    let mut child = spawner.spawn(request).await?;
    let stayed = match streams {
        CommandStreams::Captured(capture) => stay(&mut child, begun, stop, Some(capture)).await,
        CommandStreams::Ours(stop_signals) => {
            let stop_signals = stop_signals.forward_to(child.pid());
            let stop = async {
                tokio::select! {
                    exit = stop => exit,
                    never = stop_signals => match never {},
                }
            };
            stay(&mut child, begun, stop, None).await
        }
    };
    stayed.map_err(|source| HostError::Wait { program: name, source })
}

/// Stays with a child that was begun then to its end, which `stop` may bring about.
pub(crate) async fn stay(
    child: &mut RunningChild,
    begun: Instant,
    stop: impl Future<Output = Exit>,
    mut capture: Option<&mut OutputCapture<'_>>,
) -> io::Result<CommandEnd> {
    let forced = tokio::select! {
        biased;
        forced = stop => Some(forced),
        ended = follow(child, capture.as_deref_mut()) => {
            ended?;
            is_over(capture.as_deref()).then_some(Exit::KILLED)
        }
    };
    let duration = begun.elapsed();
    let is_late = forced == Some(Exit::TimedOut);
    let (waits_for_input, running) =
        if is_late { look_at_processes(child).await } else { Default::default() };
    let ended = wind_up(child, capture.as_deref_mut(), forced).await?;
    let over = is_over(capture.as_deref());
    // Report the same exit whether the command was killed or had just ended: that is a race.
    let forced = forced.or(over.then_some(Exit::KILLED));
    let exit = forced.or(ended.exit).ok_or(io::ErrorKind::WouldBlock)?;
    let mut denials = denials::observed(exit, &ended.report, child.held());
    denials.extend(over.then(|| denials::limit("output")));
    denials.extend(child.check_workspace().await);
    let report = ProcessReport {
        duration,
        killed: ended.report.killed,
        denials,
        waits_for_input,
        running,
        held: Some(child.held().clone()),
        ..ProcessReport::new(exit)
    };
    Ok(CommandEnd { report, cpu: ended.report.cpu })
}

/// Returns whether a process of the command waits for input on a terminal, and the programs that
/// run. Its standard input is empty, so that terminal is one it has made, as `script` does.
#[cfg(target_os = "linux")]
async fn look_at_processes(child: &RunningChild) -> (bool, Vec<String>) {
    let pid = child.pid();
    let look = move || {
        let processes = pid.descendants();
        (input_wait::any_waits_on_terminal(&processes), input_wait::program_names(&processes))
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
async fn look_at_processes(_child: &RunningChild) -> (bool, Vec<String>) {
    (false, Vec::new())
}

/// Opens `/dev/null` to read.
#[expect(clippy::disallowed_methods, reason = "a device of the system")]
pub(crate) fn null_device() -> io::Result<OwnedFd> {
    File::open("/dev/null").map(OwnedFd::from)
}

/// Opens the pipe for all output. Only the reading end is non-blocking.
pub(crate) fn pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// Waits for a reason to end the command.
pub(crate) async fn stop(time_limit: Duration, cancel: &CancellationToken) -> Exit {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Exit::Cancelled,
        () = time::sleep(time_limit) => Exit::TimedOut,
    }
}

fn is_over(capture: Option<&OutputCapture<'_>>) -> bool {
    capture.is_some_and(|capture| capture.left.is_none())
}

/// Reads until the child has ended, which may be before or after it has closed its outputs, or has
/// printed too much.
async fn follow(child: &RunningChild, capture: Option<&mut OutputCapture<'_>>) -> io::Result<()> {
    let Some(capture) = capture else { return child.ended().await };
    let mut ended = pin!(child.ended());
    tokio::select! {
        biased;
        result = &mut ended => return result,
        result = capture.read_to_end() => result?,
    }
    if is_over(Some(capture)) { Ok(()) } else { ended.await }
}

/// Takes what is left to read, and leaves no process behind: everyone is asked to end, and after a
/// grace killed.
async fn wind_up(
    child: &mut RunningChild,
    capture: Option<&mut OutputCapture<'_>>,
    forced: Option<Exit>,
) -> io::Result<ChildEnd> {
    if forced.is_some() {
        child.terminate();
        if time::timeout(TERMINATION_GRACE, child.ended()).await.is_err() {
            child.kill();
            if let Ok(ended) = time::timeout(KILL_TIMEOUT, child.ended()).await {
                ended?;
            }
        }
    }
    if let Some(capture) = capture
        && let Ok(read) = time::timeout(DRAIN_TIMEOUT, capture.read_to_end()).await
    {
        read?;
    }
    // Before the child is collected: its number might pass to others afterwards.
    child.kill();
    child.try_reap()
}

/// The output of a command, forwarded as it arrives and buffered.
pub(crate) struct OutputCapture<'a> {
    pipe: pipe::Receiver,
    /// Standard error, if it does not go to the same pipe.
    apart: Option<ApartCapture>,
    chunk: Box<[u8]>,
    buffer: &'a OutputBuffer,
    /// Number of bytes it may still print; `None` once it has exceeded the limit.
    left: Option<u64>,
    output: OutputListener<'a>,
}

impl<'a> OutputCapture<'a> {
    pub(crate) fn new(
        pipe: pipe::Receiver,
        buffer: &'a OutputBuffer,
        limit_bytes: Option<u64>,
        output: OutputListener<'a>,
    ) -> Self {
        let left = Some(limit_bytes.unwrap_or(u64::MAX));
        Self { pipe, apart: None, chunk: vec![0; CHUNK_BYTES].into(), buffer, left, output }
    }

    /// Reads until all writers are gone or the limit is exceeded. Dropping the future between two
    /// reads loses nothing.
    async fn read_to_end(&mut self) -> io::Result<()> {
        while let Some(left) = self.left {
            self.buffer.ready().await;
            let read = match &mut self.apart {
                Some(apart) => apart.read(&self.pipe, &mut self.chunk).await,
                None => self.pipe.read(&mut self.chunk).await,
            };
            let length = match read {
                // A terminal reports that all its users are gone.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => 0,
                read => read?,
            };
            if length == 0 {
                break;
            }
            self.left = left.checked_sub(length as u64);
            let allowed = usize::try_from(left).map_or(length, |left| left.min(length));
            let bytes = self.chunk.get(..allowed).unwrap_or_default();
            // Buffered before it is forwarded: the listener may take it at once.
            self.buffer.push(bytes);
            (self.output)(bytes);
        }
        Ok(())
    }
}

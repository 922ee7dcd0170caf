//! Runs a confined command on the standard descriptors of this process, for a person at a terminal.

use std::{
    fs::File,
    io::{self, PipeReader, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    host::{Exit, HostError},
    report::ProcessReport,
};
use windlass_sandbox::{ChildStdio, Program, denials};

use crate::{
    job_control::StopSignals,
    launch::CommandLaunch,
    process,
    spawner::{ChildSpawner, SpawnRequest},
};

/// The standard descriptors of an attached command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachedStreams {
    /// Inherited unchanged.
    Inherited,
    /// The outputs pass through this process. It ends the command when both together exceed this
    /// number of bytes.
    Limited(u64),
}

impl AttachedStreams {
    pub(crate) async fn run(
        self,
        program: Program,
        launch: CommandLaunch,
        time_limit: Duration,
        spawner: &ChildSpawner,
        cancel: &CancellationToken,
    ) -> Result<ProcessReport, HostError> {
        let name = program.name().to_owned();
        // A child token, which is cancelled when the output is too long.
        let stop = cancel.child_token();
        let opened = StopSignals::listen().and_then(|stop_signals| Ok((stop_signals, self.open(&stop)?)));
        let (stop_signals, (stdio, relay)) =
            opened.map_err(|source| HostError::Spawn { program: name, source })?;
        let request = SpawnRequest { program, stdio, launch };
        let streams = process::CommandStreams::Ours(stop_signals);
        let mut report = process::attend(request, time_limit, spawner, &stop, streams).await?.report;
        if relay.finish() {
            // Report the same exit whether the command was killed or had just ended: that is a
            // race.
            if report.exit != Exit::TimedOut && !cancel.is_cancelled() {
                report.exit = Exit::KILLED;
            }
            report.denials.push(denials::limit("output"));
        }
        Ok(report)
    }

    fn open(self, stop: &CancellationToken) -> io::Result<(ChildStdio, OutputRelay)> {
        let input = copy(io::stdin().as_fd().try_clone_to_owned(), process::null_device().map(File::from))?;
        let [out, err] =
            [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
        let sink = || File::options().write(true).open("/dev/null");
        let (out, err) = (copy(out, sink())?, copy(err, sink())?);
        let Self::Limited(limit_bytes) = self else {
            return Ok((ChildStdio { input, output: out, error: err }, OutputRelay::default()));
        };
        let mut relay = OutputRelay::default();
        let left = Arc::new(AtomicU64::new(limit_bytes));
        let mut through = |to: OwnedFd| -> io::Result<OwnedFd> {
            let (reader, writer) = io::pipe()?;
            let (left, stop) = (Arc::clone(&left), stop.clone());
            relay.0.push(thread::spawn(move || pump(reader, File::from(to), &left, &stop)));
            Ok(writer.into())
        };
        let stdio = ChildStdio { input, output: through(out)?, error: through(err)? };
        Ok((stdio, relay))
    }
}

/// Replaces a descriptor that is closed in this process by the null device.
fn copy(own: io::Result<OwnedFd>, instead: io::Result<File>) -> io::Result<OwnedFd> {
    own.or_else(|_| instead.map(OwnedFd::from))
}

/// Threads that forward output and return true if it exceeded the limit.
#[derive(Debug, Default)]
struct OutputRelay(Vec<JoinHandle<bool>>);

impl OutputRelay {
    /// Waits until all output is forwarded. Returns true if it exceeded the limit. The command is
    /// gone by now, so the pipes are at their end.
    fn finish(self) -> bool {
        // A thread that panicked has nothing more to pass on. All are waited for.
        let over: Vec<_> = self.0.into_iter().map(|thread| thread.join().unwrap_or(false)).collect();
        over.contains(&true)
    }
}

/// Forwards output within the limit. Ends the command and returns true when it writes more. If the
/// reader is gone, the command finds its pipe closed, as it would without the relay.
fn pump(mut from: PipeReader, mut to: File, left: &AtomicU64, stop: &CancellationToken) -> bool {
    let mut chunk = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        let wanted = read as u64;
        let before =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(wanted)));
        let allowed = before.unwrap_or(0).min(wanted);
        let passed = usize::try_from(allowed).unwrap_or(read);
        let taken = to.write_all(&chunk[..passed]).is_ok();
        if allowed < wanted {
            stop.cancel();
            return true;
        }
        if !taken {
            return false;
        }
    }
    false
}

//! Sessions: commands that continue from call to call, on a terminal or without input.
//!
//! One task per session reads its output at all times, so that the command never blocks on a full
//! pipe. The task keeps as much as the grant allows, and a long output in full in a file. When the
//! last handle is dropped, the task and the child end.

use std::{
    convert::Infallible,
    io,
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    sync::{Mutex as AsyncMutex, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture,
    grant::Held,
    host::{Exit, HostError, Keyboard, Listener, Printed, Session},
    report::ProcessReport,
};
use windlass_sandbox::{
    ChildStdio, Program,
    terminal::{self, PtyPair},
};

#[cfg(target_os = "linux")]
use windlass_sandbox::ChildPid;

#[cfg(target_os = "linux")]
use crate::input_wait::{self, InputWatcher};
use crate::{
    denial_check::DenialCheck,
    launch::CommandLaunch,
    output_buffer::OutputBuffer,
    outside_lock::OutsideLockGuard,
    process::{self, OutputCapture},
    spawner::{ChildSpawner, RunningChild, SpawnRequest},
    spending::TimeMeter,
    undo_recorder::CommandTicket,
    window::Window,
};

/// A session to start.
pub(crate) struct SessionRequest {
    pub(crate) program: Program,
    pub(crate) launch: CommandLaunch,
    pub(crate) keyboard: Keyboard,
    pub(crate) window: Window,
    pub(crate) buffer: OutputBuffer,
    /// Maximum time it may run. `output_limit` is the maximum number of bytes it may print.
    pub(crate) time_left: Duration,
    pub(crate) output_limit: Option<u64>,
    pub(crate) wall: TimeMeter,
    pub(crate) cpu: TimeMeter,
    pub(crate) output: Listener,
    /// Held until the command is gone; then its changes are recorded.
    pub(crate) ticket: Option<CommandTicket>,
    /// Held until the command is gone and its changes are checked.
    pub(crate) outside_lock: Option<OutsideLockGuard>,
}

impl SessionRequest {
    /// Starts the session.
    pub(crate) async fn start(self, spawner: &ChildSpawner) -> Result<RunningSession, HostError> {
        let Self {
            program,
            launch,
            keyboard,
            window,
            buffer,
            time_left,
            output_limit,
            wall,
            cpu,
            output,
            ticket,
            outside_lock,
        } = self;
        let line = program.line();
        let streams = SessionStdio::open(keyboard, &window);
        let streams =
            streams.map_err(|source| HostError::Spawn { program: program.name().to_owned(), source })?;
        let SessionStdio { stdio, reader, keys, resizer } = streams;
        let check = DenialCheck::new(&program, &launch);
        let child = spawner.spawn(SpawnRequest { program, stdio, launch }).await?;
        let held = child.held().clone();
        #[cfg(target_os = "linux")]
        let pid = child.pid();
        let state = Arc::new(SessionState::new(buffer));
        let end = CancellationToken::new();
        let attendant = SessionTask {
            child,
            reader,
            resizer,
            state: Arc::clone(&state),
            end: end.clone(),
            time_left,
            output_limit,
            wall,
            cpu,
            output,
            ticket,
            outside_lock,
            check,
        };
        let task = tokio::spawn(attendant.attend());
        Ok(RunningSession {
            line,
            held,
            keys,
            state,
            end,
            task,
            #[cfg(target_os = "linux")]
            pid,
        })
    }
}

/// The standard descriptors of a session, and this process's ends of them.
struct SessionStdio {
    stdio: ChildStdio,
    reader: pipe::Receiver,
    keys: Option<TerminalInput>,
    resizer: Option<TerminalResizer>,
}

/// This process's end of a terminal, to type on. It is read and written like a pipe.
#[derive(Debug)]
struct TerminalInput {
    writer: AsyncMutex<pipe::Sender>,
    #[cfg(target_os = "linux")]
    watcher: Arc<InputWatcher>,
}

/// This process's end of a terminal, whose size follows that of the window.
#[derive(Debug)]
struct TerminalResizer {
    ours: OwnedFd,
    window: Window,
}

impl TerminalResizer {
    /// Follows the window until the future is dropped.
    async fn follow(mut self) -> Infallible {
        loop {
            let size = self.window.changed().await;
            // If the terminal is gone, its size does not matter.
            let _set = terminal::set_size(&self.ours, size);
        }
    }
}

impl SessionStdio {
    fn open(keyboard: Keyboard, window: &Window) -> io::Result<Self> {
        if keyboard == Keyboard::Absent {
            let (reader, writer) = process::pipe()?;
            let error = writer.try_clone()?;
            let input = process::null_device()?;
            let stdio = ChildStdio { input, output: writer, error };
            return Ok(Self { stdio, reader, keys: None, resizer: None });
        }
        let mut window = window.clone();
        let PtyPair { ours, theirs } = PtyPair::open(window.size())?;
        let keys = TerminalInput::new(&ours, &theirs)?;
        let resizer = Some(TerminalResizer { ours: ours.try_clone()?, window });
        let stdio = ChildStdio { input: theirs.try_clone()?, output: theirs.try_clone()?, error: theirs };
        let reader = pipe::Receiver::from_owned_fd_unchecked(ours)?;
        Ok(Self { stdio, reader, keys: Some(keys), resizer })
    }
}

impl TerminalInput {
    fn new(ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<Self> {
        let writer = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        #[cfg(target_os = "linux")]
        let watcher = Arc::new(InputWatcher::new(ours, theirs)?);
        #[cfg(not(target_os = "linux"))]
        let _unused = theirs;
        Ok(Self {
            writer: AsyncMutex::new(writer),
            #[cfg(target_os = "linux")]
            watcher,
        })
    }
}

/// The data of the task of a session.
struct SessionTask {
    child: RunningChild,
    reader: pipe::Receiver,
    resizer: Option<TerminalResizer>,
    state: Arc<SessionState>,
    end: CancellationToken,
    time_left: Duration,
    output_limit: Option<u64>,
    /// Counts until it is dropped.
    wall: TimeMeter,
    cpu: TimeMeter,
    output: Listener,
    ticket: Option<CommandTicket>,
    outside_lock: Option<OutsideLockGuard>,
    check: DenialCheck,
}

impl SessionTask {
    /// Reads until the end, then kills what the command left behind.
    async fn attend(self) {
        let Self { mut child, reader, resizer, state, end, time_left, output_limit, output, .. } = self;
        let pass_on = |bytes: &[u8]| {
            state.progress.send_modify(|progress| progress.printed_bytes += bytes.len() as u64);
            output(bytes);
        };
        let mut capture = OutputCapture::new(reader, &state.buffer, output_limit, &pass_on);
        let stop = process::stop(time_left, &end);
        let stay = process::stay(&mut child, Instant::now(), stop, Some(&mut capture));
        let end = match resizer {
            None => stay.await,
            Some(resizer) => tokio::select! {
                end = stay => end,
                never = resizer.follow() => match never {},
            },
        };
        // Before the end becomes visible.
        drop(self.wall);
        self.cpu.settle(end.as_ref().ok().and_then(|end| end.cpu));
        // A child that cannot be waited for is killed when it is dropped.
        let mut ended = end.map_or_else(|_lost| ProcessReport::new(Exit::KILLED), |end| end.report);
        let held = child.held().clone();
        drop(child);
        drop(self.ticket);
        ended.denials = self.check.complete(ended.denials, ended.exit, &state.buffer.look(), held).await;
        drop(self.outside_lock);
        state.close(ended);
    }
}

/// The output of a session, and its end.
#[derive(Debug)]
struct SessionState {
    buffer: OutputBuffer,
    progress: watch::Sender<SessionProgress>,
    ended: OnceLock<ProcessReport>,
}

#[derive(Debug, Clone, Copy, Default)]
struct SessionProgress {
    printed_bytes: u64,
    over: bool,
}

impl SessionState {
    fn new(buffer: OutputBuffer) -> Self {
        Self { buffer, progress: watch::Sender::default(), ended: OnceLock::new() }
    }

    /// Marks the session as ended; it prints nothing more.
    fn close(&self, ended: ProcessReport) {
        // It is closed once.
        let _first = self.ended.set(ended);
        self.progress.send_modify(|progress| progress.over = true);
    }
}

/// A running session.
#[derive(Debug)]
pub(crate) struct RunningSession {
    line: String,
    held: Held,
    keys: Option<TerminalInput>,
    state: Arc<SessionState>,
    end: CancellationToken,
    task: JoinHandle<()>,
    /// PID of the first process, valid until it is reaped.
    #[cfg(target_os = "linux")]
    pid: ChildPid,
}

impl RunningSession {
    /// Returns the command on one line, shortened.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Asks the session to end, without waiting.
    pub(crate) fn tell_to_end(&self) {
        self.end.cancel();
    }
}

impl Drop for RunningSession {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session for RunningSession {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(async move {
            let keys = self.keys.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
            keys.writer.lock().await.write(bytes).await
        })
    }

    fn take(&self, shown_bytes: usize) -> BoxFuture<'_, Printed> {
        Box::pin(self.state.buffer.take(shown_bytes))
    }

    fn progress(&self, beyond: u64) -> BoxFuture<'_, u64> {
        Box::pin(async move {
            let mut progress = self.state.progress.subscribe();
            let news = progress.wait_for(|now| now.over || now.printed_bytes > beyond).await;
            // This session holds the sender, so it cannot be gone.
            news.map_or(beyond, |now| now.printed_bytes)
        })
    }

    #[cfg(target_os = "linux")]
    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Some(keys) = self.keys.as_ref().filter(|_| self.ended().is_none()) else { return false };
            let watcher = Arc::clone(&keys.watcher);
            tokio::task::spawn_blocking(move || watcher.foreground_waits_for_input()).await.unwrap_or(false)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    #[cfg(target_os = "linux")]
    fn running(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let pid = self.pid;
            if self.ended().is_some() {
                return Vec::new();
            }
            let look = move || input_wait::program_names(&pid.descendants());
            tokio::task::spawn_blocking(look).await.unwrap_or_default()
        })
    }

    fn ended(&self) -> Option<ProcessReport> {
        self.state.ended.get().cloned()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.tell_to_end();
            let mut progress = self.state.progress.subscribe();
            // This session holds the sender, so it cannot be gone.
            drop(progress.wait_for(|now| now.over).await);
        })
    }

    fn held(&self) -> Held {
        self.held.clone()
    }
}

//! Hosts for the calls of a [`Machine`].

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, CallId, Host,
    files::Files,
    grant::{DirectProgram, Held, Limits, Mechanism},
    host::{Command, FinishedCommand, HostError, Keyboard, Listener, OutputListener, Session, Whole},
};
use windlass_files::ConfinedFiles;
use windlass_sandbox::Program;

use super::Machine;
use crate::{
    direct_program,
    launch::CommandLaunch,
    output_buffer::OutputBuffer,
    outputs::{OutputDirectory, OutputSpill},
    outside_lock::OutsideLockGuard,
    preview,
    process::{self, OutputStreams},
    pty::SessionRequest,
    undo_recorder::CommandTicket,
};

/// The host of a call that declared to start no process. It refuses every command.
pub(super) struct ProcesslessHost {
    pub(super) outputs: Option<Arc<OutputDirectory>>,
}

impl Host for ProcesslessHost {
    fn keep_output(&self, output: Vec<u8>) -> BoxFuture<'_, Option<Whole>> {
        Box::pin(kept_output(self.outputs.clone(), output))
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::InProcess)
    }
}

/// Runs commands with the confinement of a grant.
pub(super) struct CommandHost {
    pub(super) machine: Machine,
    pub(super) cwd: PathBuf,
    pub(super) limits: Limits,
    pub(super) launch: CommandLaunch,
    pub(super) files: ConfinedFiles,
    /// The program that runs instead of any command, if the grant is for a single program.
    pub(super) direct: Option<DirectProgram>,
    /// The call that changes by commands are recorded for.
    pub(super) call: Option<CallId>,
    pub(super) undo_limits: Mutex<Vec<String>>,
    pub(super) held: Mutex<Held>,
}

impl CommandHost {
    fn output_buffer(&self) -> OutputBuffer {
        OutputBuffer::new(self.limits.output_bytes, self.machine.outputs.clone())
    }

    /// Returns the program to start: that of the command, or the one that the grant is for.
    fn program(&self, command: &Command) -> Result<Program, HostError> {
        let environment = &self.machine.environment;
        match &self.direct {
            Some(direct) => {
                let command = direct_program::command(direct, command, environment);
                Program::new(&command, &BTreeMap::new(), &direct.cwd)
            }
            None => Program::new(command, environment, &self.cwd)?.with_shell_bypass(command),
        }
    }

    /// Keeps a sandboxed command that may write apart from a program outside that a lasting
    /// approval allowed.
    async fn outside_lock(&self, program: &Program) -> Result<Option<OutsideLockGuard>, HostError> {
        let lock = &self.machine.outside_lock;
        let (guard, reason) = match (&self.direct, &self.launch) {
            (Some(direct), _) => {
                let obstacle = self.machine.obstacle_outside(&direct.writable);
                let guard = lock.lock_outside().filter(|_| obstacle.is_none());
                (guard, obstacle.unwrap_or_else(|| "another command has just started".to_owned()))
            }
            (None, CommandLaunch::Sandboxed(_)) if self.launch.may_write() => {
                let reason = "a program that was approved before still runs outside of the sandbox";
                (lock.lock_sandboxed().await, reason.to_owned())
            }
            _ => return Ok(None),
        };
        let program = program.name().to_owned();
        guard.map(Some).ok_or(HostError::NotApart { program, reason })
    }

    /// Prepares to undo the changes of a command. The ticket is held until the command is gone.
    async fn record(&self, program: &Program) -> Option<CommandTicket> {
        // On a layer the workspace does not change yet. Applying the layer records its changes.
        let may_change = self.launch.may_write() && self.machine.preview.is_none();
        let recorder = self.machine.undo_recorder.as_ref().filter(|_| may_change)?;
        let (ticket, limits) = recorder.begin(self.call.clone()?, program.line()).await;
        *self.undo_limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
        ticket
    }
}

impl CommandHost {
    async fn complete(
        &self,
        command: &Command,
        streams: OutputStreams,
        cancel: &CancellationToken,
        output: OutputListener<'_>,
    ) -> Result<FinishedCommand, HostError> {
        let _turn = match &self.machine.preview {
            Some(preview) => Some(preview.take_turn().await),
            None => None,
        };
        let spending = &self.machine.spending;
        let (left, quota) = (spending.left()?, &self.limits.quota);
        let program = self.program(command)?;
        let _outside_lock = self.outside_lock(&program).await?;
        let _ticket = self.record(&program).await;
        let _meter = spending.wall.count();
        let run = process::CommandRun {
            program,
            launch: self.launch.clone(),
            time_limit: command
                .time_limit
                .unwrap_or(self.limits.default_time)
                .min(self.limits.max_time)
                .min(left)
                .min(quota.wall()),
            buffer: self.output_buffer(),
            output_limit: quota.output_bytes,
            cpu: spending.cpu.count_later(),
            streams,
            output,
        };
        let finished = run.complete(&self.machine.spawner, cancel).await?;
        if let Some(held) = &finished.report.held {
            held.clone_into(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(finished)
    }
}

impl Host for CommandHost {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        Box::pin(self.complete(command, self.machine.streams, cancel, output))
    }

    fn run_apart<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        Box::pin(self.complete(command, OutputStreams::Apart, cancel, output))
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn open<'a>(
        &'a self,
        command: &'a Command,
        input: Keyboard,
        output: Listener,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, HostError>> {
        Box::pin(async move {
            if self.machine.preview.is_some() {
                let program = command.argv.first().cloned().unwrap_or_default();
                let reason = preview::refusal("it is for commands that end, and a session goes on");
                return Err(HostError::NotHeld { program, reason });
            }
            let spending = &self.machine.spending;
            let quota = &self.limits.quota;
            let time_left = spending.left()?.min(quota.wall());
            let program = self.program(command)?;
            let request = SessionRequest {
                outside_lock: self.outside_lock(&program).await?,
                ticket: self.record(&program).await,
                program,
                launch: self.launch.clone(),
                keyboard: input,
                window: self.machine.window.clone(),
                buffer: self.output_buffer(),
                time_left,
                output_limit: quota.output_bytes,
                wall: spending.wall.count(),
                cpu: spending.cpu.count_later(),
                output,
            };
            let running = Arc::new(request.start(&self.machine.spawner).await?);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = running.held();
            let mut sessions = self.machine.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.retain(|session| session.strong_count() > 0);
            sessions.push(Arc::downgrade(&running));
            Ok(running as Arc<dyn Session>)
        })
    }

    fn keep_output(&self, output: Vec<u8>) -> BoxFuture<'_, Option<Whole>> {
        Box::pin(kept_output(self.machine.outputs.clone(), output))
    }

    fn held(&self) -> Held {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn undo_limits(&self) -> Vec<String> {
        self.undo_limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Keeps an output in a file if it is long.
async fn kept_output(outputs: Option<Arc<OutputDirectory>>, output: Vec<u8>) -> Option<Whole> {
    let mut spill = OutputSpill::new(outputs?);
    spill.push(&output);
    spill.finish(usize::MAX).await
}

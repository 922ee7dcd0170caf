//! Runs an admitted call: one attempt, and after a denial, one question and one attempt with wider
//! access.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tracing::{Instrument, debug_span};
use windlass_contract::{
    Clean, Cx, Denial, Effects, Event, Grant, Host, Output, Ready, ToolCall, ToolError,
    host::{ConfineError, Exit, Layer, Proof},
    journal::{JournalError, Record},
    outcome::Facts,
    tool::{ErrorKind, LookFirst},
};
use windlass_shape::{Failure, Secrets};

use crate::{
    Stop, Toolbox, decisions,
    gate::{CallAdmission, GateRequest, HookedRequest},
    gate_time::GateTime,
    plan_mode,
    stages::{AttemptReport, RunnableCall},
};

/// Maximum time for a stopped tool to finish before it is dropped. A command that does not end on
/// request is killed after 200 ms, and its output is worth keeping.
const GRACE: Duration = Duration::from_millis(500);

/// The same for a call on a server, which is asked to cancel it, and ended if it does not.
const REMOTE_GRACE: Duration = Duration::from_secs(2);

/// The attempts to run a call.
#[derive(Clone, Copy)]
pub(crate) struct CallAttempt<'a> {
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) call: &'a ToolCall,
    /// The call as others may see it.
    pub(crate) clean_call: &'a Clean<ToolCall>,
    pub(crate) stop: &'a Stop,
    pub(crate) gate_time: &'a GateTime,
    /// The reason that a hook has to ask a person.
    pub(crate) asked: Option<&'a str>,
}

impl CallAttempt<'_> {
    /// Runs the call within a grant. If the sandbox blocks it and a person allows more, runs it
    /// once more within a wider grant.
    pub(crate) async fn run(
        &self,
        runnable: &RunnableCall,
        clean_effects: &Clean<Effects>,
        admission: CallAdmission,
    ) -> AttemptReport {
        let Self { toolbox, call, clean_call, stop, gate_time, .. } = *self;
        let effects = &runnable.effects;
        let CallAdmission { grant, decision } = admission;
        if let Err(failure) = self.intend(clean_effects, &decision) {
            return AttemptReport { decision, ..AttemptReport::not_started(failure) };
        }
        toolbox.events.emit(Event::CallStarted { call: clean_call.clone(), effects: clean_effects.clone() });
        let first = self.act(runnable, &grant, decision).await;
        let denials = first.result.as_ref().map_or(&[][..], stopped);
        if denials.is_empty() {
            return first;
        }
        decisions::stopped(call, denials);
        let judged = toolbox.gate.judge(effects);
        let secrets = judged.map_or_else(
            || Secrets::kinds_in_call(call, clean_call),
            |judged| judged.secrets_in(call, clean_call, &toolbox.shaper.secrets),
        );
        let (events, hooked) = (&*toolbox.events, self.hooked());
        let request = GateRequest { call, effects, secrets: &secrets, events, stop, hooked };
        let further = async {
            tokio::select! {
                biased;
                _reason = stop.stopped() => Ok(None),
                further = toolbox.gate.admit_escalated(request, denials) => further,
            }
        };
        let CallAdmission { grant, decision } = match gate_time.count(further).await {
            Ok(Some(admission)) => admission,
            Ok(None) => return first,
            Err(failure) => return AttemptReport { result: Err(failure), ..first },
        };
        if let Err(failure) = self.intend(clean_effects, &decision) {
            return AttemptReport { result: Err(failure), decision, ..first };
        }
        self.act(runnable, &grant, decision).await
    }

    /// Runs the look of a call within a grant. It changes nothing, so it is neither announced nor
    /// recorded.
    pub(crate) async fn look(
        &self,
        look: &dyn LookFirst,
        effects: &Effects,
        grant: &Grant,
    ) -> Result<Box<dyn Ready>, Failure> {
        let host = self.toolbox.sandbox.confine(grant).map_err(|error| unheld(error, effects))?;
        let cx = self.cx(host);
        self.guarded(look.look(&cx), GRACE).await
    }

    /// Returns what the gate needs of the hooks.
    pub(crate) fn hooked(&self) -> HookedRequest<'_> {
        HookedRequest { asked: self.asked, hooks: self.toolbox.hooks.as_ref() }
    }

    fn cx(&self, host: Arc<dyn Host>) -> Cx {
        let events = Arc::clone(&self.toolbox.events);
        Cx { id: self.call.id.clone(), host, cancel: self.stop.token(), events }
    }

    /// Records the intent. A call that cannot be recorded does not run.
    fn intend(&self, effects: &Clean<Effects>, decision: &str) -> Result<(), Failure> {
        let decision = self.toolbox.shaper.secrets.clean_text(decision.to_owned());
        let intent = Clean::intent(self.clean_call, effects.clone(), decision);
        let record = Record::Intent(intent.as_ref());
        let written = debug_span!("journal").in_scope(|| self.toolbox.journal.append(&record));
        written.map_err(|error| Failure::Tool(unwritten(error)))
    }

    /// Confines and runs the call, and reports the confinement that was in force.
    async fn act(&self, runnable: &RunnableCall, grant: &Grant, decision: String) -> AttemptReport {
        // Starts before the sandbox is prepared.
        let flushed = runnable.may_change.then(|| self.toolbox.journal.flush());
        let confined =
            debug_span!("confine").in_scope(|| self.toolbox.sandbox.confine(&grant.for_call(&self.call.id)));
        let host = match confined {
            Ok(host) => host,
            Err(error) => {
                let failure = unheld(error, &runnable.effects);
                return AttemptReport { decision, ..AttemptReport::not_started(failure) };
            }
        };
        let cx = self.cx(Arc::clone(&host));
        let work = async {
            if let Some(flushed) = flushed {
                flushed.instrument(debug_span!("flush")).await.map_err(unwritten)?;
            }
            runnable.ready.run(&cx).instrument(debug_span!("call")).await
        };
        let grace = if runnable.effects.remote.is_some() { REMOTE_GRACE } else { GRACE };
        let result = match self.guarded(work, grace).await {
            Ok(output) if was_cancelled(&output) => {
                Err(Failure::CutShort(why_stopped(self.stop), Box::new(output)))
            }
            Ok(output) if self.toolbox.gate.is_planning() => Ok(plan_mode::with_its_remedy(output)),
            result => result,
        };
        let held = host.held();
        decisions::held(self.call, &held, &decision);
        AttemptReport { result, decision, held: Some(held), undo_limits: host.undo_limits() }
    }

    /// Runs a tool until it is done or stopped. A panic in a tool ends that call, not the session.
    async fn guarded<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
        grace: Duration,
    ) -> Result<T, Failure> {
        let (call, stop) = (self.call, self.stop);
        match until_stopped(AssertUnwindSafe(work).catch_unwind(), stop, grace).await {
            Some(Ok(Ok(done))) => Ok(done),
            Some(Ok(Err(error))) if error.kind != ErrorKind::Cancelled => Err(Failure::Tool(error)),
            Some(Ok(Err(_))) | None => Err(aborted(stop)),
            Some(Err(panic)) => {
                let said = panic.downcast_ref::<&str>().map(ToString::to_string);
                let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
                tracing::error!(call.id = %call.id, tool.name = %call.name, panic = said, "the tool crashed");
                Err(Failure::Tool(ToolError::failed("the tool crashed; this is a bug in the tool")))
            }
        }
    }
}

/// Returns the error of a call that could not be recorded.
fn unwritten(error: JournalError) -> ToolError {
    ToolError::failed("not run, because it could not be written down first").with_source(error)
}

/// Returns the denials by the sandbox, if the command failed.
fn stopped(output: &Output) -> &[Denial] {
    if !matches!(output.facts.exit(), Some(Exit::Code(1..) | Exit::Signal(_))) {
        return &[];
    }
    match &output.facts {
        Facts::Command(command) => &command.denials,
        // Text typed to a session is not typed again.
        Facts::Session(session) if session.started => &session.report.denials,
        Facts::Session(_) | Facts::Remote(_) | Facts::None => &[],
    }
}

/// Returns the failure of a call that could not be confined as its grant says.
fn unheld(error: ConfineError, effects: &Effects) -> Failure {
    let denial = Denial {
        layer: Layer::Setup,
        what: error.to_string(),
        rule: "nothing runs with weaker confinement than required".to_owned(),
        need: effects.clone(),
        proof: Proof::Observed,
        remedy: String::new(),
    };
    let (kind, message) = (ErrorKind::Denied(Box::new(denial)), error.to_string());
    Failure::Tool(ToolError { kind, message, source: Some(Box::new(error)) })
}

/// Returns the result of the work, or `None` if it was stopped and did not end within the grace
/// period.
async fn until_stopped<T>(work: impl Future<Output = T>, stop: &Stop, grace: Duration) -> Option<T> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => Some(done),
        _reason = stop.stopped() => tokio::time::timeout(grace, work).await.ok(),
    }
}

/// Returns the failure of a stopped call.
pub(crate) fn aborted(stop: &Stop) -> Failure {
    Failure::Aborted(why_stopped(stop))
}

fn why_stopped(stop: &Stop) -> String {
    stop.reason().unwrap_or(crate::Reason::Interrupted).message().to_owned()
}

fn was_cancelled(output: &Output) -> bool {
    matches!(&output.facts, Facts::Command(command) if command.exit == Exit::Cancelled)
}

#[cfg(test)]
mod tests;

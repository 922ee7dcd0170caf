//! Runs one call, from the model's request to its outcome.

use std::{fmt, path::Path, sync::Arc, time::Instant};

use tracing::{Instrument, debug_span};
use windlass_contract::{
    Clean, Content, Effects, Event, Item, Journal, Output, ParsedCall, Sandbox, ToolCall, ToolError,
    event::EventEmitter,
    host::Exit,
    item::{Body, Role},
    journal::{JournalError, Record},
    meta::Format,
    outcome::Receipt,
    verdict::Criteria,
};
use windlass_policy::exit_one_means_no;
use windlass_shape::{Failure, Secrets, Shaper};

use crate::{
    FinishedCall, Gate, PastCall, PreparedCall, Registry, Review, Stop, decisions,
    gate::{CallAdmission, CommandJudgement, GateRequest},
    gate_time::GateTime,
    orchestrator::{self, CallAttempt},
    preflight,
    router::{self, AcceptedCall, RoutedCall},
    schedule::CallPlace,
    session_hooks::{HookEffects, HookedCall, MAX_PASSES, SessionHooks, changed_input, refused_by_hook},
    spans,
    stages::{AttemptReport, CalledTool, JudgedCall, RunnableCall, UnshapedCall},
};

/// Everything a call passes through. The parts are traits or data; [`run`](Self::run) is the order.
pub struct Toolbox {
    /// The tools.
    pub registry: Registry,
    /// Decides which calls may run.
    pub gate: Gate,
    /// Enforces the decisions of the gate.
    pub sandbox: Arc<dyn Sandbox>,
    /// Shapes results for the model.
    pub shaper: Shaper,
    /// Reviews ended calls.
    pub review: Review,
    /// Records calls and outcomes.
    pub journal: Arc<dyn Journal>,
    /// Receives events.
    pub events: Arc<dyn EventEmitter>,
    /// The hooks of the session, if there are any.
    pub hooks: Option<SessionHooks>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Toolbox {
    /// Runs one call outside of a conversation. It is recorded first, as a turn does with the calls
    /// of a model.
    pub async fn call(&self, call: ToolCall, stop: &Stop) -> FinishedCall {
        let prepared = self.prepare(call.clone());
        self.record_call(&call);
        self.run(prepared, stop).await
    }

    /// Records a call outside of a conversation, before it runs.
    pub fn record_call(&self, call: &ToolCall) {
        let item: Clean<Item> = self.shaper.secrets.clean_call(call).into();
        if let Err(error) = self.journal.append(&Record::Item(item.as_ref())) {
            // Recording the intent meets the same error, and an unrecorded call does not run.
            tracing::error!(%error, "the call is not on record");
        }
    }

    /// Records a message of the user outside of a conversation.
    pub fn record_message(&self, text: &str) -> Result<(), JournalError> {
        let content = vec![Content::Text(self.shaper.secrets.clean(text).into_owned())];
        let item: Item = Body::Message { role: Role::User, content }.into();
        self.journal.append(&Record::Item(self.shaper.secrets.clean_item(&item).as_deref()))
    }

    /// Routes a call. It is cheap and has no effects, so that a batch can be ordered before any
    /// call runs.
    pub fn prepare(&self, call: ToolCall) -> PreparedCall {
        let _step = debug_span!("route", gen_ai.tool.call.id = %call.id).entered();
        let RoutedCall { tool, accepted } = router::route(&self.registry, &call);
        decisions::routed(&call, &accepted);
        let parallel = tool.is_none_or(|tool| tool.meta.parallel);
        let (format, criteria) = match tool {
            Some(tool) => (tool.meta.format, tool.meta.criteria.clone()),
            None => (Format::default(), Criteria::default()),
        };
        // From here on the call has the name of the tool, not the one that the model wrote.
        let name = tool.map_or_else(|| call.name.clone(), |tool| tool.spec.name.clone());
        let is_unknown = tool.is_none();
        let (arguments, mut repairs, judged) = match accepted {
            Ok(AcceptedCall { parsed, effects, arguments, mut repairs }) => {
                repairs.extend(parsed.adjustments());
                let (effects, judged) = self.judge(effects);
                (arguments, repairs, Ok(JudgedCall { parsed, effects, judged }))
            }
            Err(failure) => (None, Vec::new(), Err(failure)),
        };
        let place = self.place(&judged, parallel);
        repairs.extend(judged.as_ref().ok().and_then(|call| self.gate.cut_time_limit(&call.effects)));
        let tool = CalledTool { is_unknown, format, criteria };
        PreparedCall { call: ToolCall { name, ..call }, tool, arguments, repairs, place, judged }
    }

    /// Returns the place of a call among the others.
    fn place(&self, judged: &Result<JudgedCall, Failure>, parallel: bool) -> CallPlace {
        match judged {
            Err(_) => CallPlace::untouched(),
            Ok(JudgedCall { judged: Some(judged), effects, .. }) if self.gate.overlaps(judged) => {
                CallPlace::shared_command(effects)
            }
            Ok(call) if call.judged.is_some() || !parallel || call.looks_first() => {
                CallPlace::alone(&call.effects)
            }
            Ok(call) => {
                let real_path = |path: &Path| self.sandbox.real_path(&self.gate.absolute(path));
                CallPlace::from_effects(&call.effects, real_path)
            }
        }
    }

    /// Runs a call. Every possible end is an outcome, which is recorded and announced before it is
    /// returned.
    pub async fn run(&self, prepared: PreparedCall, stop: &Stop) -> FinishedCall {
        let span = spans::execute_tool(&prepared.call);
        let run = Box::pin(self.run_to_its_end(prepared, stop));
        let finished = run.instrument(span.clone()).await;
        spans::ended(&span, &finished.outcome);
        finished
    }

    async fn run_to_its_end(&self, prepared: PreparedCall, stop: &Stop) -> FinishedCall {
        let (began, gate_time) = (Instant::now(), GateTime::default());
        let (prepared, hooked) = match &self.hooks {
            Some(hooks) => gate_time.count(self.pass_hooks(hooks, prepared, stop)).await,
            None => (prepared, HookedCall::default()),
        };
        let PreparedCall { call, tool, arguments, repairs, judged, .. } = prepared;
        let HookedCall { asked, answers: hooks, notes: hook_notes, changes } = hooked;
        let repairs = changes.into_iter().chain(repairs).collect();
        let clean_call = self.shaper.secrets.clean_call(&call);
        let ended = match judged {
            Ok(judged) => {
                let (call, clean_call, gate_time) = (&call, &clean_call, &gate_time);
                let asked = asked.as_deref();
                let attempt = CallAttempt { toolbox: self, call, clean_call, stop, gate_time, asked };
                self.perform(&attempt, judged).await
            }
            Err(failure) => self.not_started(Effects::none(), failure),
        };
        let UnshapedCall { effects, clean_effects, may_change, report } = ended;
        let AttemptReport { result, decision, held, undo_limits } = report;
        if let Err(Failure::Tool(error)) = &result {
            // The model reads the message; the source is for the operator.
            let source = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(call.id = %call.id, tool.name = %call.name, %error, source, "the tool failed");
        }
        let CalledTool { is_unknown: unknown_tool, format, mut criteria } = tool;
        criteria.one_is_an_answer = result.as_ref().is_ok_and(|output| answered(&effects, output));
        let duration = gate_time.running_time(began);
        let receipt =
            Receipt { decision, held, undo_limits, repairs, unknown_tool, duration, ..Receipt::default() };
        let receipt = Receipt { hooks, hook_notes, ..receipt };
        let shape = || self.shaper.of(call.name.as_str()).shape(format, &criteria, result, receipt);
        let shaped = debug_span!("shape").in_scope(shape);
        let review = self.review.look(&call, may_change, &shaped, stop);
        let verdict = review.instrument(debug_span!("review")).await;
        let outcome = self.shaper.conclude(shaped, verdict);
        let outcome = match &self.hooks {
            // A call that did not run is not told about.
            Some(hooks) if outcome.receipt.held.is_some() => {
                let told = hooks.after_call(&call, &effects, &outcome, stop);
                let HookEffects { denied, context, answers, .. } =
                    until_stopped(told, stop).await.unwrap_or_default();
                let notes = denied.into_iter().chain(context).collect();
                self.shaper.with_hooks(outcome, answers, notes)
            }
            _ => outcome,
        };
        decisions::judged(&call, &outcome);
        let record = Record::Outcome { call: &call.id, outcome: outcome.as_ref() };
        if let Err(error) = debug_span!("record").in_scope(|| self.journal.append(&record)) {
            // The turn loop writes next, meets the same error, and ends the turn.
            tracing::error!(call.id = %call.id, %error, "the outcome is not on record");
        }
        decisions::ended(&call, &outcome, gate_time.running_time(began));
        let event =
            Event::CallEnded { call: clean_call, effects: clean_effects, outcome: Box::new(outcome.clone()) };
        self.events.emit(event);
        FinishedCall { call, arguments, effects, outcome }
    }

    /// Tells the hooks about a call that makes sense. One that they deny does not run. One whose
    /// arguments they change is prepared again, and they are told about it again.
    async fn pass_hooks(
        &self,
        hooks: &SessionHooks,
        mut prepared: PreparedCall,
        stop: &Stop,
    ) -> (PreparedCall, HookedCall) {
        let mut hooked = HookedCall::default();
        for _pass in 0..MAX_PASSES {
            let Ok(judged) = &prepared.judged else { return (prepared, hooked) };
            let told = hooks.before_call(&prepared.call, &judged.effects, stop);
            let Some(answered) = until_stopped(told, stop).await else {
                prepared.judged = Err(orchestrator::aborted(stop));
                return (prepared, hooked);
            };
            (hooked.asked, hooked.notes) = (answered.asked, answered.context);
            hooked.answers.extend(answered.answers);
            if let Some(reason) = answered.denied {
                prepared.judged = Err(refused_by_hook(&prepared.call, &judged.effects, &reason));
                return (prepared, hooked);
            }
            let Some(input) = answered.updated_input else { return (prepared, hooked) };
            match changed_input(&prepared.call, &judged.effects, &input) {
                Ok(None) => return (prepared, hooked),
                Ok(Some(changed)) => {
                    let input = self.shaper.secrets.clean(changed.input.as_str()).into_owned();
                    hooked.changes = vec![format!("a PreToolUse hook changed them to {input}")];
                    let place = prepared.place.clone();
                    prepared = self.prepare(changed);
                    if prepared.judged.is_ok() && !place.covers(&prepared.place) {
                        // Other calls run beside it that it would have had to wait for.
                        prepared.judged = Err(Failure::Refused(format!(
                            "refused: a PreToolUse hook changed the arguments, and the call would touch more than it \
                             was scheduled for; call the tool again with {input}"
                        )));
                    }
                }
                Err(problem) => {
                    let reason =
                        format!("refused: the answer of a PreToolUse hook cannot be used: {problem}");
                    prepared.judged = Err(Failure::Refused(reason));
                }
            }
        }
        if prepared.judged.is_ok() {
            let reason = "refused: PreToolUse hooks change the arguments of this call again and again";
            prepared.judged = Err(Failure::Refused(reason.to_owned()));
        }
        (prepared, hooked)
    }

    /// Looks if the call must, passes the gate and runs. Each stage can end the call.
    async fn perform(&self, attempt: &CallAttempt<'_>, judged: JudgedCall) -> UnshapedCall {
        let mut runnable = match self.look_first(attempt, judged).await {
            Ok(runnable) => runnable,
            Err((effects, failure)) => return self.not_started(effects, failure),
        };
        let judged = runnable.judged.take();
        let clean_effects = self.shaper.secrets.clean_effects(&runnable.effects);
        let report = match self.admit(attempt, &runnable.effects, judged).await {
            Ok(admission) => {
                let run = attempt.run(&runnable, &clean_effects, admission);
                run.instrument(debug_span!("attempt")).await
            }
            Err(failure) => AttemptReport::not_started(failure),
        };
        let RunnableCall { effects, may_change, .. } = runnable;
        UnshapedCall { effects, clean_effects, may_change, report }
    }

    fn not_started(&self, effects: Effects, failure: Failure) -> UnshapedCall {
        let clean_effects = self.shaper.secrets.clean_effects(&effects);
        UnshapedCall::not_started(effects, clean_effects, failure)
    }

    /// Runs the look of a call that must look first, and returns the resulting call. The look is
    /// admitted and confined like any call that only reads; the resulting call is decided
    /// separately.
    async fn look_first(
        &self,
        attempt: &CallAttempt<'_>,
        call: JudgedCall,
    ) -> Result<RunnableCall, (Effects, Failure)> {
        let JudgedCall { parsed, effects, judged } = call;
        let look = match parsed {
            ParsedCall::Runs(ready) => return Ok(RunnableCall::new(ready, effects, judged)),
            ParsedCall::LooksFirst(look) => look,
        };
        let looked = match self.admit(attempt, &effects, judged).await {
            Ok(admission) => attempt.look(&*look, &effects, &admission.grant).await,
            Err(failure) => Err(failure),
        };
        let ready = looked.map_err(|failure| (effects, failure))?;
        let (effects, judged) = self.judge(ready.effects());
        Ok(RunnableCall::new(ready, effects, judged))
    }

    /// Judges the command of a call, and adds its effects beyond the machine.
    fn judge(&self, mut effects: Effects) -> (Effects, Option<CommandJudgement>) {
        let judged = self.gate.judge(&effects);
        if let Some(judged) = &judged {
            effects.outward.extend(judged.outward());
            effects.outward.sort_unstable();
            effects.outward.dedup();
        }
        (effects, judged)
    }

    async fn admit(
        &self,
        attempt: &CallAttempt<'_>,
        effects: &Effects,
        judged: Option<CommandJudgement>,
    ) -> Result<CallAdmission, Failure> {
        let CallAttempt { call, clean_call, stop, gate_time, .. } = *attempt;
        debug_span!("preflight").in_scope(|| preflight::check(effects)).map_err(Failure::Tool)?;
        let class = judged.as_ref().map(CommandJudgement::explain);
        let secrets = match &judged {
            _ if !effects.may_change() => Vec::new(),
            Some(judged) => judged.secrets_in(call, clean_call, &self.shaper.secrets),
            None => Secrets::kinds_in_call(call, clean_call),
        };
        let (events, hooked) = (&*self.events, attempt.hooked());
        let request = GateRequest { call, effects, secrets: &secrets, events, stop, hooked };
        let admitted = async {
            tokio::select! {
                biased;
                // A question may wait for a person. A stopped turn must neither wait for it nor run
                // the call.
                _reason = stop.stopped() => Err(orchestrator::aborted(stop)),
                admitted = self.gate.admit(request, judged).instrument(debug_span!("gate")) => admitted,
            }
        };
        let admitted = gate_time.count(admitted).await;
        decisions::decided(call, class.as_deref(), &admitted);
        admitted
    }

    /// Returns the end of a call whose outcome was lost by an internal error.
    pub(crate) fn lost(&self, call: ToolCall) -> FinishedCall {
        let error = ToolError::failed(
            "the outcome of this call was lost by an internal error; it may have had effects",
        );
        let result = Err(Failure::Tool(error));
        let outcome = self.shaper.shape(Format::Plain, &Criteria::default(), result, Receipt::default());
        let past = PastCall { changes: true, ..PastCall::new(&call, &outcome) };
        self.review.history().push(past);
        FinishedCall { call, arguments: None, effects: Effects::none(), outcome }
    }
}

/// Returns the result of hooks, or `None` if the turn was stopped first. Hooks that are dropped are
/// killed.
async fn until_stopped<T>(hooks: impl Future<Output = T>, stop: &Stop) -> Option<T> {
    tokio::select! {
        biased;
        told = hooks => Some(told),
        _reason = stop.stopped() => None,
    }
}

/// Returns true if a command exited with 1 to answer no, not because of an error.
fn answered(effects: &Effects, output: &Output) -> bool {
    output.facts.exit() == Some(Exit::Code(1))
        && output.facts.denials().is_empty()
        && effects.command.as_ref().is_some_and(exit_one_means_no)
}

#[cfg(test)]
mod tests;

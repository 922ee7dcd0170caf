//! One call, from the model's words to its outcome.

use std::{fmt, sync::Arc, time::Instant};

use serde_json::Value;
use tracing::{Instrument, debug_span};
use windlass_contract::{
    Body, Criteria, Effects, Event, EventSink, Exit, Format, Journal, Outcome, Output, Ready, Receipt,
    Record, Sandbox, ToolCall, ToolError,
};
use windlass_policy::one_is_an_answer;
use windlass_shape::{Failure, Shaper};

use crate::{
    Gate, Registry, Review, Stop, decisions,
    gate::{Admission, GateRequest, Judged},
    orchestrator::{self, Attempt},
    preflight,
    router::{self, Understood},
    spans,
};

/// Everything a call passes through. The parts are traits or data; [`run`](Self::run) is the order.
pub struct Toolbox {
    /// Which tools there are.
    pub registry: Registry,
    /// Who may do what.
    pub gate: Gate,
    /// What makes it so.
    pub sandbox: Arc<dyn Sandbox>,
    /// What the model gets to see of a result.
    pub shaper: Shaper,
    /// Who looks at it again.
    pub review: Review,
    /// What is written down.
    pub journal: Arc<dyn Journal>,
    /// Who watches.
    pub events: Arc<dyn EventSink>,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// A call that was routed: it knows its effects, or already why it cannot run.
pub struct Prepared {
    call: ToolCall,
    /// Set if there is no tool of that name.
    is_unknown: bool,
    format: Format,
    criteria: Criteria,
    arguments: Option<Value>,
    effects: Effects,
    /// What the gate makes of what it would run, if anything.
    judged: Option<Judged>,
    overlaps: bool,
    repairs: Vec<String>,
    ready: Result<Box<dyn Ready>, Failure>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("call", &self.call)
            .field("effects", &self.effects)
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// The call, by the name of its tool.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The arguments it runs with, after repairs and with defaults; none if they make no sense or are plain text.
    pub fn arguments(&self) -> Option<&Value> {
        self.arguments.as_ref()
    }

    /// What it would do; nothing, if its input made no sense.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Whether it may run beside others.
    pub(crate) fn overlaps(&self) -> bool {
        self.overlaps
    }
}

impl Toolbox {
    /// Runs one call that belongs to no conversation. It is written down first, as those of a model are by their turn.
    pub async fn call(&self, call: ToolCall, stop: &Stop) -> Outcome {
        let prepared = self.prepare(call.clone());
        let call = self.shaper.secrets.clean_call(&call);
        if let Err(error) = self.journal.append(&Record::Item(&Body::Call(call).into())) {
            // The intent meets the same error, and what is not written down does not happen.
            tracing::error!(%error, "the call is not on record");
        }
        self.run(prepared, stop).await
    }

    /// Routes a call. Cheap and without effects, so that a batch can be ordered before any of it runs.
    pub fn prepare(&self, call: ToolCall) -> Prepared {
        let _step = debug_span!("route", gen_ai.tool.call.id = %call.id).entered();
        let routed = router::route(&self.registry, &call);
        let (format, criteria) = match routed.tool {
            Some(tool) => (tool.meta.format, tool.meta.criteria.clone()),
            None => (Format::default(), Criteria::default()),
        };
        let (effects, arguments, repairs, ready) = match routed.ready {
            Ok(Understood { ready, effects, arguments, repairs }) => (effects, arguments, repairs, Ok(ready)),
            Err(failure) => (Effects::none(), None, Vec::new(), Err(failure)),
        };
        let (mut effects, mut repairs) = (effects, repairs);
        repairs.extend(ready.iter().flat_map(|ready| ready.adjustments()));
        decisions::routed(&call, &effects, &repairs, &ready);
        let judged = self.judge(&mut effects);
        repairs.extend(self.gate.cut_time_limit(&effects));
        let overlaps = if let Some(judged) = &judged {
            self.gate.overlaps(judged)
        } else {
            // One that looks first does not say yet what it will do.
            let looks = ready.as_ref().is_ok_and(|ready| ready.looks().is_some());
            routed.tool.is_none_or(|tool| tool.meta.parallel) && !effects.may_change() && !looks
        };
        let is_unknown = routed.tool.is_none();
        // From here on it is called what it is, whatever the model said.
        let call = match routed.tool {
            Some(tool) => ToolCall { name: tool.spec.name.clone(), ..call },
            None => call,
        };
        Prepared { call, is_unknown, format, criteria, arguments, effects, judged, overlaps, repairs, ready }
    }

    /// Runs a call. Every way this can end is an outcome; it is on record and announced before it is returned.
    pub async fn run(&self, prepared: Prepared, stop: &Stop) -> Outcome {
        let span = spans::execute_tool(&prepared.call);
        let outcome = self.run_to_its_end(prepared, stop).instrument(span.clone()).await;
        spans::ended(&span, &outcome);
        outcome
    }

    async fn run_to_its_end(&self, prepared: Prepared, stop: &Stop) -> Outcome {
        let began = Instant::now();
        let Prepared { call, format, mut criteria, mut effects, mut judged, overlaps, ready, .. } = prepared;
        let (repairs, unknown_tool) = (prepared.repairs, prepared.is_unknown);
        let mut receipt = Receipt { repairs, unknown_tool, ..Receipt::default() };
        let ready = match ready {
            Ok(ready) => self.looked(&call, &mut effects, &mut judged, ready, stop).await,
            Err(failure) => Err(failure),
        };
        let result = match ready {
            Ok(ready) => {
                let may_change =
                    effects.may_change() && !judged.as_ref().is_some_and(Judged::changes_nothing);
                let attempt = Attempt {
                    toolbox: self,
                    call: &call,
                    effects: &effects,
                    may_change,
                    ready: &*ready,
                    stop,
                };
                self.pass(&attempt, judged, &mut receipt).await
            }
            Err(failure) => Err(failure),
        };
        if let Err(Failure::Tool(error)) = &result {
            // The model reads the message; where it came from is for whoever runs this.
            let source = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(call.id = %call.id, tool.name = %call.name, %error, source, "the tool failed");
        }
        receipt.duration = began.elapsed();
        criteria.one_is_an_answer = result.as_ref().is_ok_and(|output| answered(&effects, output));
        let shape = || self.shaper.of(call.name.as_str()).shape(format, &criteria, result, receipt);
        let mut outcome = debug_span!("shape").in_scope(shape);
        let changes = effects.may_change() && !overlaps;
        self.review.look(&call, changes, &mut outcome, stop).instrument(debug_span!("review")).await;
        self.shaper.show_verdict(&mut outcome);
        decisions::judged(&call, &outcome);
        let record = Record::Outcome { call: &call.id, outcome: &outcome };
        if let Err(error) = debug_span!("record").in_scope(|| self.journal.append(&record)) {
            // The turn loop writes next, meets the same error, and ends the turn.
            tracing::error!(call.id = %call.id, %error, "the outcome is not on record");
        }
        decisions::ended(&call, &outcome, began.elapsed());
        self.events.emit(&Event::CallEnded { call, effects, outcome: Box::new(outcome.clone()) });
        outcome
    }

    /// What a call turns into, if it must look before it can say what it will do. The look is decided and held like any
    /// call that only reads, and what comes of it is decided on its own.
    async fn looked(
        &self,
        call: &ToolCall,
        effects: &mut Effects,
        judged: &mut Option<Judged>,
        ready: Box<dyn Ready>,
        stop: &Stop,
    ) -> Result<Box<dyn Ready>, Failure> {
        let Some(look) = ready.looks() else { return Ok(ready) };
        let attempt = Attempt { toolbox: self, call, effects, may_change: false, ready: &*ready, stop };
        let admission = self.admit(&attempt, judged.take()).await?;
        let next = attempt.look(look, &admission.grant).await?;
        *effects = next.effects();
        *judged = self.judge(effects);
        Ok(next)
    }

    /// Judges what a call would run, and adds to its effects what that tells.
    fn judge(&self, effects: &mut Effects) -> Option<Judged> {
        let judged = self.gate.judge(effects)?;
        effects.outward.extend(judged.outward());
        effects.outward.sort_unstable();
        effects.outward.dedup();
        Some(judged)
    }

    async fn admit(&self, attempt: &Attempt<'_>, judged: Option<Judged>) -> Result<Admission, Failure> {
        let Attempt { call, effects, stop, .. } = *attempt;
        debug_span!("preflight").in_scope(|| preflight::check(call, effects)).map_err(Failure::Tool)?;
        let class = judged.as_ref().map(Judged::explain);
        let secrets = if effects.may_change() { self.shaper.secrets.kinds_in_call(call) } else { Vec::new() };
        let request = GateRequest { call, effects, secrets: &secrets, events: &*self.events, stop };
        let admitted = tokio::select! {
            biased;
            // A question may wait for a person; a stopped turn must not wait with it, nor start what comes of it.
            _reason = stop.stopped() => Err(orchestrator::aborted(stop)),
            admitted = self.gate.admit(request, judged).instrument(debug_span!("gate")) => admitted,
        };
        decisions::decided(call, class.as_deref(), &admitted);
        admitted
    }

    /// The way of a call that makes sense, step by step. Each step can end it.
    async fn pass(
        &self,
        attempt: &Attempt<'_>,
        judged: Option<Judged>,
        receipt: &mut Receipt,
    ) -> Result<Output, Failure> {
        let admission = self.admit(attempt, judged).await?;
        attempt.run(&admission.grant, admission.decision, receipt).instrument(debug_span!("attempt")).await
    }

    /// The outcome of a call whose own was lost through a fault of ours.
    pub(crate) fn lost(&self) -> Outcome {
        let error = ToolError::failed(
            "the outcome of this call was lost by an internal error; it may have had effects",
        );
        self.shaper.shape(Format::Plain, &Criteria::default(), Err(Failure::Tool(error)), Receipt::default())
    }
}

/// Whether a command ended with 1 to say no, and not because something went wrong.
fn answered(effects: &Effects, output: &Output) -> bool {
    output.facts.exit() == Some(Exit::Code(1))
        && output.facts.denials().is_empty()
        && effects.command.as_ref().is_some_and(one_is_an_answer)
}

#[cfg(test)]
mod tests;

//! Decides which calls may run. The only place that makes a [`Grant`].

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use serde_json::json;
use windlass_contract::{
    Denial, Effects, Grant, ToolCall, ToolError,
    approval::{Approver, Beyond, Question, Rulebook},
    effects::{CommandLine, OutwardEffect, normal},
    event::EventEmitter,
    grant::{Confinement, DirectProgram},
    policy::ApprovalPolicy,
    program::ProgramFinder,
};
use windlass_policy::{
    Class, Judgement, Rules, Ruling, Surroundings, Wish, judge_in, judge_typed, may_hold_for_session, offer,
    ruling, ruling_outward,
};
use windlass_seal::GrantSeal;
use windlass_shape::{Failure, Secrets};

use crate::{SessionHooks, Stop};
use decision::GateDecision;
use details::QuestionGrounds;
use question::GivenApproval;

mod decision;
mod details;
mod escalation;
mod files;
mod leaving;
mod memory;
mod policy;
mod programs;
mod question;
mod remote;

pub use memory::SessionApprovals;
pub use policy::Policy;

/// The rules of one or several gates: those of the policy, and those that answers have added since.
/// Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LiveRules(Arc<RwLock<Rules>>);

impl LiveRules {
    /// Begins with these rules.
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(RwLock::new(rules)))
    }

    fn read(&self) -> RwLockReadGuard<'_, Rules> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, rules: Rules) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(rules);
    }
}

/// Decides about calls by the policy, and asks a person if the policy says so.
pub struct Gate {
    policy: Policy,
    rules: LiveRules,
    /// The agent whose calls these are, if another agent has started it.
    agent: Option<String>,
    approver: Option<Arc<dyn Approver>>,
    rulebook: Option<Arc<dyn Rulebook>>,
    finder: Option<Arc<dyn ProgramFinder>>,
    memory: SessionApprovals,
    /// Secrets that no question shows.
    secrets: Secrets,
}

/// A call at the gate.
#[derive(Clone, Copy)]
pub(crate) struct GateRequest<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) effects: &'a Effects,
    /// The kinds of secrets in its arguments.
    pub(crate) secrets: &'a [String],
    pub(crate) events: &'a dyn EventEmitter,
    pub(crate) stop: &'a Stop,
    pub(crate) hooked: HookedRequest<'a>,
}

/// The hooks of a call at the gate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HookedRequest<'a> {
    /// The reason that a hook has to ask a person.
    pub(crate) asked: Option<&'a str>,
    /// The hooks that are told about a question.
    pub(crate) hooks: Option<&'a SessionHooks>,
}

/// The policy's judgement of the command of a call, or of the text it types.
#[derive(Debug)]
pub(crate) struct CommandJudgement {
    judgement: Judgement,
    /// Number of rules at that time. Rules are only ever added.
    rules: usize,
}

impl Gate {
    /// Returns true in plan mode, in which nothing is changed.
    pub(crate) fn is_planning(&self) -> bool {
        self.policy.plan_mode
    }
}

impl CommandJudgement {
    /// Returns true if the command is known to change nothing.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.judgement.changes_nothing
    }

    /// Returns the class of the command and the reason for it, for a log.
    pub(crate) fn explain(&self) -> String {
        format!("{:?}: {}", self.judgement.class, self.judgement.why)
    }

    /// Returns the effects of the command beyond this machine.
    pub(crate) fn outward(&self) -> &[OutwardEffect] {
        &self.judgement.outward
    }
}

/// A grant, and the decision behind it.
#[derive(Debug)]
pub(crate) struct CallAdmission {
    pub(crate) grant: Grant,
    pub(crate) decision: String,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Gate {
    /// Creates a gate. Without an approver, a call that needs a question is refused.
    pub fn new(policy: Policy, approver: Option<Arc<dyn Approver>>) -> Self {
        let rules = LiveRules::new(policy.rules.clone());
        let (memory, secrets) = (SessionApprovals::default(), Secrets::default());
        Self { policy, rules, agent: None, approver, rulebook: None, finder: None, memory, secrets }
    }

    /// Sets the secrets that are redacted from questions, beside those that the cleaner recognizes.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Shares rules with another gate, also those that answers add later.
    #[must_use]
    pub fn with_rules(self, rules: LiveRules) -> Self {
        Self { rules, ..self }
    }

    /// Sets the path of the agent whose calls these are. Its questions name it.
    #[must_use]
    pub fn with_agent(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }

    /// Sets the rulebook that keeps rules made by answers beyond the session.
    #[must_use]
    pub fn with_rulebook(mut self, rulebook: Option<Arc<dyn Rulebook>>) -> Self {
        self.rulebook = rulebook;
        self
    }

    /// Shares approvals for the session with another gate or a front end.
    #[must_use]
    pub fn with_session_approvals(self, memory: SessionApprovals) -> Self {
        Self { memory, ..self }
    }

    /// Sets the finder of programs. Without it, no rule lets a command leave the sandbox.
    #[must_use]
    pub fn with_programs(mut self, finder: Arc<dyn ProgramFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Returns a message if a call requests a longer time limit than allowed. It gets the maximum.
    pub(crate) fn cut_time_limit(&self, effects: &Effects) -> Option<String> {
        let (asked, most) = (effects.time_limit_ms?, self.policy.limits.max_time.as_millis());
        (u128::from(asked) > most).then(|| {
            format!("the time limit of {asked} ms is longer than a call may have and was cut to {most} ms")
        })
    }

    /// Returns an error if a program of a call does not exist: no question is asked about a command
    /// that cannot run.
    fn missing_program(&self, effects: &Effects, judged: Option<&CommandJudgement>) -> Option<ToolError> {
        let (finder, command) = (self.finder.as_ref()?, effects.command.as_ref()?);
        programs::missing(&**finder, command, &self.command_cwd(command), &judged?.judgement)
    }

    /// Judges the command of a call, if it has one. The working directory matters: it decides
    /// whether a search of `.` reads secrets.
    pub(crate) fn judge(&self, effects: &Effects) -> Option<CommandJudgement> {
        let rules = self.rules.read();
        let command = effects.command.as_ref().map(|command| {
            let programs = |name: &str| self.unwritable_program(name, command);
            let replaceable = |name: &str| self.is_replaceable(name, command);
            let is_held = matches!(self.policy.confinement(), Confinement::Sandboxed(_));
            let surroundings = Surroundings {
                replaceable: if is_held { None } else { Some(&replaceable) },
                ..self.surroundings(&programs)
            };
            judge_in(&surroundings, &self.with_command_cwd(command), &rules)
        });
        let typed = effects.typed.as_ref().map(|typed| judge_typed(typed, &self.policy.cwd, &rules));
        let judgement = command.into_iter().chain(typed).max_by_key(|judgement| judgement.class)?;
        Some(CommandJudgement { judgement, rules: rules.iter().count() })
    }

    /// Returns a path of a call as an absolute one.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        normal(&self.policy.cwd.join(path))
    }

    /// Returns true if a call with this judgement may run in parallel with others.
    pub(crate) fn overlaps(&self, judged: &CommandJudgement) -> bool {
        self.policy.parallel_commands || judged.changes_nothing()
    }

    /// Admits a call or returns the reason for refusing it. It is judged again if an answer has
    /// added a rule since.
    pub(crate) async fn admit(
        &self,
        request: GateRequest<'_>,
        judged: Option<CommandJudgement>,
    ) -> Result<CallAdmission, Failure> {
        let GateRequest { call, effects, .. } = request;
        let rules = self.rules.read().iter().count();
        let judged = judged.filter(|judged| judged.rules == rules).or_else(|| self.judge(effects));
        let missing = self.missing_program(effects, judged.as_ref());
        let details = judged.as_ref().map(CommandJudgement::details).unwrap_or_default();
        let decision = self.decide(&request, judged);
        tracing::debug!(call.id = %call.id, tool.name = %call.name, decision = decision.name(), why = decision.why(), "decided");
        match decision {
            GateDecision::Run { confinement, why } => {
                Ok(CallAdmission { grant: self.policy.grant(effects, confinement), decision: why })
            }
            GateDecision::Leave { program, why } => Ok(self.admit_directly(effects, program, &why)),
            GateDecision::Refuse { reason } => Err(Failure::Refused(reason)),
            GateDecision::Ask { confinement, reason, unclear } => {
                if let Some(error) = missing {
                    return Err(Failure::Tool(error));
                }
                let grounds = QuestionGrounds { reason, unclear, details };
                self.admit_by_answer(&request, confinement, grounds).await
            }
        }
    }

    /// Admits one program outside of the sandbox. It is started directly, so that exactly the
    /// approved program runs.
    fn admit_directly(&self, effects: &Effects, program: DirectProgram, why: &str) -> CallAdmission {
        let grant = self.policy.grant(effects, Confinement::Unconfined).only_for(GrantSeal, program);
        CallAdmission { grant, decision: format!("{why}; started directly, without a shell") }
    }

    /// Asks, and admits the call as the answer says.
    async fn admit_by_answer(
        &self,
        request: &GateRequest<'_>,
        confinement: Confinement,
        grounds: QuestionGrounds,
    ) -> Result<CallAdmission, Failure> {
        let effects = request.effects;
        let program = self.direct_program(effects, &confinement);
        let grounds = match &self.agent {
            Some(agent) => {
                QuestionGrounds { reason: format!("the agent `{agent}` asks: {}", grounds.reason), ..grounds }
            }
            None => grounds,
        };
        let question = self.question(request, &confinement, program.as_ref(), grounds);
        let GivenApproval { decision, lasts } = self.ask(&question, request).await?;
        match program.filter(|_| lasts) {
            Some(program) => Ok(self.admit_directly(effects, program, &decision)),
            None => Ok(CallAdmission { grant: self.policy.grant(effects, confinement), decision }),
        }
    }

    /// Admits a second attempt with wider access after the sandbox blocked the first. Returns
    /// `None` if it may not get more. It always asks: only a person can allow what a sandbox has
    /// blocked.
    pub(crate) async fn admit_escalated(
        &self,
        request: GateRequest<'_>,
        denials: &[Denial],
    ) -> Result<Option<CallAdmission>, Failure> {
        // With `on-request` the model sees the denial and can ask itself; with `never` no question
        // is allowed.
        let may_ask = matches!(self.policy.approval, ApprovalPolicy::OnFailure | ApprovalPolicy::Untrusted);
        let Confinement::Sandboxed(walls) = self.policy.confinement() else { return Ok(None) };
        let Some(confinement) = escalation::escalate(&walls, denials).filter(|_| may_ask) else {
            return Ok(None);
        };
        let grounds = QuestionGrounds { reason: escalation::reason(denials), ..QuestionGrounds::default() };
        match self.admit_by_answer(&request, confinement, grounds).await {
            Ok(CallAdmission { grant, decision }) => {
                Ok(Some(CallAdmission { grant, decision: format!("{decision}, after a denial") }))
            }
            // The first attempt has a result, which names the denial.
            Err(Failure::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Decides by the policy. A hook that wants a question makes the decision stricter, never
    /// milder.
    fn decide(&self, request: &GateRequest<'_>, judged: Option<CommandJudgement>) -> GateDecision {
        let decision = self.decide_by_policy(request, judged);
        match (request.hooked.asked, self.policy.approval) {
            (None, _) => decision,
            (Some(reason), ApprovalPolicy::Never) if !matches!(decision, GateDecision::Refuse { .. }) => {
                let reason =
                    format!("refused: {reason}, and nobody is asked; {}", self.policy.refusal_cause());
                GateDecision::Refuse { reason }
            }
            (Some(reason), _) => decision.asked(reason),
        }
    }

    fn decide_by_policy(&self, request: &GateRequest<'_>, judged: Option<CommandJudgement>) -> GateDecision {
        let effects = request.effects;
        if effects.remote.is_none() && !effects.may_change() && effects.reads.is_empty() {
            return GateDecision::Run {
                confinement: Confinement::InProcess,
                why: "touches nothing".to_owned(),
            };
        }
        let Policy { approval, cwd, .. } = &self.policy;
        let changes = effects.may_change() && !judged.as_ref().is_some_and(CommandJudgement::changes_nothing);
        let outward = self.asked_outward(&effects.outward);
        let decision = if self.policy.plan_mode && effects.typed.is_some() {
            // The program that is typed to may have been started before plan mode.
            GateDecision::plan_mode_refusal()
        } else if let Some(remote) = &effects.remote {
            self.decide_remote(remote, effects)
        } else if let Some(judged) = judged {
            self.decide_program(judged.judgement, effects)
        } else {
            let cause = self.policy.refusal_cause();
            let decision = files::decide(effects, self.policy.confinement(), *approval, cwd, &cause);
            let decision = if self.policy.plan_mode { decision.in_plan_mode() } else { decision };
            outward.map(beyond_the_machine).into_iter().fold(decision, |decision, why| decision.asked(&why))
        };
        let is_approved = effects.remote.as_ref().is_some_and(remote::is_approved);
        match (request.secrets, *approval) {
            ([], _) | (_, ApprovalPolicy::Never) => decision,
            _ if is_approved => decision,
            (kinds, _) if changes => {
                decision.asked(&format!("its arguments hold a secret ({})", kinds.join(", ")))
            }
            _ => decision,
        }
    }

    /// Returns the most severe effect beyond the machine that the user wanted to be asked about.
    fn asked_outward(&self, effects: &[OutwardEffect]) -> Option<OutwardEffect> {
        let policy = self.policy.outward_approval();
        let asks_before = matches!(policy, ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest);
        let is_asked = |effect: &OutwardEffect| asks_before && self.policy.ask_before.contains(effect);
        effects.iter().copied().filter(is_asked).max()
    }

    fn decide_program(&self, judgement: Judgement, effects: &Effects) -> GateDecision {
        let Policy { approval, sandbox, .. } = self.policy;
        let wish = if effects.escalation.is_some() { Wish::Escalated } else { Wish::Contained };
        let confinement = self.policy.confinement();
        // A rule of the user allows it, so no escalation and no question are needed. Not on a
        // terminal, which could be typed to.
        if let Some(argv) = judgement.direct_argv.filter(|_| !effects.terminal) {
            let is_held = matches!(confinement, Confinement::Sandboxed(_));
            let why = judgement.why;
            return match (effects.command.as_ref().filter(|_| is_held), self.obstacle_outside()) {
                (Some(command), None) => {
                    GateDecision::Leave { program: self.started_directly(argv, command), why }
                }
                (Some(_), Some(obstacle))
                    if wish == Wish::Escalated && approval == ApprovalPolicy::OnRequest =>
                {
                    GateDecision::Ask {
                        confinement: Confinement::Unconfined,
                        reason: format!("{why}, but {obstacle}"),
                        unclear: Vec::new(),
                    }
                }
                (Some(_), Some(obstacle)) => GateDecision::Run {
                    confinement,
                    why: format!("{why}; in the sandbox, because {obstacle}"),
                },
                (None, _) => GateDecision::Run { confinement, why },
            };
        }
        let unclear = || judgement.unclear.iter().map(ToString::to_string).collect();
        if judgement.asks_to_leave_again
            && approval != ApprovalPolicy::Never
            && matches!(confinement, Confinement::Sandboxed(_))
        {
            return GateDecision::Ask {
                confinement: Confinement::Unconfined,
                unclear: unclear(),
                reason: judgement.why,
            };
        }
        let asked = self.asked_outward(&judgement.outward);
        let usual = ruling(approval, sandbox, judgement.class, wish);
        let ruling =
            asked.map_or(usual, |_| ruling_outward(self.policy.outward_approval(), judgement.class, usual));
        let outward = asked.map(beyond_the_machine);
        match ruling {
            Ruling::Run if judgement.class == Class::Safe => {
                GateDecision::Run { confinement, why: judgement.why }
            }
            Ruling::Run => {
                GateDecision::Run { confinement, why: format!("the sandbox mode is `{}`", sandbox.name()) }
            }
            Ruling::Ask => {
                let reason = if judgement.class == Class::Ordinary { outward } else { None };
                let reason = reason.unwrap_or(judgement.why);
                GateDecision::Ask { confinement, unclear: unclear(), reason }
            }
            Ruling::AskToLeave => {
                let outward = outward.map(|effect| format!(", and {effect}")).unwrap_or_default();
                let obstacle =
                    self.obstacle_outside().map(|obstacle| format!("; {obstacle}")).unwrap_or_default();
                let reason = format!("the model wants to run this without the sandbox{outward}{obstacle}");
                GateDecision::Ask { confinement: Confinement::Unconfined, unclear: unclear(), reason }
            }
            Ruling::Refuse => {
                GateDecision::Refuse { reason: self.policy.refusal(judgement.class, &judgement.why) }
            }
            Ruling::RefuseWish => GateDecision::Refuse { reason: self.policy.no_wishes() },
        }
    }

    fn surroundings<'a>(&'a self, programs: &'a dyn Fn(&str) -> Option<PathBuf>) -> Surroundings<'a> {
        Surroundings { workspace: Some(&self.policy.cwd), programs, replaceable: None }
    }

    fn with_command_cwd(&self, command: &CommandLine) -> CommandLine {
        CommandLine { argv: command.argv.clone(), cwd: Some(self.command_cwd(command)) }
    }

    /// Returns the directory in which a command would run.
    fn command_cwd(&self, command: &CommandLine) -> PathBuf {
        command.cwd.as_ref().map_or_else(|| self.policy.cwd.clone(), |cwd| self.policy.cwd.join(cwd))
    }

    fn question(
        &self,
        request: &GateRequest<'_>,
        confinement: &Confinement,
        program: Option<&DirectProgram>,
        grounds: QuestionGrounds,
    ) -> Question {
        let GateRequest { call, effects, secrets, .. } = *request;
        let beyond = escalation::extra_access(&self.policy.confinement(), confinement);
        let command = effects.command.as_ref().map(|command| self.with_command_cwd(command));
        let cwd = command.as_ref().and_then(|command| command.cwd.clone());
        let cwd = cwd.unwrap_or_else(|| self.policy.cwd.clone());
        // A rule can express the sandbox or no sandbox, but not wider access.
        let wish = match beyond {
            Beyond::Nothing => Some(Wish::Contained),
            Beyond::Everything => Some(Wish::Escalated),
            Beyond::Wider { .. } => None,
        };
        let rules = self.rules.read();
        let proposed = effects.escalation.as_ref().map_or(&[][..], |escalation| &escalation.prefix_rule);
        // Rules are stored in plain text, so none is made from a secret.
        let rule = command.as_ref().zip(wish).filter(|_| secrets.is_empty());
        let rule = rule.and_then(|(command, wish)| {
            let programs = |name: &str| match wish {
                Wish::Contained => self.unwritable_program(name, command),
                Wish::Escalated if self.obstacle_outside().is_some() => None,
                Wish::Escalated => self.system_program(name, command),
            };
            offer(command, &rules, proposed, wish, &self.surroundings(&programs))
        });
        let argv = command.as_ref().map(|command| &command.argv);
        let keys: Vec<_> = match effects {
            _ if effects.has_program() && beyond == Beyond::Everything => {
                let program = program.filter(|_| may_hold_for_session(&effects.outward));
                let key =
                    |program: &DirectProgram| json!([call.name, program.argv, cwd, effects.terminal, beyond]);
                program.map(key).into_iter().collect()
            }
            // The same command or text, in the same directory, on a terminal or not, with the same
            // confinement.
            _ if effects.has_program() => {
                vec![json!([call.name, argv, effects.typed, cwd, effects.terminal, beyond])]
            }
            Effects { remote: Some(remote), .. } => {
                remote::session_key(&call.name, remote).into_iter().collect()
            }
            _ if effects.writes.is_empty() => vec![json!([call.name, call.input, beyond])],
            _ => effects.writes.iter().map(|path| json!([cwd.join(path), beyond])).collect(),
        };
        let QuestionGrounds { reason, unclear, details } =
            grounds.with_call(call, effects, &cwd, &self.secrets);
        Question {
            call: call.id.clone(),
            tool: call.name.clone(),
            effects: effects.clone(),
            cwd,
            reason,
            unclear,
            beyond,
            keys: keys.iter().map(ToString::to_string).collect(),
            rule,
            details,
        }
    }
}

fn beyond_the_machine(effect: OutwardEffect) -> String {
    format!("it {} (effect `{}`)", effect.in_words(), effect.name())
}

#[cfg(test)]
mod tests;

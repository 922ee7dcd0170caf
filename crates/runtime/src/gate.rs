//! Who may do what. The only place that makes a [`Grant`].

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::json;
use windlass_contract::{
    Denial, Effects, Grant, ToolCall, ToolError,
    approval::{Approver, Beyond, Question, Rulebook},
    effects::{CommandLine, OutwardEffect},
    event::EventSink,
    grant::{Confinement, DirectProgram},
    policy::ApprovalPolicy,
    program::ProgramFinder,
};
use windlass_policy::{
    Class, Judgement, Rules, Ruling, Surroundings, Wish, judge_in, judge_typed, may_hold_for_session, offer,
    ruling, ruling_outward, single_program,
};
use windlass_shape::Failure;

use crate::Stop;
use asking::Approval;
use memory::Memory;

mod asking;
mod files;
mod memory;
mod policy;
mod programs;
mod wider;

pub use policy::Policy;

/// Decides about calls, and asks where it may not decide alone.
pub struct Gate {
    policy: Policy,
    /// The policy's rules, and those that answers have made since.
    rules: RwLock<Rules>,
    approver: Option<Arc<dyn Approver>>,
    rulebook: Option<Arc<dyn Rulebook>>,
    finder: Option<Arc<dyn ProgramFinder>>,
    memory: Memory,
}

/// A call at the gate.
#[derive(Clone, Copy)]
pub(crate) struct GateRequest<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) effects: &'a Effects,
    /// The kinds of secrets in its arguments.
    pub(crate) secrets: &'a [String],
    pub(crate) events: &'a dyn EventSink,
    pub(crate) stop: &'a Stop,
}

/// What the policy makes of the command of a call, or of what it types.
#[derive(Debug)]
pub(crate) struct Judged {
    judgement: Judgement,
    /// How many rules there were. They only ever become more.
    rules: usize,
}

impl Judged {
    /// Whether the command is known to change nothing.
    pub(crate) fn changes_nothing(&self) -> bool {
        self.judgement.changes_nothing
    }

    /// The class of the command and why it is in that class, for a log.
    pub(crate) fn explain(&self) -> String {
        format!("{:?}: {}", self.judgement.class, self.judgement.why)
    }

    /// What the command would do beyond this machine.
    pub(crate) fn outward(&self) -> &[OutwardEffect] {
        &self.judgement.outward
    }
}

/// A grant and who gave it.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) grant: Grant,
    pub(crate) decision: String,
}

/// What the policy alone says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Run {
        confinement: Confinement,
        why: String,
    },
    /// One program leaves the sandbox, as a rule says.
    Leave {
        program: DirectProgram,
        why: String,
    },
    Ask {
        confinement: Confinement,
        reason: String,
        unclear: Vec<String>,
    },
    Refuse {
        reason: String,
    },
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate; without an approver, whatever would need a question is refused.
    pub fn new(policy: Policy, approver: Option<Arc<dyn Approver>>) -> Self {
        let rules = RwLock::new(policy.rules.clone());
        Self { policy, rules, approver, rulebook: None, finder: None, memory: Memory::default() }
    }

    /// Keeps the rules that answers make beyond the session.
    #[must_use]
    pub fn with_rulebook(mut self, rulebook: Option<Arc<dyn Rulebook>>) -> Self {
        self.rulebook = rulebook;
        self
    }

    /// Knows the programs of the machine. Without them, no rule lets a command leave the sandbox.
    #[must_use]
    pub fn with_programs(mut self, finder: Arc<dyn ProgramFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Says that a call named a longer time limit than it may have. It gets the longest there is.
    pub(crate) fn cut_time_limit(&self, effects: &Effects) -> Option<String> {
        let (asked, most) = (effects.time_limit_ms?, self.policy.limits.max_time.as_millis());
        (u128::from(asked) > most).then(|| {
            format!("the time limit of {asked} ms is longer than a call may have and was cut to {most} ms")
        })
    }

    /// Says which program of a call does not exist: nobody is asked about what cannot run.
    fn missing_program(&self, effects: &Effects, judged: Option<&Judged>) -> Option<ToolError> {
        let (finder, command) = (self.finder.as_ref()?, effects.command.as_ref()?);
        programs::missing(&**finder, command, &self.place_of(command), &judged?.judgement)
    }

    /// Judges what a call would run, if it would run anything: where it would run, for what `.` stands for decides whether
    /// a search goes through secrets.
    pub(crate) fn judge(&self, effects: &Effects) -> Option<Judged> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let command = effects.command.as_ref().map(|command| {
            let programs = |name: &str| self.settled_program(name, command);
            let replaceable = |name: &str| self.is_replaceable(name, command);
            let is_held = matches!(self.policy.confinement(), Confinement::Sandboxed(_));
            let surroundings = Surroundings {
                replaceable: if is_held { None } else { Some(&replaceable) },
                ..self.surroundings(&programs)
            };
            judge_in(&surroundings, &self.placed(command), &rules)
        });
        let typed = effects.typed.as_ref().map(|typed| judge_typed(typed, &self.policy.cwd, &rules));
        let judgement = command.into_iter().chain(typed).max_by_key(|judgement| judgement.class)?;
        Some(Judged { judgement, rules: rules.iter().count() })
    }

    /// Whether a call that was judged so may run beside others.
    pub(crate) fn overlaps(&self, judged: &Judged) -> bool {
        self.policy.parallel_commands || judged.changes_nothing()
    }

    /// Lets a call through, or says why not. It is judged again if an answer has made a rule since.
    pub(crate) async fn admit(
        &self,
        request: GateRequest<'_>,
        judged: Option<Judged>,
    ) -> Result<Admission, Failure> {
        let GateRequest { call, effects, .. } = request;
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).iter().count();
        let judged = judged.filter(|judged| judged.rules == rules).or_else(|| self.judge(effects));
        let missing = self.missing_program(effects, judged.as_ref());
        let decision = self.decide(&request, judged);
        tracing::debug!(call.id = %call.id, tool.name = %call.name, decision = decision.name(), why = decision.why(), "decided");
        match decision {
            Decision::Run { confinement, why } => {
                Ok(Admission { grant: self.policy.grant(effects, confinement), decision: why })
            }
            Decision::Leave { program, why } => Ok(self.admit_directly(effects, program, &why)),
            Decision::Refuse { reason } => Err(Failure::Refused(reason)),
            Decision::Ask { confinement, reason, unclear } => match missing {
                Some(error) => Err(Failure::Tool(error)),
                None => self.admit_by_answer(&request, confinement, reason, unclear).await,
            },
        }
    }

    /// Lets one program out of the sandbox: what was approved is what runs.
    fn admit_directly(&self, effects: &Effects, program: DirectProgram, why: &str) -> Admission {
        let grant = self.policy.grant(effects, Confinement::Unconfined).only_for(program);
        Admission { grant, decision: format!("{why}; started directly, without a shell") }
    }

    /// Asks, and lets through what the answer says.
    async fn admit_by_answer(
        &self,
        request: &GateRequest<'_>,
        confinement: Confinement,
        reason: String,
        unclear: Vec<String>,
    ) -> Result<Admission, Failure> {
        let effects = request.effects;
        let program = self.direct_program(effects, &confinement);
        let question = self.question(request, &confinement, program.as_ref(), reason, unclear);
        let Approval { decision, lasts } = self.ask(&question, request).await?;
        match program.filter(|_| lasts) {
            Some(program) => Ok(self.admit_directly(effects, program, &decision)),
            None => Ok(Admission { grant: self.policy.grant(effects, confinement), decision }),
        }
    }

    /// Lets a call through once more, and further, after the sandbox has stopped it; `None` if it may not go further.
    /// Never without a question: what a sandbox has stopped, only a person can let pass.
    pub(crate) async fn admit_further(
        &self,
        request: GateRequest<'_>,
        denials: &[Denial],
    ) -> Result<Option<Admission>, Failure> {
        // Where the model may ask itself, it is told of the denial and asks; where nobody may be asked, nobody is.
        let may_ask = matches!(self.policy.approval, ApprovalPolicy::OnFailure | ApprovalPolicy::Untrusted);
        let Confinement::Sandboxed(walls) = self.policy.confinement() else { return Ok(None) };
        let Some(confinement) = wider::walls(&walls, denials).filter(|_| may_ask) else { return Ok(None) };
        match self.admit_by_answer(&request, confinement, wider::reason(denials), Vec::new()).await {
            Ok(Admission { grant, decision }) => {
                Ok(Some(Admission { grant, decision: format!("{decision}, after a denial") }))
            }
            // It has a result already, which says what was stopped.
            Err(Failure::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn decide(&self, request: &GateRequest<'_>, judged: Option<Judged>) -> Decision {
        let effects = request.effects;
        if !effects.may_change() && effects.reads.is_empty() {
            return Decision::Run { confinement: Confinement::InProcess, why: "touches nothing".to_owned() };
        }
        let Policy { approval, cwd, .. } = &self.policy;
        let changes = effects.may_change() && !judged.as_ref().is_some_and(Judged::changes_nothing);
        let asks_before = matches!(approval, ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest);
        let outward = self.asked_outward(&effects.outward).filter(|_| asks_before);
        let decision = if let Some(judged) = judged {
            self.decide_program(judged.judgement, effects)
        } else {
            let decision = files::decide(effects, self.policy.confinement(), *approval, cwd);
            outward.map(beyond_the_machine).into_iter().fold(decision, |decision, why| decision.asked(&why))
        };
        match (request.secrets, *approval) {
            ([], _) | (_, ApprovalPolicy::Never) => decision,
            (kinds, _) if changes => {
                decision.asked(&format!("its arguments hold a secret ({})", kinds.join(", ")))
            }
            _ => decision,
        }
    }

    /// The gravest effect beyond the machine that is to be asked about.
    fn asked_outward(&self, effects: &[OutwardEffect]) -> Option<OutwardEffect> {
        effects.iter().copied().filter(|effect| self.policy.ask_before.contains(effect)).max()
    }

    fn decide_program(&self, judgement: Judgement, effects: &Effects) -> Decision {
        let Policy { approval, sandbox, .. } = self.policy;
        let wish = if effects.escalation.is_some() { Wish::Escalated } else { Wish::Contained };
        let confinement = self.policy.confinement();
        // The user's own word, so that neither a wish nor a question is needed. A terminal could be typed to.
        if let Some(argv) = judgement.direct_argv.filter(|_| !effects.terminal) {
            let is_held = matches!(confinement, Confinement::Sandboxed(_));
            return match effects.command.as_ref().filter(|_| is_held) {
                Some(command) => {
                    Decision::Leave { program: self.started_directly(argv, command), why: judgement.why }
                }
                None => Decision::Run { confinement, why: judgement.why },
            };
        }
        let unclear = || judgement.unclear.iter().map(ToString::to_string).collect();
        if judgement.asks_to_leave_again
            && approval != ApprovalPolicy::Never
            && matches!(confinement, Confinement::Sandboxed(_))
        {
            return Decision::Ask {
                confinement: Confinement::Unconfined,
                unclear: unclear(),
                reason: judgement.why,
            };
        }
        let asked = self.asked_outward(&judgement.outward);
        let usual = ruling(approval, sandbox, judgement.class, wish);
        let ruling = asked.map_or(usual, |_| ruling_outward(approval, judgement.class, usual));
        let outward = asked.map(beyond_the_machine);
        match ruling {
            Ruling::Run if judgement.class == Class::Safe => {
                Decision::Run { confinement, why: judgement.why }
            }
            Ruling::Run => {
                Decision::Run { confinement, why: format!("the sandbox mode is `{}`", sandbox.name()) }
            }
            Ruling::Ask => {
                let reason = if judgement.class == Class::Ordinary { outward } else { None };
                let reason = reason.unwrap_or(judgement.why);
                Decision::Ask { confinement, unclear: unclear(), reason }
            }
            Ruling::AskToLeave => {
                let outward = outward.map(|effect| format!(", and {effect}")).unwrap_or_default();
                let reason = format!("the model wants to run this without the sandbox{outward}");
                Decision::Ask { confinement: Confinement::Unconfined, unclear: unclear(), reason }
            }
            Ruling::Refuse => Decision::Refuse { reason: format!("refused: {}", judgement.why) },
            Ruling::RefuseWish => Decision::Refuse { reason: self.policy.no_wishes() },
        }
    }

    fn surroundings<'a>(&'a self, programs: &'a dyn Fn(&str) -> Option<PathBuf>) -> Surroundings<'a> {
        Surroundings { workspace: Some(&self.policy.cwd), programs, replaceable: None }
    }

    fn is_replaceable(&self, name: &str, command: &CommandLine) -> bool {
        let place = self.place_of(command);
        self.finder
            .as_ref()
            .is_none_or(|finder| programs::is_replaceable(&**finder, &self.policy, name, &place))
    }

    /// What runs if a yes without the sandbox holds for longer than once. Nothing, if that is not one program with literal
    /// words whose file no command in the sandbox can write.
    fn direct_program(&self, effects: &Effects, confinement: &Confinement) -> Option<DirectProgram> {
        let leaves = wider::beyond(&self.policy.confinement(), confinement) == Beyond::Everything;
        let command = effects.command.as_ref().filter(|_| leaves)?;
        let mut argv = single_program(command)?;
        let program = argv.first_mut()?;
        *program = self.settled_program(program, command)?.into_os_string().into_string().ok()?;
        Some(self.started_directly(argv, command))
    }

    fn started_directly(&self, argv: Vec<String>, command: &CommandLine) -> DirectProgram {
        DirectProgram { argv, cwd: self.place_of(command), untrusted: programs::untrusted(&self.policy) }
    }

    /// The file of a program that no command in the sandbox can write.
    fn settled_program(&self, name: &str, command: &CommandLine) -> Option<PathBuf> {
        programs::settled(&**self.finder.as_ref()?, &self.policy, name, &self.place_of(command))
    }

    /// The same, if it is a file of the system: what a rule names stays what it was, whatever is worked on later.
    fn system_program(&self, name: &str, command: &CommandLine) -> Option<PathBuf> {
        let place = self.place_of(command);
        let is_of_system = programs::is_of_system(&**self.finder.as_ref()?, name, &place);
        self.settled_program(name, command).filter(|_| is_of_system)
    }

    fn placed(&self, command: &CommandLine) -> CommandLine {
        CommandLine { argv: command.argv.clone(), cwd: Some(self.place_of(command)) }
    }

    /// Where a command would run.
    fn place_of(&self, command: &CommandLine) -> PathBuf {
        command.cwd.as_ref().map_or_else(|| self.policy.cwd.clone(), |cwd| self.policy.cwd.join(cwd))
    }

    fn question(
        &self,
        request: &GateRequest<'_>,
        confinement: &Confinement,
        program: Option<&DirectProgram>,
        reason: String,
        unclear: Vec<String>,
    ) -> Question {
        let GateRequest { call, effects, secrets, .. } = *request;
        let beyond = wider::beyond(&self.policy.confinement(), confinement);
        let command = effects.command.as_ref().map(|command| self.placed(command));
        let cwd = command.as_ref().and_then(|command| command.cwd.clone());
        let cwd = cwd.unwrap_or_else(|| self.policy.cwd.clone());
        // A rule knows the sandbox and no sandbox, nothing between.
        let wish = match beyond {
            Beyond::Nothing => Some(Wish::Contained),
            Beyond::Everything => Some(Wish::Escalated),
            Beyond::Wider { .. } => None,
        };
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let proposed = effects.escalation.as_ref().map_or(&[][..], |escalation| &escalation.prefix_rule);
        // A rule is written down in clear, so that none is made of a secret.
        let rule = command.as_ref().zip(wish).filter(|_| secrets.is_empty());
        let rule = rule.and_then(|(command, wish)| {
            let programs = |name: &str| match wish {
                Wish::Contained => self.settled_program(name, command),
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
            // The same command or text, in the same place, on a terminal or not, held the same way.
            _ if effects.has_program() => {
                vec![json!([call.name, argv, effects.typed, cwd, effects.terminal, beyond])]
            }
            _ if effects.writes.is_empty() => vec![json!([call.name, call.input, beyond])],
            _ => effects.writes.iter().map(|path| json!([cwd.join(path), beyond])).collect(),
        };
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
        }
    }
}

impl Decision {
    fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Leave { .. } => "leave",
            Self::Ask { .. } => "ask",
            Self::Refuse { .. } => "refuse",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Run { why: reason, .. }
            | Self::Leave { why: reason, .. }
            | Self::Ask { reason, .. }
            | Self::Refuse { reason } => reason,
        }
    }

    /// The same decision, by a person and with one more reason, unless it is a no.
    fn asked(self, why: &str) -> Self {
        match self {
            Self::Run { confinement, .. } => {
                Self::Ask { confinement, reason: why.to_owned(), unclear: Vec::new() }
            }
            Self::Leave { .. } => Self::Ask {
                confinement: Confinement::Unconfined,
                reason: why.to_owned(),
                unclear: Vec::new(),
            },
            Self::Ask { confinement, reason, unclear } => {
                Self::Ask { confinement, reason: format!("{reason}; {why}"), unclear }
            }
            Self::Refuse { .. } => self,
        }
    }
}

fn beyond_the_machine(effect: OutwardEffect) -> String {
    format!("it {} (effect `{}`)", effect.in_words(), effect.name())
}

#[cfg(test)]
mod tests;

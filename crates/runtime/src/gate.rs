//! Who may do what. The only place that makes a [`Grant`].

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::json;
use windlass_contract::{
    Answer, ApprovalPolicy, Approver, Beyond, CommandLine, Confinement, Denial, Effects, Grant, Question,
    Reach, Rulebook, ToolCall,
};
use windlass_policy::{
    Class, Judgement, RuleFile, Rules, Ruling, Trust, Wish, judge_in, judge_typed, offer, ruling,
};
use windlass_shape::Failure;

use crate::{Reason, Stop};
use memory::Memory;

mod files;
mod memory;
mod policy;
mod wider;

pub use policy::Policy;

/// Decides about calls, and asks where it may not decide alone.
pub struct Gate {
    policy: Policy,
    /// The policy's rules, and those that answers have made since.
    rules: RwLock<Rules>,
    approver: Option<Arc<dyn Approver>>,
    rulebook: Option<Arc<dyn Rulebook>>,
    memory: Memory,
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
    Run { confinement: Confinement, why: String },
    Ask { confinement: Confinement, reason: String, unclear: Vec<String> },
    Refuse { reason: String },
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
        Self { policy, rules, approver, rulebook: None, memory: Memory::default() }
    }

    /// Keeps the rules that answers make beyond the session.
    #[must_use]
    pub fn with_rulebook(mut self, rulebook: Option<Arc<dyn Rulebook>>) -> Self {
        self.rulebook = rulebook;
        self
    }

    /// Judges what a call would run, if it would run anything: where it would run, for what `.` stands for decides whether
    /// a search goes through secrets.
    pub(crate) fn judge(&self, effects: &Effects) -> Option<Judged> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let command =
            effects.command.as_ref().map(|command| judge_in(&self.policy.cwd, &self.placed(command), &rules));
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
        call: &ToolCall,
        effects: &Effects,
        judged: Option<Judged>,
        stop: &Stop,
    ) -> Result<Admission, Failure> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).iter().count();
        let judged = judged.filter(|judged| judged.rules == rules).or_else(|| self.judge(effects));
        let (confinement, decision) = match self.decide(effects, judged) {
            Decision::Run { confinement, why } => (confinement, why),
            Decision::Refuse { reason } => return Err(Failure::Refused(reason)),
            Decision::Ask { confinement, reason, unclear } => {
                let question = self.question(call, effects, &confinement, reason, unclear);
                (confinement, self.ask(&question, stop).await?)
            }
        };
        Ok(Admission { grant: self.policy.grant(effects, confinement), decision })
    }

    /// Lets a call through once more, and further, after the sandbox has stopped it; `None` if it may not go further.
    /// Never without a question: what a sandbox has stopped, only a person can let pass.
    pub(crate) async fn admit_further(
        &self,
        call: &ToolCall,
        effects: &Effects,
        denials: &[Denial],
        stop: &Stop,
    ) -> Result<Option<Admission>, Failure> {
        // Where the model may ask itself, it is told of the denial and asks; where nobody may be asked, nobody is.
        let may_ask = matches!(self.policy.approval, ApprovalPolicy::OnFailure | ApprovalPolicy::Untrusted);
        let Confinement::Sandboxed(walls) = self.policy.confinement() else { return Ok(None) };
        let Some(confinement) = wider::walls(&walls, denials).filter(|_| may_ask) else { return Ok(None) };
        let question = self.question(call, effects, &confinement, wider::reason(denials), Vec::new());
        match self.ask(&question, stop).await {
            Ok(decision) => Ok(Some(Admission {
                grant: self.policy.grant(effects, confinement),
                decision: format!("{decision}, after a denial"),
            })),
            // It has a result already, which says what was stopped.
            Err(Failure::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn decide(&self, effects: &Effects, judged: Option<Judged>) -> Decision {
        if !effects.may_change() && effects.reads.is_empty() {
            return Decision::Run { confinement: Confinement::InProcess, why: "touches nothing".to_owned() };
        }
        let Policy { approval, cwd, .. } = &self.policy;
        match judged {
            Some(judged) => self.decide_program(judged.judgement, effects),
            None => files::decide(effects, self.policy.confinement(), *approval, cwd),
        }
    }

    fn decide_program(&self, judgement: Judgement, effects: &Effects) -> Decision {
        let Policy { approval, sandbox, .. } = self.policy;
        let wish = if effects.escalation.is_some() { Wish::Escalated } else { Wish::Contained };
        let confinement = self.policy.confinement();
        if judgement.escape_sandbox {
            // The user's own word, so that neither a wish nor a question is needed.
            let held = matches!(confinement, Confinement::Sandboxed(_));
            let confinement = if held { Confinement::Unconfined } else { confinement };
            return Decision::Run { confinement, why: judgement.why };
        }
        let unclear = || judgement.unclear.iter().map(ToString::to_string).collect();
        match ruling(approval, sandbox, judgement.class, wish) {
            Ruling::Run if judgement.class == Class::Safe => {
                Decision::Run { confinement, why: judgement.why }
            }
            Ruling::Run => {
                Decision::Run { confinement, why: format!("the sandbox mode is `{}`", sandbox.name()) }
            }
            Ruling::Ask => Decision::Ask { confinement, unclear: unclear(), reason: judgement.why },
            Ruling::AskToLeave => {
                let reason = "the model wants to run this without the sandbox".to_owned();
                Decision::Ask { confinement: Confinement::Unconfined, unclear: unclear(), reason }
            }
            Ruling::Refuse => Decision::Refuse { reason: format!("refused: {}", judgement.why) },
            Ruling::RefuseWish => Decision::Refuse { reason: no_wishes(approval) },
        }
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
        call: &ToolCall,
        effects: &Effects,
        confinement: &Confinement,
        reason: String,
        unclear: Vec<String>,
    ) -> Question {
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
        let rule = command.as_ref().zip(wish);
        let rule = rule.and_then(|(command, wish)| offer(command, &rules, proposed, wish));
        let argv = command.as_ref().map(|command| &command.argv);
        let keys: Vec<_> = match effects {
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

    /// Asks, and says who decided.
    async fn ask(&self, question: &Question, stop: &Stop) -> Result<String, Failure> {
        if self.memory.allows(&question.keys) {
            return Ok("approved for the session".to_owned());
        }
        let answer = match &self.approver {
            Some(approver) => self.memory.ask(&**approver, question).await,
            None => Answer::Unavailable,
        };
        match answer {
            Answer::Once => Ok("approved once".to_owned()),
            Answer::Session => Ok("approved for the session".to_owned()),
            Answer::Project => Ok(self.keep(question, Reach::Project)),
            Answer::Always => Ok(self.keep(question, Reach::Everywhere)),
            Answer::Abort => {
                stop.stop(Reason::Interrupted);
                Err(Failure::Aborted(Reason::Interrupted.message().to_owned()))
            }
            Answer::Deny(message) if message.is_empty() => {
                Err(Failure::Refused("rejected by user".to_owned()))
            }
            Answer::Deny(message) => Err(Failure::Refused(format!("rejected by user: {message}"))),
            Answer::Unavailable => {
                Err(Failure::Refused(format!("refused: nobody is there to approve it ({})", question.reason)))
            }
        }
    }

    /// Makes the rule that an answer stands for. Whatever becomes of it, this one call was approved.
    fn keep(&self, question: &Question, reach: Reach) -> String {
        let Some(rule) = &question.rule else { return "approved once".to_owned() };
        let name = match reach {
            Reach::Project => "approved for the project",
            Reach::Everywhere => "approved always",
        };
        if let Ok(made) = Rules::load(&[RuleFile { name, text: &rule.toml, trust: Trust::User }]) {
            self.rules.write().unwrap_or_else(PoisonError::into_inner).add(made);
        }
        match self.rulebook.as_ref().map(|rulebook| rulebook.keep(reach, rule)) {
            Some(Ok(())) => name.to_owned(),
            Some(Err(error)) => {
                tracing::warn!(%error, "the rule of an answer was not kept");
                format!("approved for the session; its rule could not be kept: {error}")
            }
            None => "approved for the session; there is no place to keep its rule".to_owned(),
        }
    }
}

/// What a model is told that may not ask for more: to the letter what models of this family were trained to read.
fn no_wishes(approval: ApprovalPolicy) -> String {
    let policy = match approval {
        ApprovalPolicy::Untrusted => "UnlessTrusted",
        ApprovalPolicy::OnFailure => "OnFailure",
        ApprovalPolicy::OnRequest => "OnRequest",
        ApprovalPolicy::Never => "Never",
    };
    format!(
        "approval policy is {policy}; reject command — you should not ask for escalated permissions if the approval \
         policy is {policy}"
    )
}

#[cfg(test)]
mod tests;

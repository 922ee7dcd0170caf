//! Who may do what. The only place that makes a [`Grant`].

use std::{fmt, path::PathBuf, sync::Arc};

use windlass_contract::{
    Answer, ApprovalPolicy, Approver, CommandLine, Confinement, Effects, Grant, Limits, Network, Question,
    SandboxMode, ToolCall, Walls,
};
use windlass_policy::{Class, Judgement, Rules, Ruling, Wish, judge, ruling};
use windlass_shape::Failure;

use crate::{Reason, Stop};
use memory::Memory;

mod memory;

/// Decides about calls, and asks where it may not decide alone.
pub struct Gate {
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    memory: Memory,
}

/// What a person has settled beforehand.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Where relative paths and commands start.
    pub cwd: PathBuf,
    /// When to ask.
    pub approval: ApprovalPolicy,
    /// How tightly things are held.
    pub sandbox: SandboxMode,
    /// What commands may do beside: directories to write and the network count in `workspace-write` only, what may
    /// not be read counts in every mode but full access.
    pub walls: Walls,
    /// How much a call may use.
    pub limits: Limits,
    /// What is allowed, asked about and forbidden by name.
    pub rules: Rules,
    /// Whether commands run beside each other although they may change something.
    pub parallel_commands: bool,
}

impl Default for Policy {
    /// Nothing may be written, and nobody is asked.
    fn default() -> Self {
        Self {
            cwd: "/".into(),
            approval: ApprovalPolicy::Never,
            sandbox: SandboxMode::ReadOnly,
            walls: Walls::default(),
            limits: Limits::default(),
            rules: Rules::default(),
            parallel_commands: false,
        }
    }
}

impl Policy {
    /// What a command is held to.
    fn confinement(&self) -> Confinement {
        let Walls { writable, unreadable, readable_again, network } = self.walls.clone();
        let (writable, network) = match self.sandbox {
            SandboxMode::DangerFullAccess => return Confinement::Unconfined,
            SandboxMode::External => return Confinement::External(network),
            SandboxMode::ReadOnly => (Vec::new(), Network::None),
            SandboxMode::WorkspaceWrite => {
                ([self.cwd.clone()].into_iter().chain(writable).collect(), network)
            }
        };
        Confinement::Walls(Walls { writable, unreadable, readable_again, network })
    }

    /// The grant for a command that a person starts themselves: nobody needs to be asked, and it is held as the
    /// sandbox mode says.
    pub fn grant_to_person(&self) -> Grant {
        Grant::issue(self.cwd.clone(), &Effects::none(), self.limits.clone(), self.confinement())
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
        Self { policy, approver, memory: Memory::default() }
    }

    /// Whether a call that runs this command may run beside others.
    pub(crate) fn overlaps(&self, command: &CommandLine) -> bool {
        self.policy.parallel_commands || self.judge(command).changes_nothing
    }

    /// Lets a call through, or says why not.
    pub(crate) async fn admit(
        &self,
        call: &ToolCall,
        effects: &Effects,
        stop: &Stop,
    ) -> Result<Admission, Failure> {
        let (confinement, decision) = match self.decide(effects) {
            Decision::Run { confinement, why } => (confinement, why),
            Decision::Refuse { reason } => return Err(Failure::Refused(reason)),
            Decision::Ask { confinement, reason, unclear } => {
                let question = self.question(call, effects, &confinement, reason, unclear);
                (confinement, self.ask(&question, stop).await?)
            }
        };
        let Policy { cwd, limits, .. } = &self.policy;
        Ok(Admission { grant: Grant::issue(cwd.clone(), effects, limits.clone(), confinement), decision })
    }

    fn decide(&self, effects: &Effects) -> Decision {
        if !effects.may_change() && effects.reads.is_empty() {
            return Decision::Run { confinement: Confinement::InProcess, why: "touches nothing".to_owned() };
        }
        match &effects.command {
            Some(command) => self.decide_command(command, effects),
            None => self.decide_without_command(),
        }
    }

    fn decide_command(&self, command: &CommandLine, effects: &Effects) -> Decision {
        let Policy { approval, sandbox, .. } = self.policy;
        let judgement = self.judge(command);
        let wish = if effects.escalation.is_some() { Wish::Escalated } else { Wish::Contained };
        let confinement = self.policy.confinement();
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
            Ruling::RefuseWish => {
                let policy = match approval {
                    ApprovalPolicy::Untrusted => "UnlessTrusted",
                    ApprovalPolicy::OnFailure => "OnFailure",
                    ApprovalPolicy::OnRequest => "OnRequest",
                    ApprovalPolicy::Never => "Never",
                };
                // To the letter what models of this family were trained to read.
                let reason = format!(
                    "approval policy is {policy}; reject command — you should not ask for escalated permissions if the \
                     approval policy is {policy}"
                );
                Decision::Refuse { reason }
            }
        }
    }

    /// A tool that acts by itself can be held by no kernel.
    fn decide_without_command(&self) -> Decision {
        let (confinement, mode) = (self.policy.confinement(), self.policy.sandbox.name());
        match (&confinement, self.policy.approval) {
            (Confinement::Walls(_), _) => Decision::Refuse {
                reason: format!(
                    "refused: sandbox mode `{mode}` holds commands, and this tool acts without one; only the user can \
                     allow it, with `--sandbox danger-full-access`"
                ),
            },
            (_, ApprovalPolicy::Untrusted) => {
                let reason = "the approval policy is `untrusted`".to_owned();
                Decision::Ask { confinement, reason, unclear: Vec::new() }
            }
            _ => Decision::Run { confinement, why: format!("the sandbox mode is `{mode}`") },
        }
    }

    /// Judged where it would run: what `.` stands for decides whether a search goes through secrets.
    fn judge(&self, command: &CommandLine) -> Judgement {
        let placed = CommandLine { argv: command.argv.clone(), cwd: Some(self.place_of(command)) };
        judge(&placed, &self.policy.rules)
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
        let cwd = effects
            .command
            .as_ref()
            .map_or_else(|| self.policy.cwd.clone(), |command| self.place_of(command));
        let leaves_sandbox =
            *confinement == Confinement::Unconfined && self.policy.sandbox != SandboxMode::DangerFullAccess;
        // The same command, in the same place, held the same way.
        let argv = effects.command.as_ref().map(|command| &command.argv);
        let key = serde_json::json!([call.name, argv, cwd, leaves_sandbox, effects.writes]);
        Question {
            call: call.id.clone(),
            tool: call.name.clone(),
            effects: effects.clone(),
            cwd,
            reason,
            unclear,
            leaves_sandbox,
            keys: vec![key.to_string()],
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
}

#[cfg(test)]
mod tests {
    use windlass_contract::{BoxFuture, CommandLine};

    use super::*;

    struct Says(Answer);

    impl Approver for Says {
        fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
            Box::pin(async { self.0.clone() })
        }
    }

    fn gate(sandbox: SandboxMode, approval: ApprovalPolicy, answer: Option<Answer>) -> Gate {
        let walls = Walls { writable: vec!["/more".into()], network: Network::Any, ..Walls::default() };
        let policy = Policy { cwd: "/w".into(), approval, sandbox, walls, ..Policy::default() };
        Gate::new(policy, answer.map(|answer| Arc::new(Says(answer)) as Arc<dyn Approver>))
    }

    fn command() -> Effects {
        Effects::command(CommandLine { argv: vec!["make".into()], cwd: None })
    }

    async fn admit(gate: Gate, effects: Effects) -> Result<Confinement, String> {
        let input = windlass_contract::Input::Json(String::new());
        let call = ToolCall { id: "c".into(), name: "t".into(), input };
        match gate.admit(&call, &effects, &Stop::default()).await {
            Ok(admission) => Ok(admission.grant.confinement().clone()),
            Err(Failure::Refused(reason)) => Err(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_touches_nothing_runs_under_every_policy() {
        for sandbox in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess] {
            let gate = gate(sandbox, ApprovalPolicy::Untrusted, None);
            assert_eq!(admit(gate, Effects::none()).await, Ok(Confinement::InProcess));
        }
    }

    #[tokio::test]
    async fn a_command_is_held_to_what_its_sandbox_mode_allows() {
        let held = |sandbox| admit(gate(sandbox, ApprovalPolicy::Never, None), command());
        let read_only = held(SandboxMode::ReadOnly).await;
        assert_eq!(read_only, Ok(Confinement::Walls(Walls::default())));
        let writable = vec!["/w".into(), "/more".into()];
        let walls = Walls { writable, network: Network::Any, ..Walls::default() };
        assert_eq!(held(SandboxMode::WorkspaceWrite).await, Ok(Confinement::Walls(walls)));
    }

    #[tokio::test]
    async fn what_acts_without_a_command_is_refused_where_only_commands_can_be_held() {
        for sandbox in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
            let gate = gate(sandbox, ApprovalPolicy::Never, Some(Answer::Once));
            let reason = admit(gate, Effects::unknown()).await.unwrap_err();
            assert!(reason.contains("--sandbox danger-full-access"), "{reason}");
        }
    }

    #[tokio::test]
    async fn full_access_runs_a_command_unconfined() {
        let gate = gate(SandboxMode::DangerFullAccess, ApprovalPolicy::Never, None);
        assert_eq!(admit(gate, command()).await, Ok(Confinement::Unconfined));
    }

    #[tokio::test]
    async fn a_command_is_judged_where_it_would_run() {
        let search = |cwd: Option<&str>| {
            let argv = ["grep", "-r", "key", "."].map(str::to_owned).to_vec();
            Effects::command(CommandLine { argv, cwd: cwd.map(Into::into) })
        };
        let at = |home: &str| {
            let policy =
                Policy { cwd: home.into(), approval: ApprovalPolicy::Untrusted, ..Policy::default() };
            Gate::new(policy, None)
        };
        assert!(admit(at("/home/me/project"), search(None)).await.is_ok());
        assert!(admit(at("/home/me"), search(None)).await.is_err());
        assert!(admit(at("/home/me/project"), search(Some(".."))).await.is_err());
        assert!(admit(at("/home/me"), search(Some("project"))).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_held_from_outside_keeps_what_was_said_about_the_network() {
        let gate = gate(SandboxMode::External, ApprovalPolicy::Never, None);
        assert_eq!(admit(gate, command()).await, Ok(Confinement::External(Network::Any)));
    }

    #[tokio::test]
    async fn untrusted_asks_and_takes_no_answer_as_a_no() {
        let untrusted = |answer| gate(SandboxMode::DangerFullAccess, ApprovalPolicy::Untrusted, answer);
        assert_eq!(admit(untrusted(Some(Answer::Once)), command()).await, Ok(Confinement::Unconfined));
        let reason = admit(untrusted(Some(Answer::Deny("use git".into()))), command()).await;
        assert_eq!(reason, Err("rejected by user: use git".into()));
        for silence in [None, Some(Answer::Unavailable)] {
            let reason = admit(untrusted(silence), command()).await.unwrap_err();
            assert!(reason.starts_with("refused: nobody is there to approve it"), "{reason}");
        }
    }
}

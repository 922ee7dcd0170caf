//! Who may do what. The only place that makes a [`Grant`].

use std::{fmt, path::PathBuf, sync::Arc};

use windlass_contract::{
    Answer, ApprovalPolicy, Approver, Confinement, Effects, Grant, Limits, Network, Question, SandboxMode,
    ToolCall, Walls,
};
use windlass_shape::Failure;

/// Decides about calls, and asks where it may not decide alone.
pub struct Gate {
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
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
}

impl Policy {
    /// What a command is held to.
    fn confinement(&self) -> Confinement {
        let Walls { writable, unreadable, readable_again, network } = self.walls.clone();
        let (writable, network) = match self.sandbox {
            SandboxMode::DangerFullAccess => return Confinement::Unconfined,
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
    Ask { confinement: Confinement, reason: String },
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
        Self { policy, approver }
    }

    /// Lets a call through, or says why not.
    pub(crate) async fn admit(&self, call: &ToolCall, effects: &Effects) -> Result<Admission, Failure> {
        match self.decide(effects) {
            Decision::Run { confinement, why } => Ok(self.grant(effects, confinement, why)),
            Decision::Refuse { reason } => Err(Failure::Refused(reason)),
            Decision::Ask { confinement, reason } => match self.ask(call, effects, reason).await {
                Ok(()) => Ok(self.grant(effects, confinement, "approved once".to_owned())),
                Err(reason) => Err(Failure::Refused(reason)),
            },
        }
    }

    fn decide(&self, effects: &Effects) -> Decision {
        if !effects.may_change() && effects.reads.is_empty() {
            return Decision::Run { confinement: Confinement::InProcess, why: "touches nothing".to_owned() };
        }
        let confinement = self.policy.confinement();
        let mode = self.policy.sandbox.name();
        if matches!(confinement, Confinement::Walls(_)) && effects.command.is_none() {
            return Decision::Refuse {
                reason: format!(
                    "refused: sandbox mode `{mode}` holds commands, and this tool acts without one; only the user can \
                     allow it, with `--sandbox danger-full-access`"
                ),
            };
        }
        match self.policy.approval {
            ApprovalPolicy::Untrusted => {
                let reason = format!("the approval policy is `untrusted`; the sandbox mode is `{mode}`");
                Decision::Ask { confinement, reason }
            }
            _ => Decision::Run { confinement, why: format!("the sandbox mode is `{mode}`") },
        }
    }

    async fn ask(&self, call: &ToolCall, effects: &Effects, reason: String) -> Result<(), String> {
        let (call, tool) = (call.id.clone(), call.name.clone());
        let question = Question { call, tool, effects: effects.clone(), reason };
        let answer = match &self.approver {
            Some(approver) => approver.ask(&question).await,
            None => Answer::Unavailable,
        };
        match answer {
            Answer::Once => Ok(()),
            Answer::Deny(message) if message.is_empty() => Err("rejected by user".to_owned()),
            Answer::Deny(message) => Err(format!("rejected by user: {message}")),
            Answer::Unavailable => {
                Err(format!("refused: nobody is there to approve it ({})", question.reason))
            }
        }
    }

    fn grant(&self, effects: &Effects, confinement: Confinement, decision: String) -> Admission {
        let Policy { cwd, limits, .. } = &self.policy;
        Admission { grant: Grant::issue(cwd.clone(), effects, limits.clone(), confinement), decision }
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
        let policy = Policy { cwd: "/w".into(), approval, sandbox, walls, limits: Limits::default() };
        Gate::new(policy, answer.map(|answer| Arc::new(Says(answer)) as Arc<dyn Approver>))
    }

    fn command() -> Effects {
        Effects::command(CommandLine { argv: vec!["ls".into()], cwd: None })
    }

    async fn admit(gate: Gate, effects: Effects) -> Result<Confinement, String> {
        let input = windlass_contract::Input::Json(String::new());
        let call = ToolCall { id: "c".into(), name: "t".into(), input };
        match gate.admit(&call, &effects).await {
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

//! The policy of a session, chosen before it begins.

use std::path::PathBuf;

use windlass_contract::{
    Effects, Grant,
    effects::{Network, OutwardEffect},
    grant::{Confinement, Limits, SandboxRules},
    policy::{ApprovalPolicy, SandboxMode},
};
use windlass_policy::{Class, Rules};
use windlass_seal::GrantSeal;

/// The policy of a session, chosen by the user.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Base of relative paths and working directory of commands.
    pub cwd: PathBuf,
    /// The approval policy.
    pub approval: ApprovalPolicy,
    /// The approval policy that the user chose, if `approval` replaces it because no approver is
    /// present.
    pub unattended: Option<ApprovalPolicy>,
    /// Effects beyond the machine that need a question with the policies `untrusted` and
    /// `on-request`, also without a sandbox.
    pub ask_before: Vec<OutwardEffect>,
    /// The sandbox mode.
    pub sandbox: SandboxMode,
    /// Additional sandbox rules. Writable directories and the network count in `workspace-write`
    /// only; unreadable paths count in every mode except full access.
    pub walls: SandboxRules,
    /// Limits of a call.
    pub limits: Limits,
    /// Rules that allow, ask about and forbid programs by name.
    pub rules: Rules,
    /// Allows commands that may change something to run in parallel.
    pub parallel_commands: bool,
    /// Plan mode: the sandbox is read-only, no question is asked, no rule lets a command leave the
    /// sandbox, and the model is asked for a plan. Set by [`planning`](Self::planning).
    pub plan_mode: bool,
}

impl Default for Policy {
    /// A read-only policy that never asks.
    fn default() -> Self {
        Self {
            cwd: "/".into(),
            approval: ApprovalPolicy::Never,
            unattended: None,
            ask_before: OutwardEffect::ALL.to_vec(),
            sandbox: SandboxMode::ReadOnly,
            walls: SandboxRules::default(),
            limits: Limits::default(),
            rules: Rules::default(),
            parallel_commands: false,
            plan_mode: false,
        }
    }
}

impl Policy {
    /// Returns this policy in plan mode.
    #[must_use]
    pub fn planning(self) -> Self {
        let (approval, sandbox) = (ApprovalPolicy::Never, SandboxMode::ReadOnly);
        Self { approval, sandbox, unattended: None, plan_mode: true, ..self }
    }

    /// Returns the policy of an agent that this one's agent starts: this policy, or a narrower
    /// sandbox. A wider one has no effect.
    #[must_use]
    pub fn narrowed(self, sandbox: Option<SandboxMode>) -> Self {
        let sandbox = sandbox.filter(|asked| width(*asked) < width(self.sandbox)).unwrap_or(self.sandbox);
        Self { sandbox, ..self }
    }

    /// Returns the grant for a command that a person starts: it needs no question and is confined
    /// by the sandbox mode.
    pub fn grant_to_person(&self) -> Grant {
        self.grant(&Effects::none(), self.confinement())
    }

    /// Returns the grant for an admitted call.
    pub(super) fn grant(&self, effects: &Effects, confinement: Confinement) -> Grant {
        Grant::issue(GrantSeal, self.cwd.clone(), effects, self.limits.clone(), confinement)
    }

    /// Returns the confinement of a call.
    pub(super) fn confinement(&self) -> Confinement {
        let SandboxRules { writable, unreadable, readable_again, network } = self.walls.clone();
        let (writable, network) = match self.sandbox {
            SandboxMode::DangerFullAccess => return Confinement::Unconfined,
            SandboxMode::External => return Confinement::External(network),
            SandboxMode::ReadOnly => (Vec::new(), Network::None),
            SandboxMode::WorkspaceWrite => {
                ([self.cwd.clone()].into_iter().chain(writable).collect(), network)
            }
        };
        Confinement::Sandboxed(SandboxRules { writable, unreadable, readable_again, network })
    }

    /// Returns the approval policy for effects beyond the machine: the one that the user chose,
    /// even if nobody can be asked, so that such a call is refused. In a sandbox without network it
    /// can have no such effect and runs.
    pub(super) fn outward_approval(&self) -> ApprovalPolicy {
        let is_offline = match self.confinement() {
            Confinement::Sandboxed(rules) => rules.network == Network::None,
            Confinement::InProcess | Confinement::Unconfined | Confinement::External(_) => false,
        };
        self.unattended.filter(|_| !is_offline).unwrap_or(self.approval)
    }

    /// Returns the cause of a refusal: the user's choice, in the words that models of this family
    /// were trained on, or the lack of a person to ask.
    pub(super) fn refusal_cause(&self) -> String {
        match self.unattended {
            Some(chosen) => format!(
                "it needs approval, and nobody can be asked in this run (the approval policy is `{}`)",
                chosen.name()
            ),
            None => "rejected by user approval settings".to_owned(),
        }
    }

    /// Returns the message about a command that may not run. A rule that forbids it needs no other
    /// cause.
    pub(super) fn refusal(&self, class: Class, why: &str) -> String {
        match self.unattended.filter(|_| class != Class::Forbidden) {
            Some(_) => format!("refused: {why}; {}", self.refusal_cause()),
            None => format!("refused: {why}"),
        }
    }

    /// Returns the message for a model that may not escalate. If that is the user's choice, it is
    /// the sentence that models of this family were trained on, with the name of the setting: a
    /// person reads it, too.
    pub(super) fn no_wishes(&self) -> String {
        if self.plan_mode {
            return "refused: plan mode is on, so no command runs without the sandbox; nothing is changed before the \
                    user approves the plan"
                .to_owned();
        }
        if let Some(chosen) = self.unattended {
            return format!(
                "refused: it asks to run without the sandbox; the approval policy is `{}`, but nobody can be asked in \
                 this run, so that `{}` holds; run it without asking for escalated permissions, or leave it out",
                chosen.name(),
                self.approval.name()
            );
        }
        let policy = self.approval.name();
        format!(
            "approval policy is {policy}; reject command — you should not ask for escalated permissions if the approval \
             policy is {policy}"
        )
    }
}

/// Orders the sandbox modes by what they allow. Neither of the last two contains the other.
fn width(mode: SandboxMode) -> u8 {
    match mode {
        SandboxMode::ReadOnly => 0,
        SandboxMode::WorkspaceWrite => 1,
        SandboxMode::External | SandboxMode::DangerFullAccess => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_never_has_a_wider_sandbox_than_its_parent() {
        const MODES: [SandboxMode; 4] = [
            SandboxMode::ReadOnly,
            SandboxMode::WorkspaceWrite,
            SandboxMode::External,
            SandboxMode::DangerFullAccess,
        ];
        for (at, parent) in MODES.into_iter().enumerate() {
            let policy = Policy { sandbox: parent, ..Policy::default() };
            assert_eq!(policy.clone().narrowed(None).sandbox, parent);
            for (asked_at, asked) in MODES.into_iter().enumerate() {
                let child = policy.clone().narrowed(Some(asked));
                let expected = if asked_at < at && asked_at < 2 { asked } else { parent };
                assert_eq!(child.sandbox, expected, "{parent:?} {asked:?}");
            }
        }
        let plan = Policy::default().planning().narrowed(Some(SandboxMode::WorkspaceWrite));
        assert!(plan.plan_mode && plan.sandbox == SandboxMode::ReadOnly);
    }
}

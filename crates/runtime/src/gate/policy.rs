//! What a person has settled before a session begins.

use std::path::PathBuf;

use windlass_contract::{
    Effects, Grant,
    effects::{Network, OutwardEffect},
    grant::{Confinement, Limits, SandboxRules},
    policy::{ApprovalPolicy, SandboxMode},
};
use windlass_policy::Rules;

/// What a person has settled beforehand.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Where relative paths and commands start.
    pub cwd: PathBuf,
    /// When to ask.
    pub approval: ApprovalPolicy,
    /// The policy that the user chose, where nobody is there to be asked and `approval` holds instead.
    pub unattended: Option<ApprovalPolicy>,
    /// Effects beyond the machine that are asked about with the policies `untrusted` and `on-request`, also without a
    /// sandbox.
    pub ask_before: Vec<OutwardEffect>,
    /// How tightly things are held.
    pub sandbox: SandboxMode,
    /// What commands may do beside: directories to write and the network count in `workspace-write` only, what may
    /// not be read counts in every mode but full access.
    pub walls: SandboxRules,
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
            unattended: None,
            ask_before: OutwardEffect::ALL.to_vec(),
            sandbox: SandboxMode::ReadOnly,
            walls: SandboxRules::default(),
            limits: Limits::default(),
            rules: Rules::default(),
            parallel_commands: false,
        }
    }
}

impl Policy {
    /// The grant for a command that a person starts themselves: nobody needs to be asked, and it is held as the
    /// sandbox mode says.
    pub fn grant_to_person(&self) -> Grant {
        self.grant(&Effects::none(), self.confinement())
    }

    /// The grant for a call that was let through.
    pub(super) fn grant(&self, effects: &Effects, confinement: Confinement) -> Grant {
        Grant::issue(self.cwd.clone(), effects, self.limits.clone(), confinement)
    }

    /// What a call is held to.
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

    /// What a model is told that may not ask for more. Where that is the user's choice, to the letter what models of this
    /// family were trained to read.
    pub(super) fn no_wishes(&self) -> String {
        if let Some(chosen) = self.unattended {
            return format!(
                "refused to run the command without the sandbox: the approval policy is `{}`, but nobody can be asked in \
                 this run, so that `{}` holds; run it without asking for escalated permissions, or leave it out",
                chosen.name(),
                self.approval.name()
            );
        }
        let policy = match self.approval {
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
}

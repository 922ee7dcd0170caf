//! Decides about calls of tools on MCP servers.
//!
//! The server was confined when it was started, so that the call itself needs no confinement. Its
//! sandbox says what it can change; the words of the server only raise that.

use serde_json::{Value, json};
use windlass_contract::{
    Effects, ToolName,
    effects::{Network, OutwardEffect},
    grant::Confinement,
    policy::{ApprovalPolicy, SandboxMode},
    remote::{RemoteCall, ToolApprovalMode, short_name},
};

use super::{Gate, GateDecision};

impl Gate {
    /// Decides about a call of a tool on a server.
    pub(super) fn decide_remote(&self, call: &RemoteCall, effects: &Effects) -> GateDecision {
        let only_remote = Effects::remote(call.clone());
        if *effects != only_remote {
            let reason = "refused: a call of a server has no other effects; this is a bug in the tool";
            return GateDecision::Refuse { reason: reason.to_owned() };
        }
        if self.policy.plan_mode && call.may_change() {
            return GateDecision::plan_mode_refusal();
        }
        let why = match self.reason_to_ask(call) {
            Ok(why) => return GateDecision::Run { confinement: Confinement::InProcess, why },
            Err(why) => format!("{why} ({})", describe(call)),
        };
        if self.policy.approval == ApprovalPolicy::Never {
            let reason = format!(
                "refused: {why}; {}; only the user can allow it, with `{}`",
                self.policy.refusal_cause(),
                call.approving_setting()
            );
            return GateDecision::Refuse { reason };
        }
        GateDecision::Ask { confinement: Confinement::InProcess, reason: why, unclear: Vec::new() }
    }

    /// Returns the reason that the call may run, or as an error the reason to ask about it.
    fn reason_to_ask(&self, call: &RemoteCall) -> Result<String, String> {
        let name = short_name(&call.tool);
        match call.approval {
            ToolApprovalMode::Approve => Ok(format!("the user has approved the tool `{name}`")),
            ToolApprovalMode::Prompt => Err(format!("the approval mode of the tool `{name}` is `prompt`")),
            ToolApprovalMode::Writes if self.is_open() => Ok(EVERYTHING.to_owned()),
            ToolApprovalMode::Writes if call.may_change() => {
                Err(format!("the tool `{name}` may change something, and its approval mode is `writes`"))
            }
            ToolApprovalMode::Writes => Ok("it can change nothing".to_owned()),
            ToolApprovalMode::Auto => self.reason_to_ask_by_policy(call, &name),
        }
    }

    /// Returns the same for a tool without a mode of its own, by the policy of the session.
    fn reason_to_ask_by_policy(&self, call: &RemoteCall, name: &str) -> Result<String, String> {
        if self.is_open() {
            return Ok(EVERYTHING.to_owned());
        }
        if !call.may_change() {
            return Ok("it can change nothing".to_owned());
        }
        if call.is_destructive() {
            return Err(format!("the server says that the tool `{name}` destroys something"));
        }
        if self.policy.approval == ApprovalPolicy::Untrusted {
            let reason = "may change something, and the approval policy is `untrusted`";
            return Err(format!("the tool `{name}` {reason}"));
        }
        if call.is_outward() {
            return self.reason_to_ask_outward(name);
        }
        match self.policy.sandbox {
            SandboxMode::ReadOnly => {
                Err(format!("the tool `{name}` may write files, and the session is read-only"))
            }
            mode => Ok(format!("the sandbox mode is `{}`", mode.name())),
        }
    }

    /// Returns the same for a tool that may change something elsewhere, as for a command that may.
    fn reason_to_ask_outward(&self, name: &str) -> Result<String, String> {
        let network = match self.policy.confinement() {
            Confinement::Sandboxed(rules) => rules.network,
            Confinement::External(network) => network,
            Confinement::InProcess | Confinement::Unconfined => Network::Any,
        };
        let may_change = format!("the tool `{name}` may change something beyond this machine");
        if network == Network::None {
            return Err(format!("{may_change}, and the network of the session is off"));
        }
        match self.asked_outward(&[OutwardEffect::Send]) {
            Some(_) => Err(may_change),
            None => Ok("the session may use the network".to_owned()),
        }
    }

    /// Returns true if the user allows everything without a question.
    fn is_open(&self) -> bool {
        let chosen = self.policy.unattended.unwrap_or(self.policy.approval);
        self.policy.sandbox == SandboxMode::DangerFullAccess && chosen == ApprovalPolicy::Never
    }
}

/// The reason for a call in a session without sandbox and questions.
const EVERYTHING: &str = "the sandbox mode allows everything";

/// Returns true if the user has approved the tool in the configuration, whatever its arguments are.
pub(super) fn is_approved(call: &RemoteCall) -> bool {
    call.approval == ToolApprovalMode::Approve
}

/// Returns the key of an approval for the session: our tool, and that of the server. A tool that is
/// to be asked about before every call has none.
pub(super) fn session_key(tool: &ToolName, call: &RemoteCall) -> Option<Value> {
    (call.approval != ToolApprovalMode::Prompt).then(|| json!(["mcp", tool, call.server, call.tool]))
}

/// Describes the server of a call.
fn describe(call: &RemoteCall) -> String {
    format!("MCP server `{}`, which {}", short_name(&call.server), call.reach.in_words())
}

//! The choices of a client about an agent, within what `mcp serve` was started with.

use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use windlass::{ApprovalPolicy, Network, SandboxMode};

use super::client_roots;
use crate::{
    args::{ApprovalFlag, CommonOptions, ModelChoice, SandboxFlag},
    setup::ProgramSetup,
};

/// Arguments of the tool that starts an agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentChoice {
    pub(super) prompt: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    approval_policy: Option<ApprovalPolicy>,
    #[serde(default)]
    sandbox: Option<SandboxMode>,
}

impl AgentChoice {
    /// Returns the schema of the arguments.
    pub(super) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The task, in words"},
                "model": {"type": "string", "description": "Model of the configured provider. Default: the configured one"},
                "cwd": {"type": "string", "description": "Directory to work in, inside the one that is served"},
                "approval_policy": {
                    "type": "string", "enum": ["untrusted", "on-failure", "on-request", "never"],
                    "description": "When to ask. Default: as the server was started",
                },
                "sandbox": {
                    "type": "string", "enum": ["read-only", "workspace-write", "danger-full-access"],
                    "description": "Sandbox mode, not wider than that of the server",
                },
            },
            "required": ["prompt"],
            "additionalProperties": false,
        })
    }

    /// Returns the setup of the agent. What exceeds the ceiling is an error, not narrowed silently.
    pub(super) fn setup(
        &self,
        common: &CommonOptions,
        ceiling: &ProgramSetup,
        roots: Option<&[PathBuf]>,
    ) -> Result<ProgramSetup, String> {
        let places = roots.map_or_else(|| vec![ceiling.cwd.clone()], <[_]>::to_vec);
        let usual = places.first().unwrap_or(&ceiling.cwd).clone();
        let cwd = self.cwd.as_ref().map_or_else(|| usual.clone(), |cwd| usual.join(cwd));
        let cwd = fs::canonicalize(&cwd).map_err(|error| format!("cwd `{}`: {error}", cwd.display()))?;
        let inside = client_roots::narrowed(Some(std::slice::from_ref(&cwd)), &places);
        if inside.is_none()
            && !places.iter().any(|place| fs::canonicalize(place).is_ok_and(|place| place == cwd))
        {
            return Err(format!("cwd `{}` is outside of the directory served", cwd.display()));
        }
        let most = ceiling.config();
        let sandbox = self.sandbox.unwrap_or(most.sandbox_mode);
        if width(sandbox) > width(most.sandbox_mode) {
            let (asked, most) = (sandbox.name(), most.sandbox_mode.name());
            return Err(format!("the sandbox mode `{asked}` is wider than that of the server, `{most}`"));
        }
        let approval = self.approval_policy.unwrap_or(most.approval_policy);
        let is_fixed = matches!(most.approval_policy, ApprovalPolicy::Never | ApprovalPolicy::Untrusted);
        if is_fixed && approval != most.approval_policy {
            let most = most.approval_policy.name();
            return Err(format!(
                "the server was started with the approval policy `{most}`, which is the only one here"
            ));
        }
        let common = CommonOptions {
            sandbox: Some(sandbox_flag(sandbox)),
            approval: Some(approval_flag(approval)),
            bypass: false,
            cd: Some(cwd),
            config: common.config.clone(),
        };
        let choice = ModelChoice { model: self.model.clone(), provider: None };
        let setup = ProgramSetup::for_served_agent(&common, &choice).map_err(|problem| problem.message)?;
        let network = |setup: &ProgramSetup| setup.policy(approval).walls.network != Network::None;
        if network(&setup) && !network(ceiling) && width(sandbox) < 2 {
            return Err(
                "the configuration of this directory allows the network, and the server does not".to_owned()
            );
        }
        Ok(setup)
    }
}

/// Orders the sandbox modes by what they allow.
fn width(mode: SandboxMode) -> u8 {
    match mode {
        SandboxMode::ReadOnly => 0,
        SandboxMode::WorkspaceWrite => 1,
        SandboxMode::DangerFullAccess | SandboxMode::External => 2,
    }
}

fn sandbox_flag(mode: SandboxMode) -> SandboxFlag {
    match mode {
        SandboxMode::ReadOnly => SandboxFlag::ReadOnly,
        SandboxMode::WorkspaceWrite => SandboxFlag::WorkspaceWrite,
        SandboxMode::DangerFullAccess => SandboxFlag::DangerFullAccess,
        SandboxMode::External => SandboxFlag::External,
    }
}

fn approval_flag(policy: ApprovalPolicy) -> ApprovalFlag {
    match policy {
        ApprovalPolicy::Untrusted => ApprovalFlag::Untrusted,
        ApprovalPolicy::OnFailure => ApprovalFlag::OnFailure,
        ApprovalPolicy::OnRequest => ApprovalFlag::OnRequest,
        ApprovalPolicy::Never => ApprovalFlag::Never,
    }
}

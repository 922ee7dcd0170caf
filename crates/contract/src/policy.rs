//! The two settings that a user chooses: when to be asked, and how tools are confined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a person is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// Before everything that is not known to be harmless.
    Untrusted,
    /// When the sandbox has stopped something.
    OnFailure,
    /// When the model asks for more than the sandbox allows.
    #[default]
    OnRequest,
    /// Never: a call that would need a question is refused.
    Never,
}

/// Confinement of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing may be written, no network.
    #[default]
    ReadOnly,
    /// The workspace and a private temporary directory may be written, no network.
    WorkspaceWrite,
    /// No sandbox at all: everything runs with the rights of the user.
    DangerFullAccess,
    /// No sandbox by Windlass, because something outside (a container, a virtual machine) already
    /// confines everything. Commands run with the rights of this process. Results say so, and
    /// repeat the configured network access.
    #[serde(rename = "external-sandbox", alias = "external")]
    External,
}

impl SandboxMode {
    /// Returns the name used in the configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
            Self::External => "external-sandbox",
        }
    }
}

impl ApprovalPolicy {
    /// Returns the name used in the configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::OnFailure => "on-failure",
            Self::OnRequest => "on-request",
            Self::Never => "never",
        }
    }
}

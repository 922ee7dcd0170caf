//! Adapts descriptions of built-in tools to the policy, so that they promise nothing the session
//! cannot do.

use std::sync::Arc;

use serde_json::Value;
use windlass_contract::{
    AnyTool, Input, Meta, ParsedCall, ToolError, ToolName, ToolSpec,
    effects::Network,
    policy::{ApprovalPolicy, SandboxMode},
    spec::SpecKind,
};
use windlass_runtime::Policy;
use windlass_schema::{Schema, SchemaError};

/// The parameters by which a model asks to leave the sandbox.
const ESCALATION: [&str; 3] = ["sandbox_permissions", "justification", "prefix_rule"];

/// The parts of a policy that descriptions of tools depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolicyTraits {
    sandbox: SandboxMode,
    network: Network,
    asks_first: bool,
    /// A request to leave the sandbox can be granted.
    can_escalate: bool,
}

impl PolicyTraits {
    /// Returns the traits of a session under this policy, with or without an approver.
    pub(crate) fn new(policy: &Policy, is_attended: bool) -> Self {
        let is_confined = matches!(policy.sandbox, SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite);
        Self {
            sandbox: policy.sandbox,
            network: policy.walls.network,
            asks_first: is_attended && policy.approval != ApprovalPolicy::Never,
            can_escalate: is_attended && is_confined && policy.approval == ApprovalPolicy::OnRequest,
        }
    }

    /// Returns the tool with a description that fits the policy.
    pub(crate) fn describe(self, tool: Arc<dyn AnyTool>) -> Arc<dyn AnyTool> {
        match tool.name().as_str() {
            "shell" | "shell_command" | "exec_command" => Arc::new(DescribedTool { tool, traits: self }),
            "apply_patch" | "edit_file" | "write_file" if self.sandbox == SandboxMode::ReadOnly => {
                Arc::new(DescribedTool { tool, traits: self })
            }
            _ => tool,
        }
    }

    /// Returns the sentence for tools that run commands.
    fn of_commands(self) -> Option<&'static str> {
        match (self.sandbox, self.network) {
            (SandboxMode::ReadOnly, _) => Some(
                "Commands run in a read-only sandbox: they can read files but not change them, apart from temporary \
                 files in `/tmp`, and have no network.",
            ),
            (SandboxMode::WorkspaceWrite, Network::None) => Some(
                "Commands run in a sandbox: they can write to the workspace, directories the user \
                 has added and `/tmp` only, and have no network.",
            ),
            (SandboxMode::WorkspaceWrite, Network::Any) => Some(
                "Commands run in a sandbox: they can write to the workspace, directories the user has added and \
                 `/tmp` only.",
            ),
            (SandboxMode::DangerFullAccess | SandboxMode::External, _) => None,
        }
    }

    /// Returns the sentence for tools that change files in a read-only session.
    fn of_edits(self) -> &'static str {
        if self.asks_first {
            "This session is read-only: the user is asked before anything is changed."
        } else {
            "This session is read-only: changes are refused."
        }
    }
}

/// A tool with a description that fits the session. Its calls are parsed with all parameters it
/// knows.
struct DescribedTool {
    tool: Arc<dyn AnyTool>,
    traits: PolicyTraits,
}

impl AnyTool for DescribedTool {
    fn name(&self) -> ToolName {
        self.tool.name()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let mut spec = self.tool.spec()?;
        let is_edit = matches!(spec.name.as_str(), "apply_patch" | "edit_file" | "write_file");
        let sentence = if is_edit { Some(self.traits.of_edits()) } else { self.traits.of_commands() };
        if let Some(sentence) = sentence {
            spec.description = format!("{}\n\n{sentence}", spec.description.trim_end());
        }
        if let SpecKind::Function { parameters } = &mut spec.kind
            && !self.traits.can_escalate
        {
            *parameters = without(parameters, &ESCALATION)?;
        }
        Ok(spec)
    }

    fn meta(&self) -> Meta {
        self.tool.meta()
    }

    /// Returns the full schema, so that the gate can answer an escalation that was not offered.
    fn accepted(&self) -> Option<Schema> {
        match self.tool.spec().ok()?.kind {
            SpecKind::Function { parameters } => Some(parameters),
            _ => None,
        }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        Arc::clone(&self.tool).prepare(input)
    }
}

/// Returns the schema without some of its parameters.
fn without(schema: &Schema, names: &[&str]) -> Result<Schema, SchemaError> {
    let mut value = schema_value(schema);
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(required) = value.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| names.contains(&name)));
    }
    Schema::new(&value)
}

fn schema_value(schema: &Schema) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use windlass_contract::grant::SandboxRules;
    use windlass_tools::{CommandSessions, Needs, PatchForm, UserInput, builtin};

    use super::*;

    fn spec(name: &str, policy: &Policy, is_attended: bool) -> ToolSpec {
        let (shell, patch) = ("/bin/sh".as_ref(), PatchForm::Function);
        let (sessions, user_input) = (&CommandSessions::default(), &UserInput::default());
        let (search, outputs) = (None, None);
        let needs = Needs { shell, patch, search, shows_images: false, outputs, sessions, user_input };
        let tool = builtin(&needs).into_iter().find(|tool| tool.name().as_str() == name).unwrap();
        PolicyTraits::new(policy, is_attended).describe(tool).spec().unwrap()
    }

    fn parameters(spec: &ToolSpec) -> Vec<String> {
        let SpecKind::Function { parameters } = &spec.kind else { panic!("not a function") };
        parameters.properties().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn escalation_is_offered_only_where_it_can_be_granted() {
        use ApprovalPolicy::{Never, OnFailure, OnRequest, Untrusted};
        use SandboxMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
        for (approval, sandbox, is_attended, expected) in [
            (OnRequest, ReadOnly, true, true),
            (OnRequest, WorkspaceWrite, true, true),
            (OnRequest, ReadOnly, false, false),
            (OnRequest, DangerFullAccess, true, false),
            (OnFailure, ReadOnly, true, false),
            (Untrusted, ReadOnly, true, false),
            (Never, WorkspaceWrite, true, false),
        ] {
            let policy = Policy { approval, sandbox, ..Policy::default() };
            for name in ["shell", "shell_command", "exec_command"] {
                let names = parameters(&spec(name, &policy, is_attended));
                let offered = ESCALATION.iter().filter(|name| names.iter().any(|each| each == *name)).count();
                assert_eq!(offered, if expected { 3 } else { 0 }, "{name}: {policy:?}");
                assert!(names.len() > offered, "{name}: the other parameters stay");
            }
        }
    }

    #[test]
    fn a_read_only_session_promises_no_writes() {
        let policy = Policy::default();
        assert!(spec("shell_command", &policy, false).description.contains("read-only sandbox"));
        assert!(spec("apply_patch", &policy, false).description.ends_with("changes are refused."));
        let asking = Policy { approval: ApprovalPolicy::OnRequest, ..Policy::default() };
        assert!(spec("write_file", &asking, true).description.ends_with("before anything is changed."));
        let writable = Policy { sandbox: SandboxMode::WorkspaceWrite, ..Policy::default() };
        assert!(!spec("write_file", &writable, true).description.contains("read-only"));
        assert!(spec("shell", &writable, true).description.ends_with("and have no network."));
        let networked =
            Policy { walls: SandboxRules { network: Network::Any, ..SandboxRules::default() }, ..writable };
        assert!(spec("shell", &networked, true).description.ends_with("`/tmp` only."));
        let open = Policy { sandbox: SandboxMode::DangerFullAccess, ..Policy::default() };
        assert!(!spec("shell", &open, true).description.contains("sandbox:"));
    }

    #[test]
    fn a_call_is_read_with_every_parameter_the_tool_knows() {
        let (shell, patch) = ("/bin/sh".as_ref(), PatchForm::Function);
        let (sessions, user_input) = (&CommandSessions::default(), &UserInput::default());
        let (search, outputs) = (None, None);
        let needs = Needs { shell, patch, search, shows_images: false, outputs, sessions, user_input };
        let tool = builtin(&needs).into_iter().find(|tool| tool.name().as_str() == "shell_command").unwrap();
        let described = PolicyTraits::new(&Policy::default(), false).describe(tool);
        let input = r#"{"command":"ls","sandbox_permissions":"require_escalated","justification":"why"}"#;
        let ready = described.prepare(&Input::Json(input.to_owned())).unwrap();
        assert!(ready.effects().escalation.is_some(), "the gate answers it");
    }
}

//! The settings of a session that a person can change while it runs.

use windlass::{
    AgentBuilder, ApprovalPolicy, Beyond, Clean, CommandSessions, Question, SandboxMode, SessionApprovals,
    SteeringInput, ThreadId, UndoRecording, clean::Secrets, shell_script,
};

use crate::render::tool_call::shown_path;

/// The approval policies, from the one that asks most.
const APPROVAL_POLICIES: [ApprovalPolicy; 4] =
    [ApprovalPolicy::Untrusted, ApprovalPolicy::OnFailure, ApprovalPolicy::OnRequest, ApprovalPolicy::Never];

/// The sandbox modes that can be chosen, from the narrowest.
const SANDBOX_MODES: [SandboxMode; 3] =
    [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::DangerFullAccess];

/// The settings of a session that a person can change while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The model.
    pub model: String,
    /// Its provider.
    pub provider: String,
    /// The approval policy.
    pub approval: ApprovalPolicy,
    /// The sandbox mode.
    pub sandbox: SandboxMode,
    /// Plan mode: read-only until the person approves the plan. The other settings return then.
    pub plan_mode: bool,
}

impl SessionSettings {
    /// Returns the sandbox mode that commands have now.
    pub(crate) fn sandbox_in_force(&self) -> SandboxMode {
        if self.plan_mode { SandboxMode::ReadOnly } else { self.sandbox }
    }

    /// Returns the name of what answers. A script and the offline rules are no model, whatever the
    /// configuration says.
    pub(crate) fn shown_model(&self) -> &str {
        let has_no_model = matches!(self.provider.as_str(), "rules" | "scripted");
        if has_no_model { &self.provider } else { &self.model }
    }

    /// Returns what differs from other settings, one line each.
    pub(crate) fn changes_from(&self, former: &Self) -> Vec<String> {
        let model = (&self.model, &self.provider) != (&former.model, &former.provider);
        let plan = if self.plan_mode {
            "plan mode is on: nothing is changed until you approve a plan"
        } else {
            "plan mode is off"
        };
        [
            model.then(|| format!("model: {} ({})", self.model, self.provider)),
            (self.approval != former.approval).then(|| format!("approval policy: {}", self.approval.name())),
            (self.sandbox != former.sandbox).then(|| format!("sandbox: {}", self.sandbox.name())),
            (self.plan_mode != former.plan_mode).then(|| plan.to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Finds an approval policy by its name, or returns the message for a wrong one.
pub(crate) fn parse_approval(name: &str) -> Result<ApprovalPolicy, String> {
    let names = || APPROVAL_POLICIES.map(ApprovalPolicy::name).join(", ");
    let found = APPROVAL_POLICIES.into_iter().find(|policy| policy.name() == name);
    found.ok_or_else(|| format!("there is no approval policy `{name}`; choose one of {}", names()))
}

/// Finds a sandbox mode by its name, or returns the message for a wrong one.
pub(crate) fn parse_sandbox(name: &str) -> Result<SandboxMode, String> {
    let names = || SANDBOX_MODES.map(SandboxMode::name).join(", ");
    let found = SANDBOX_MODES.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| format!("there is no sandbox mode `{name}`; choose one of {}", names()))
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The provider.
    pub provider: String,
    /// The model, if one is known.
    pub model: Option<String>,
    /// The reason why it cannot be used now.
    pub obstacle: Option<String>,
}

/// A rule that lasts longer than the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRule {
    /// Its id.
    pub id: String,
    /// Its decision and its commands.
    pub text: String,
}

/// Returns the mechanism that confines commands, and may take its time.
pub type MechanismProbe = Box<dyn FnOnce() -> Option<&'static str> + Send>;

/// A prompt or skill that can be sent as `/NAME ARGUMENTS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPrompt {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub help: String,
}

/// A prompt that the person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptRequest {
    /// One of an MCP server.
    Server {
        /// `SERVER/NAME`.
        name: String,
        /// Its arguments.
        arguments: Vec<(String, String)>,
    },
    /// A file, or a skill.
    File {
        /// Its name.
        name: String,
        /// The text after the name.
        arguments: String,
    },
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedPrompt {
    /// One of an MCP server. The person sees it before it is sent.
    Server {
        /// `SERVER/NAME`.
        name: String,
        /// Its messages as one text.
        text: String,
    },
    /// The message that a file stands for. It is sent at once.
    File(String),
}

/// Fetches a prompt.
pub type PromptFetch = Box<dyn FnOnce() -> Result<FetchedPrompt, String> + Send>;

/// Makes the agents of a session. Implemented by the program; called by the session when the person
/// changes a setting or lists them.
pub trait AgentSource {
    /// Returns an agent with these settings, without event sink, approver and session. The error is
    /// one line for a person.
    fn agent(&self, settings: &SessionSettings) -> Result<AgentBuilder, String>;
    /// Returns the models that can be chosen.
    fn models(&self) -> Vec<OfferedModel>;
    /// Returns the rules for commands. The error is one line for a person.
    fn rules(&self) -> Result<Vec<KeptRule>, String>;
    /// Returns all changes of a session so far as a unified diff. The error is one line for a
    /// person.
    fn session_diff(&self, thread: &ThreadId) -> Result<String, String>;
    /// Returns the messages that began the turns of a session, without those that were taken back.
    fn messages(&self, thread: &ThreadId) -> Vec<String>;
    /// Returns the states of MCP servers, for a person. Must not block.
    fn servers(&self) -> String;
    /// Returns a function that fetches a prompt. It is called on another thread;
    /// the error is one line for a person.
    fn prompt_fetch(&self, request: PromptRequest) -> PromptFetch;
    /// Returns the git branch of the working directory.
    fn branch(&self) -> Option<String>;
    /// Returns the probe of the sandbox. It is called on another thread.
    fn mechanism_probe(&self) -> MechanismProbe;
    /// Returns the secrets that no line shows.
    fn secrets(&self) -> Secrets;
}

/// The parts that the screen and the agent share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLinks {
    /// Messages for the running turn.
    pub(crate) steering: SteeringInput,
    /// Commands that run across calls.
    pub(crate) commands: CommandSessions,
    /// Answers that count for the session.
    pub(crate) approvals: SessionApprovals,
    /// The recorder of what commands change.
    pub(crate) undo: UndoRecording,
}

impl SessionLinks {
    /// Gives an agent its side.
    pub(crate) fn share(&self, builder: AgentBuilder) -> AgentBuilder {
        let Self { steering, commands, approvals, undo } = self.clone();
        let builder = builder.steering(steering).command_sessions(commands);
        builder.session_approvals(approvals).undo_recording(undo)
    }
}

/// Lists the models.
pub(crate) fn model_list(current: &SessionSettings, models: &[OfferedModel]) -> String {
    let mut lines = vec![format!("model: {} ({})", current.model, current.provider)];
    for OfferedModel { provider, model, obstacle } in models {
        let name = model.as_deref().unwrap_or("NAME");
        let obstacle = obstacle.as_ref().map(|reason| format!("   {reason}")).unwrap_or_default();
        lines.push(format!("  /model {name} {provider}{obstacle}"));
    }
    lines.join("\n")
}

/// Lists approvals of the session and rules, with the ids that revoke them.
pub(crate) fn approval_list(
    policy: ApprovalPolicy,
    approvals: &[Clean<Question>],
    rules: &[KeptRule],
) -> String {
    let policies = APPROVAL_POLICIES.map(ApprovalPolicy::name).join(" | ");
    let mut lines = vec![format!("approval policy: {} (/approvals {policies})", policy.name())];
    if approvals.is_empty() && rules.is_empty() {
        lines.push("nothing was allowed in this session, and there are no rules".to_owned());
        return lines.join("\n");
    }
    let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0).max(3);
    let session = approvals.iter().enumerate().map(|(at, question)| {
        format!("  {:<width$}  in this session: {}", format!("s{}", at + 1), approved(question))
    });
    lines.extend(session);
    lines.extend(rules.iter().map(|rule| format!("  {:<width$}  {}", rule.id, rule.text)));
    lines.push("/approvals revoke ID takes one back".to_owned());
    lines.join("\n")
}

/// Describes an approval for the session.
fn approved(question: &Question) -> String {
    let beyond = match question.beyond {
        Beyond::Nothing => "",
        Beyond::Everything => " (without the sandbox)",
        Beyond::Wider { .. } => " (with wider access)",
    };
    let effects = &question.effects;
    let what = match (&effects.command, effects.writes.as_slice()) {
        (Some(command), _) => shell_script(command),
        (None, []) => question.tool.to_string(),
        (None, writes) => {
            let paths: Vec<_> = writes.iter().map(|path| shown_path(path, &question.cwd)).collect();
            format!("{} {}", question.tool, paths.join(", "))
        }
    };
    format!("{what}{beyond}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_told() {
        let former = SessionSettings {
            model: "m".to_owned(),
            provider: "p".to_owned(),
            approval: ApprovalPolicy::OnRequest,
            sandbox: SandboxMode::WorkspaceWrite,
            plan_mode: false,
        };
        assert_eq!(former.changes_from(&former), Vec::<String>::new());
        let now = SessionSettings { provider: "q".to_owned(), plan_mode: true, ..former.clone() };
        let told = ["model: m (q)", "plan mode is on: nothing is changed until you approve a plan"];
        assert_eq!(now.changes_from(&former), told);
        assert_eq!((now.sandbox, now.sandbox_in_force()), (former.sandbox, SandboxMode::ReadOnly));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        assert_eq!(parse_approval("never"), Ok(ApprovalPolicy::Never));
        assert_eq!(parse_sandbox("read-only"), Ok(SandboxMode::ReadOnly));
        let error = parse_sandbox("off").unwrap_err();
        assert!(error.ends_with("choose one of read-only, workspace-write, danger-full-access"), "{error}");
    }
}

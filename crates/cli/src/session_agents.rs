//! The agents of an interactive session, whose settings a person can change while it runs.

use std::{fs, path::Path, sync::Arc};

use windlass::{
    AgentBuilder, ApprovalPolicy, Elicitor, SandboxMode, ThreadId, clean::Secrets, host::Machine, record,
};
use windlass_tui::{
    AgentSource, FetchedPrompt, KeptRule, MechanismProbe, OfferedModel, PromptFetch, PromptRequest,
    SessionSettings,
};

use crate::{
    args::{ApprovalFlag, CommonOptions, ModelChoice, SandboxFlag, SessionOptions},
    instructions::slash_message,
    mcp::{self, SessionServers, with_servers},
    policy,
    problem::CliProblem,
    setup::ProgramSetup,
    undo::session_diff,
    user_tools,
};

/// Makes the agents of a session. They share one machine, so that commands that run across calls
/// and temporary files outlive a change of settings.
pub(crate) struct SessionAgents<'a> {
    pub(crate) common: &'a CommonOptions,
    pub(crate) options: &'a SessionOptions,
    pub(crate) setup: &'a ProgramSetup,
    pub(crate) machine: Machine,
    /// The one who asks the person.
    pub(crate) elicitor: Arc<dyn Elicitor>,
    /// The servers of the session; all of its agents share them.
    pub(crate) servers: Option<SessionServers>,
}

impl SessionAgents<'_> {
    /// Returns the settings at the beginning of a session.
    pub(crate) fn settings(&self) -> SessionSettings {
        let config = self.setup.config();
        SessionSettings {
            model: self.setup.model_name().unwrap_or_default(),
            provider: self.setup.provider_id().to_owned(),
            approval: config.approval_policy,
            sandbox: config.sandbox_mode,
            plan_mode: self.options.plan,
        }
    }

    /// Returns the agent of a setup.
    pub(crate) fn builder(
        &self,
        setup: &ProgramSetup,
        settings: &SessionSettings,
    ) -> Result<AgentBuilder, CliProblem> {
        let agent = setup.attended_agent(self.machine.clone())?;
        let agent = user_tools::with_user_tools(agent, self.options.tools.as_deref())?;
        let agent = with_servers(agent, self.servers.as_ref()).elicitor(Arc::clone(&self.elicitor));
        Ok(if settings.plan_mode { agent.plan_mode() } else { agent })
    }

    /// Reads the configuration again, with these settings as the options of the command line.
    fn changed(&self, settings: &SessionSettings) -> Result<AgentBuilder, CliProblem> {
        let common = CommonOptions {
            sandbox: Some(sandbox_flag(settings.sandbox)),
            approval: Some(approval_flag(settings.approval)),
            bypass: false,
            ..self.common.clone()
        };
        let is_script = settings.provider == "scripted";
        let options = SessionOptions {
            choice: ModelChoice {
                model: Some(settings.model.clone()),
                provider: Some(settings.provider.clone()),
            },
            script: self.options.script.clone().filter(|_| is_script),
            ..self.options.clone()
        };
        let setup = ProgramSetup::for_session(&common, &options)?.limited(&options.limits)?;
        self.builder(&setup, settings)
    }
}

impl AgentSource for SessionAgents<'_> {
    fn agent(&self, settings: &SessionSettings) -> Result<AgentBuilder, String> {
        self.changed(settings).map_err(|problem| problem.message)
    }

    fn models(&self) -> Vec<OfferedModel> {
        self.setup.offered_models()
    }

    fn rules(&self) -> Result<Vec<KeptRule>, String> {
        policy::kept_rules(self.setup).map_err(|problem| problem.message)
    }

    fn servers(&self) -> String {
        match &self.servers {
            Some(servers) => servers.states().join("\n"),
            None => "no MCP server is configured; `windlass mcp add` configures one".to_owned(),
        }
    }

    fn prompt_fetch(&self, request: PromptRequest) -> PromptFetch {
        let (name, arguments) = match request {
            PromptRequest::Server { name, arguments } => (name, arguments),
            PromptRequest::File { name, arguments } => {
                let text = slash_message(self.setup, &name, &arguments).map_err(|problem| problem.message);
                return Box::new(move || text.map(FetchedPrompt::File));
            }
        };
        let pool = self.servers.as_ref().map(|servers| Arc::clone(&servers.pool));
        Box::new(move || {
            let pool = pool.ok_or_else(|| "no MCP server is configured".to_owned())?;
            let text = mcp::prompt_text(&pool, &name, &arguments).map_err(|problem| problem.message)?;
            Ok(FetchedPrompt::Server { name, text })
        })
    }

    fn session_diff(&self, thread: &ThreadId) -> Result<String, String> {
        session_diff(self.setup, thread).map_err(|problem| problem.message)
    }

    fn messages(&self, thread: &ThreadId) -> Vec<String> {
        let found = record::find(&self.setup.home, thread).and_then(|(_, path)| record::load(&path));
        let turns = found.map(|session| session.turns).unwrap_or_default();
        turns.into_iter().map(|turn| turn.message).collect()
    }

    fn branch(&self) -> Option<String> {
        branch(&self.setup.cwd)
    }

    fn mechanism_probe(&self) -> MechanismProbe {
        let machine = self.machine.clone();
        Box::new(move || machine.diagnose().rung.map(windlass::Mechanism::name))
    }

    fn secrets(&self) -> Secrets {
        self.setup.secrets()
    }
}

/// Returns the git branch of a directory.
pub(crate) fn branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|directory| directory.join(".git")).find(|git| git.exists())?;
    let directory = match fs::read_to_string(&git) {
        Ok(link) => git.parent()?.join(link.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => git,
    };
    let head = fs::read_to_string(directory.join("HEAD")).ok()?;
    head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
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

//! The output of `windlass exec`: events for a program, or progress and an answer for a person, and
//! the questions to that person.

use std::sync::Arc;

use windlass::{
    AgentBuilder, ApprovalPolicy, Elicitor, EventSink, ModelInfo, Network, SandboxMode, Stop, ThreadId,
    host::Machine, select::RULES,
};

use crate::{
    allow_hints::AllowHints,
    args::ExecOptions,
    ask::{TerminalApprover, TerminalElicitor},
    confirm::obstacle_to_asking,
    jsonl::JsonlWriter,
    mcp::StateOutput,
    output,
    paths::PathDisplay,
    problem::CliProblem,
    progress_terminal::ProgressTerminal,
    screen::ProgressScreen,
    setup::ProgramSetup,
    wrap::wrap_for_stderr,
};

/// The place where events, progress and answers go.
pub(super) struct ExecOutput {
    kind: OutputKind,
    /// The reason that nobody can be asked.
    obstacle: Option<&'static str>,
}

enum OutputKind {
    Json(Arc<JsonlWriter>),
    Person { screen: Arc<ProgressScreen>, terminal: Arc<ProgressTerminal> },
}

impl ExecOutput {
    pub(super) fn new(setup: &ProgramSetup, options: &ExecOptions, stop: &Stop) -> Result<Self, CliProblem> {
        let hints = Arc::new(AllowHints::new(setup, options.no_input, true)?);
        let kind = if options.json || options.experimental_json {
            OutputKind::Json(Arc::new(JsonlWriter::new(options.deltas, stop.clone(), hints)))
        } else {
            let terminal = Arc::new(ProgressTerminal::new());
            let screen = ProgressScreen::new(setup, Arc::clone(&terminal), hints);
            OutputKind::Person { screen: Arc::new(screen), terminal }
        };
        Ok(Self { kind, obstacle: obstacle_to_asking(options.no_input) })
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.kind, OutputKind::Json(_))
    }

    /// Returns the place for the states of MCP servers.
    pub(super) fn server_states(&self) -> StateOutput {
        match &self.kind {
            OutputKind::Json(writer) => StateOutput::Json(Arc::clone(writer)),
            OutputKind::Person { .. } => StateOutput::Person,
        }
    }

    /// Returns the one who answers questions of MCP servers, if a person can be asked.
    pub(super) fn elicitor(&self, options: &ExecOptions, stop: &Stop) -> Option<Arc<dyn Elicitor>> {
        let progress = match &self.kind {
            OutputKind::Json(_) => None,
            OutputKind::Person { terminal, .. } => Some(Arc::clone(terminal)),
        };
        TerminalElicitor::at_terminal(options.no_input, stop, progress)
    }

    /// Returns an agent with its events and, if a person can be asked, its questions.
    pub(super) fn agent(
        &self,
        setup: &ProgramSetup,
        machine: Machine,
        stop: &Stop,
    ) -> Result<AgentBuilder, CliProblem> {
        let events: Arc<dyn EventSink> = match &self.kind {
            OutputKind::Json(writer) => writer.clone(),
            OutputKind::Person { screen, .. } => screen.clone(),
        };
        if self.obstacle.is_some() || setup.config().approval_policy == ApprovalPolicy::Never {
            return Ok(setup.agent(machine)?.events(events));
        }
        let approver = TerminalApprover::new(&setup.cwd, stop);
        let approver = match &self.kind {
            OutputKind::Json(_) => approver,
            OutputKind::Person { terminal, .. } => approver.with_progress(Arc::clone(terminal)),
        };
        Ok(setup.attended_agent(machine)?.events(events).approver(Arc::new(approver)))
    }

    /// Returns the lines about the run: directory, model, sandbox, approval and session.
    pub(super) fn header(&self, setup: &ProgramSetup, model: &ModelInfo, thread: &ThreadId) -> String {
        let directory = PathDisplay::seen_from(&setup.cwd).show_whole(&setup.cwd);
        let model = if model.provider == RULES {
            "offline rules, no model; for a model, set OPENAI_API_KEY or choose a --provider".to_owned()
        } else {
            format!("{} ({})", model.model, model.provider)
        };
        let (sandbox, approval) = (sandbox_words(setup), self.approval_words(setup));
        let header = format!(
            "directory: {directory}\nmodel: {model}\nsandbox: {sandbox}\napproval: {approval}\nsession: {thread}"
        );
        wrap_for_stderr(&header)
    }

    fn approval_words(&self, setup: &ProgramSetup) -> String {
        let policy = setup.config().approval_policy;
        match self.obstacle.filter(|_| policy != ApprovalPolicy::Never) {
            Some(obstacle) => format!("{}, but nobody is asked, because {obstacle}", policy.name()),
            None => policy.name().to_owned(),
        }
    }

    /// Waits until all progress is written.
    pub(super) fn flush(&self) {
        if let OutputKind::Person { terminal, .. } = &self.kind {
            terminal.flush();
        }
    }

    /// Prints the answer on stdout, unless it is on the screen already.
    pub(super) fn print_answer(&self, answer: &str) -> Result<(), CliProblem> {
        match &self.kind {
            OutputKind::Person { screen, .. } if !screen.has_shown(answer) => {
                output::print_prose(answer)?;
            }
            OutputKind::Person { .. } | OutputKind::Json(_) => {}
        }
        Ok(())
    }
}

fn sandbox_words(setup: &ProgramSetup) -> String {
    let config = setup.config();
    let mode = config.sandbox_mode;
    let network = match (mode, setup.policy(config.approval_policy).walls.network) {
        (SandboxMode::DangerFullAccess, _) => return format!("{} (none)", mode.name()),
        (SandboxMode::WorkspaceWrite | SandboxMode::External, Network::Any) => "network on",
        _ => "network off",
    };
    format!("{}, {network}", mode.name())
}

//! The part of a session that needs no terminal: the app, the agent, and what passes between them.

use std::{io, sync::Arc, time::Instant};

use windlass::{AgentBuilder, UndoRecording, record::Which};

use crate::{
    app::{App, AppAction, SessionList},
    approver::QueueApprover,
    end_watch::EndWatch,
    event_queue::{EventQueue, QueueSink, SessionMessage},
    session::{ProgramCommands, PromptHistory},
    session_worker::{AgentRebuild, SessionWorker, WorkOrder},
    settings::{AgentSource, PromptRequest, SessionLinks, SessionSettings, approval_list, model_list},
};

/// A session without its terminal.
pub(crate) struct SessionCore<'a> {
    pub(crate) app: App,
    pub(crate) worker: SessionWorker,
    pub(crate) links: SessionLinks,
    pub(crate) agents: &'a dyn AgentSource,
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) history: &'a dyn PromptHistory,
    pub(crate) commands: &'a dyn ProgramCommands,
    pub(crate) end: EndWatch,
}

/// Something that is done with the terminal.
#[derive(Debug)]
pub(crate) enum LoopAction {
    /// Hand the terminal to a command of the program.
    Program(Vec<String>),
    /// The same for the command that removes a rule, which the agent must then forget.
    RevokeRule(String),
    /// The same for the command that takes the session back. The agent must not hold the session
    /// meanwhile: see [`SessionCore::rewind`].
    Rewind(Vec<String>),
    /// Copy a text to the clipboard.
    Copy(String),
    /// Scroll everything off the screen.
    Clear,
    /// Open the input in an editor.
    Edit,
    Suspend,
    Quit,
}

impl SessionCore<'_> {
    /// Adds a message to the history of prompts.
    pub(crate) fn remember(&mut self, text: &str) {
        if let Err(problem) = self.history.append(text) {
            self.app.note(&problem);
        }
    }

    /// Gives a message of the agent to the app.
    pub(crate) fn on_message(&mut self, message: SessionMessage, now: Instant) {
        if matches!(message, SessionMessage::Idle) {
            self.app.set_branch(self.agents.branch());
        }
        self.app.on_message(message, now);
    }

    /// Does an action of the app, or returns it as one for the terminal.
    pub(crate) fn act(&mut self, action: AppAction) -> Option<LoopAction> {
        match action {
            AppAction::Prompt(text) => self.order(WorkOrder::Turn(text)),
            AppAction::Shell(command) => self.order(WorkOrder::Shell(command)),
            AppAction::Compact(wish) => self.order(WorkOrder::Compact(wish)),
            AppAction::Cancel => self.worker.cancel(),
            AppAction::Change(settings) => self.change(settings),
            AppAction::NewSession => self.begin_session(),
            AppAction::List(list) => self.list(list),
            AppAction::ServerPrompt(request) => self.fetch_prompt(request),
            AppAction::EndCommand(id) => self.worker.end_command(self.links.commands.clone(), id),
            AppAction::Program(arguments) => {
                // It may undo or show what commands have changed.
                self.links.undo.settle();
                return Some(LoopAction::Program(arguments));
            }
            AppAction::RevokeRule(id) => return Some(LoopAction::RevokeRule(id)),
            AppAction::Rewind(arguments) => {
                self.links.undo.settle();
                return Some(LoopAction::Rewind(arguments));
            }
            AppAction::Copy(text) => return Some(LoopAction::Copy(text)),
            AppAction::Clear => return Some(LoopAction::Clear),
            AppAction::Edit => return Some(LoopAction::Edit),
            AppAction::Suspend => return Some(LoopAction::Suspend),
            AppAction::Quit => return Some(LoopAction::Quit),
        }
        None
    }

    fn order(&mut self, order: WorkOrder) {
        if !self.worker.send(order) {
            self.queue.push(SessionMessage::Idle);
            self.app.note("the agent has ended; leave, and go on with `windlass resume`");
        }
    }

    /// Replaces the agent by one with these settings. The screen learns the result as a message.
    pub(crate) fn change(&mut self, settings: SessionSettings) {
        let now = self.app.settings();
        let keeps_model = (&settings.model, &settings.provider) == (&now.model, &now.provider);
        let built = self.resumed(&settings).and_then(|builder| Ok((builder, self.resumed(now)?)));
        self.rebuild(settings, built, keeps_model);
    }

    /// Replaces the agent by one with the same settings and a new session.
    fn begin_session(&mut self) {
        let settings = self.app.settings().clone();
        let former = self.resumed(&settings);
        // The recorder of changes belongs to a session, and so do its approvals.
        self.links.undo = UndoRecording::default();
        while self.links.approvals.revoke(0) {}
        let builder = self.agents.agent(&settings);
        let built = builder.and_then(|builder| Ok((attached(builder, &self.links, &self.queue), former?)));
        self.rebuild(settings, built, true);
    }

    /// Returns an agent for this session.
    fn resumed(&self, settings: &SessionSettings) -> Result<AgentBuilder, String> {
        let thread = self.app.thread().cloned().ok_or("the session has not begun")?;
        let builder = self.agents.agent(settings)?.resume(Which::Id(thread));
        Ok(attached(builder, &self.links, &self.queue))
    }

    fn rebuild(
        &mut self,
        settings: SessionSettings,
        built: Result<(AgentBuilder, AgentBuilder), String>,
        keeps_model: bool,
    ) {
        match built {
            Ok((builder, former)) => {
                let rebuild = AgentRebuild { settings, builder, former, keeps_model };
                self.order(WorkOrder::Rebuild(Box::new(rebuild)));
            }
            Err(problem) => {
                self.queue.push(SessionMessage::Changed(Box::new(Err(problem))));
                self.queue.push(SessionMessage::Idle);
            }
        }
    }

    /// Gives the agent the rules that remain after one was removed.
    pub(crate) fn reload_rules(&mut self) {
        self.change(self.app.settings().clone());
    }

    /// Lets a command take the session back while the agent does not hold it. Then the agent goes
    /// on with what is left. Returns the first message that was taken back.
    pub(crate) fn rewind<T>(&mut self, run: impl FnOnce() -> T) -> (T, Option<String>) {
        let messages = |core: &Self| core.app.thread().map(|thread| core.agents.messages(thread));
        let before = messages(self).unwrap_or_default();
        let is_released = self.worker.release();
        let ran = run();
        let after = messages(self).unwrap_or_default();
        let taken_back = before.into_iter().nth(after.len());
        if taken_back.is_some() {
            self.app.on_rewound();
        }
        if is_released {
            self.change(self.app.settings().clone());
        }
        (ran, taken_back)
    }

    /// Fetches a prompt on a thread of its own, because a server takes its time.
    fn fetch_prompt(&mut self, request: PromptRequest) {
        let (fetch, queue) = (self.agents.prompt_fetch(request), Arc::clone(&self.queue));
        let run = move || queue.push(SessionMessage::ServerPrompt(Box::new(fetch())));
        let started = std::thread::Builder::new().name("windlass-prompt".to_owned()).spawn(run);
        if let Err(error) = started {
            self.app.note(&error.to_string());
        }
    }

    fn list(&mut self, list: SessionList) {
        let shown = match list {
            SessionList::Models => Ok(model_list(self.app.settings(), &self.agents.models())),
            SessionList::Approvals => self.agents.rules().map(|rules| {
                approval_list(self.app.settings().approval, &self.links.approvals.list(), &rules)
            }),
            SessionList::Servers => Ok(self.agents.servers()),
            SessionList::Diff => {
                self.links.undo.settle();
                let thread = self.app.thread().cloned();
                let diff = thread.map_or(Ok(String::new()), |thread| self.agents.session_diff(&thread));
                diff.map(|diff| {
                    self.app.show_diff(&diff);
                    String::new()
                })
            }
        };
        match shown {
            Ok(text) if text.is_empty() => {}
            Ok(text) | Err(text) => self.app.note(&text),
        }
    }

    /// Runs a command of the program. The terminal must be lent to it.
    pub(crate) fn run_program(commands: &dyn ProgramCommands, arguments: &[String]) {
        // On a thread of its own, because it may have a runtime of its own.
        std::thread::scope(|scope| {
            // A panic was reported already.
            let _panicked = scope.spawn(|| commands.run(arguments)).join();
        });
    }
}

/// Connects an agent with the screen.
pub(crate) fn attached(builder: AgentBuilder, links: &SessionLinks, queue: &Arc<EventQueue>) -> AgentBuilder {
    links
        .share(builder)
        .events(Arc::new(QueueSink(Arc::clone(queue))))
        .approver(Arc::new(QueueApprover(Arc::clone(queue))))
}

/// Finds out what confines commands, on a thread of its own. If there is none, the status line does
/// without it.
pub(crate) fn probe_mechanism(agents: &dyn AgentSource, queue: Arc<EventQueue>) {
    let probe = agents.mechanism_probe();
    let run = move || queue.push(SessionMessage::Mechanism(probe()));
    let _thread: io::Result<_> = std::thread::Builder::new().name("windlass-probe".to_owned()).spawn(run);
}

/// Returns the arguments of the command that removes a rule.
pub(crate) fn revoke_arguments(id: String) -> Vec<String> {
    vec!["policy".to_owned(), "revoke".to_owned(), id]
}

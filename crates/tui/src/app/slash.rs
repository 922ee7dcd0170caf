//! The commands of the session that begin with `/`.

use std::{iter, path::PathBuf, time::Instant};

use windlass::{Network, ThreadId, duration_in_words};

use super::{App, AppAction, SessionList, WorkKind};
use crate::{
    commands::{self, COMMAND_GROUPS, KEYS, SlashCommand, THIS_SESSION},
    plan_question::{PlanAnswer, PlanQuestion},
    settings::{FetchedPrompt, PromptRequest, SessionSettings, parse_approval, parse_sandbox},
};

/// Maximum size of a text that is copied. Terminals drop longer ones.
const MAX_COPIED_BYTES: usize = 100 * 1000;

/// The message to the model when its plan is approved.
const PLAN_APPROVED: &str = "The plan is approved. Begin.";

/// Returns true for one word behind a slash that is no command. A path is a message.
pub(super) fn is_unknown_command(text: &str) -> bool {
    let name = text.strip_prefix('/');
    name.is_some_and(|name| commands::parse(text).is_none() && !name.contains(['/', ' ', '\n']))
}

/// Returns the text of a file as a message that is neither a command of the session nor one for a
/// shell.
fn as_message(text: String) -> String {
    if text.trim_start().starts_with(['!', '/']) { format!("Prompt:\n{text}") } else { text }
}

impl App {
    pub(super) fn run_command(&mut self, command: SlashCommand, argument: &str, now: Instant) {
        match command {
            SlashCommand::Rewind | SlashCommand::Program(_) if self.working.is_some() => self.note_working(),
            SlashCommand::Help => self.help(),
            SlashCommand::Model => self.change_model(argument, now),
            SlashCommand::Approvals => self.change_approvals(argument, now),
            SlashCommand::Sandbox => self.change_sandbox(argument, now),
            SlashCommand::Plan => self.change_plan_mode(argument, now),
            SlashCommand::Processes => self.list_processes(argument),
            SlashCommand::Diff => self.actions.push(AppAction::List(SessionList::Diff)),
            SlashCommand::Expand => self.expand(argument),
            SlashCommand::Compact => self.compact(argument, now),
            SlashCommand::Status => self.show_status(),
            SlashCommand::Copy => self.copy_answer(),
            SlashCommand::Clear => self.actions.push(AppAction::Clear),
            SlashCommand::New => self.begin_session(now),
            SlashCommand::Servers => self.servers(argument, now),
            SlashCommand::Rewind => self.rewind(argument, now),
            SlashCommand::Resume => {
                self.note("leave (Ctrl-D), then `windlass resume` lets you choose; /sessions lists them");
            }
            SlashCommand::Program(first) => {
                let session = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
                let first = first
                    .iter()
                    .map(|word| if *word == THIS_SESSION { session.clone() } else { (*word).to_owned() });
                let arguments: Vec<_> = first.chain(commands::words(argument)).collect();
                let arguments = if argument.is_empty() { self.completed(arguments) } else { arguments };
                self.actions.push(AppAction::Program(arguments));
            }
            SlashCommand::Quit => self.actions.push(AppAction::Quit),
        }
    }

    /// Shows a command above what it prints.
    pub(super) fn echo_command(&mut self, text: &str) {
        let text = text.trim();
        let is_command = match commands::parse(text) {
            Some((command, _)) => command != SlashCommand::Quit,
            None => is_unknown_command(text) || self.prompt_request(text).is_some(),
        };
        if is_command {
            self.transcript.command(text);
        }
    }

    /// Takes the session back to before a message. Without a number, the messages are listed.
    fn rewind(&mut self, argument: &str, now: Instant) {
        let session = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        let words = commands::words(argument);
        let is_list = words.is_empty();
        let first = ["rewind", "--session", &session].map(str::to_owned);
        let arguments = first.into_iter().chain(words).collect();
        if is_list {
            self.actions.push(AppAction::Program(arguments));
            return self.note("/rewind N takes back message N and everything after it, with the files");
        }
        (self.working, self.work) = (Some(now), WorkKind::Other);
        self.actions.push(AppAction::Rewind(arguments));
    }

    /// Notes that the session was taken back.
    pub(crate) fn on_rewound(&mut self) {
        self.info.status.context_percent = None;
    }

    /// Completes the arguments of a command of the program that was written alone but needs one.
    fn completed(&mut self, mut arguments: Vec<String>) -> Vec<String> {
        if arguments == ["policy", "explain"] {
            return ["policy", "rules"].map(str::to_owned).to_vec();
        }
        if arguments.last().is_some_and(|last| last == "--output") {
            let path = self.export_path();
            self.note(&format!("writing this session to {}", path.display()));
            arguments.push(path.to_string_lossy().into_owned());
        }
        arguments
    }

    /// Returns a new file in the working directory.
    fn export_path(&self) -> PathBuf {
        let id = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = |end: &str| self.info.cwd.join(format!("windlass-{id}{end}.json"));
        let numbered = (2..).map(|number: u32| name(&format!("-{number}")));
        let mut names = iter::once(name("")).chain(numbered);
        names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(""))
    }

    /// Shows MCP servers, fetches a prompt of one, or runs the command of the program.
    fn servers(&mut self, argument: &str, now: Instant) {
        let mut words = commands::words(argument).into_iter();
        match words.next().as_deref() {
            None => self.actions.push(AppAction::List(SessionList::Servers)),
            Some("prompt") => {
                let name = words.next().unwrap_or_default();
                let arguments = words.map(|word| {
                    let (name, value) = word.split_once('=')?;
                    Some((name.to_owned(), value.to_owned()))
                });
                match arguments.collect() {
                    Some(arguments) if name.contains('/') => {
                        self.actions.push(AppAction::ServerPrompt(PromptRequest::Server { name, arguments }));
                    }
                    _ => self
                        .transcript
                        .warning("write /mcp prompt SERVER/NAME ARGUMENT=VALUE; /mcp prompts lists them"),
                }
            }
            Some(_) => self.run_command(SlashCommand::Program(&["mcp"]), argument, now),
        }
    }

    /// Puts a prompt of a server before what is being written, where the person can change it and
    /// send it. One of a file is sent.
    pub(super) fn on_server_prompt(&mut self, fetched: Result<FetchedPrompt, String>, now: Instant) {
        match fetched {
            Ok(FetchedPrompt::Server { name, text }) => {
                let prompt = self.prompt_message(&name, &text);
                let written = self.input();
                let gap = if written.is_empty() { "" } else { "\n" };
                self.set_input(&format!("{prompt}{gap}{written}"));
                self.note("the prompt is in the input; Enter sends it");
            }
            Ok(FetchedPrompt::File(text)) => self.submit_message(as_message(text), now),
            Err(problem) => self.transcript.warning(&problem),
        }
    }

    /// Sends a prompt, in a session that has no input to put it into.
    pub(crate) fn send_server_prompt(&mut self, fetched: Result<FetchedPrompt, String>, now: Instant) {
        match fetched {
            Ok(FetchedPrompt::Server { name, text }) => {
                let prompt = self.prompt_message(&name, &text);
                self.submit_message(prompt, now);
            }
            Ok(FetchedPrompt::File(text)) => self.submit_message(as_message(text), now),
            Err(problem) => self.transcript.warning(&problem),
        }
    }

    /// Returns a prompt as a message. It must not begin like a command.
    fn prompt_message(&self, name: &str, text: &str) -> String {
        format!("Prompt {}:\n{text}", self.clean_line(name))
    }

    /// Returns the request for a prompt that a line begins with.
    pub(super) fn prompt_request(&self, line: &str) -> Option<PromptRequest> {
        let rest = line.strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_offered = |name| self.info.prompts.iter().any(|prompt| prompt.name == name);
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        is_offered(name.strip_prefix("prompts:").unwrap_or(&name))
            .then_some(PromptRequest::File { name, arguments })
    }

    fn note_working(&mut self) {
        self.note("wait for the end of the turn, or cancel it");
    }

    /// Copies the last answer, up to a size that terminals take.
    fn copy_answer(&mut self) {
        let Some(answer) = self.transcript.last_answer() else {
            return self.note("there is no answer yet");
        };
        let copied = answer[..answer.floor_char_boundary(MAX_COPIED_BYTES)].to_owned();
        let part = if copied.len() < answer.len() { "the first 100 KB of the answer" } else { "the answer" };
        self.note(&format!("{part} went to the clipboard, if this terminal allows it (OSC 52)"));
        self.actions.push(AppAction::Copy(copied));
    }

    /// Asks for a new session.
    fn begin_session(&mut self, now: Instant) {
        if self.working.is_some() {
            return self.note_working();
        }
        (self.working, self.work) = (Some(now), WorkKind::Other);
        self.actions.push(AppAction::NewSession);
    }

    /// Asks for a shorter conversation.
    fn compact(&mut self, wish: &str, now: Instant) {
        if self.working.is_some() {
            return self.note_working();
        }
        (self.working, self.work) = (Some(now), WorkKind::Other);
        self.actions.push(AppAction::Compact(wish.to_owned()));
    }

    /// Notes the session that the agent works on.
    pub(super) fn on_thread(&mut self, thread: &ThreadId) {
        let former = self.thread.replace(thread.clone()).filter(|former| former != thread);
        if let Some(former) = former {
            self.transcript.begin_session();
            self.info.status.context_percent = None;
            self.note(&format!("a new session begins; the former one: windlass resume {former}"));
        }
    }

    fn help(&mut self) {
        for (title, entries) in COMMAND_GROUPS {
            self.note(title);
            for entry in *entries {
                self.note(&format!("/{:<9} {}", entry.name, entry.help));
            }
            self.add_space(1);
        }
        if !self.info.prompts.is_empty() {
            self.note("Prompts and skills");
            for prompt in self.info.prompts.clone() {
                self.note(&format!("/{:<9} {}", prompt.name, prompt.help));
            }
            self.add_space(1);
        }
        self.note("Keys");
        for (key, help) in KEYS {
            self.note(&format!("{key:<10} {help}"));
        }
    }

    fn show_status(&mut self) {
        let usage = self.transcript.usage();
        let thread = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "session {thread}\n{} in {}\n{} tokens in ({} cached), {} out",
            self.info.status.model,
            self.info.cwd.display(),
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.output_tokens
        );
        self.note(&text);
    }

    fn expand(&mut self, argument: &str) {
        match (argument, argument.trim_start_matches('#').parse()) {
            ("", _) => self.transcript.expand_call(None),
            ("reasoning", _) => self.transcript.expand_reasoning(),
            (_, Ok(number)) => self.transcript.expand_call(Some(number)),
            (_, Err(_)) => self.transcript.warning("write /expand, /expand N or /expand reasoning"),
        }
    }

    fn change_model(&mut self, argument: &str, now: Instant) {
        let words = commands::words(argument);
        let settings = self.info.settings.clone();
        match words.as_slice() {
            [] => self.actions.push(AppAction::List(SessionList::Models)),
            [model] => self.change(SessionSettings { model: model.clone(), ..settings }, now),
            [model, provider] => {
                let (model, provider) = (model.clone(), provider.clone());
                self.change(SessionSettings { model, provider, ..settings }, now);
            }
            _ => self.transcript.warning("write /model NAME or /model NAME PROVIDER"),
        }
    }

    fn change_approvals(&mut self, argument: &str, now: Instant) {
        let words = commands::words(argument);
        match words.as_slice() {
            [] => self.actions.push(AppAction::List(SessionList::Approvals)),
            [revoke, id] if revoke == "revoke" => self.revoke(id, now),
            _ => match parse_approval(argument) {
                Ok(approval) => {
                    self.change(SessionSettings { approval, ..self.info.settings.clone() }, now);
                }
                Err(problem) => self.transcript.warning(&problem),
            },
        }
    }

    /// Takes back an approval of the session (`s1`), or a rule by its id.
    fn revoke(&mut self, id: &str, now: Instant) {
        let number = id.strip_prefix('s').and_then(|number| number.parse::<usize>().ok());
        match number {
            Some(number) if self.links.approvals.revoke(number.wrapping_sub(1)) => {
                self.note("it will be asked about again");
            }
            Some(_) => {
                self.transcript.warning(&format!("there is no approval `{id}`; /approvals lists them"))
            }
            None if self.working.is_some() => self.note_working(),
            None => {
                (self.working, self.work) = (Some(now), WorkKind::Other);
                self.actions.push(AppAction::RevokeRule(id.to_owned()));
            }
        }
    }

    fn change_sandbox(&mut self, argument: &str, now: Instant) {
        if argument.is_empty() {
            let status = &self.info.status;
            let mode = self.info.settings.sandbox_in_force().name();
            let held = status.mechanism.as_deref().map(|name| format!(", by {name}")).unwrap_or_default();
            let network = match status.network {
                _ if mode == "read-only" => ", network off",
                Network::None => ", network off",
                Network::Any => ", network on",
            };
            let (held, network) =
                if mode == "danger-full-access" { (String::new(), "") } else { (held, network) };
            let text = format!("sandbox: {mode}{held}{network} (/sandbox MODE changes it)");
            return self.note(&text);
        }
        match parse_sandbox(argument) {
            Ok(sandbox) => self.change(SessionSettings { sandbox, ..self.info.settings.clone() }, now),
            Err(problem) => self.transcript.warning(&problem),
        }
    }

    fn change_plan_mode(&mut self, argument: &str, now: Instant) {
        let is_on = self.info.settings.plan_mode;
        let wanted = match argument {
            "show" => return self.transcript.show_plan(),
            "" => !is_on,
            "off" => false,
            _ => true,
        };
        // Any other word begins a request for a plan.
        let request = (!matches!(argument, "" | "on" | "off")).then(|| argument.to_owned());
        if self.working.is_some() {
            return self.note_working();
        }
        match (wanted == is_on, request) {
            (true, Some(request)) => self.send(request, now),
            (true, None) => self.note(if is_on { "plan mode is on" } else { "plan mode is off" }),
            (false, request) => {
                self.change(SessionSettings { plan_mode: wanted, ..self.info.settings.clone() }, now);
                if let Some(request) = request {
                    self.queue(request);
                }
            }
        }
    }

    /// Asks for other settings.
    fn change(&mut self, settings: SessionSettings, now: Instant) {
        if self.working.is_some() {
            return self.note_working();
        }
        if settings == self.info.settings {
            return self.note("nothing changes");
        }
        (self.working, self.work) = (Some(now), WorkKind::Other);
        self.actions.push(AppAction::Change(settings));
    }

    /// Notes that the agent has other settings, or why not.
    pub(super) fn on_changed(&mut self, changed: Result<SessionSettings, String>) {
        match changed {
            Ok(settings) => {
                settings.changes_from(&self.info.settings).iter().for_each(|line| self.transcript.note(line));
                let (begins, running) =
                    (settings.plan_mode && !self.info.settings.plan_mode, self.processes());
                self.set_settings(settings);
                if begins && running > 0 {
                    let commands = windlass::counted(running as u64, "command");
                    let text = format!("{commands} from before still may change files (/ps, /ps kill N)");
                    self.transcript.warning(&text);
                }
            }
            Err(problem) => {
                self.transcript.warning(&format!("the settings stay as they were: {problem}"));
                // They were written for the new settings.
                self.take_all_back();
            }
        }
    }

    pub(super) fn set_settings(&mut self, settings: SessionSettings) {
        let status = &mut self.info.status;
        settings.shown_model().clone_into(&mut status.model);
        status.provider = Some(settings.provider.clone());
        status.approval = settings.approval;
        settings.sandbox_in_force().name().clone_into(&mut status.sandbox);
        status.plan_mode = settings.plan_mode;
        self.info.settings = settings;
    }

    /// Asks about the plan after an answer in plan mode, unless the next turn has begun.
    pub(super) fn ask_about_plan(&mut self) {
        if self.info.settings.plan_mode && self.working.is_none() {
            self.plan_question = Some(PlanQuestion::default());
            self.notices.on_question("plan", "a plan waits for your approval");
        }
    }

    pub(super) fn answer_plan(&mut self, answer: PlanAnswer, now: Instant) {
        self.plan_question = None;
        let settings = SessionSettings { plan_mode: false, ..self.info.settings.clone() };
        match answer {
            PlanAnswer::Approve => {
                self.change(settings, now);
                self.queue(PLAN_APPROVED.to_owned());
            }
            PlanAnswer::Leave => self.change(settings, now),
            PlanAnswer::KeepPlanning => self.note("write what should be different about the plan"),
        }
    }

    fn list_processes(&mut self, argument: &str) {
        let running = self.links.commands.list();
        let words = commands::words(argument);
        match words.as_slice() {
            [] if running.is_empty() => self.note("no command runs across calls"),
            [] => {
                for (at, command) in running.iter().enumerate() {
                    let line = format!("{:>2}  {}", at + 1, self.clean_line(&command.command_line));
                    let since = duration_in_words(command.elapsed);
                    let last = self.clean_line(&command.last_line);
                    let last = if last.is_empty() { last } else { format!(": {last}") };
                    self.note(&format!("{line}\n    for {since}{last}"));
                }
                self.note("/ps kill N ends one");
            }
            [kill, number] if kill == "kill" => {
                let number: Option<usize> = number.parse().ok();
                let found = number.and_then(|number| running.get(number.wrapping_sub(1)));
                match found {
                    Some(command) => {
                        let line = self.clean_line(&command.command_line);
                        self.actions.push(AppAction::EndCommand(command.id));
                        self.note(&format!("ending: {line}"));
                    }
                    None => self.transcript.warning("there is no such command; /ps lists them"),
                }
            }
            _ => self.transcript.warning("write /ps or /ps kill N"),
        }
    }

    /// Returns the first line of a text without secrets.
    fn clean_line(&self, text: &str) -> String {
        self.secrets.clean(text).lines().next().unwrap_or_default().to_owned()
    }
}

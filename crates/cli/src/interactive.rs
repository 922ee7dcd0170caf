//! `windlass`, `windlass chat` and `windlass resume`: an interactive session.

use std::{
    ffi::OsString,
    io::{self, BufRead, IsTerminal, Write},
    path::Path,
    sync::Arc,
};

use windlass::{
    Elicitor, Network,
    host::Window,
    record::{Edits, SessionEntry, Which},
};
use windlass_tui::{
    Display, EventQueue, ExternalEditor, InteractiveSession, NotificationSettings, ProgramCommands,
    QueueElicitor, SessionEnd, SessionInfo, SessionSettings, TuiError, pick,
    render::{Theme, status::SessionStatus},
};

use crate::setup::ProgramSetup;
use crate::{
    args::{ChatOptions, CliArgs, CliCommand, CommonOptions, ResumeOptions, SessionOptions},
    colour, earlier_conversation,
    exit::ProgramExit,
    hooks, ids,
    instructions::{self, InstructionFiles, offered_prompts},
    interrupts,
    mcp::{self, SessionServers, StateOutput},
    problem::{CliProblem, chain},
    prompt_history::PromptHistoryFile,
    resumed_directory,
    retention_thread::RetentionThread,
    screen::{visible, visible_path},
    session_agents::{SessionAgents, branch},
    session_theme::SessionTheme,
    sessions::{self, SessionPlaces},
    trust, usage, welcome,
};

/// Maximum number of sessions to choose from.
const MAX_LISTED: usize = 100;

/// Reads the command line as one of `chat`. A prompt must have several words: a single one is more
/// likely a command with a typing error.
pub(crate) fn parse_without_command() -> Option<CliArgs> {
    if !is_at_terminal() {
        return None;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    arguments.insert(1.min(arguments.len()), "chat".into());
    let cli = CliArgs::parse_words(arguments).ok()?;
    let CliCommand::Chat(chat) = &cli.command else { return None };
    let is_prompt = chat.prompt.as_ref().is_none_or(|prompt| prompt.trim().contains(char::is_whitespace));
    is_prompt.then_some(cli)
}

fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs `chat`.
pub(crate) fn run(common: &CommonOptions, chat: ChatOptions) -> Result<ProgramExit, CliProblem> {
    check_terminal()?;
    let setup = ProgramSetup::for_session(common, &chat.session)?.with_installed_model()?;
    start(common, setup, &chat.session, Beginning { prompt: chat.prompt, resume: None })
}

/// Runs `resume`.
pub(crate) fn resume(common: &CommonOptions, resume: &ResumeOptions) -> Result<ProgramExit, CliProblem> {
    check_terminal()?;
    let setup = ProgramSetup::for_session(common, &resume.session)?.with_installed_model()?;
    let places = if resume.all { SessionPlaces::Everywhere } else { SessionPlaces::Here };
    let chosen = match &resume.id {
        Some(id) => {
            let which = Which::Id(ids::session_id(&setup, id)?);
            resumed_directory::check(&setup, common, &which)?;
            return start(common, setup, &resume.session, Beginning { prompt: None, resume: Some(which) });
        }
        None if resume.last => last(&setup, places)?,
        None => choose(&setup, places, is_plain(&resume.session, &setup))?,
    };
    let Some(chosen) = chosen else { return Ok(ProgramExit::Done) };
    let beginning = Beginning { prompt: None, resume: Some(Which::Id(chosen.id)) };
    if chosen.cwd == setup.cwd || common.cd.is_some() {
        return start(common, setup, &resume.session, beginning);
    }
    if let Some(which) = &beginning.resume
        && !chosen.cwd.is_dir()
    {
        resumed_directory::check(&setup, common, which)?;
    }
    // It was chosen from a list of all directories: it goes on in its own.
    crate::note(&format!("note: going on in {}", visible_path(&chosen.cwd)));
    let common = CommonOptions { cd: Some(chosen.cwd), ..common.clone() };
    let setup = ProgramSetup::for_session(&common, &resume.session)?.with_installed_model()?;
    start(&common, setup, &resume.session, beginning)
}

fn check_terminal() -> Result<(), CliProblem> {
    if is_at_terminal() {
        return Ok(());
    }
    Err(CliProblem::usage("an interactive session needs a terminal; `windlass exec` works without one"))
}

/// Returns the newest session that has a message.
fn last(setup: &ProgramSetup, places: SessionPlaces) -> Result<Option<SessionEntry>, CliProblem> {
    let found = sessions::resumable(setup, places, 1)?.into_iter().next();
    let none = || match places {
        SessionPlaces::Here => sessions::none_here(setup),
        SessionPlaces::Everywhere => CliProblem::usage("there are no sessions yet"),
    };
    found.map(|(entry, _)| Some(entry)).ok_or_else(none)
}

/// Lets the person choose a session.
fn choose(
    setup: &ProgramSetup,
    places: SessionPlaces,
    is_plain: bool,
) -> Result<Option<SessionEntry>, CliProblem> {
    let mut found = sessions::resumable(setup, places, MAX_LISTED)?;
    if found.is_empty() {
        crate::note(match places {
            SessionPlaces::Here => {
                "there are no sessions of this directory; `windlass resume --all` lists all"
            }
            SessionPlaces::Everywhere => "there are no sessions yet",
        });
        return Ok(None);
    }
    let lines: Vec<_> = found.iter().map(|(_, line)| visible(line)).collect();
    let chosen = if is_plain {
        pick_by_number(&lines)
    } else {
        pick("Resume which session? (typing searches, Enter chooses, Esc leaves)", &lines, end_process)
    };
    let chosen = chosen.map_err(|error| CliProblem::failed(format!("cannot use the terminal: {error}")))?;
    Ok(chosen.filter(|number| *number < found.len()).map(|number| found.swap_remove(number).0))
}

/// Lets the person choose one of several lines without moving the cursor.
fn pick_by_number(lines: &[String]) -> io::Result<Option<usize>> {
    let mut text: String = (1..).zip(lines).map(|(number, line)| format!("{number:>3}  {line}\n")).collect();
    loop {
        text.push_str("Resume which session? (number, Enter alone leaves) ");
        io::stderr().lock().write_all(text.as_bytes())?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().parse::<usize>() {
            _ if answer.trim().is_empty() => return Ok(None),
            Ok(number @ 1..) if number <= lines.len() => return Ok(Some(number - 1)),
            _ => text.clear(),
        }
    }
}

/// The beginning of a session.
struct Beginning {
    prompt: Option<String>,
    resume: Option<Which>,
}

fn start(
    common: &CommonOptions,
    setup: ProgramSetup,
    options: &SessionOptions,
    beginning: Beginning,
) -> Result<ProgramExit, CliProblem> {
    trust::ask(&setup)?;
    instructions::report(&setup);
    hooks::report(&setup)?;
    let setup = setup.limited(&options.limits)?;
    let machine = setup.machine()?.with_window(Window::of_terminal());
    let queue = Arc::<EventQueue>::default();
    let elicitor: Arc<dyn Elicitor> = Arc::new(QueueElicitor(Arc::clone(&queue)));
    let servers = SessionServers::known(&setup, &mcp::reported_servers(&setup), Some(Arc::clone(&elicitor)));
    let servers = servers.map(|servers| servers.start(StateOutput::Silent)).transpose()?;
    let agents = SessionAgents { common, options, setup: &setup, machine, elicitor, servers };
    let settings = agents.settings();
    let mut builder = agents.builder(&setup, &settings)?;
    let is_new = beginning.resume.is_none();
    let earlier = beginning.resume.as_ref().map(|which| earlier_conversation::read(&setup, which));
    if let Some(which) = beginning.resume {
        builder = builder.resume(which);
        if !setup.has_chosen_provider() {
            builder = builder.same_provider();
        }
    }
    let note = if is_new { welcome::text(&setup) } else { None };
    let _cleaning = RetentionThread::start(&setup);
    let config = setup.config();
    let has_colour = colour::is_wanted(&io::stdout());
    let variable = |name: &str| std::env::var(name).ok();
    let colours = SessionTheme::choose(config.tui.theme, has_colour, &variable);
    let session = InteractiveSession {
        agents: &agents,
        queue,
        info: info(&setup, settings, &colours.theme),
        display: if options.fullscreen { Display::Fullscreen } else { Display::Inline },
        is_plain: is_plain(options, &setup),
        earlier: earlier.unwrap_or_else(|| Box::new(Vec::new)),
        notifications: NotificationSettings::new(config.tui.notifications, config.notify.clone(), &variable),
        editor: editor(),
        detects_background: colours.detects_background,
        end_process,
        prompt: beginning.prompt,
        note,
        history: &PromptHistoryFile::new(&setup.home, setup.secrets()),
        commands: &SessionCommands { common },
    };
    interrupts::leave_to_session();
    let end = session.run(builder).map_err(|error| match error {
        TuiError::Build(error) => setup.explain(&error),
        error => CliProblem::failed(chain(&error)),
    })?;
    Ok(say_goodbye(&setup, &end))
}

/// Says how to go on and how to take changes back.
fn say_goodbye(setup: &ProgramSetup, end: &SessionEnd) -> ProgramExit {
    // An empty session is not worth going on with.
    let thread = end.thread.as_ref().filter(|thread| !sessions::is_empty(setup, thread));
    if let Some(thread) = thread {
        crate::note(&format!("to go on:          windlass resume {thread}"));
        // If it is not known, the command says so.
        let edits = Edits::of_session(&setup.home, thread).and_then(|edits| edits.list());
        if edits.map_or(true, |edits| !edits.is_empty()) {
            crate::note(&format!("to undo changes:   windlass undo --session {thread}"));
        }
    }
    match end.signal {
        Some(signal) => {
            interrupts::remember(signal);
            ProgramExit::Interrupted
        }
        None => ProgramExit::Done,
    }
}

/// Ends the process after a signal.
fn end_process(signal: i32) -> ! {
    interrupts::remember(signal);
    ProgramExit::Interrupted.now()
}

/// Returns the editor for messages.
fn editor() -> ExternalEditor {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    ExternalEditor { command: set("VISUAL").or_else(|| set("EDITOR")), directory: std::env::temp_dir() }
}

/// Returns true if the session has plain lines.
fn is_plain(options: &SessionOptions, setup: &ProgramSetup) -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb" || terminal.is_empty());
    options.plain || setup.config().tui.screen_reader || is_dumb
}

fn info(setup: &ProgramSetup, settings: SessionSettings, theme: &Theme) -> SessionInfo {
    let config = setup.config();
    let allowed = config.sandbox_workspace_write.network_access;
    let status = SessionStatus {
        model: setup.model_name().unwrap_or_default(),
        provider: Some(setup.provider_id().to_owned()),
        directory: shown_directory(&setup.cwd),
        branch: branch(&setup.cwd),
        sandbox: config.sandbox_mode.name().to_owned(),
        mechanism: None,
        plan_mode: settings.plan_mode,
        network: if allowed { Network::Any } else { Network::None },
        approval: config.approval_policy,
        context_percent: None,
        tokens: 0,
        processes: 0,
    };
    let prompts = offered_prompts(&InstructionFiles::of(setup));
    let vi_keys = config.tui.vi_keys;
    SessionInfo { cwd: setup.cwd.clone(), status, theme: *theme, settings, prompts, vi_keys }
}

/// Returns a directory as a person writes it.
fn shown_directory(path: &Path) -> String {
    let home = std::env::home_dir().filter(|home| home.components().count() > 1);
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// Runs commands of the program from within a session.
struct SessionCommands<'a> {
    common: &'a CommonOptions,
}

impl ProgramCommands for SessionCommands<'_> {
    fn run(&self, arguments: &[String]) {
        let words = std::iter::once("windlass".to_owned()).chain(arguments.iter().cloned());
        // Problems are reported where they occur; the session goes on.
        let _code = match CliArgs::parse_words(words) {
            Ok(cli) => crate::dispatch(self.common, cli.command),
            Err(error) => usage::report(error),
        };
    }
}

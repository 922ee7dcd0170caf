//! Sessions: commands that run across calls, shared by `exec_command` and `write_stdin`.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout_at},
};
use windlass_contract::{
    Cx, Event, Output, ToolError,
    effects::Escalation,
    host::{Command, Exit, Keyboard, Listener, Session},
    outcome::Facts,
    report::{ProcessReport, SessionReport},
};

pub(crate) mod running;

use running::OutputTail;

use crate::command::{self, interactive::InteractiveProgram, live::OutputEvents, text};

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 64;

/// Number of recently used sessions that are never ended to make room.
const PROTECTED: usize = 8;

/// Id of the first session.
const FIRST_SESSION_ID: u32 = 1_000;
/// Maximum number of session ids; higher ids are never assigned.
const MAX_SESSION_IDS: u32 = 1_000_000;

/// Number of sessions from which the model is warned.
const MIN_WARNED_SESSIONS: usize = 60;

/// Time without output before a program is checked for waiting on input, and the maximum time
/// between checks. The pause doubles each time, because no event reports when the wait begins.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Message for a session that was ended because commands used up their total time.
const TIME_IS_UP: &str = "the program was ended: commands have used up the time they may take together";

/// Environment that keeps programs from decorating and paging output.
const PLAIN: [(&str, &str); 10] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("LANG", "C.UTF-8"),
    ("LC_CTYPE", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("COLORTERM", ""),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    // For programs that recognize the best-known agent.
    ("CODEX_CI", "1"),
];

/// A command that runs or ran as a session.
pub(crate) struct CommandSession {
    session: Arc<dyn Session>,
    show: OutputDisplay,
    tail: OutputTail,
    started: Instant,
    /// The command line as the model wrote it.
    command_line: String,
    has_keyboard: bool,
    /// Set if it runs outside the sandbox at the request of the model.
    escalation: Option<Escalation>,
    /// The output seen so far. The lock admits one call at a time.
    seen: AsyncMutex<SeenOutput>,
}

#[derive(Debug, Default)]
struct SeenOutput {
    printed_bytes: u64,
    waits_for_input: bool,
}

/// Forwards the output of a session while a call watches it.
#[derive(Clone, Default)]
struct OutputDisplay(Arc<Mutex<Option<OutputEvents>>>);

impl OutputDisplay {
    fn slot(&self) -> MutexGuard<'_, Option<OutputEvents>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listener(&self, tail: &OutputTail) -> Listener {
        let (show, tail) = (self.clone(), tail.clone());
        Arc::new(move |bytes| {
            tail.push(bytes);
            if let Some(live) = &mut *show.slot() {
                live.push(bytes);
            }
        })
    }

    fn to(&self, cx: &Cx) {
        *self.slot() = Some(OutputEvents::new(cx));
    }

    fn clear(&self) {
        if let Some(mut live) = self.slot().take() {
            live.flush();
        }
    }
}

/// Limits of a look at a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionView {
    pub(crate) begun: Instant,
    pub(crate) until: Instant,
    pub(crate) most_tokens: usize,
}

impl SessionView {
    /// Creates a view that lasts for this time from now.
    pub(crate) fn with_time(time: Duration, most_tokens: Option<usize>) -> Self {
        let begun = Instant::now();
        // The default that models of this family expect.
        Self { begun, until: begun + time, most_tokens: most_tokens.unwrap_or(10_000) }
    }

    /// Returns the maximum number of output bytes. Notes beside the output may reduce it.
    fn most_bytes(&self) -> usize {
        const BYTES_PER_TOKEN: usize = 4;
        self.most_tokens.saturating_mul(BYTES_PER_TOKEN).saturating_sub(TIME_IS_UP.len() + 1)
    }
}

/// A command to start.
pub(crate) struct SessionCommand {
    pub(crate) argv: Vec<String>,
    /// The command line as the model wrote it.
    pub(crate) command_line: String,
    pub(crate) workdir: Option<PathBuf>,
    pub(crate) has_keyboard: bool,
    pub(crate) escalation: Option<Escalation>,
}

impl CommandSession {
    /// Starts the command. Until it has an id it belongs to the call, and dropping the call kills
    /// it.
    pub(crate) async fn new(line: SessionCommand, cx: &Cx) -> Result<Self, ToolError> {
        let SessionCommand { argv, command_line, workdir, has_keyboard, escalation } = line;
        let env = PLAIN.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = Command { argv, cwd: workdir, env: BTreeMap::from(env), time_limit: None };
        let keyboard = if has_keyboard { Keyboard::Terminal } else { Keyboard::Absent };
        let (show, tail) = (OutputDisplay::default(), OutputTail::default());
        show.to(cx);
        let opened = cx.host.open(&command, keyboard, show.listener(&tail)).await;
        let session = opened.map_err(|error| {
            let error = command::tool_error(error);
            ToolError { message: format!("exec_command failed: {}", error.message), ..error }
        })?;
        let (started, seen) = (Instant::now(), AsyncMutex::default());
        Ok(Self { session, show, tail, started, command_line, has_keyboard, escalation, seen })
    }

    /// The command line as the model wrote it.
    pub(crate) fn command_line(&self) -> &str {
        &self.command_line
    }

    /// Set if it runs outside the sandbox at the request of the model.
    pub(crate) fn escalation(&self) -> Option<Escalation> {
        self.escalation.clone()
    }

    /// Types keys, or returns the reason why not.
    pub(crate) async fn type_keys(&self, keys: &str, view: SessionView, cx: &Cx) -> Result<(), ToolError> {
        const INTERRUPT: &str = "\u{3}";
        let failed = |why: &str| ToolError::failed(format!("write_stdin failed: {why}"));
        if !self.has_keyboard && keys == INTERRUPT {
            // No terminal would send a signal, and there is no other way to stop it.
            return unless_cancelled(cx, self.session.end()).await;
        }
        if !self.has_keyboard {
            return Err(failed(
                "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
            ));
        }
        let mut left = keys.as_bytes();
        while !left.is_empty() {
            let typed = timeout_at(view.until, self.session.write(left));
            match unless_cancelled(cx, typed).await? {
                Ok(Ok(count @ 1..)) => left = left.get(count..).unwrap_or_default(),
                Ok(Ok(0) | Err(_)) => return Err(failed("failed to write to stdin")),
                Err(_late) => {
                    let (all, rest) = (keys.len(), left.len());
                    let why = format!("the program takes no more input: {} of {all} bytes", all - rest);
                    return Err(failed(&why));
                }
            }
        }
        Ok(())
    }

    /// Watches the session until it ends, time is up, or it waits for input. Returns the output
    /// since the last look.
    pub(crate) async fn look(&self, view: SessionView, cx: &Cx) -> Result<Output, ToolError> {
        let mut seen = self.seen.lock().await;
        let looked = self.follow(&mut seen, view, cx).await;
        self.show.clear();
        let interactive = looked?;
        let ended = self.session.ended();
        let printed = self.session.take(view.most_bytes()).await;
        let output_bytes = printed.total_bytes();
        let text = text::joined(&printed.bytes, printed.gap, printed.whole.as_ref());
        // A terminal ends its lines with CR LF.
        let text = if self.has_keyboard { text.replace("\r\n", "\n") } else { text };
        let text = match &ended {
            Some(ProcessReport { exit: Exit::TimedOut, .. }) => format!("{TIME_IS_UP}\n{text}"),
            Some(ProcessReport { exit, denials, .. }) => command::with_advice(*exit, denials, text),
            None => match interactive {
                Some(program) if self.has_keyboard => {
                    format!(
                        "type to it with write_stdin, or end it; it waits in {}\n{text}",
                        program.advice()
                    )
                }
                Some(program) => format!("it waits for a person in {}\n{text}", program.advice()),
                None => text,
            },
        };
        let ended = match ended {
            Some(ended) => {
                let exit = Some(exit(ended.exit));
                ended.with_exit(exit)
            }
            None => ProcessReport::new(None),
        };
        let report = ProcessReport {
            waits_for_input: seen.waits_for_input,
            // Rounded as it is recorded, so that the model reads the same after a resume.
            duration: Duration::from_millis(
                u64::try_from(view.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ),
            output_bytes,
            whole: printed.whole,
            held: Some(self.session.held()),
            ..ended
        };
        let chunk = format!("{:06x}", fastrand::u32(..0x100_0000));
        let facts = SessionReport { session: 0, started: false, chunk, report };
        Ok(Output {
            facts: Facts::Session(Box::new(facts)),
            most_tokens: Some(view.most_tokens),
            ..Output::from(text)
        })
    }

    /// Watches the session until it ends, waits for input, or time is up. Returns the program that
    /// waits, if its name is a known one.
    async fn follow(
        &self,
        seen: &mut SeenOutput,
        view: SessionView,
        cx: &Cx,
    ) -> Result<Option<InteractiveProgram>, ToolError> {
        self.show.to(cx);
        // A caller that looks again after a report of waiting expects something else.
        let mut news = !std::mem::take(&mut seen.waits_for_input);
        let mut pause = MIN_PAUSE;
        while self.session.ended().is_none() && Instant::now() < view.until {
            let until = (Instant::now() + pause).min(view.until);
            match unless_cancelled(cx, timeout_at(until, self.session.progress(seen.printed_bytes))).await? {
                Ok(printed_bytes) => {
                    news |= printed_bytes > seen.printed_bytes;
                    seen.printed_bytes = printed_bytes;
                    pause = MIN_PAUSE;
                }
                Err(_quiet) => {
                    pause = (pause * 2).min(MAX_PAUSE);
                    if news && self.session.waits_for_input().await {
                        cx.events.emit(Event::InputAwaited { id: cx.id.clone() });
                        break;
                    }
                }
            }
        }
        if self.session.ended().is_some() {
            seen.waits_for_input = false;
            return Ok(None);
        }
        seen.waits_for_input = self.session.waits_for_input().await;
        let interactive = InteractiveProgram::find(&self.session.running().await);
        if interactive.is_some() && !seen.waits_for_input {
            cx.events.emit(Event::InputAwaited { id: cx.id.clone() });
            seen.waits_for_input = true;
        }
        Ok(interactive)
    }
}

/// Reports our own termination as a signal: the call was not cancelled.
fn exit(exit: Exit) -> Exit {
    const TERMINATED: i32 = 15;
    if exit == Exit::Cancelled { Exit::Signal(TERMINATED) } else { exit }
}

async fn unless_cancelled<T>(cx: &Cx, work: impl Future<Output = T>) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
        done = work => Ok(done),
    }
}

/// All sessions with an id. Dropping the table kills them.
#[derive(Default)]
pub(crate) struct SessionTable {
    /// Least recently used first.
    entries: Mutex<Vec<(u32, Arc<CommandSession>)>>,
    /// Number of ids assigned so far. Ids are sequential and never reused, so equal calls read
    /// equal and an id never means another program.
    numbered: AtomicU32,
}

impl SessionTable {
    fn entries(&self) -> MutexGuard<'_, Vec<(u32, Arc<CommandSession>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns an id, and ends another session if there are too many. Also returns the number of
    /// sessions.
    fn insert(&self, started: CommandSession) -> (u32, usize) {
        let mut entries = self.entries();
        if entries.len() >= MAX_SESSIONS {
            let candidates = &entries[..entries.len() - PROTECTED];
            let over = candidates.iter().position(|(_, each)| each.session.ended().is_some());
            // Dropping it kills it.
            drop(entries.remove(over.unwrap_or(0)));
        }
        let id = FIRST_SESSION_ID + self.numbered.fetch_add(1, Ordering::Relaxed);
        entries.push((id, Arc::new(started)));
        (id, entries.len())
    }

    /// Reserves an unused id, so that it never means a program.
    pub(crate) fn reserve(&self, id: u32) {
        if let Some(index) = id.checked_sub(FIRST_SESSION_ID).filter(|index| *index < MAX_SESSION_IDS) {
            self.numbered.fetch_max(index + 1, Ordering::Relaxed);
        }
    }

    /// Returns a session by its id, without marking it as used.
    pub(crate) fn find(&self, id: u32) -> Option<Arc<CommandSession>> {
        self.entries().iter().find(|(each, _)| *each == id).map(|(_, started)| Arc::clone(started))
    }

    /// Returns a session by its id and marks it as used last.
    pub(crate) fn find_and_touch(&self, id: u32) -> Option<Arc<CommandSession>> {
        let mut entries = self.entries();
        let at = entries.iter().position(|(each, _)| *each == id)?;
        let entry = entries.remove(at);
        let started = Arc::clone(&entry.1);
        entries.push(entry);
        Some(started)
    }

    /// Watches a new session for the first time. Assigns an id if it is still running afterwards.
    pub(crate) async fn begin(
        &self,
        started: CommandSession,
        view: SessionView,
        cx: &Cx,
    ) -> Result<Output, ToolError> {
        let mut output = started.look(view, cx).await?;
        let Facts::Session(facts) = &mut output.facts else { return Ok(output) };
        facts.started = true;
        if facts.report.exit.is_some() {
            return Ok(output);
        }
        let (id, count) = self.insert(started);
        facts.session = id;
        if count >= MIN_WARNED_SESSIONS {
            let warning = format!(
                "Warning: {count} sessions are open; with more than {MAX_SESSIONS}, those used longest ago are ended"
            );
            output.content.insert(0, windlass_contract::Content::Text(warning));
        }
        Ok(output)
    }

    /// Watches a session again. Removes it if it has ended.
    pub(crate) async fn go_on(
        &self,
        id: u32,
        started: &CommandSession,
        view: SessionView,
        cx: &Cx,
    ) -> Result<Output, ToolError> {
        let mut output = started.look(view, cx).await?;
        if let Facts::Session(facts) = &mut output.facts {
            facts.session = id;
            if facts.report.exit.is_some() {
                self.entries().retain(|(each, _)| *each != id);
            }
        }
        Ok(output)
    }
}

#[cfg(test)]
mod tests;

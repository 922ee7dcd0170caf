//! The commands that go on from call to call, which `exec_command` and `write_stdin` share.

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
    host::{Command, Ended, Exit, Keyboard, Listener, Session},
    outcome::{Facts, SessionFacts},
};

use crate::command::{self, interactive::InteractiveProgram, live::Live, text};

/// How many sessions there are at most.
const MOST: usize = 64;

/// How many of those that were used last are never ended to make room.
const PROTECTED: usize = 8;

/// The number of the first.
const FIRST: u32 = 1_000;
/// More are not expected: what lies beyond is never given.
const MOST_NUMBERS: u32 = 1_000_000;

/// From how many on the model is told.
const WARNED: usize = 60;

/// How long a program must have printed nothing before it is asked whether it waits for input, and how often after that:
/// each time after twice the pause, because nothing tells when it begins to wait.
const QUIET: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What the model is told of a session that was ended because all commands together have taken the time they may.
const TIME_IS_UP: &str = "the program was ended: commands have used up the time they may take together";

/// What keeps programs from decorating and paging what no person reads.
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
    // For programs that know the best-known agent.
    ("CODEX_CI", "1"),
];

/// A command that runs or ran as a session.
pub(crate) struct Started {
    session: Arc<dyn Session>,
    show: Show,
    /// What it is, as the model said it.
    said: String,
    has_keyboard: bool,
    /// Set if it left the sandbox because the model had asked for that.
    escalation: Option<Escalation>,
    /// One call at a time: what was seen of it already.
    seen: AsyncMutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    printed_bytes: u64,
    waits_for_input: bool,
}

/// Where a session's output is shown while a call looks at it.
#[derive(Clone, Default)]
struct Show(Arc<Mutex<Option<Live>>>);

impl Show {
    fn slot(&self) -> MutexGuard<'_, Option<Live>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listener(&self) -> Listener {
        let show = self.clone();
        Arc::new(move |bytes| {
            if let Some(live) = &mut *show.slot() {
                live.push(bytes);
            }
        })
    }

    fn to(&self, cx: &Cx) {
        *self.slot() = Some(Live::new(cx));
    }

    fn nobody(&self) {
        if let Some(mut live) = self.slot().take() {
            live.flush();
        }
    }
}

/// What a call wants to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) begun: Instant,
    pub(crate) until: Instant,
    pub(crate) most_tokens: usize,
}

impl View {
    /// For so long from now.
    pub(crate) fn lasting(time: Duration, most_tokens: Option<usize>) -> Self {
        let begun = Instant::now();
        // What models of this family are used to, if they say nothing.
        Self { begun, until: begun + time, most_tokens: most_tokens.unwrap_or(10_000) }
    }

    /// How many bytes of output it shows at most. A word beside them may cost some.
    fn most_bytes(&self) -> usize {
        const BYTES_PER_TOKEN: usize = 4;
        self.most_tokens.saturating_mul(BYTES_PER_TOKEN).saturating_sub(TIME_IS_UP.len() + 1)
    }
}

/// What is to be started.
pub(crate) struct Line {
    pub(crate) argv: Vec<String>,
    /// The same, as the model said it.
    pub(crate) said: String,
    pub(crate) workdir: Option<PathBuf>,
    pub(crate) has_keyboard: bool,
    pub(crate) escalation: Option<Escalation>,
}

impl Started {
    /// Starts it. Until it has a number it belongs to the call: if that is dropped, it is killed.
    pub(crate) async fn new(line: Line, cx: &Cx) -> Result<Self, ToolError> {
        let Line { argv, said, workdir, has_keyboard, escalation } = line;
        let env = PLAIN.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = Command { argv, cwd: workdir, env: BTreeMap::from(env), time_limit: None };
        let keyboard = if has_keyboard { Keyboard::Terminal } else { Keyboard::Absent };
        let show = Show::default();
        show.to(cx);
        let opened = cx.host.open(&command, keyboard, show.listener()).await;
        let session = opened.map_err(|error| {
            let error = command::in_words(error);
            ToolError { message: format!("exec_command failed: {}", error.message), ..error }
        })?;
        Ok(Self { session, show, said, has_keyboard, escalation, seen: AsyncMutex::default() })
    }

    /// What it is, as the model said it.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Set if it left the sandbox because the model had asked for that.
    pub(crate) fn escalation(&self) -> Option<Escalation> {
        self.escalation.clone()
    }

    /// Types something, or says why not.
    pub(crate) async fn press(&self, keys: &str, view: View, cx: &Cx) -> Result<(), ToolError> {
        const INTERRUPT: &str = "\u{3}";
        let failed = |why: &str| ToolError::failed(format!("write_stdin failed: {why}"));
        if !self.has_keyboard && keys == INTERRUPT {
            // There is no terminal that would send a signal, and no other way to stop it.
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

    /// Looks at it until it has ended, time is up, or it waits for input; and says what there was to see.
    pub(crate) async fn look(&self, view: View, cx: &Cx) -> Result<Output, ToolError> {
        let mut seen = self.seen.lock().await;
        let looked = self.follow(&mut seen, view, cx).await;
        self.show.nobody();
        let interactive = looked?;
        let ended = self.session.ended();
        let printed = self.session.take(view.most_bytes()).await;
        let missing = printed.gap.map_or(0, |(_, missing)| missing);
        let output_bytes = printed.bytes.len() as u64 + missing;
        let text = text::joined(&printed.bytes, printed.gap, printed.whole.as_ref());
        // A terminal ends its lines like a typewriter.
        let text = if self.has_keyboard { text.replace("\r\n", "\n") } else { text };
        let text = match &ended {
            Some(Ended { exit: Exit::TimedOut, .. }) => format!("{TIME_IS_UP}\n{text}"),
            Some(Ended { exit, denials, .. }) => command::with_advice(*exit, denials, text),
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
        let Ended { exit, killed, denials } = match ended {
            Some(ended) => Ended { exit: exit(ended.exit), ..ended },
            None => Ended { exit: Exit::Code(0), killed: Vec::new(), denials: Vec::new() },
        };
        let facts = SessionFacts {
            session: 0,
            started: false,
            chunk: format!("{:06x}", fastrand::u32(..0x100_0000)),
            exit: self.session.ended().map(|_| exit),
            waits_for_input: seen.waits_for_input,
            // As it is written down, so that the model is told the same after a resume.
            duration: Duration::from_millis(
                u64::try_from(view.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            ),
            output_bytes,
            whole: printed.whole,
            killed,
            denials,
            held: Some(self.session.held()),
        };
        Ok(Output {
            facts: Facts::Session(Box::new(facts)),
            most_tokens: Some(view.most_tokens),
            ..Output::from(text)
        })
    }

    /// Looks at it until it ends, waits for input, or the time is over. Returns the program in which it waits, if that is known by
    /// its name.
    async fn follow(
        &self,
        seen: &mut Seen,
        view: View,
        cx: &Cx,
    ) -> Result<Option<InteractiveProgram>, ToolError> {
        self.show.to(cx);
        // Whoever was told that it waits and looks again all the same waits for something else.
        let mut news = !std::mem::take(&mut seen.waits_for_input);
        let mut pause = QUIET;
        while self.session.ended().is_none() && Instant::now() < view.until {
            let until = (Instant::now() + pause).min(view.until);
            match unless_cancelled(cx, timeout_at(until, self.session.progress(seen.printed_bytes))).await? {
                Ok(printed_bytes) => {
                    news |= printed_bytes > seen.printed_bytes;
                    seen.printed_bytes = printed_bytes;
                    pause = QUIET;
                }
                Err(_quiet) => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    if news && self.session.waits_for_input().await {
                        cx.events.emit(&Event::InputAwaited { id: cx.id.clone() });
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
            cx.events.emit(&Event::InputAwaited { id: cx.id.clone() });
            seen.waits_for_input = true;
        }
        Ok(interactive)
    }
}

/// Ended by us is ended by a signal, for whoever reads the result: the call was not cancelled.
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

/// All sessions that have a number. Dropping the table kills them.
#[derive(Default)]
pub(crate) struct Sessions {
    /// Least recently used first.
    entries: Mutex<Vec<(u32, Arc<Started>)>>,
    /// How many had a number so far. In order and never twice, so that the same calls always read the same, and no
    /// number comes to mean another program.
    numbered: AtomicU32,
}

impl Sessions {
    fn entries(&self) -> MutexGuard<'_, Vec<(u32, Arc<Started>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a session a number, and ends another if there are too many. Also says how many there are now.
    fn insert(&self, started: Started) -> (u32, usize) {
        let mut entries = self.entries();
        if entries.len() >= MOST {
            let candidates = &entries[..entries.len() - PROTECTED];
            let over = candidates.iter().position(|(_, each)| each.session.ended().is_some());
            // Dropped, it is killed.
            drop(entries.remove(over.unwrap_or(0)));
        }
        let id = FIRST + self.numbered.fetch_add(1, Ordering::Relaxed);
        entries.push((id, Arc::new(started)));
        (id, entries.len())
    }

    /// Makes sure that a number that means no program never will.
    pub(crate) fn pass_over(&self, id: u32) {
        if let Some(index) = id.checked_sub(FIRST).filter(|index| *index < MOST_NUMBERS) {
            self.numbered.fetch_max(index + 1, Ordering::Relaxed);
        }
    }

    /// A session by its number, without using it.
    pub(crate) fn find(&self, id: u32) -> Option<Arc<Started>> {
        self.entries().iter().find(|(each, _)| *each == id).map(|(_, started)| Arc::clone(started))
    }

    /// A session by its number, which is now the one used last.
    pub(crate) fn take_up(&self, id: u32) -> Option<Arc<Started>> {
        let mut entries = self.entries();
        let at = entries.iter().position(|(each, _)| *each == id)?;
        let entry = entries.remove(at);
        let started = Arc::clone(&entry.1);
        entries.push(entry);
        Some(started)
    }

    /// The first look at a session. One that goes on afterwards gets a number.
    pub(crate) async fn begin(&self, started: Started, view: View, cx: &Cx) -> Result<Output, ToolError> {
        let mut output = started.look(view, cx).await?;
        let Facts::Session(facts) = &mut output.facts else { return Ok(output) };
        facts.started = true;
        if facts.exit.is_some() {
            return Ok(output);
        }
        let (id, count) = self.insert(started);
        facts.session = id;
        if count >= WARNED {
            let warning = format!(
                "Warning: {count} sessions are open; with more than {MOST}, those used longest ago are ended"
            );
            output.content.insert(0, windlass_contract::Content::Text(warning));
        }
        Ok(output)
    }

    /// Another look. One that has ended is forgotten.
    pub(crate) async fn go_on(
        &self,
        id: u32,
        started: &Started,
        view: View,
        cx: &Cx,
    ) -> Result<Output, ToolError> {
        let mut output = started.look(view, cx).await?;
        if let Facts::Session(facts) = &mut output.facts {
            facts.session = id;
            if facts.exit.is_some() {
                self.entries().retain(|(each, _)| *each != id);
            }
        }
        Ok(output)
    }
}

#[cfg(test)]
mod tests;

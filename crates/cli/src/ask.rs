//! Questions at the terminal.

use std::{
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    termios::QueueSelector,
};
use tokio::sync::{Mutex, oneshot};
use windlass::{
    Answer, Approver, Beyond, BoxFuture, Clean, Question, QuestionDetails, Stop, counted, shell_script,
};
use windlass_tui::render::visible::{count_blanks, visible_command};

mod terminal_elicitor;

pub(crate) use self::terminal_elicitor::{TerminalElicitor, with_elicitor};
use crate::{
    paths::PathDisplay,
    progress_terminal::ProgressTerminal,
    screen::{named, visible},
    wrap::{live_columns, wrap_line},
};

/// Asks at the terminal, one question after the other.
pub(crate) struct TerminalApprover {
    stop: Stop,
    paths: PathDisplay,
    /// Progress that must not mix with a question.
    progress: Option<Arc<ProgressTerminal>>,
}

/// Held while a question is open: calls that run in parallel may ask at the same time, and the
/// process has one terminal.
static OPEN_QUESTION: Mutex<()> = Mutex::const_new(());

impl TerminalApprover {
    /// Creates an approver for a user of this directory.
    pub(crate) fn new(cwd: &Path, stop: &Stop) -> Self {
        let paths = PathDisplay::seen_from(cwd);
        Self { stop: stop.clone(), paths, progress: None }
    }

    /// Interrupts the progress on this terminal while a question is open.
    pub(crate) fn with_progress(self, progress: Arc<ProgressTerminal>) -> Self {
        Self { progress: Some(progress), ..self }
    }
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let _turn = OPEN_QUESTION.lock().await;
            if self.stop.reason().is_some() {
                return Answer::Abort;
            }
            let _pause = self.progress.as_deref().map(ProgressTerminal::pause);
            let columns = live_columns();
            let (text, offered) =
                (in_words(question, &self.paths, columns), OfferedAnswers::from_question(question));
            let (answer, given) = oneshot::channel();
            // A thread, because a blocking read cannot be cancelled. It ends with the process.
            thread::spawn(move || answer.send(ask(&text, offered)));
            tokio::select! {
                biased;
                _reason = self.stop.stopped() => {
                    // After the echo of the keys. If stderr is gone, nothing can be reported.
                    let _gone = io::stderr().lock().write_all(b"\n");
                    Answer::Abort
                }
                given = given => given.unwrap_or(Answer::Unavailable),
            }
        })
    }
}

/// The answers that a question has beside yes and no.
#[derive(Debug, Clone, Copy)]
struct OfferedAnswers {
    session: bool,
    rule: bool,
}

impl OfferedAnswers {
    fn from_question(question: &Question) -> Self {
        Self { session: !question.keys.is_empty(), rule: question.rule.is_some() }
    }

    /// Lists the answers, after an answer that was not understood.
    fn in_short(self) -> String {
        let (session, rule) = (if self.session { " s," } else { "" }, if self.rule { " p, a," } else { "" });
        format!("y,{session}{rule} n or q? ")
    }
}

/// The prefix of every continued line, so that none can pose as the beginning of something else.
const CONTINUED: &str = "      | ";

/// Maximum number of blanks in a row; longer runs are counted instead of shown. Commands may have
/// more, because their lines may be indented.
const MAX_BLANKS: usize = 8;
const MAX_BLANKS_IN_COMMAND: usize = 24;
const MAX_BLANKS_IN_CHANGE: usize = 60;

/// Maximum number of characters shown of the model's justification, and of each other reason.
const MAX_JUSTIFICATION_CHARS: usize = 300;
const MAX_REASON_CHARS: usize = 600;

/// Maximum number of unclear texts that are named.
const MAX_UNCLEAR: usize = 5;

/// A question with more lines repeats the command at its end, by so many characters of its
/// beginning and end.
const MAX_LINES: usize = 20;
const REPEATED_CHARS: usize = 150;

/// Formats the question. The command is shown in full, reasons up to a limit. Nothing can pose as
/// something else or push important text off the screen. Lines are wrapped here, not by the
/// terminal.
fn in_words(question: &Question, paths: &PathDisplay, columns: usize) -> String {
    let (again, mut lines) = facts(question, paths);
    lines.extend(choices(question, paths));
    let mut lines: Vec<_> = lines.iter().flat_map(|line| wrap_line(line, columns, CONTINUED)).collect();
    if lines.len() > MAX_LINES {
        lines.extend(wrap_line(&again, columns, CONTINUED));
    }
    format!("{}\nAllow it? ", lines.join("\n"))
}

/// A question for another front end, which asks with a form.
pub(crate) struct FormQuestion {
    /// The facts, one per line.
    pub(crate) message: String,
    /// Meaning of a yes for this call.
    pub(crate) once: String,
    /// Meaning of a yes for the session, if there can be one.
    pub(crate) session: Option<String>,
}

impl FormQuestion {
    /// Formats a question as a terminal shows it.
    pub(crate) fn new(question: &Question, paths: &PathDisplay) -> Self {
        let choices = choices(question, paths);
        let meaning = |key: &str| {
            let line = choices.iter().find_map(|line| line.strip_prefix(key));
            line.map(str::to_owned)
        };
        Self {
            message: facts(question, paths).1.join("\n"),
            once: meaning("  y  ").unwrap_or_else(|| "yes, once".to_owned()),
            session: meaning("  s  "),
        }
    }
}

/// Returns the facts of a question, one per line, and a line that repeats what the call wants.
fn facts(question: &Question, paths: &PathDisplay) -> (String, Vec<String>) {
    let Question { tool, effects, cwd, reason, unclear, .. } = question;
    let what = match (&effects.command, &effects.typed) {
        (Some(command), _) if effects.terminal => {
            ("run in an interactive terminal", vec![done(&shell_script(command))])
        }
        (Some(command), _) => ("run", vec![done(&shell_script(command))]),
        (None, Some(typed)) => ("type into a running program", vec![done(&typed.display())]),
        (None, None) if effects.remote.is_some() => {
            ("call", effects.remote.iter().map(|remote| done(&remote.title())).collect())
        }
        (None, None) if effects.writes.is_empty() => ("use", vec!["the network".to_owned()]),
        (None, None) => {
            ("write", effects.writes.iter().map(|path| done(&paths.show(&cwd.join(path)))).collect())
        }
    };
    let first = format!("{} wants to {}:", named(tool.as_str()), what.0);
    let again = format!("again, {first} {}", without_middle(&what.1.join(" ")));
    let mut lines = vec![first];
    lines.extend(what.1.iter().map(|thing| format!("  {thing}")));
    lines.extend(change_lines(question));
    lines.push(format!("in {}", paths.show(cwd)));
    lines.extend(touched(question, paths));
    lines.push(format!("because: {}", limited_text(reason, MAX_REASON_CHARS)));
    let justified = effects.escalation.as_ref().and_then(|escalation| escalation.justification.as_deref());
    lines.extend(
        justified.map(|text| format!("the model says: {}", limited_text(text, MAX_JUSTIFICATION_CHARS))),
    );
    let shown = unclear.iter().take(MAX_UNCLEAR);
    lines.extend(shown.map(|what| format!("unclear: {}", limited_text(what, MAX_REASON_CHARS))));
    if unclear.len() > MAX_UNCLEAR {
        lines.push(format!("unclear: … ({} more)", unclear.len() - MAX_UNCLEAR));
    }
    (again, lines)
}

/// Returns the content of a change. Each line has a bar before it, so that it cannot pose as
/// another line of the question.
fn change_lines(question: &Question) -> Vec<String> {
    let change = &question.details.change;
    if change.is_empty() {
        return Vec::new();
    }
    let title = if question.effects.writes.is_empty() { "with:" } else { "the change:" };
    let shown = change.split('\n').map(|line| visible(&count_blanks(line, MAX_BLANKS_IN_CHANGE)));
    [title.to_owned()].into_iter().chain(shown.map(|line| format!("  | {line}"))).collect()
}

/// Returns the files that a call would create, and those that its command would write or delete.
fn touched(question: &Question, paths: &PathDisplay) -> Vec<String> {
    let QuestionDetails { creates, writes, deletes, .. } = &question.details;
    let creates = creates.iter().map(|path| paths.show(&question.cwd.join(path))).collect();
    let files = [("create", creates), ("write", writes.clone()), ("delete", deletes.clone())];
    let named = files.into_iter().filter(|(_, files)| !files.is_empty());
    named
        .map(|(verb, files)| format!("would {verb}: {}", limited_text(&files.join(", "), MAX_REASON_CHARS)))
        .collect()
}

/// Returns a command with long runs of blanks counted and tabs shown.
fn done(text: &str) -> String {
    visible_command(&count_blanks(text, MAX_BLANKS_IN_COMMAND)).into_owned()
}

/// Returns the beginning and the end of a long text.
fn without_middle(text: &str) -> String {
    let length = text.chars().count();
    if length <= 2 * REPEATED_CHARS {
        return text.to_owned();
    }
    let begins: String = text.chars().take(REPEATED_CHARS).collect();
    let ends: String = text.chars().skip(length - REPEATED_CHARS).collect();
    let hidden = counted((length - 2 * REPEATED_CHARS) as u64, "character");
    format!("{begins} … ({hidden}) … {ends}")
}

/// Returns a text up to so many characters, with long runs of blanks counted.
fn limited_text(text: &str, limit: usize) -> String {
    let text = count_blanks(text, MAX_BLANKS).replace('\t', " ");
    let (shown, more) = (text.chars().take(limit).collect::<String>(), text.chars().count());
    let shown = visible(&shown);
    if more > limit {
        format!("{shown}… ({})", counted((more - limit) as u64, "more character"))
    } else {
        shown
    }
}

/// Describes what each answer would allow.
fn choices(question: &Question, paths: &PathDisplay) -> Vec<String> {
    let thing = match (&question.effects.command, &question.effects.typed) {
        (Some(_), _) => "command",
        (None, Some(_)) => "text",
        (None, None) if question.effects.remote.is_some() => "call",
        (None, None) => "change",
    };
    let held = visible(&match (&question.beyond, &question.effects.remote) {
        (_, Some(remote)) => format!("on a server that {}", remote.reach.in_words()),
        (Beyond::Nothing, None) => "with the current sandbox mode".to_owned(),
        (Beyond::Wider { writable, network }, None) => {
            format!("in the sandbox, with {} as well", more(writable, *network, paths))
        }
        (Beyond::Everything, None) => "WITHOUT the sandbox".to_owned(),
    });
    let mut lines = vec![format!("  y  yes: this {thing}, once, {held}")];
    if OfferedAnswers::from_question(question).session {
        let same = match thing {
            // The answer is kept by the names of the files.
            "change" if !question.effects.writes.is_empty() => "any change of the same files".to_owned(),
            "call" => "any call of this tool, whatever its arguments are".to_owned(),
            thing => format!("the same {thing} in the same place"),
        };
        lines.push(format!("  s  yes, for this session: {same}, {held}"));
    }
    if let Some(rule) = &question.rule {
        let allows = visible(&rule.allows);
        lines.push(format!("  p  yes, always in this project: {allows}, {held}"));
        lines.push("  a  yes, always and everywhere: the same".to_owned());
    }
    lines.push("  n  no; text after it is sent to the model".to_owned());
    lines.push("  q  no, and stop".to_owned());
    lines
}

fn more(writable: &[PathBuf], network: bool, paths: &PathDisplay) -> String {
    let places = writable.iter().map(|path| format!("`{}` writable", paths.show(path)));
    places.chain(network.then(|| "the network".to_owned())).collect::<Vec<_>>().join(" and ")
}

/// Drops what was typed before a person can have read the question, until nothing arrives.
fn drop_early_input() -> io::Result<()> {
    const QUIET_TIME: Duration = Duration::from_millis(300);
    const MAX_TRIES: usize = 20;
    for _ in 0..MAX_TRIES {
        rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush)?;
        thread::sleep(QUIET_TIME);
        let stdin = io::stdin();
        let mut typed = [PollFd::new(&stdin, PollFlags::IN)];
        if rustix::event::poll(&mut typed, Some(&Timespec::default()))? == 0 {
            break;
        }
    }
    // The beginning of a line cannot be seen.
    Ok(rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush)?)
}

/// Asks until the answer is valid.
fn ask(text: &str, offered: OfferedAnswers) -> Answer {
    let (question, prompt) = text.rsplit_once('\n').unwrap_or(("", text));
    // If it cannot be written, the prompt cannot either.
    let _gone = writeln!(io::stderr().lock(), "{question}");
    if drop_early_input().is_err() {
        return Answer::Unavailable;
    }
    let (mut shown, again) = (prompt, offered.in_short());
    loop {
        // Input in another encoding than UTF-8 is accepted, as far as it matters.
        let mut line = Vec::new();
        // Stderr is not locked while the answer is read: others report an interrupt there.
        let written = io::stderr().lock().write_all(shown.as_bytes());
        let asked = written.and_then(|()| io::stdin().lock().read_until(b'\n', &mut line));
        if matches!(asked, Ok(0) | Err(_)) {
            return Answer::Unavailable;
        }
        if let Some(answer) = understood(&String::from_utf8_lossy(&line), offered) {
            return answer;
        }
        shown = &again;
    }
}

/// Parses an answer. An empty line is a no; anything else that is neither yes nor no is not
/// understood.
fn understood(line: &str, offered: OfferedAnswers) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word.to_ascii_lowercase().as_str() {
        "" => Some(Answer::Deny(String::new())),
        "n" | "no" => Some(Answer::Deny(rest.trim().to_owned())),
        "q" | "quit" => Some(Answer::Abort),
        _ if !rest.is_empty() => None,
        "y" | "yes" => Some(Answer::Once),
        "s" | "session" if offered.session => Some(Answer::Session),
        "p" | "project" if offered.rule => Some(Answer::Project),
        "a" | "always" if offered.rule => Some(Answer::Always),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

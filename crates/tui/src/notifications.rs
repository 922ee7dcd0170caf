//! Notifications: a person who looks elsewhere is needed, or an answer is there.

use std::{
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};
use windlass::ThreadId;

/// The ways of notifying that the person chose.
#[derive(Debug, Clone)]
pub struct NotificationSettings {
    at_terminal: bool,
    takes_messages: bool,
    program: Vec<String>,
}

/// Something that a person may want to know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PersonNotice {
    /// A question waits.
    Question { tool: String, reason: String },
    /// A turn has ended.
    TurnEnded { was_long: bool, turn: u32, prompt: String, answer: Option<String> },
}

/// Collects notices while a session runs.
#[derive(Debug, Default)]
pub(crate) struct NoticeCollector {
    turn: u32,
    prompt: Option<String>,
    answer: Option<String>,
    waiting: Vec<PersonNotice>,
}

impl NoticeCollector {
    pub(crate) fn on_prompt(&mut self, text: &str) {
        self.turn += 1;
        (self.prompt, self.answer) = (Some(text.to_owned()), None);
    }

    pub(crate) fn on_answer(&mut self, text: &str) {
        self.answer = Some(text.to_owned());
    }

    pub(crate) fn on_question(&mut self, tool: &str, reason: &str) {
        self.waiting.push(PersonNotice::Question { tool: tool.to_owned(), reason: reason.to_owned() });
    }

    /// Notes that the agent is free. A command of the person is no turn.
    pub(crate) fn on_idle(&mut self, was_long: bool) {
        if let Some(prompt) = self.prompt.take() {
            let (turn, answer) = (self.turn, self.answer.take());
            self.waiting.push(PersonNotice::TurnEnded { was_long, turn, prompt, answer });
        }
    }

    pub(crate) fn take(&mut self) -> Vec<PersonNotice> {
        std::mem::take(&mut self.waiting)
    }
}

impl PersonNotice {
    /// Returns the message for the terminal. A turn during which the person waited needs none.
    fn message(&self) -> Option<&'static str> {
        match self {
            Self::Question { .. } => Some("Windlass waits for your answer"),
            Self::TurnEnded { was_long, .. } => was_long.then_some("Windlass is done"),
        }
    }

    /// Returns the argument of the program. The names are those of the Codex CLI.
    fn as_json(&self, thread: Option<&ThreadId>, cwd: &Path) -> Value {
        let thread = thread.map(ThreadId::as_str);
        match self {
            Self::Question { tool, reason } => json!({
                "type": "approval-requested",
                "thread-id": thread,
                "cwd": cwd,
                "tool": tool,
                "reason": reason,
            }),
            Self::TurnEnded { turn, prompt, answer, .. } => json!({
                "type": "agent-turn-complete",
                "thread-id": thread,
                "turn-id": turn.to_string(),
                "cwd": cwd,
                "input-messages": [prompt],
                "last-assistant-message": answer,
            }),
        }
    }
}

impl NotificationSettings {
    /// Notifies at the terminal, if that is wanted, and by a program and its arguments, if there is
    /// one. The variables of the environment tell which terminal it is.
    pub fn new(at_terminal: bool, program: Vec<String>, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        Self { at_terminal, takes_messages: takes_messages(variable), program }
    }

    /// Notifies. This never waits for a program, but the terminal may be slow.
    pub(crate) fn notify(
        &self,
        notice: &PersonNotice,
        thread: Option<&ThreadId>,
        cwd: &Path,
    ) -> io::Result<()> {
        if let [program, arguments @ ..] = &self.program[..] {
            start(program, arguments, &notice.as_json(thread, cwd).to_string());
        }
        let message = notice.message().filter(|_| self.at_terminal);
        match message {
            Some(message) => ring(message, self.takes_messages),
            None => Ok(()),
        }
    }
}

/// Starts the program. There is no one to report a failure to: the screen is for the session.
fn start(program: &str, arguments: &[String], argument: &str) {
    let mut command = Command::new(program);
    command.args(arguments).arg(argument);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The thread starts it and waits for its end, so that no zombie stays.
    let _started = thread::Builder::new().name("windlass-notify".to_owned()).spawn(move || command.status());
}

/// Rings the bell, or shows a message, which rings by itself (iTerm2: OSC 9).
fn ring(message: &str, takes_messages: bool) -> io::Result<()> {
    let mut stdout = io::stdout();
    if takes_messages {
        write!(stdout, "\x1b]9;{message}\x07")?;
    } else {
        stdout.write_all(b"\x07")?;
    }
    stdout.flush()
}

/// Returns true if the terminal is known to show messages. Others would show nothing, or take it
/// for something else; tmux does not pass it on.
fn takes_messages(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, known: &[&str]| variable(name).is_some_and(|value| known.contains(&value.as_str()));
    variable("TMUX").is_none()
        && (is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "ghostty", "WarpTerminal"])
            || is("TERM", &["xterm-kitty", "xterm-ghostty"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_one_notice_and_a_command_of_the_person_none() {
        let mut notices = NoticeCollector::default();
        notices.on_idle(true);
        assert_eq!(notices.take(), []);
        notices.on_prompt("hi");
        notices.on_answer("first");
        notices.on_answer("last");
        notices.on_idle(false);
        let taken = notices.take();
        let expected = json!({
            "type": "agent-turn-complete", "thread-id": "t", "turn-id": "1", "cwd": "/w",
            "input-messages": ["hi"], "last-assistant-message": "last",
        });
        assert_eq!(taken[0].as_json(Some(&"t".into()), "/w".as_ref()), expected);
        assert_eq!((taken.len(), taken[0].message(), notices.take().len()), (1, None, 0));
        notices.on_idle(true);
        assert_eq!(notices.take(), []);
    }

    #[test]
    fn messages_are_for_terminals_that_show_them() {
        let with = |set: &[(&str, &str)]| {
            takes_messages(&|name| {
                set.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(&[("TERM_PROGRAM", "WezTerm")]) && with(&[("TERM", "xterm-kitty")]));
        assert!(
            !with(&[("TERM", "xterm-256color")]) && !with(&[("TERM_PROGRAM", "ghostty"), ("TMUX", "/t")])
        );
    }
}

//! Questions of MCP servers and of the agent at the terminal.

use std::{
    io::{self, Write},
    sync::Arc,
    thread,
};

use tokio::sync::oneshot;
use windlass::{
    AgentBuilder, BoxFuture, Elicitation, ElicitationAnswer, Elicitor, Reason, Stop,
    mcp::question_dialogue::{DialogueStep, QuestionDialogue},
};
use windlass_tui::render::visible::count_blanks;

use super::{CONTINUED, MAX_BLANKS, OPEN_QUESTION, drop_early_input};
use crate::{
    confirm::{await_line, obstacle_to_asking, read_line},
    progress_terminal::ProgressTerminal,
    screen::visible,
    wrap::{live_columns, wrap_line},
};

/// Asks at the terminal, one question after the other.
pub(crate) struct TerminalElicitor {
    stop: Stop,
    /// Progress that must not mix with a question.
    progress: Option<Arc<ProgressTerminal>>,
}

impl TerminalElicitor {
    /// Creates an elicitor, if there is a person who can be asked.
    pub(crate) fn at_terminal(
        no_input: bool,
        stop: &Stop,
        progress: Option<Arc<ProgressTerminal>>,
    ) -> Option<Arc<dyn Elicitor>> {
        let elicitor = Self { stop: stop.clone(), progress };
        obstacle_to_asking(no_input).is_none().then(|| Arc::new(elicitor) as _)
    }
}

impl Elicitor for TerminalElicitor {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let Some(dialogue) = QuestionDialogue::new(question) else { return ElicitationAnswer::Decline };
            let _turn = OPEN_QUESTION.lock().await;
            if self.stop.reason().is_some() {
                return ElicitationAnswer::Cancel;
            }
            let _pause = self.progress.as_deref().map(ProgressTerminal::pause);
            let asking = AbandonedQuestion::default();
            let (columns, abandoned) = (live_columns(), asking.0.clone());
            let (answer, given) = oneshot::channel();
            // A thread, because a blocking read cannot be cancelled.
            thread::spawn(move || answer.send(converse(dialogue, columns, &abandoned)));
            tokio::select! {
                biased;
                _reason = self.stop.stopped() => {
                    // After the echo of the keys. If stderr is gone, nothing can be reported.
                    let _gone = io::stderr().lock().write_all(b"\n");
                    ElicitationAnswer::Cancel
                }
                given = given => given.unwrap_or(ElicitationAnswer::Cancel),
            }
        })
    }
}

/// Lets the model of an agent ask the person, if there is one.
pub(crate) fn with_elicitor(builder: AgentBuilder, elicitor: Option<&Arc<dyn Elicitor>>) -> AgentBuilder {
    elicitor.into_iter().fold(builder, |builder, elicitor| builder.elicitor(Arc::clone(elicitor)))
}

/// Ends the reading thread when the question is dropped: it was taken back.
#[derive(Default)]
struct AbandonedQuestion(Stop);

impl Drop for AbandonedQuestion {
    fn drop(&mut self) {
        self.0.stop(Reason::Interrupted);
    }
}

/// Leads through the dialogue. Everything that goes wrong dismisses the question.
fn converse(mut dialogue: QuestionDialogue, columns: usize, abandoned: &Stop) -> ElicitationAnswer {
    let (mut lines, mut is_first) = (dialogue.lines(), true);
    loop {
        let shown = lines
            .iter()
            .flat_map(|line| wrap_line(&visible(&count_blanks(line, MAX_BLANKS)), columns, CONTINUED));
        let shown: String = shown.map(|line| format!("{line}\n")).collect();
        // If it cannot be written, the prompt cannot either.
        let _gone = io::stderr().lock().write_all(shown.as_bytes());
        if std::mem::take(&mut is_first) && drop_early_input().is_err() {
            return ElicitationAnswer::Cancel;
        }
        let written = io::stderr().lock().write_all(dialogue.prompt().as_bytes());
        if written.is_err() || !await_line(abandoned) {
            return ElicitationAnswer::Cancel;
        }
        let line = match read_line() {
            Ok(line) if !line.is_empty() => line,
            Ok(_) | Err(_) => {
                // The end of the input ends no line. If stderr is gone, nothing can be reported.
                let _gone = io::stderr().lock().write_all(b"\n");
                return ElicitationAnswer::Cancel;
            }
        };
        lines = match dialogue.on_line(&line) {
            DialogueStep::Continue => dialogue.lines(),
            DialogueStep::Again(problem) => vec![problem],
            DialogueStep::Answered(answer) => return answer,
        };
    }
}

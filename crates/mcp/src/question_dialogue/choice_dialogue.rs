//! The dialogue about questions with options.

use serde_json::{Map, Value};
use windlass_contract::elicitation::{Asker, ChoiceQuestion, ElicitationAnswer};

use super::{DialogueStep, opening_name, quoted};
use crate::untrusted_text::{visible_line, visible_text};

/// Maximum length of the title of a question, of an option and of its description.
const MAX_HEADER: usize = 60;
const MAX_LABEL: usize = 200;
const MAX_DESCRIPTION: usize = 600;
/// Maximum length of an answer in the review. It is sent whole.
const MAX_REVIEWED: usize = 200;
/// Maximum number of options of a question: one key chooses one.
const MAX_OPTIONS: usize = 9;

/// Questions that are being answered, one after the other.
#[derive(Debug)]
pub(super) struct ChoiceDialogue {
    asker: String,
    questions: Vec<ChoiceQuestion>,
    answers: Vec<String>,
    stage: ChoiceStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceStage {
    /// The options of the next question without an answer, or the review after the last one.
    Options,
    /// The person writes an answer of their own.
    OwnAnswer,
}

impl ChoiceDialogue {
    /// Begins a dialogue. Returns `None` if there is nothing to ask, or too much to choose from.
    pub(super) fn new(asker: &Asker, questions: &[ChoiceQuestion]) -> Option<Self> {
        let is_choice = |question: &ChoiceQuestion| (1..=MAX_OPTIONS).contains(&question.options.len());
        let asker = opening_name(asker);
        let (answers, stage) = (Vec::new(), ChoiceStage::Options);
        let is_asked = !questions.is_empty() && questions.iter().all(is_choice);
        is_asked.then(|| Self { asker, questions: questions.to_vec(), answers, stage })
    }

    /// Returns the question that is being answered. `None` in the review.
    fn question(&self) -> Option<&ChoiceQuestion> {
        self.questions.get(self.answers.len())
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Some(question) = self.question() else { return self.review() };
        if self.stage == ChoiceStage::OwnAnswer {
            return [vec!["Your own answer to:".to_owned()], quoted(&visible_text(&question.question))]
                .concat();
        }
        let place = match self.questions.len() {
            1 => String::new(),
            all => format!(" ({} of {all})", self.answers.len() + 1),
        };
        let header = visible_line(&question.header, MAX_HEADER);
        let header = if header.is_empty() { header } else { format!(" [{header}]") };
        let mut lines = vec![format!("{} asks{place}, in its own words:{header}", self.asker)];
        lines.extend(quoted(&visible_text(&question.question)));
        lines.extend((1..).zip(&question.options).map(|(number, option)| {
            let label = visible_line(&option.label, MAX_LABEL);
            match visible_line(&option.description, MAX_DESCRIPTION) {
                description if description.is_empty() => format!("  {number}  {label}"),
                description => format!("  {number}  {label}: {description}"),
            }
        }));
        lines.push("  o  an answer of your own".to_owned());
        lines.push("  c  dismiss it without an answer".to_owned());
        lines
    }

    pub(super) fn prompt(&self) -> String {
        match (self.question(), self.stage) {
            (Some(_), ChoiceStage::OwnAnswer) => "Your answer (/back shows the options): ".to_owned(),
            (Some(question), ChoiceStage::Options) => match question.options.len() {
                1 => "Which one? 1, o or c: ".to_owned(),
                options => format!("Which one? 1-{options}, o or c: "),
            },
            (None, _) => "Send it? y, c, or e to start again: ".to_owned(),
        }
    }

    pub(super) fn takes_text(&self) -> bool {
        self.stage == ChoiceStage::OwnAnswer
    }

    pub(super) fn on_line(&mut self, line: &str) -> DialogueStep {
        let line = line.trim();
        let Some(question) = self.question() else { return self.on_review(line) };
        if self.stage == ChoiceStage::OwnAnswer {
            return self.on_own_answer(line);
        }
        if let Ok(number) = line.parse::<usize>() {
            let option = number.checked_sub(1).and_then(|at| question.options.get(at));
            return match option.map(|option| option.label.clone()) {
                Some(label) => self.take(label),
                None => DialogueStep::Again("there is no option of this number".to_owned()),
            };
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("c" | "cancel", "") => DialogueStep::Answered(ElicitationAnswer::Cancel),
            ("o" | "other", "") => {
                self.stage = ChoiceStage::OwnAnswer;
                DialogueStep::Continue
            }
            ("o" | "other", answer) => self.take(answer.to_owned()),
            _ => DialogueStep::Again(
                "answer with the number of an option, or with one of the letters".to_owned(),
            ),
        }
    }

    fn on_own_answer(&mut self, line: &str) -> DialogueStep {
        match line {
            "/back" => {
                self.stage = ChoiceStage::Options;
                DialogueStep::Continue
            }
            "/cancel" => DialogueStep::Answered(ElicitationAnswer::Cancel),
            "" => DialogueStep::Again("type an answer, or /back for the options".to_owned()),
            answer => self.take(answer.to_owned()),
        }
    }

    fn on_review(&mut self, line: &str) -> DialogueStep {
        match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => self.send(),
            "e" | "edit" => {
                self.answers.clear();
                DialogueStep::Continue
            }
            "n" | "no" | "c" | "cancel" => DialogueStep::Answered(ElicitationAnswer::Cancel),
            _ => DialogueStep::Again("answer with one of the letters".to_owned()),
        }
    }

    /// Takes an answer. A single question needs no review: the choice is all there is to see.
    fn take(&mut self, answer: String) -> DialogueStep {
        self.stage = ChoiceStage::Options;
        self.answers.push(answer);
        if self.questions.len() == 1 { self.send() } else { DialogueStep::Continue }
    }

    fn send(&self) -> DialogueStep {
        let ids = self.questions.iter().map(|question| question.id.clone());
        let answers: Map<_, _> = ids.zip(self.answers.iter().cloned().map(Value::String)).collect();
        DialogueStep::Answered(ElicitationAnswer::Accept(Value::Object(answers)))
    }

    fn review(&self) -> Vec<String> {
        let shown = self.questions.iter().zip(&self.answers).map(|(question, answer)| {
            let title = match visible_line(&question.header, MAX_HEADER) {
                header if header.is_empty() => visible_line(&question.id, MAX_HEADER),
                header => header,
            };
            format!("  {title}: {}", visible_line(answer, MAX_REVIEWED))
        });
        ["Your answers:".to_owned()].into_iter().chain(shown).collect()
    }
}

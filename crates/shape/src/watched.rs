//! Events and questions without secrets: what a model asks for may hold some, and what goes wrong as well.

use std::{borrow::Cow, fmt, sync::Arc};

use windlass_contract::{
    Answer, Approver, BoxFuture, Effects, Event, Input, Offer, Question, Refusal, ToolCall,
};

use crate::Secrets;

/// Longer commands are cleaned word by word only.
const MAX_WORDS: usize = 64;
const MAX_COMMAND_BYTES: usize = 64 * 1024;

impl Secrets {
    fn clean_owned(&self, text: &str) -> String {
        self.clean(text).into_owned()
    }

    /// The event as anyone may see it. What a model says to a person passes: who asks for a password must get it.
    pub fn clean_event<'a>(&self, event: &'a Event) -> Cow<'a, Event> {
        let text = |text: &String| self.clean_owned(text);
        let refusals = |refusals: &[Refusal]| {
            refusals
                .iter()
                .map(|refusal| Refusal { reason: text(&refusal.reason), ..refusal.clone() })
                .collect()
        };
        Cow::Owned(match event {
            Event::TurnDiff { diff } => Event::TurnDiff { diff: text(diff) },
            Event::CallStarted { call, effects } => {
                Event::CallStarted { call: self.clean_call(call), effects: self.clean_effects(effects) }
            }
            Event::CallEnded { call, effects, outcome } => Event::CallEnded {
                call: self.clean_call(call),
                effects: self.clean_effects(effects),
                outcome: outcome.clone(),
            },
            Event::Warning { message } => Event::Warning { message: text(message) },
            Event::Retrying { attempt, of, delay, reason } => {
                Event::Retrying { attempt: *attempt, of: *of, delay: *delay, reason: text(reason) }
            }
            Event::TurnCompleted { usage, refusals: refused } => {
                Event::TurnCompleted { usage: *usage, refusals: refusals(refused) }
            }
            Event::TurnFailed { message, usage, refusals: refused } => {
                Event::TurnFailed { message: text(message), usage: *usage, refusals: refusals(refused) }
            }
            Event::ThreadStarted { .. }
            | Event::TurnStarted
            | Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::Message { .. }
            | Event::Reasoning { .. }
            | Event::WebSearch { .. }
            | Event::CallOutput { .. }
            | Event::EditStarted { .. }
            | Event::EditEnded { .. }
            | Event::PlanUpdated(_) => return Cow::Borrowed(event),
        })
    }

    fn clean_call(&self, call: &ToolCall) -> ToolCall {
        let input = match &call.input {
            Input::Json(text) => Input::Json(self.clean_owned(text)),
            Input::Text(text) => Input::Text(self.clean_owned(text)),
            Input::Search(text) => Input::Search(self.clean_owned(text)),
        };
        ToolCall { input, ..call.clone() }
    }

    pub(crate) fn clean_effects(&self, effects: &Effects) -> Effects {
        let mut effects = effects.clone();
        if let Some(command) = &mut effects.command {
            command.argv = self.clean_words(&command.argv);
        }
        if let Some(typed) = &mut effects.typed {
            typed.to = self.clean_owned(&typed.to);
            typed.text = self.clean_owned(&typed.text);
        }
        if let Some(escalation) = &mut effects.escalation {
            escalation.justification = escalation.justification.as_deref().map(|text| self.clean_owned(text));
            escalation.prefix_rule = self.clean_words(&escalation.prefix_rule);
        }
        effects
    }

    /// Each word, read with those before it: in `curl -u user:password` the last alone would say nothing.
    fn clean_words(&self, words: &[String]) -> Vec<String> {
        let is_long =
            words.len() > MAX_WORDS || words.iter().map(String::len).sum::<usize>() > MAX_COMMAND_BYTES;
        let mut before = String::new();
        let mut cleaned = Vec::with_capacity(words.len());
        for word in words {
            let line = format!("{before}{word}");
            let whole = if is_long { String::new() } else { self.clean_owned(&line) };
            let here = whole.strip_prefix(&*self.clean(&before)).filter(|_| !is_long);
            cleaned.push(here.map_or_else(|| self.clean_owned(word), str::to_owned));
            before = if is_long { String::new() } else { format!("{line} ") };
        }
        cleaned
    }
}

/// Takes secrets out of questions before they are asked. What the gate remembers of an answer is not changed by it.
pub struct CleanQuestions {
    front: Arc<dyn Approver>,
    secrets: Secrets,
}

impl CleanQuestions {
    /// In front of someone who is asked.
    pub fn new(front: Arc<dyn Approver>, secrets: Secrets) -> Self {
        Self { front, secrets }
    }

    fn clean(&self, question: &Question) -> Question {
        let text = |text: &String| self.secrets.clean_owned(text);
        let rule =
            question.rule.as_ref().map(|rule| Offer { toml: text(&rule.toml), allows: text(&rule.allows) });
        Question {
            effects: self.secrets.clean_effects(&question.effects),
            reason: text(&question.reason),
            unclear: question.unclear.iter().map(text).collect(),
            keys: question.keys.iter().map(text).collect(),
            rule,
            ..question.clone()
        }
    }
}

impl Approver for CleanQuestions {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move { self.front.ask(&self.clean(question)).await })
    }
}

impl fmt::Debug for CleanQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CleanQuestions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{CommandLine, Escalation, Typed};

    use super::*;

    fn cleaned(argv: &[&str]) -> Vec<String> {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        let effects = Effects::command(CommandLine { argv, cwd: None });
        Secrets::default().clean_effects(&effects).command.map(|command| command.argv).unwrap_or_default()
    }

    #[test]
    fn words_of_a_command_are_read_with_those_before_them() {
        assert_eq!(
            cleaned(&["curl", "-u", "bob:q8Zk2mPv0Lr7", "https://x"]),
            ["curl", "-u", "bob:[REDACTED:password#1]", "https://x"]
        );
        assert_eq!(
            cleaned(&["bash", "-lc", "DB_PASSWORD=q8Zk2mPv0Lr7 make"])[2],
            "DB_PASSWORD=[REDACTED:password#1] make"
        );
        assert_eq!(cleaned(&["ls", "-l", "a b"]), ["ls", "-l", "a b"]);
    }

    #[test]
    fn a_long_command_is_still_cleaned() {
        let mut words = vec!["x"; 200];
        words.push("DB_PASSWORD=q8Zk2mPv0Lr7");
        assert_eq!(cleaned(&words).last().map(String::as_str), Some("DB_PASSWORD=[REDACTED:password#1]"));
    }

    #[test]
    fn what_is_typed_is_cleaned() {
        let typed = Typed { to: "bash".to_owned(), text: "export DB_PASSWORD=q8Zk2mPv0Lr7\n".to_owned() };
        let cleaned = Secrets::default().clean_effects(&Effects::typed(typed)).typed.map(|typed| typed.text);
        assert_eq!(cleaned.as_deref(), Some("export DB_PASSWORD=[REDACTED:password#1]\n"));
    }

    #[test]
    fn a_reason_is_cleaned_too() {
        let justification = Some("token: q8Zk2mPv0Lr7Tb4Xc9Wd".to_owned());
        let escalation = Some(Escalation { justification, prefix_rule: Vec::new() });
        let effects = Secrets::default().clean_effects(&Effects { escalation, ..Effects::none() });
        let said = effects.escalation.and_then(|escalation| escalation.justification);
        assert_eq!(said.as_deref(), Some("token: [REDACTED:token#1]"));
    }
}

//! Redacts events, calls and questions. The arguments of a call and error messages may hold
//! secrets.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::de::IgnoredAny;
use windlass_contract::{
    BoxFuture, Effects, Event, Input, Item, ToolCall, ToolName,
    approval::{Answer, Approver, Beyond, Offer, Question},
    event::{FileEdit, Plan, PlanStep},
    item::Body,
    outcome::Refusal,
};

use crate::Secrets;

/// Maximum size of a command that is redacted as a whole. Each word of a longer one is redacted
/// separately.
const MAX_WORDS: usize = 64;
const MAX_COMMAND_BYTES: usize = 64 * 1024;

impl Secrets {
    fn clean_owned(&self, text: &str) -> String {
        self.clean(text).into_owned()
    }

    /// Redacts the name of a tool: it comes from a model, and the tool need not exist.
    fn clean_name(&self, name: &ToolName) -> ToolName {
        self.clean_owned(name.as_str()).into()
    }

    /// Redacts a file name. A name that is not UTF-8 holds no readable secret.
    fn clean_path(&self, path: &Path) -> PathBuf {
        match path.to_str().map(|text| self.clean(text)) {
            Some(Cow::Owned(clean)) => clean.into(),
            _ => path.to_owned(),
        }
    }

    fn clean_beyond(&self, beyond: &Beyond) -> Beyond {
        match beyond {
            Beyond::Wider { writable, network } => Beyond::Wider {
                writable: writable.iter().map(|path| self.clean_path(path)).collect(),
                network: *network,
            },
            other => other.clone(),
        }
    }

    fn clean_files(&self, files: &[FileEdit]) -> Vec<FileEdit> {
        let clean = |file: &FileEdit| FileEdit {
            path: self.clean_path(&file.path),
            kind: file.kind,
            move_path: file.move_path.as_deref().map(|path| self.clean_path(path)),
        };
        files.iter().map(clean).collect()
    }

    /// Redacts an event for any observer. Messages of the model to the person pass unchanged: a
    /// person who asks for a password must get it.
    pub fn clean_event<'a>(&self, event: &'a Event) -> Cow<'a, Event> {
        let text = |text: &String| self.clean_owned(text);
        let refusals = |refusals: &[Refusal]| {
            refusals
                .iter()
                .map(|refusal| Refusal {
                    tool: self.clean_name(&refusal.tool),
                    reason: text(&refusal.reason),
                    ..refusal.clone()
                })
                .collect()
        };
        Cow::Owned(match event {
            Event::TurnDiff { diff } => Event::TurnDiff { diff: text(diff) },
            Event::ApprovalAsked { id, tool, reason, outward, beyond } => Event::ApprovalAsked {
                id: id.clone(),
                tool: self.clean_name(tool),
                reason: text(reason),
                outward: outward.clone(),
                beyond: self.clean_beyond(beyond),
            },
            Event::ApprovalAnswered { id, tool, answer, by, rule, waited } => Event::ApprovalAnswered {
                id: id.clone(),
                tool: self.clean_name(tool),
                answer: match answer {
                    Answer::Deny(message) => Answer::Deny(text(message)),
                    other => other.clone(),
                },
                by: *by,
                rule: rule.as_ref().map(text),
                waited: *waited,
            },
            Event::CallStarted { call, effects } => {
                Event::CallStarted { call: self.clean_call(call), effects: self.clean_effects(effects) }
            }
            Event::CallEnded { call, effects, outcome } => Event::CallEnded {
                call: self.clean_call(call),
                effects: self.clean_effects(effects),
                outcome: outcome.clone(),
            },
            Event::EditStarted { id, files } => {
                Event::EditStarted { id: id.clone(), files: self.clean_files(files) }
            }
            Event::EditEnded { id, files, success, changed } => Event::EditEnded {
                id: id.clone(),
                files: self.clean_files(files),
                success: *success,
                changed: changed.clone(),
            },
            Event::PlanUpdated(plan) => Event::PlanUpdated(self.clean_plan(plan)),
            Event::WebSearch { query } => Event::WebSearch { query: text(query) },
            Event::Warning { message } => Event::Warning { message: text(message) },
            Event::Retrying { provider, attempt, of, delay, left, reason } => Event::Retrying {
                provider: provider.clone(),
                attempt: *attempt,
                of: *of,
                delay: *delay,
                left: *left,
                reason: text(reason),
            },
            Event::TurnCompleted { usage, declined, refusals: refused } => {
                Event::TurnCompleted { usage: *usage, declined: *declined, refusals: refusals(refused) }
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
            | Event::InputAwaited { .. }
            | Event::CallOutput { .. } => return Cow::Borrowed(event),
        })
    }

    /// Redacts a plan. The person reads it, but it is a tool call and may repeat the contents of
    /// files.
    fn clean_plan(&self, plan: &Plan) -> Plan {
        let step = |step: &PlanStep| PlanStep { step: self.clean_owned(&step.step), ..step.clone() };
        let explanation = plan.explanation.as_deref().map(|text| self.clean_owned(text));
        Plan { explanation, plan: plan.plan.iter().map(step).collect() }
    }

    /// Redacts a call for display and storage.
    pub fn clean_call(&self, call: &ToolCall) -> ToolCall {
        let input = match &call.input {
            Input::Json(text) => Input::Json(self.clean_owned(text)),
            Input::Text(text) => Input::Text(self.clean_owned(text)),
            Input::Search(text) => Input::Search(self.clean_owned(text)),
        };
        ToolCall { id: call.id.clone(), name: self.clean_name(&call.name), input }
    }

    /// Redacts an item for storage. If a call holds a secret, the provider's verbatim copy of it is
    /// dropped.
    pub fn clean_item<'a>(&self, item: &'a Item) -> Cow<'a, Item> {
        let Body::Call(call) = &item.body else { return Cow::Borrowed(item) };
        let mut cleaned = self.clean_call(call);
        if cleaned.input == call.input {
            return Cow::Borrowed(item);
        }
        if let Input::Json(text) = &mut cleaned.input
            && serde_json::from_str::<IgnoredAny>(text).is_err()
        {
            // Must be valid JSON: the item may be sent to a model server again.
            r#"{"redacted":true}"#.clone_into(text);
        }
        Cow::Owned(Body::Call(cleaned).into())
    }

    /// Returns the rule names of the secrets in the arguments of a call.
    pub fn kinds_in_call(&self, call: &ToolCall) -> Vec<String> {
        match self.clean(call.input.as_str()) {
            Cow::Borrowed(_) => Vec::new(),
            Cow::Owned(cleaned) => new_kinds(call.input.as_str(), &cleaned),
        }
    }

    /// Returns the rule names of the secrets in the words of a program. A shell may have joined
    /// them from pieces that are no secrets in the arguments of the call.
    pub fn kinds_in_words(&self, words: &[String]) -> Vec<String> {
        new_kinds(&words.join(" "), &self.clean_words(words).join(" "))
    }

    /// Redacts effects for display and storage.
    pub fn clean_effects(&self, effects: &Effects) -> Effects {
        let mut effects = effects.clone();
        for path in effects.reads.iter_mut().chain(&mut effects.writes) {
            *path = self.clean_path(path);
        }
        if let Some(command) = &mut effects.command {
            command.argv = self.clean_words(&command.argv);
            command.cwd = command.cwd.as_deref().map(|cwd| self.clean_path(cwd));
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

    /// Redacts each word in the context of the words before it. The last word of `curl -u
    /// user:password` is not a secret by itself.
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

/// Text before the rule name in a redaction label.
const MARK: &str = "[REDACTED:";

/// Returns the rule names of the labels that a redacted text has and the given one has not.
fn new_kinds(given: &str, cleaned: &str) -> Vec<String> {
    let is_new = |kind: &&str| !given.contains(&format!("{MARK}{kind}"));
    let mut kinds: Vec<_> = labels(cleaned).filter(is_new).map(str::to_owned).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Returns the rule names of the labels in a redacted text.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    text.split(MARK).skip(1).filter_map(|rest| rest.split(['#', ']']).next())
}

/// Redacts questions before an approver sees them. The gate still remembers the original question.
pub struct CleanQuestions {
    front: Arc<dyn Approver>,
    secrets: Secrets,
}

impl CleanQuestions {
    /// Wraps an approver.
    pub fn new(front: Arc<dyn Approver>, secrets: Secrets) -> Self {
        Self { front, secrets }
    }

    fn clean(&self, question: &Question) -> Question {
        let text = |text: &String| self.secrets.clean_owned(text);
        let rule =
            question.rule.as_ref().map(|rule| Offer { toml: text(&rule.toml), allows: text(&rule.allows) });
        Question {
            tool: self.secrets.clean_name(&question.tool),
            effects: self.secrets.clean_effects(&question.effects),
            cwd: self.secrets.clean_path(&question.cwd),
            reason: text(&question.reason),
            beyond: self.secrets.clean_beyond(&question.beyond),
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
    use windlass_contract::{
        effects::{CommandLine, Escalation, Typed},
        event::{EditKind, PlanStatus},
    };

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
    fn names_of_tools_and_files_are_cleaned() {
        let secret = format!("ghp_{}", "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2");
        let path = PathBuf::from(format!("/w/notes-{secret}.txt"));
        let secrets = Secrets::default();
        let call = ToolCall {
            id: "c1".into(),
            name: format!("no-{secret}").into(),
            input: Input::Text(String::new()),
        };
        let edit = FileEdit { path: path.clone(), kind: EditKind::Update, move_path: Some(path.clone()) };
        let events = [
            Event::CallStarted { call, effects: Effects::write(&path) },
            Event::EditStarted { id: "c1".into(), files: vec![edit.clone()] },
            Event::EditEnded { id: "c1".into(), files: vec![edit], success: true, changed: Vec::new() },
        ];
        for event in &events {
            let seen = format!("{:?}", secrets.clean_event(event));
            assert!(!seen.contains("q8Zk2m") && seen.contains("[REDACTED:github-token#1]"), "{seen}");
        }
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

    #[test]
    fn plans_and_places_in_questions_hold_no_secrets() {
        let secret = format!("ghp_{}", "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2");
        let step = PlanStep { step: format!("log in with {secret}"), status: PlanStatus::Pending };
        let plan = Plan { explanation: Some(secret.clone()), plan: vec![step] };
        let seen = format!("{:?}", Secrets::default().clean_event(&Event::PlanUpdated(plan)));
        assert!(!seen.contains(&secret) && seen.contains("log in with [REDACTED"), "{seen}");
        let place = PathBuf::from(format!("/w/{secret}"));
        let question = Question {
            call: "c".into(),
            tool: "t".into(),
            effects: Effects::none(),
            cwd: place.clone(),
            reason: String::new(),
            unclear: Vec::new(),
            beyond: Beyond::Wider { writable: vec![place], network: false },
            keys: Vec::new(),
            rule: None,
        };
        let asked = CleanQuestions::new(Arc::new(AbsentApprover), Secrets::default()).clean(&question);
        assert!(!format!("{asked:?}").contains(&secret), "{asked:?}");
    }

    struct AbsentApprover;

    impl Approver for AbsentApprover {
        fn ask<'a>(&'a self, _question: &'a Question) -> BoxFuture<'a, Answer> {
            Box::pin(async { Answer::Unavailable })
        }
    }

    #[test]
    fn a_call_on_record_has_no_secrets_and_is_still_json() {
        let secrets = Secrets::default();
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let call = |command: &str| ToolCall {
            id: "c".into(),
            name: "shell_command".into(),
            input: Input::Json(serde_json::json!({ "command": command }).to_string()),
        };
        let with = call(&format!("curl -H 'Authorization: Bearer {token}' https://example.org"));
        let item = Item::from(Body::Call(with.clone()));
        let Body::Call(cleaned) = &secrets.clean_item(&item).body else { panic!() };
        assert!(!cleaned.input.as_str().contains(&token), "{cleaned:?}");
        assert!(serde_json::from_str::<serde_json::Value>(cleaned.input.as_str()).is_ok());
        assert_eq!(secrets.kinds_in_call(&with).len(), 1, "{:?}", secrets.kinds_in_call(&with));
        let without = Item::from(Body::Call(call("ls")));
        assert!(matches!(secrets.clean_item(&without), Cow::Borrowed(_)));
        assert!(secrets.kinds_in_call(&call("ls")).is_empty());
        assert!(secrets.kinds_in_call(&call("echo [REDACTED:github-token#1]")).is_empty());
    }
}

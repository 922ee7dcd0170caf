//! Makes values clean: calls, effects, items, events and questions. The arguments of a call and
//! error messages may hold secrets.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use serde::de::IgnoredAny;
use windlass_contract::{
    Clean, Effects, Event, Input, Item, ToolCall, ToolName,
    approval::{Answer, Beyond, Offer, Question, QuestionDetails},
    compaction::{CompactedHistory, FileInUse, WorkNotes},
    event::{FileEdit, Plan},
    hooks::HookRecord,
    item::Body,
    outcome::Refusal,
};
use windlass_seal::CleanSeal;

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

    fn replace(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.clean(text) {
            *text = clean;
        }
    }

    fn replace_files(&self, files: &mut [FileEdit]) {
        for file in files {
            file.path = self.clean_path(&file.path);
            file.move_path = file.move_path.as_deref().map(|path| self.clean_path(path));
        }
    }

    fn replace_refusals(&self, refusals: &mut [Refusal]) {
        for refusal in refusals {
            refusal.tool = self.clean_name(&refusal.tool);
            self.replace(&mut refusal.reason);
        }
    }

    fn replace_plan(&self, Plan { explanation, plan }: &mut Plan) {
        for text in explanation.iter_mut().chain(plan.iter_mut().map(|step| &mut step.step)) {
            self.replace(text);
        }
    }

    /// Cleans a text.
    pub fn clean_text(&self, mut text: String) -> Clean<String> {
        self.replace(&mut text);
        Clean::new(CleanSeal, text)
    }

    /// Cleans an event for any observer. Messages of the model to the person pass unchanged: a
    /// person who asks for a password must get it. A part of the output of a call is cleaned as a
    /// whole text; [`CleanEvents`](crate::CleanEvents) puts the parts together first.
    pub fn clean_event(&self, mut event: Event) -> Clean<Event> {
        match &mut event {
            Event::TurnDiff { diff: text }
            | Event::WebSearch { query: text }
            | Event::Warning { message: text }
            | Event::Retrying { reason: text, .. }
            | Event::CallOutput { text, .. } => self.replace(text),
            Event::CallProgress { message: text, .. } | Event::AgentUpdated { activity: text, .. } => {
                if let Some(text) = text {
                    self.replace(text);
                }
            }
            Event::ApprovalAsked { tool, reason, beyond, .. } => {
                *tool = self.clean_name(tool);
                self.replace(reason);
                *beyond = self.clean_beyond(beyond);
            }
            Event::HookEnded { run, .. } => {
                let HookRecord { hook, reason, context, updated_input, .. } = run;
                let texts = [hook, reason].into_iter().chain(context).chain(updated_input);
                texts.for_each(|text| self.replace(text));
            }
            Event::ApprovalAnswered { tool, answer, rule, .. } => {
                *tool = self.clean_name(tool);
                if let Answer::Deny(message) = answer {
                    self.replace(message);
                }
                if let Some(rule) = rule {
                    self.replace(rule);
                }
            }
            Event::EditStarted { files, .. } | Event::EditEnded { files, .. } => self.replace_files(files),
            // The person reads it, but it is a tool call and may repeat the contents of files.
            Event::PlanUpdated(plan) => self.replace_plan(plan),
            Event::TurnCompleted { refusals, .. } => self.replace_refusals(refusals),
            Event::TurnFailed { message, refusals, .. } => {
                self.replace(message);
                self.replace_refusals(refusals);
            }
            // The parts of these two are clean.
            Event::CallStarted { .. }
            | Event::CallEnded { .. }
            // Made from output without secrets.
            | Event::ColouredOutput { .. }
            | Event::ThreadStarted { .. }
            | Event::TurnStarted
            | Event::UserMessage { .. }
            | Event::ContextUsed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionEnded { .. }
            | Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::Message { .. }
            | Event::Reasoning { .. }
            | Event::InputAwaited { .. } => {}
        }
        Clean::new(CleanSeal, event)
    }

    /// Cleans a call for display and storage.
    pub fn clean_call(&self, call: &ToolCall) -> Clean<ToolCall> {
        let input = match &call.input {
            Input::Json(text) => Input::Json(self.clean_owned(text)),
            Input::Text(text) => Input::Text(self.clean_owned(text)),
            Input::Search(text) => Input::Search(self.clean_owned(text)),
        };
        let call = ToolCall { id: call.id.clone(), name: self.clean_name(&call.name), input };
        Clean::new(CleanSeal, call)
    }

    /// Cleans an item for storage. If a call holds a secret, the provider's verbatim copy of it is
    /// dropped.
    pub fn clean_item<'a>(&self, item: &'a Item) -> Clean<Cow<'a, Item>> {
        let Body::Call(call) = &item.body else { return Clean::new(CleanSeal, Cow::Borrowed(item)) };
        let mut cleaned = self.clean_call(call).into_inner();
        if cleaned == *call {
            return Clean::new(CleanSeal, Cow::Borrowed(item));
        }
        if let Input::Json(text) = &mut cleaned.input
            && text != call.input.as_str()
            && serde_json::from_str::<IgnoredAny>(text).is_err()
        {
            // Must be valid JSON: the item may be sent to a model server again.
            r#"{"redacted":true}"#.clone_into(text);
        }
        Clean::new(CleanSeal, Cow::Owned(Body::Call(cleaned).into()))
    }

    /// Cleans the record of a compaction for storage, like its items alone.
    pub fn clean_compacted(&self, compacted: &CompactedHistory) -> Clean<CompactedHistory> {
        let history = compacted.history.iter().map(|item| self.clean_item(item).into_inner().into_owned());
        let mut plan = compacted.notes.plan.clone();
        if let Some(plan) = &mut plan {
            self.replace_plan(plan);
        }
        let file = |file: &FileInUse| FileInUse { path: self.clean_path(&file.path), changed: file.changed };
        let files = compacted.notes.files.iter().map(file).collect();
        let compacted = CompactedHistory {
            history: history.collect(),
            notes: WorkNotes { plan, files },
            tools: compacted.tools.iter().map(|tool| self.clean_name(tool)).collect(),
            ..*compacted
        };
        Clean::new(CleanSeal, compacted)
    }

    /// Returns the rule names of the secrets in the arguments of a call.
    pub fn kinds_in_call(call: &ToolCall, cleaned: &Clean<ToolCall>) -> Vec<String> {
        new_kinds(call.input.as_str(), cleaned.input.as_str())
    }

    /// Returns the rule names of the secrets in the words of a program. A shell may have joined
    /// them from pieces that are no secrets in the arguments of the call.
    pub fn kinds_in_words(&self, words: &[String]) -> Vec<String> {
        new_kinds(&words.join(" "), &self.clean_words(words).join(" "))
    }

    /// Cleans effects for display and storage.
    pub fn clean_effects(&self, effects: &Effects) -> Clean<Effects> {
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
        Clean::new(CleanSeal, effects)
    }

    /// Cleans a question for an approver. The gate remembers the original question.
    pub fn clean_question(&self, question: &Question) -> Clean<Question> {
        let text = |text: &String| self.clean_owned(text);
        let rule =
            question.rule.as_ref().map(|rule| Offer { toml: text(&rule.toml), allows: text(&rule.allows) });
        let question = Question {
            tool: self.clean_name(&question.tool),
            effects: self.clean_effects(&question.effects).into_inner(),
            cwd: self.clean_path(&question.cwd),
            reason: text(&question.reason),
            beyond: self.clean_beyond(&question.beyond),
            unclear: question.unclear.iter().map(text).collect(),
            keys: question.keys.iter().map(text).collect(),
            rule,
            details: self.clean_details(&question.details),
            ..question.clone()
        };
        Clean::new(CleanSeal, question)
    }

    fn clean_details(&self, details: &QuestionDetails) -> QuestionDetails {
        let texts = |texts: &[String]| texts.iter().map(|text| self.clean_owned(text)).collect();
        QuestionDetails {
            change: self.clean_owned(&details.change),
            creates: details.creates.iter().map(|path| self.clean_path(path)).collect(),
            cause: self.clean_words(&details.cause),
            writes: texts(&details.writes),
            deletes: texts(&details.deletes),
        }
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

#[cfg(test)]
mod tests {
    use windlass_contract::{
        compaction::{CompactionMethod, CompactionReason},
        effects::{CommandLine, Escalation, Typed},
        event::{EditKind, PlanStatus, PlanStep},
    };

    use super::*;

    fn cleaned(argv: &[&str]) -> Vec<String> {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        let effects = Effects::command(CommandLine { argv, cwd: None });
        Secrets::default()
            .clean_effects(&effects)
            .into_inner()
            .command
            .map(|command| command.argv)
            .unwrap_or_default()
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
            Event::CallStarted {
                call: secrets.clean_call(&call),
                effects: secrets.clean_effects(&Effects::write(&path)),
            },
            Event::EditStarted { id: "c1".into(), files: vec![edit.clone()] },
            Event::EditEnded { id: "c1".into(), files: vec![edit], success: true, changed: Vec::new() },
        ];
        for event in events {
            let seen = format!("{:?}", secrets.clean_event(event));
            assert!(!seen.contains("q8Zk2m") && seen.contains("[REDACTED:github-token#1]"), "{seen}");
        }
    }

    #[test]
    fn what_is_typed_is_cleaned() {
        let typed = Typed { to: "bash".to_owned(), text: "export DB_PASSWORD=q8Zk2mPv0Lr7\n".to_owned() };
        let cleaned = Secrets::default()
            .clean_effects(&Effects::typed(typed))
            .into_inner()
            .typed
            .map(|typed| typed.text);
        assert_eq!(cleaned.as_deref(), Some("export DB_PASSWORD=[REDACTED:password#1]\n"));
    }

    #[test]
    fn a_reason_is_cleaned_too() {
        let justification = Some("token: q8Zk2mPv0Lr7Tb4Xc9Wd".to_owned());
        let escalation = Some(Escalation { justification, prefix_rule: Vec::new() });
        let effects = Secrets::default().clean_effects(&Effects { escalation, ..Effects::none() });
        let said = effects.into_inner().escalation.and_then(|escalation| escalation.justification);
        assert_eq!(said.as_deref(), Some("token: [REDACTED:token#1]"));
    }

    #[test]
    fn plans_and_places_in_questions_hold_no_secrets() {
        let secret = format!("ghp_{}", "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2");
        let step = PlanStep { step: format!("log in with {secret}"), status: PlanStatus::Pending };
        let plan = Plan { explanation: Some(secret.clone()), plan: vec![step] };
        let seen = format!("{:?}", Secrets::default().clean_event(Event::PlanUpdated(plan)));
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
            details: QuestionDetails::default(),
        };
        let asked = Secrets::default().clean_question(&question);
        assert!(!format!("{asked:?}").contains(&secret), "{asked:?}");
    }

    #[test]
    fn the_name_of_a_tool_on_record_has_no_secrets() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let input = Input::Json("{not json".into());
        let call = ToolCall { id: "c".into(), name: format!("no-{token}").into(), input: input.clone() };
        let item = Item::from(Body::Call(call));
        let cleaned = Secrets::default().clean_item(&item).into_inner();
        let Body::Call(cleaned) = &cleaned.body else { panic!() };
        assert_eq!((cleaned.name.as_str(), &cleaned.input), ("no-[REDACTED:github-token#1]", &input));
    }

    #[test]
    fn a_compaction_on_record_has_no_secrets() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let input = Input::Json(serde_json::json!({ "command": format!("echo {token}") }).to_string());
        let call = ToolCall { id: "c".into(), name: "shell_command".into(), input };
        let step = PlanStep { step: format!("log in with {token}"), status: PlanStatus::Pending };
        let mut notes =
            WorkNotes { plan: Some(Plan { explanation: None, plan: vec![step] }), files: Vec::new() };
        notes.file_read(Path::new(&format!("/w/{token}")));
        let compacted = CompactedHistory {
            reason: CompactionReason::Window,
            method: CompactionMethod::Rules,
            tokens_before: 2,
            tokens_after: 1,
            history: vec![Body::Call(call).into()],
            opening_items: 0,
            notes,
            tools: vec![format!("x-{token}").into()],
        };
        let cleaned = serde_json::to_string(&Secrets::default().clean_compacted(&compacted)).unwrap();
        assert!(!cleaned.contains(&token), "{cleaned}");
        assert_eq!(cleaned.matches("[REDACTED").count(), 4, "{cleaned}");
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
        let kinds_in_call = |call: &ToolCall| Secrets::kinds_in_call(call, &secrets.clean_call(call));
        assert_eq!(kinds_in_call(&with).len(), 1, "{:?}", kinds_in_call(&with));
        let without = Item::from(Body::Call(call("ls")));
        assert!(matches!(*secrets.clean_item(&without), Cow::Borrowed(_)));
        assert!(kinds_in_call(&call("ls")).is_empty());
        assert!(kinds_in_call(&call("echo [REDACTED:github-token#1]")).is_empty());
    }
}

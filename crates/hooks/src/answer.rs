//! The answer of a hook: its exit code and what it printed.
//!
//! An answer that is not understood is an error, never a yes.

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_contract::{
    hooks::{HookEvent, HookVerdict},
    wording::shortened,
};

/// Maximum number of characters of a reason or a message, and of a text for the model.
const MAX_REASON_CHARS: usize = 2_000;
const MAX_CONTEXT_CHARS: usize = 10_000;

/// The exit code that refuses, with the reason on standard error.
const BLOCKED: i32 = 2;

/// A hook that has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedHook {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error; its end, if it is long.
    pub stderr: Vec<u8>,
}

/// The answer of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookAnswer {
    /// The answer in one word; never a failure.
    pub verdict: HookVerdict,
    /// Reason of the answer.
    pub reason: String,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// The arguments that the call is to have instead.
    pub updated_input: Option<Value>,
    /// The turn is to end, for this reason.
    pub end_turn: Option<String>,
}

impl HookAnswer {
    fn new(verdict: HookVerdict, reason: String) -> Self {
        Self { verdict, reason, context: None, message: None, updated_input: None, end_turn: None }
    }

    /// Reads the answer of a hook that was told about a step. The error is one line.
    pub fn parse(event: HookEvent, ended: &EndedHook) -> Result<Self, String> {
        let errors = String::from_utf8_lossy(&ended.stderr);
        match ended.code {
            0 => Self::parse_output(event, &ended.stdout),
            BLOCKED => {
                let reason = match errors.trim() {
                    "" => "it gave no reason".to_owned(),
                    reason => cleaned(reason, MAX_REASON_CHARS),
                };
                Ok(Self::new(HookVerdict::Deny, reason))
            }
            code => {
                let errors = cleaned(&last_line(&errors), MAX_REASON_CHARS);
                let errors = if errors.is_empty() { errors } else { format!(": {errors}") };
                Err(format!("it exited with {code}{errors}"))
            }
        }
    }

    fn parse_output(event: HookEvent, stdout: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(stdout).map_err(|_| "its output is not UTF-8 text".to_owned())?.trim();
        if text.starts_with('{') {
            let output: HookOutput = serde_json::from_str(text)
                .map_err(|error| format!("its answer is not understood: {error}"))?;
            return output.answer(event);
        }
        let mut answer = Self::new(HookVerdict::Pass, String::new());
        match event {
            _ if text.is_empty() => {}
            HookEvent::UserPromptSubmit | HookEvent::SessionStart => {
                answer.context = Some(cleaned(text, MAX_CONTEXT_CHARS));
            }
            HookEvent::PreToolUse | HookEvent::PermissionRequest => {
                let shown = cleaned(&last_line(text), 100);
                return Err(format!("its answer is not JSON (`{shown}`); messages belong on standard error"));
            }
            _ => {}
        }
        Ok(answer)
    }
}

/// The output of a hook, as it is printed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HookOutput {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<Decision>,
    reason: Option<String>,
    /// An object: a list would be read as one without names.
    hook_specific_output: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecificOutput {
    hook_event_name: Option<String>,
    permission_decision: Option<Decision>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    /// Of `PermissionRequest`.
    decision: Option<RequestDecision>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestDecision {
    behavior: Decision,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    updated_input: Option<Value>,
}

/// A decision, in all words that are in use. A yes is read and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    #[serde(alias = "approve")]
    Allow,
    Ask,
    #[serde(alias = "block")]
    Deny,
}

impl Decision {
    fn verdict(self) -> HookVerdict {
        match self {
            Self::Allow => HookVerdict::Pass,
            Self::Ask => HookVerdict::Ask,
            Self::Deny => HookVerdict::Deny,
        }
    }
}

impl HookOutput {
    fn answer(self, event: HookEvent) -> Result<HookAnswer, String> {
        let specific: SpecificOutput =
            serde_json::from_value(self.hook_specific_output.unwrap_or_default().into())
                .map_err(|error| format!("its answer is not understood: {error}"))?;
        if let Some(name) = specific.hook_event_name.filter(|name| name != event.name()) {
            let name = cleaned(&name, 40);
            return Err(format!("its answer is for `{name}`, and the step is `{event}`"));
        }
        let request = specific.decision;
        let decisions = [self.decision, specific.permission_decision, request.as_ref().map(|it| it.behavior)];
        let is_denied = |decision: &Decision| *decision == Decision::Deny;
        let decisions: Vec<_> = decisions.into_iter().flatten().collect();
        // The strictest one counts.
        let decision = decisions
            .iter()
            .copied()
            .find(is_denied)
            .or_else(|| decisions.iter().copied().max_by_key(|decision| *decision == Decision::Ask));
        let (message, changed) = request.map_or((None, None), |it| (it.message, it.updated_input));
        let reasons = [specific.permission_decision_reason, message, self.reason];
        let reason = reasons.into_iter().flatten().next().unwrap_or_default();
        let text = |text: Option<String>, limit| {
            text.map(|text| cleaned(&text, limit)).filter(|text| !text.trim().is_empty())
        };
        let stops = self.goes_on == Some(false);
        let stop_reason = || self.stop_reason.unwrap_or_else(|| "a hook ended the turn".to_owned());
        let verdict = decision.map_or(HookVerdict::Pass, Decision::verdict);
        let verdict = if stops && event.is_guard() { HookVerdict::Deny } else { verdict };
        let end_turn = stops.then(|| cleaned(&stop_reason(), MAX_REASON_CHARS));
        let reason = if reason.is_empty() { end_turn.clone().unwrap_or_default() } else { reason };
        Ok(HookAnswer {
            verdict,
            reason: cleaned(&reason, MAX_REASON_CHARS),
            context: text(specific.additional_context, MAX_CONTEXT_CHARS),
            message: text(self.system_message, MAX_REASON_CHARS),
            updated_input: specific.updated_input.or(changed),
            end_turn,
        })
    }
}

/// Returns a text without control characters, cut.
fn cleaned(text: &str, max_chars: usize) -> String {
    let visible: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    shortened(visible.trim(), max_chars)
}

fn last_line(text: &str) -> String {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(event: HookEvent, output: &impl ToString) -> Result<HookAnswer, String> {
        let stdout = output.to_string().into_bytes();
        HookAnswer::parse(event, &EndedHook { code: 0, stdout, stderr: Vec::new() })
    }

    fn specific(event: HookEvent, mut fields: Value) -> Value {
        fields["hookEventName"] = json!(event.name());
        json!({"hookSpecificOutput": fields})
    }

    #[test]
    fn an_exit_code_answers() {
        let ended = |code, stderr: &str| EndedHook { code, stdout: b"{".to_vec(), stderr: stderr.into() };
        let blocked = HookAnswer::parse(HookEvent::PreToolUse, &ended(2, "no\u{1b}[31m\n")).unwrap();
        assert_eq!(blocked, HookAnswer::new(HookVerdict::Deny, "no[31m".into()));
        let blocked = HookAnswer::parse(HookEvent::Stop, &ended(2, "")).unwrap();
        assert_eq!(blocked.reason, "it gave no reason");
        let failed = HookAnswer::parse(HookEvent::PreToolUse, &ended(1, "a\nlast\n")).unwrap_err();
        assert_eq!(failed, "it exited with 1: last");
    }

    #[test]
    fn every_word_of_a_decision_is_known_and_a_yes_changes_nothing() {
        let event = HookEvent::PreToolUse;
        for (word, verdict) in [
            ("allow", HookVerdict::Pass),
            ("approve", HookVerdict::Pass),
            ("ask", HookVerdict::Ask),
            ("deny", HookVerdict::Deny),
            ("block", HookVerdict::Deny),
        ] {
            let fields = json!({"permissionDecision": word, "permissionDecisionReason": "why"});
            let answer = printed(event, &specific(event, fields)).unwrap();
            assert_eq!((answer.verdict, answer.reason.as_str()), (verdict, "why"), "{word}");
            let answer = printed(event, &json!({"decision": word, "reason": "why"})).unwrap();
            assert_eq!((answer.verdict, answer.reason.as_str()), (verdict, "why"), "{word}");
            let event = HookEvent::PermissionRequest;
            let fields = json!({"decision": {"behavior": word, "message": "why"}});
            let answer = printed(event, &specific(event, fields)).unwrap();
            assert_eq!((answer.verdict, answer.reason.as_str()), (verdict, "why"), "{word}");
        }
        let mut both = specific(event, json!({"permissionDecision": "allow"}));
        both["decision"] = json!("block");
        assert_eq!(printed(event, &both).unwrap().verdict, HookVerdict::Deny);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let event = HookEvent::PreToolUse;
        for output in [
            "{",
            "{\"decision\": \"maybe\"}",
            "{\"decision\": true}",
            "{\"continue\": \"no\"}",
            "{\"hookSpecificOutput\": []}",
            "{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"permissionDecision\": \"deny\"}}",
            "deny",
            "[]",
            "null",
            "{} {\"decision\": \"block\"}",
        ] {
            assert!(printed(event, &output).is_err(), "{output}");
        }
        let ended = EndedHook { stdout: vec![0xff, 0xfe], ..EndedHook::default() };
        assert!(HookAnswer::parse(event, &ended).is_err());
    }

    #[test]
    fn texts_are_read_bounded_and_without_control_characters() {
        let answer = printed(HookEvent::UserPromptSubmit, &"branch: \u{7}main\n").unwrap();
        assert_eq!(answer.context.as_deref(), Some("branch: main"));
        assert_eq!(printed(HookEvent::Stop, &"a log line").unwrap().context, None);
        let event = HookEvent::PostToolUse;
        let fields = json!({"additionalContext": "x".repeat(50_000), "unknown": 1});
        let mut output = specific(event, fields);
        output["systemMessage"] = json!("seen");
        output["suppressOutput"] = json!(true);
        let answer = printed(event, &output).unwrap();
        assert!(answer.context.unwrap().chars().count() <= MAX_CONTEXT_CHARS + 1);
        assert_eq!(answer.message.as_deref(), Some("seen"));
    }

    #[test]
    fn a_hook_that_ends_the_turn_also_refuses_what_it_guards() {
        let output = json!({"continue": false, "stopReason": "enough"});
        for (event, verdict) in
            [(HookEvent::PreToolUse, HookVerdict::Deny), (HookEvent::PostToolUse, HookVerdict::Pass)]
        {
            let answer = printed(event, &output).unwrap();
            assert_eq!((answer.verdict, answer.end_turn.as_deref()), (verdict, Some("enough")));
        }
        let input = json!({"command": "ls"});
        let event = HookEvent::PreToolUse;
        let fields = json!({"permissionDecision": "allow", "updatedInput": input});
        assert_eq!(printed(event, &specific(event, fields)).unwrap().updated_input, Some(input));
    }
}

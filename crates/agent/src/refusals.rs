//! Tracks refused calls, and whether a later call did the same.

use serde_json::Value;
use windlass_contract::{Effects, Input, ToolCall, outcome::Refusal};
use windlass_runtime::FinishedCall;

/// The refusals of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnRefusals(Vec<RefusedCall>);

/// A refused call, with the data to recognize it.
#[derive(Debug)]
struct RefusedCall {
    refusal: Refusal,
    input: Input,
    effects: Effects,
}

impl TurnRefusals {
    /// Notes the end of a call.
    pub(crate) fn note(&mut self, finished: &FinishedCall) {
        let FinishedCall { call, effects, outcome, .. } = finished;
        if let Some(reason) = &outcome.receipt.refusal {
            let refusal = Refusal {
                call: call.id.clone(),
                tool: call.name.clone(),
                reason: reason.clone(),
                made_up_for: false,
            };
            self.0.push(RefusedCall { refusal, input: call.input.clone(), effects: effects.clone() });
        } else if outcome.verdict.success && !self.0.is_empty() {
            for refused in &mut self.0 {
                refused.refusal.made_up_for |= refused.is_done_by(call, effects);
            }
        }
    }

    pub(crate) fn list(&self) -> Vec<Refusal> {
        self.0.iter().map(|refused| refused.refusal.clone()).collect()
    }
}

impl RefusedCall {
    /// Returns true if a successful call did what this one was refused: it is the same call, ran
    /// the same command, or wrote the same files. Other successes do not count.
    fn is_done_by(&self, call: &ToolCall, effects: &Effects) -> bool {
        let command = &self.effects.command;
        let same_tool = self.refusal.tool == call.name;
        let same_command = command.is_some() && *command == effects.command;
        let writes = &self.effects.writes;
        let same_files = command.is_none()
            && !writes.is_empty()
            && writes.iter().all(|path| effects.writes.contains(path));
        same_tool && (same_command || is_same(&self.input, &call.input)) || same_files
    }
}

/// Returns true if two inputs are equal, ignoring white space and the order of arguments in JSON.
fn is_same(one: &Input, other: &Input) -> bool {
    match (one, other) {
        (Input::Json(one), Input::Json(other)) if one != other => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
            parsed(one).is_some_and(|one| Some(one) == parsed(other))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Outcome, Verdict, effects::CommandLine, outcome::Receipt};
    use windlass_fakes::clean;

    use super::*;

    type TestCall<'a> = (&'a str, &'a str, Effects);

    fn ended(verdict: Verdict, refusal: Option<&str>) -> Outcome {
        Outcome {
            receipt: Receipt { refusal: refusal.map(str::to_owned), ..Receipt::default() },
            ..Outcome::plain(verdict, "")
        }
    }

    /// Returns true if a call with this outcome makes up for a refused one.
    fn makes_up(refused: TestCall<'_>, later: TestCall<'_>, outcome: &Outcome) -> bool {
        let mut refusals = TurnRefusals::default();
        let no = ended(Verdict::failure("no"), Some("no"));
        for ((tool, input, effects), outcome) in [(refused, &no), (later, outcome)] {
            let call = ToolCall { id: "c".into(), name: tool.into(), input: Input::Json(input.into()) };
            let outcome = clean(outcome.clone());
            refusals.note(&FinishedCall { call, arguments: None, effects, outcome });
        }
        refusals.list()[0].made_up_for
    }

    fn runs(line: &str) -> Effects {
        Effects::command(CommandLine { argv: vec!["sh".into(), "-c".into(), line.into()], cwd: None })
    }

    #[test]
    fn the_same_call_the_same_command_or_the_same_files_make_up_for_a_refusal() {
        let asked = ("shell", r#"{"command":"make","why":"I want to"}"#, runs("make"));
        let written = ("write_file", r#"{"path":"/etc/x","content":"1"}"#, Effects::write("/etc/x"));
        let sent = ("send", r#"{"to":"a","text":"b"}"#, Effects::none());
        for (refused, later, expected) in [
            (&asked, ("shell", r#"{"command":"make"}"#, runs("make")), true),
            (&asked, ("shell", r#"{"command":"true"}"#, runs("true")), false),
            (&asked, ("write_file", "{}", Effects::write("make")), false),
            (&written, ("apply_patch", "a patch", Effects::write("/etc/x")), true),
            (&written, ("write_file", "{}", Effects::write("/tmp/x")), false),
            (&written, ("shell", "{}", runs("echo 1 > /tmp/x")), false),
            (&sent, ("send", r#"{ "text": "b", "to": "a" }"#, Effects::none()), true),
            (&sent, ("send", r#"{"to":"a","text":"c"}"#, Effects::none()), false),
            (&sent, ("receive", r#"{"to":"a","text":"b"}"#, Effects::none()), false),
        ] {
            let success = ended(Verdict::success(), None);
            let made_up = makes_up(refused.clone(), later.clone(), &success);
            assert_eq!(made_up, expected, "{refused:?}, then {later:?}");
        }
    }

    #[test]
    fn only_success_makes_up_for_a_refusal_and_every_file_counts() {
        let both = Effects { writes: vec!["a".into(), "b".into()], ..Effects::none() };
        let (one, two) = (("edit", "1", Effects::write("a")), ("edit", "2", both.clone()));
        assert!(!makes_up(two.clone(), one.clone(), &ended(Verdict::success(), None)));
        assert!(makes_up(one.clone(), two.clone(), &ended(Verdict::success(), None)));
        assert!(!makes_up(one.clone(), two, &ended(Verdict::failure("no"), None)));
        assert!(!makes_up(one.clone(), one, &ended(Verdict::failure("no"), Some("no"))));
    }
}

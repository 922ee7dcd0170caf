//! Asks questions and applies the answers.

use std::time::{Duration, Instant};

use windlass_contract::{
    Clean, Event, ToolCall,
    approval::{Answer, AnsweredBy, Question, Reach},
};
use windlass_policy::{RuleFile, Rules, Trust};
use windlass_shape::{Failure, Secrets};

use super::{CommandJudgement, Gate, GateRequest};
use crate::Reason;

/// An approval.
#[derive(Debug)]
pub(super) struct GivenApproval {
    /// The origin of the approval and its duration, in words.
    pub(super) decision: String,
    /// The approval lasts longer than this call.
    pub(super) lasts: bool,
}

impl GivenApproval {
    fn once() -> Self {
        Self { decision: "approved once".to_owned(), lasts: false }
    }

    fn lasting(decision: impl Into<String>) -> Self {
        Self { decision: decision.into(), lasts: true }
    }
}

impl CommandJudgement {
    /// Returns the kinds of secrets in the arguments of the call, and in the words that a shell
    /// makes of them. A rule is stored with those words.
    pub(crate) fn secrets_in(
        &self,
        call: &ToolCall,
        clean_call: &Clean<ToolCall>,
        secrets: &Secrets,
    ) -> Vec<String> {
        // Most words are in the arguments as they are, and searched there.
        let is_made = |word: &String| !call.input.as_str().contains(word.as_str());
        let parts = self.judgement.parts.iter().filter(|part| part.argv.iter().any(is_made));
        let in_words = parts.flat_map(|part| secrets.kinds_in_words(&part.argv));
        let mut kinds = Secrets::kinds_in_call(call, clean_call);
        kinds.extend(in_words);
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

impl Gate {
    /// Asks the question. The event sink gets the question and its answer.
    pub(super) async fn ask(
        &self,
        question: &Question,
        request: &GateRequest<'_>,
    ) -> Result<GivenApproval, Failure> {
        if self.memory.allows(&question.keys) && request.hooked.asked.is_none() {
            answered(question, request, &Answer::Session, AnsweredBy::Session, Duration::ZERO);
            return Ok(GivenApproval::lasting("approved for the session"));
        }
        let Question { call, tool, reason, beyond, effects, .. } = question;
        if let Some(hooks) = request.hooked.hooks
            && self.approver.is_some()
            && let Some(reason) = hooks.before_question(request.call, request.effects, reason).await
        {
            return Err(Failure::Refused(format!("refused by a {reason}")));
        }
        tracing::info!(call.id = %call, tool.name = %tool, "approval asked");
        request.events.emit(Event::ApprovalAsked {
            id: call.clone(),
            tool: tool.clone(),
            reason: reason.clone(),
            outward: effects.outward.clone(),
            beyond: beyond.clone(),
        });
        let began = Instant::now();
        let answer = match &self.approver {
            Some(approver) => {
                let cleaned = self.secrets.clean_question(question);
                self.memory.ask(&**approver, &question.keys, &cleaned).await
            }
            None => Answer::Unavailable,
        };
        let answer = as_offered(question, answer);
        let by = if answer == Answer::Unavailable { AnsweredBy::Nobody } else { AnsweredBy::Person };
        answered(question, request, &answer, by, began.elapsed());
        self.settle(question, request, answer)
    }

    fn settle(
        &self,
        question: &Question,
        request: &GateRequest<'_>,
        answer: Answer,
    ) -> Result<GivenApproval, Failure> {
        match answer {
            Answer::Once => Ok(GivenApproval::once()),
            Answer::Session => Ok(GivenApproval::lasting("approved for the session")),
            Answer::Project => Ok(self.keep(question, Reach::Project)),
            Answer::Always => Ok(self.keep(question, Reach::Everywhere)),
            Answer::Abort => {
                request.stop.stop(Reason::Interrupted);
                Err(Failure::Aborted(Reason::Interrupted.message().to_owned()))
            }
            Answer::Deny(message) if message.is_empty() => {
                Err(Failure::Refused("rejected by user".to_owned()))
            }
            Answer::Deny(message) => Err(Failure::Refused(format!("rejected by user: {message}"))),
            Answer::Unavailable => {
                Err(Failure::Refused(format!("refused: nobody is there to approve it ({})", question.reason)))
            }
        }
    }

    /// Adds the rule that an answer stands for. This call is approved even if that fails.
    fn keep(&self, question: &Question, reach: Reach) -> GivenApproval {
        let Some(rule) = &question.rule else { return GivenApproval::once() };
        let name = match reach {
            Reach::Project => "approved for the project",
            Reach::Everywhere => "approved always",
        };
        if let Ok(made) = Rules::load(&[RuleFile { name, text: &rule.toml, trust: Trust::User }]) {
            self.rules.add(made);
        }
        match self.rulebook.as_ref().map(|rulebook| rulebook.keep(reach, rule)) {
            Some(Ok(())) => GivenApproval::lasting(name),
            Some(Err(error)) => {
                tracing::warn!(%error, "the rule of an answer was not kept");
                GivenApproval::lasting(format!(
                    "approved for the session; its rule could not be kept: {error}"
                ))
            }
            None => GivenApproval::lasting("approved for the session; there is no place to keep its rule"),
        }
    }
}

/// Limits an answer that was not offered to this call.
fn as_offered(question: &Question, answer: Answer) -> Answer {
    match answer {
        Answer::Session if question.keys.is_empty() => Answer::Once,
        Answer::Project | Answer::Always if question.rule.is_none() => Answer::Once,
        offered => offered,
    }
}

/// Reports the answer to the event sink and the log.
fn answered(
    question: &Question,
    request: &GateRequest<'_>,
    answer: &Answer,
    by: AnsweredBy,
    waited: Duration,
) {
    let Question { call, tool, .. } = question;
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    let (said, who) = (answer.name(), by.name());
    tracing::info!(call.id = %call, tool.name = %tool, answer = said, by = who, waited_ms, "approval answered");
    let makes_rule = matches!(answer, Answer::Project | Answer::Always);
    let rule = question.rule.as_ref().filter(|_| makes_rule).map(|rule| rule.allows.clone());
    request.events.emit(Event::ApprovalAnswered {
        id: call.clone(),
        tool: tool.clone(),
        answer: answer.clone(),
        by,
        rule,
        waited,
    });
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Effects, Input, effects::CommandLine};

    use super::*;
    use crate::gate::Policy;

    #[test]
    fn a_secret_that_the_shell_joins_from_pieces_is_found() {
        let (start, end) = ("ghp_q8Zk2mPv0L", "r7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2");
        let gate = Gate::new(Policy::default(), None);
        let kinds = |line: &str| {
            let input = Input::Json(serde_json::json!({ "command": line }).to_string());
            let call = ToolCall { id: "c".into(), name: "shell_command".into(), input };
            let argv = ["bash", "-c", line].map(str::to_owned).to_vec();
            let effects = Effects::command(CommandLine { argv, cwd: None });
            let secrets = Secrets::default();
            gate.judge(&effects).unwrap().secrets_in(&call, &secrets.clean_call(&call), &secrets)
        };
        for line in [
            format!("touch {start}''{end}"),
            format!("touch {start}\\{end}"),
            format!("touch \"{start}\"'{end}'"),
            format!("touch {start}{{{end},x}}"),
            format!("touch {{x,{start}}}{end}"),
            format!("touch $'\\x67{}{end}'", &start[1..]),
            format!("touch {start}\\\n{end}"),
            format!("sudo -u x touch {start}''{end}"),
        ] {
            assert_eq!(kinds(&line), ["github-token"], "{line}");
        }
        assert!(kinds(&format!("touch {start} {end}")).is_empty());
    }
}

//! Questions to the person in front of a client.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use windlass::{
    Answer, Approver, Asker, BoxFuture, Clean, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor,
    Question,
};

use super::live_calls::LiveCalls;
use crate::{ask::FormQuestion, paths::PathDisplay};

/// Asks through the client of the call. Rules that outlive the process are not on offer: a client
/// must not change later sessions.
pub(crate) struct ClientApprover {
    calls: Arc<LiveCalls>,
    paths: PathDisplay,
}

impl ClientApprover {
    /// Creates an approver for clients that work in this directory.
    pub(crate) fn new(calls: &Arc<LiveCalls>, cwd: &Path) -> Self {
        Self { calls: Arc::clone(calls), paths: PathDisplay::seen_from(cwd) }
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some(call) = self.calls.get(&question.call) else { return Answer::Unavailable };
            let Some(elicitor) = &call.elicitor else { return Answer::Unavailable };
            // Others need not wait for the person.
            call.leave_place();
            let answer = ask(&**elicitor, question, &self.paths).await;
            call.take_place().await;
            answer
        })
    }
}

/// Asks about the calls of an agent through the client that has started it.
pub(crate) struct AgentApprover {
    elicitor: Arc<dyn Elicitor>,
    paths: PathDisplay,
}

impl AgentApprover {
    /// Creates an approver for an agent in this directory.
    pub(crate) fn new(elicitor: Arc<dyn Elicitor>, cwd: &Path) -> Self {
        Self { elicitor, paths: PathDisplay::seen_from(cwd) }
    }
}

impl Approver for AgentApprover {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        Box::pin(ask(&*self.elicitor, question, &self.paths))
    }
}

async fn ask(elicitor: &dyn Elicitor, question: &Question, paths: &PathDisplay) -> Answer {
    let form = FormQuestion::new(question, paths);
    let answer = elicitor.elicit(&elicitation(&form)).await;
    understood(&form, &answer)
}

/// Returns the question as a form with one choice. The form is one that all clients know.
fn elicitation(form: &FormQuestion) -> Elicitation {
    let mut choices = vec![("once", form.once.as_str())];
    choices.extend(form.session.as_deref().map(|session| ("session", session)));
    choices.push(("no", "no"));
    let (values, names): (Vec<_>, Vec<_>) = choices.into_iter().unzip();
    let answer = json!({"type": "string", "title": "Allow it?", "enum": values, "enumNames": names});
    let schema = json!({"type": "object", "properties": {"answer": answer}, "required": ["answer"]});
    let form_of_answer = ElicitationForm::Fields { schema };
    Elicitation { asker: Asker::Agent, message: form.message.clone(), form: form_of_answer }
}

/// Returns the answer. Everything that was not on offer is a no.
fn understood(form: &FormQuestion, answer: &ElicitationAnswer) -> Answer {
    let fields = match answer {
        ElicitationAnswer::Accept(fields) => fields,
        ElicitationAnswer::Decline => return Answer::Deny(String::new()),
        ElicitationAnswer::Cancel => return Answer::Unavailable,
    };
    match fields.get("answer").and_then(Value::as_str) {
        Some("once") => Answer::Once,
        Some("session") if form.session.is_some() => Answer::Session,
        Some("no") => Answer::Deny(String::new()),
        _ => Answer::Deny("the answer was not understood".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offered_answer_allows_anything() {
        let form = |session: Option<&str>| FormQuestion {
            message: "m".into(),
            once: "yes".into(),
            session: session.map(str::to_owned),
        };
        let accept = |value| ElicitationAnswer::Accept(value);
        let given = |answer: Value| understood(&form(None), &accept(json!({"answer": answer})));
        assert_eq!(given(json!("once")), Answer::Once);
        for wrong in
            [json!("session"), json!("always"), json!(true), json!(["once"]), json!("ONCE"), Value::Null]
        {
            assert_eq!(given(wrong), Answer::Deny("the answer was not understood".into()));
        }
        let session = understood(&form(Some("s")), &accept(json!({"answer": "session"})));
        assert_eq!(session, Answer::Session);
        assert_eq!(
            understood(&form(None), &accept(json!({}))),
            Answer::Deny("the answer was not understood".into())
        );
        assert_eq!(understood(&form(None), &ElicitationAnswer::Decline), Answer::Deny(String::new()));
        assert_eq!(understood(&form(None), &ElicitationAnswer::Cancel), Answer::Unavailable);
    }
}

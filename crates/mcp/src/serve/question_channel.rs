//! Questions of a call to the person in front of the client, as `elicitation/create`.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
};
use serde_json::{Map, Value};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use windlass_contract::{
    BoxFuture,
    elicitation::{Elicitation, ElicitationAnswer, ElicitationForm, Elicitor},
};

use super::choice_form;

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct AskedQuestion {
    pub(super) params: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitationAnswer>,
}

/// The kinds of questions that a client can ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuestionKinds {
    form: bool,
    url: bool,
}

impl QuestionKinds {
    /// Returns the kinds that a client has declared. `None` if it cannot ask.
    pub(super) fn declared(capabilities: &ClientCapabilities) -> Option<Self> {
        let ElicitationCapability { form, url, .. } = capabilities.elicitation.as_ref()?;
        // The first revision with elicitation had forms only, and no way to say so.
        Some(Self { form: form.is_some() || url.is_none(), url: url.is_some() })
    }
}

/// Hands the questions of one call to the protocol.
#[derive(Debug)]
pub(super) struct QuestionChannel {
    pub(super) kinds: QuestionKinds,
    pub(super) questions: mpsc::Sender<AskedQuestion>,
    pub(super) patience: Duration,
}

impl Elicitor for QuestionChannel {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            let Some(params) = self.params(question) else { return ElicitationAnswer::Decline };
            let (answer, answered) = oneshot::channel();
            let asked = async {
                self.questions.send(AskedQuestion { params, answer }).await.ok()?;
                answered.await.ok()
            };
            // Without an answer in time nothing is granted.
            let answer =
                timeout(self.patience, asked).await.ok().flatten().unwrap_or(ElicitationAnswer::Cancel);
            match &question.form {
                ElicitationForm::Choices { questions } => choice_form::answers(questions, answer),
                ElicitationForm::Fields { .. } | ElicitationForm::Url { .. } => answer,
            }
        })
    }
}

impl QuestionChannel {
    /// Returns the question as the protocol writes it, if the client can ask it.
    fn params(&self, question: &Elicitation) -> Option<ElicitRequestParams> {
        let message = question.message.clone();
        match &question.form {
            ElicitationForm::Fields { schema } if self.kinds.form => form_params(message, schema.clone()),
            ElicitationForm::Choices { questions } if self.kinds.form => {
                let message = choice_form::message(&question.asker, &message, questions);
                form_params(message, choice_form::schema(questions))
            }
            ElicitationForm::Url { url } if self.kinds.url => {
                let (url, elicitation_id) = (url.clone(), random_id()?);
                Some(ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id })
            }
            _ => None,
        }
    }
}

/// Returns a form as the protocol writes it.
fn form_params(message: String, schema: Value) -> Option<ElicitRequestParams> {
    let requested_schema = serde_json::from_value(schema)
        .inspect_err(|error| tracing::warn!(%error, "a question cannot be asked through a client"))
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Returns the answer in a result. A result of another form is a refusal.
pub(super) fn answer_in(result: Value) -> ElicitationAnswer {
    serde_json::from_value(result).map_or(ElicitationAnswer::Decline, answer_of)
}

/// Returns the answer of a client.
pub(super) fn answer_of(result: ElicitResult) -> ElicitationAnswer {
    match result.action {
        ElicitationAction::Accept => match result.content.unwrap_or_else(|| Value::Object(Map::new())) {
            content @ Value::Object(_) => ElicitationAnswer::Accept(content),
            _ => ElicitationAnswer::Decline,
        },
        ElicitationAction::Cancel => ElicitationAnswer::Cancel,
        _ => ElicitationAnswer::Decline,
    }
}

/// Returns an identifier that cannot be guessed.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

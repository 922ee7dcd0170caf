//! `request_user_input`: the model asks the person one to three questions.
//!
//! Only the person answers, through the front end. Without one the call is refused, with the advice
//! to go on.

use std::{collections::BTreeSet, fmt, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    elicitation::{
        Asker, ChoiceOption, ChoiceQuestion, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor,
    },
    meta::{Category, Example},
    tool::ErrorKind,
};
use windlass_shape::Secrets;

/// Maximum number of questions of a call, and of options of a question.
const MAX_QUESTIONS: usize = 3;
const MAX_OPTIONS: usize = 9;

/// Ask the user one to three short questions, and wait for the answers.
///
/// Use it only if the answer changes what you do next and you cannot find it yourself: in the
/// request, in the files, or by a reasonable assumption. Give two or three options that exclude
/// each other, the one you recommend first; the user can always answer something else, so do not
/// add an option such as "other". Never ask for permission to run a tool: run it, and the user is
/// asked if that is needed.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RequestUserInputArgs {
    /// One to three questions.
    questions: Vec<QuestionArgs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct QuestionArgs {
    /// Key of the answer, in snake_case.
    id: String,
    /// Title of at most 12 characters.
    header: String,
    /// The question, in one sentence.
    question: String,
    /// Two or three options.
    #[serde(default)]
    options: Vec<OptionArgs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OptionArgs {
    /// The answer, in one to five words.
    label: String,
    /// What it means or leads to, in one sentence.
    #[serde(default)]
    description: String,
}

/// The way to the person, for the tool `request_user_input`.
#[derive(Clone, Default)]
pub struct UserInput {
    /// The front end. Without one, nobody can be asked.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Secrets that no question shows.
    pub secrets: Secrets,
}

impl fmt::Debug for UserInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserInput").field("is_attended", &self.elicitor.is_some()).finish_non_exhaustive()
    }
}

pub(crate) struct RequestUserInput(pub(crate) UserInput);

impl Tool for RequestUserInput {
    const NAME: &'static str = "request_user_input";
    type Args = RequestUserInputArgs;

    fn effects(&self, _args: &RequestUserInputArgs) -> Effects {
        Effects::none()
    }

    async fn call(&self, args: &RequestUserInputArgs, cx: &Cx) -> Result<Output, ToolError> {
        let questions = self.questions(&args.questions)?;
        let Some(elicitor) = &self.0.elicitor else { return Err(unattended()) };
        let elicitor = elicitor.for_call(&cx.id).unwrap_or_else(|| Arc::clone(elicitor));
        let ids: Vec<_> = questions.iter().map(|question| question.id.clone()).collect();
        let form = ElicitationForm::Choices { questions };
        let question = Elicitation { asker: Asker::Agent, message: String::new(), form };
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            answer = elicitor.elicit(&question) => answer,
        };
        match answer {
            ElicitationAnswer::Accept(answers) => Ok(reply(&ids, &answers).to_string().into()),
            ElicitationAnswer::Decline => Err(unattended()),
            ElicitationAnswer::Cancel => Err(ToolError::failed(
                "request_user_input was cancelled before receiving a response; do not ask the same again: go on with \
                 a reasonable assumption, or end your turn",
            )),
        }
    }

    fn meta(&self) -> Meta {
        let input = r#"{"questions":[{"id":"database","header":"Database","question":"Which database should the tests use?","options":[{"label":"SQLite (recommended)","description":"Needs no server."},{"label":"PostgreSQL","description":"As in production."}]}]}"#;
        Meta {
            category: Category::Planning,
            examples: vec![Example { request: "ask which database the tests should use", input }],
            requests: [
                "ask me which one I prefer",
                "ask the user a question",
                "let me choose between two options",
                "clarify the requirements with me first",
                "问我选择哪一个",
                "向用户提问",
                "让我在两个选项中选择",
                "先跟我确认需求",
            ]
            .map(str::to_owned)
            .into(),
            returns: "the answers as JSON".to_owned(),
            parallel: false,
            ..Meta::default()
        }
    }
}

impl RequestUserInput {
    /// Returns the questions as the person may see them.
    fn questions(&self, args: &[QuestionArgs]) -> Result<Vec<ChoiceQuestion>, ToolError> {
        if !(1..=MAX_QUESTIONS).contains(&args.len()) {
            let message =
                format!("request_user_input takes 1 to {MAX_QUESTIONS} questions, found {}", args.len());
            return Err(ToolError::bad_input(message));
        }
        if args.iter().any(|question| question.options.is_empty()) {
            return Err(ToolError::bad_input(
                "request_user_input requires non-empty options for every question",
            ));
        }
        if args.iter().any(|question| question.options.len() > MAX_OPTIONS) {
            let message = format!("request_user_input takes at most {MAX_OPTIONS} options for a question");
            return Err(ToolError::bad_input(message));
        }
        let ids: BTreeSet<_> = args.iter().map(|question| question.id.as_str()).collect();
        if ids.len() < args.len() {
            return Err(ToolError::bad_input(
                "request_user_input requires a different `id` for every question",
            ));
        }
        let clean = |text: &String| self.0.secrets.clean(text).into_owned();
        let questions = args.iter().map(|question| ChoiceQuestion {
            id: question.id.clone(),
            header: clean(&question.header),
            question: clean(&question.question),
            options: question
                .options
                .iter()
                .map(|option| ChoiceOption {
                    label: clean(&option.label),
                    description: clean(&option.description),
                })
                .collect(),
        });
        Ok(questions.collect())
    }
}

/// Returns the answers in the form that models of this family know. A question without an answer
/// has an empty list.
fn reply(ids: &[String], answers: &Value) -> Value {
    let answered = ids.iter().map(|id| {
        let given: Vec<_> = answers.get(id).and_then(Value::as_str).into_iter().collect();
        (id.clone(), json!({ "answers": given }))
    });
    json!({ "answers": answered.collect::<Map<_, _>>() })
}

fn unattended() -> ToolError {
    ToolError::new(
        ErrorKind::Failed,
        "request_user_input is unavailable: nobody can be asked in this session; decide yourself what fits the \
         request best, go on, and name your assumption in your answer",
    )
}

#[cfg(test)]
mod tests {
    use std::{future, sync::Mutex};

    use windlass_contract::{BoxFuture, erase};

    use super::*;
    use crate::fakes::ToolHarness;

    /// A person who gives one answer, and remembers the question.
    struct Person {
        answer: Option<ElicitationAnswer>,
        asked: Mutex<Vec<Elicitation>>,
    }

    impl Elicitor for Person {
        fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
            self.asked.lock().unwrap().push(question.clone());
            match self.answer.clone() {
                Some(answer) => Box::pin(async { answer }),
                None => Box::pin(future::pending()),
            }
        }
    }

    fn person(answer: Option<ElicitationAnswer>) -> (Arc<Person>, RequestUserInput) {
        let person = Arc::new(Person { answer, asked: Mutex::default() });
        let elicitor: Arc<dyn Elicitor> = person.clone();
        (person, RequestUserInput(UserInput { elicitor: Some(elicitor), secrets: Secrets::default() }))
    }

    fn question(id: &str) -> Value {
        json!({"id": id, "header": "H", "question": "Q?", "options": [{"label": "a", "description": "b"}]})
    }

    fn input(questions: &[Value]) -> String {
        json!({ "questions": questions }).to_string()
    }

    async fn call(tool: RequestUserInput, input: &str) -> Result<Output, ToolError> {
        ToolHarness::idle().call(erase(tool), input).await
    }

    #[tokio::test]
    async fn the_answers_come_by_the_ids_of_the_questions() {
        let answers = json!({"one": "a", "three": "x", "other": "not asked for", "two": 5});
        let (person, tool) = person(Some(ElicitationAnswer::Accept(answers)));
        let input = input(&["one", "two", "three"].map(question));
        let output = call(tool, &input).await.unwrap();
        let expected =
            r#"{"answers":{"one":{"answers":["a"]},"two":{"answers":[]},"three":{"answers":["x"]}}}"#;
        let given: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(output, given.to_string().into());
        let asked = person.asked.lock().unwrap();
        let [Elicitation { asker: Asker::Agent, form: ElicitationForm::Choices { questions }, .. }] =
            &asked[..]
        else {
            panic!("{asked:?}")
        };
        assert_eq!(questions.len(), 3);
    }

    #[tokio::test]
    async fn without_a_person_the_model_learns_to_go_on() {
        let nobody = RequestUserInput(UserInput::default());
        let input = input(&[question("a")]);
        let error = call(nobody, &input).await.unwrap_err();
        assert!(
            error.message.starts_with("request_user_input is unavailable: nobody can be asked"),
            "{error}"
        );
        let (_, tool) = person(Some(ElicitationAnswer::Decline));
        assert_eq!(call(tool, &input).await.unwrap_err().message, error.message);
        let (_, tool) = person(Some(ElicitationAnswer::Cancel));
        let error = call(tool, &input).await.unwrap_err();
        assert!(
            error.message.starts_with("request_user_input was cancelled before receiving a response"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn questions_that_make_no_sense_are_not_asked() {
        let mut bare = question("a");
        bare["options"] = json!([]);
        let mut long = question("a");
        long["options"] = json!(vec![json!({"label": "x"}); 10]);
        for (questions, expected) in [
            (vec![], "1 to 3 questions, found 0"),
            (["a", "b", "c", "d"].map(question).to_vec(), "found 4"),
            (vec![bare], "request_user_input requires non-empty options for every question"),
            (vec![long], "at most 9 options"),
            (vec![question("a"), question("a")], "a different `id`"),
        ] {
            let (person, tool) = person(None);
            let error = call(tool, &input(&questions)).await.unwrap_err();
            assert!(error.kind == ErrorKind::BadInput && error.message.contains(expected), "{error}");
            assert!(person.asked.lock().unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_takes_its_question_back() {
        let (_, tool) = person(None);
        let harness = ToolHarness::idle();
        harness.cx.cancel.cancel();
        let error = harness.call(erase(tool), &input(&[question("a")])).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled);
    }

    #[tokio::test]
    async fn a_question_shows_no_secret() {
        let (person, tool) = person(Some(ElicitationAnswer::Cancel));
        let mut leaky = question("a");
        let secret = ["ghp_q8Zk2mPv0L", "r7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2"].concat();
        leaky["question"] = json!(format!("Is {secret} right?"));
        call(tool, &input(&[leaky])).await.unwrap_err();
        assert!(!format!("{:?}", person.asked.lock().unwrap()).contains(&secret));
    }
}

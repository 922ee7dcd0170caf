//! Tests of the question to a reviewer, and of the use of its answer.

use windlass_contract::{
    Input, Verdict,
    model::{Finish, ModelError, ModelInfo, ModelStream},
};

use super::*;

/// Answers every prompt with this text, and keeps the prompts.
struct FakeModel {
    info: ModelInfo,
    says: &'static str,
    heard: Mutex<Vec<(String, Option<Value>, usize)>>,
}

struct FakeStream(Vec<ModelEvent>);

impl ModelClient for FakeModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let Body::Message { content, .. } = &prompt.history[0].get().body else { panic!("not a message") };
        let heard = (Content::join(content), prompt.output_schema.cloned(), prompt.tools.get().len());
        self.heard.lock().unwrap().push(heard);
        let done = ModelEvent::Completed {
            usage: Some(Usage { output_tokens: 7, ..Usage::default() }),
            finish: Finish::Done,
        };
        let said = ModelEvent::Item(Item::message(Role::Assistant, self.says.to_owned()));
        Box::pin(async { Ok(Box::new(FakeStream(vec![done, said])) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for FakeStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async { self.0.pop().map(Ok) })
    }
}

async fn opinion(says: &'static str, result: &str) -> (Result<Opinion, String>, String, Value, usize) {
    let info = ModelInfo {
        provider: "p".into(),
        model: "m".into(),
        wire: "fake",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    let model = Arc::new(FakeModel { info, says, heard: Mutex::default() });
    let turn = Arc::new(ReviewExchange::default());
    turn.begin(&[Content::Text("make it so".into())]);
    let call = ToolCall { id: "c".into(), name: "write_file".into(), input: Input::Json("{}".into()) };
    let outcome = Outcome::plain(Verdict::success(), result);
    let reviewer =
        ModelReviewer::new(Arc::clone(&model) as _, "t".into(), Arc::clone(&turn), Secrets::default());
    let opinion = reviewer.review(&call, &outcome).await;
    assert_eq!((turn.cost().output_tokens, turn.cost().output_tokens), (7, 0), "the turn is charged once");
    let (text, schema, tools) = model.heard.lock().unwrap().remove(0);
    (opinion, text, schema.unwrap(), tools)
}

#[tokio::test]
async fn the_model_is_shown_the_case_and_no_tools_and_must_answer_in_form() {
    let says = r#"{"success":false,"confidence":80,"reasons":["wrong file"],"suggestions":[]}"#;
    let (opinion, text, schema, tools) = opinion(says, "written").await;
    let wanted =
        Opinion { success: false, confidence: 80, reasons: vec!["wrong file".into()], suggestions: vec![] };
    assert_eq!(opinion, Ok(wanted));
    let case: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(case["request"], "make it so");
    assert_eq!((&case["tool"], &case["result"]), (&json!("write_file"), &json!("written")));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(tools, 0);
}

#[tokio::test]
async fn an_answer_in_another_form_is_no_opinion() {
    let (opinion, ..) = opinion("It went well.", "written").await;
    assert!(opinion.unwrap_err().starts_with("its answer is not the JSON that was asked for"));
}

#[tokio::test]
async fn a_long_result_is_shown_in_part() {
    let (_, text, ..) = opinion("{}", &"word ".repeat(100_000)).await;
    assert!(text.len() < 20_000, "{} bytes", text.len());
}

#[tokio::test]
async fn what_the_model_says_is_cleaned_and_kept_short() {
    let says = r#"{"success":false,"confidence":80,"reasons":["a\nb DB_PASSWORD=q8Zk2mPv0Lr7","","","","",""],"suggestions":[]}"#;
    let (told, ..) = opinion(says, "written").await;
    let reasons = told.unwrap().reasons;
    assert_eq!((reasons.len(), reasons[0].as_str()), (5, "a b DB_PASSWORD=[REDACTED:password#1]"));
    let long = format!(
        r#"{{"success":false,"confidence":8,"reasons":["{}DB_PASSWORD=q8Zk2mPv0Lr7"],"suggestions":[]}}"#,
        "a ".repeat(141)
    );
    let (told, ..) = opinion(long.leak(), "written").await;
    assert!(told.unwrap().reasons[0].ends_with("DB_PASSWORD=[REDAC"));
}

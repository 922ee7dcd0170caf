//! Questions of servers to people, and other requests of servers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use windlass_contract::{
    BoxFuture,
    elicitation::{Asker, Elicitation, ElicitationAnswer, ElicitationForm, Elicitor},
};
use windlass_mcp::pool::RemoteError;

use crate::{TestPool, text};

/// Accepts everything with a name, after a time.
#[derive(Default)]
struct WillingPerson {
    asked: Mutex<Vec<Elicitation>>,
    asking_now: AtomicUsize,
    thinks: Duration,
}

impl Elicitor for WillingPerson {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        Box::pin(async move {
            assert_eq!(self.asking_now.fetch_add(1, Ordering::SeqCst), 0, "two questions at once");
            self.asked.lock().unwrap().push(question.clone());
            tokio::time::sleep(self.thinks).await;
            self.asking_now.fetch_sub(1, Ordering::SeqCst);
            ElicitationAnswer::Accept(json!({"name": "Ada"}))
        })
    }
}

fn ask(times: u64) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"times": times, "request": {"method": "elicitation/create", "params":
        {"message": "who\u{1b}[1m?", "requestedSchema": schema}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_reaches_the_person_and_the_answer_the_server() {
    let mut test = TestPool::new(&["plain", "modern"]);
    let person = Arc::new(WillingPerson::default());
    test.elicitor = Some(Arc::clone(&person) as _);
    let result = test.call_with("plain", "ask", ask(1)).await.unwrap();
    let said: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(said["last"], json!({"action": "accept", "content": {"name": "Ada"}}));
    let asked = person.asked.lock().unwrap().remove(0);
    assert_eq!((&asked.asker, asked.message.as_str()), (&Asker::Server("plain".to_owned()), "who[1m?"));
    assert!(matches!(asked.form, ElicitationForm::Fields { .. }));
    let result = test.call_with("modern", "input", json!({"rounds": 1})).await.unwrap();
    assert_eq!(text(&result), r#"{"who":{"action":"accept","content":{"name":"Ada"}}}"#);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_opened_without_sending_fields() {
    let mut test = TestPool::new(&["plain"]);
    test.elicitor = Some(Arc::new(WillingPerson::default()));
    let request = json!({"times": 1, "request": {"method": "elicitation/create", "params":
        {"mode": "url", "message": "m", "url": "https://a.test/x", "elicitationId": "1"}}});
    let result = test.call_with("plain", "ask", request).await.unwrap();
    let said: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(said["last"], json!({"action": "accept"}));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_in_a_loop_end_after_eight() {
    let mut test = TestPool::new(&["plain"]);
    let person = Arc::new(WillingPerson::default());
    test.elicitor = Some(Arc::clone(&person) as _);
    let result = test.call_with("plain", "ask", ask(50)).await.unwrap();
    let said: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!((&said["accepted"], &said["last"]), (&json!(8), &json!({"action": "decline"})));
    assert_eq!(person.asked.lock().unwrap().len(), 8);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_without_a_person_is_declined() {
    let test = TestPool::new(&["plain"]);
    let result = test.call_with("plain", "ask", ask(1)).await.unwrap();
    assert!(text(&result).contains(r#"{"action":"decline"}"#), "{}", text(&result));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_the_person_is_not_the_time_of_the_call() {
    let mut test = TestPool::with(&["plain"], &json!({"tool_timeout_sec": 0.5}));
    let thinks = Duration::from_millis(1500);
    test.elicitor = Some(Arc::new(WillingPerson { thinks, ..WillingPerson::default() }));
    let result = test.call_with("plain", "ask", ask(1)).await.unwrap();
    assert!(text(&result).contains("Ada"), "{}", text(&result));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_are_the_workspace_and_sampling_is_refused() {
    let test = TestPool::new(&["plain"]);
    let roots = json!({"times": 1, "request": {"method": "roots/list"}});
    let result = test.call_with("plain", "ask", roots).await.unwrap();
    assert!(text(&result).contains(r#""uri":"file:///""#), "{}", text(&result));
    let sampling = json!({"times": 1, "request": {"method": "sampling/createMessage",
        "params": {"messages": [], "maxTokens": 1}}});
    let result = test.call_with("plain", "ask", sampling).await.unwrap();
    assert!(text(&result).contains(r#""error":-32601"#), "{}", text(&result));
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_needs_a_page_goes_on_after_the_person_opened_it() {
    let mut test = TestPool::new(&["plain"]);
    let error = test.call("plain", "page").await.unwrap_err();
    assert!(matches!(error, RemoteError::Protocol { code: -32042, .. }), "{error}");
    test.close().await;

    test = TestPool::new(&["plain"]);
    let person = Arc::new(WillingPerson::default());
    test.elicitor = Some(Arc::clone(&person) as _);
    assert_eq!(text(&test.call("plain", "page").await.unwrap()), "opened");
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    test.close().await;
}
